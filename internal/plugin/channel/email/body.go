package email

import (
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"mime/quotedprintable"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-imap/v2"
	"golang.org/x/net/html/charset"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxParts  = 100       // of a mail
	maxNested = 30        // levels of parts
	maxTexts  = 10        // texts of a mail
	maxBody   = 400 << 10 // encoded bytes of a text that are read
)

// part is a part of a mail that is no container.
type part struct {
	path     []int
	kind     string            // such as text/plain
	params   map[string]string // of the type
	encoding string
	size     int // encoded
	name     string
	attached bool // not to be shown in the text
}

// place returns the number of a part, such as 2.1.
func (p part) place() string {
	s := make([]string, len(p.path))
	for i, n := range p.path {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ".")
}

// bytes estimates the size of the content.
func (p part) bytes() int {
	if p.encoding == "base64" { // lines of 76 characters
		return p.size / 78 * 57
	}
	return p.size
}

// text is a text in one or two forms.
type text struct{ plain, html *part }

// content is what a mail contains.
type content struct {
	texts     []text
	files     []part
	encrypted bool // cannot be read
	report    bool // a delivery report or another report of a program
}

// contentOf returns what is in a mail.
func contentOf(bs imap.BodyStructure) content {
	w := &walker{}
	if _, ok := bs.(*imap.BodyStructureSinglePart); ok {
		return w.walk(bs, []int{1}, 0)
	}
	return w.walk(bs, nil, 0)
}

// walker counts parts.
type walker struct{ parts int }

func (w *walker) walk(bs imap.BodyStructure, at []int, depth int) (c content) {
	if w.parts++; w.parts > maxParts || depth > maxNested {
		return c
	}
	switch bs := bs.(type) {
	case *imap.BodyStructureSinglePart:
		return single(bs, at)
	case *imap.BodyStructureMultiPart:
		var children []content
		for i, child := range bs.Children {
			children = append(children, w.walk(child, append(slices.Clone(at), i+1), depth+1))
		}
		switch strings.ToLower(bs.Subtype) {
		case "alternative":
			c = alternative(children)
		case "encrypted":
			c.encrypted = true
			return c
		case "report":
			c.report = true
			fallthrough
		default:
			for _, child := range children {
				c.texts = append(c.texts, child.texts...)
			}
		}
		for _, child := range children {
			c.files = append(c.files, child.files...)
			c.encrypted = c.encrypted || child.encrypted
			c.report = c.report || child.report
		}
	}
	return c
}

// alternative returns the forms of one text.
func alternative(children []content) (c content) {
	var one text
	var more []text
	for _, child := range children {
		for i, t := range child.texts {
			if i > 0 { // an alternative of several texts
				more = append(more, t)
				continue
			}
			one.plain, one.html = cmp.Or(one.plain, t.plain), cmp.Or(t.html, one.html)
		}
	}
	if one != (text{}) {
		c.texts = append(c.texts, one)
	}
	if one.plain == nil {
		c.texts = append(c.texts, more...)
	}
	return c
}

func single(bs *imap.BodyStructureSinglePart, at []int) (c content) {
	p := part{
		path:     at,
		kind:     clip(bs.MediaType()),
		params:   bs.Params,
		encoding: strings.ToLower(bs.Encoding),
		size:     int(min(bs.Size, 1<<30)),
	}
	switch p.encoding {
	case "base64", "quoted-printable":
	default:
		p.encoding = ""
	}
	if d := bs.Disposition(); d != nil {
		p.attached = strings.EqualFold(d.Value, "attachment")
		p.name = fileName(d.Params, "filename")
	}
	p.name = cmp.Or(p.name, fileName(bs.Params, "name"))
	switch {
	case p.kind == "text/plain" && !p.attached && p.name == "":
		c.texts = []text{{plain: &p}}
	case p.kind == "text/html" && !p.attached && p.name == "":
		c.texts = []text{{html: &p}}
	case p.kind == "application/pgp-signature", p.kind == "application/pkcs7-signature",
		p.kind == "application/x-pkcs7-signature":
	case p.kind == "application/pkcs7-mime" && !strings.EqualFold(bs.Params["smime-type"], "signed-data"):
		c.encrypted = true
	case p.kind == "message/delivery-status", p.kind == "message/disposition-notification":
		c.report = true
	default:
		if p.name == "" && bs.MessageRFC822 != nil {
			subject := ""
			if e := bs.MessageRFC822.Envelope; e != nil {
				subject = decode(e.Subject, maxName)
			}
			p.name = strings.Map(func(r rune) rune {
				if r == '/' || r == '\\' {
					return '-'
				}
				return r
			}, cmp.Or(subject, "message")) + ".eml"
		}
		c.files = []part{p}
	}
	return c
}

func clip(s string) string { return humanize.TruncateBytes(humanize.OneLine(s), maxName) }

// fileName returns the name of a file in the parameters of a header, in one of the forms
// of RFC 2231.
func fileName(params map[string]string, key string) string {
	name := params[key]
	if v, ok := params[key+"*"]; ok {
		name = extended(v)
	} else if _, ok := params[key+"*0"]; ok || hasProp(params, key+"*0*") {
		var b strings.Builder
		coded := hasProp(params, key+"*0*")
		for i := range maxParts {
			k := key + "*" + strconv.Itoa(i)
			if v, ok := params[k+"*"]; ok {
				b.WriteString(v)
			} else if v, ok := params[k]; ok {
				if coded {
					v = url.PathEscape(v)
				}
				b.WriteString(v)
			} else {
				break
			}
		}
		if name = b.String(); coded {
			name = extended(name)
		}
	}
	if name = decode(name, maxName*2); name == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(name, `\`, "/"))
}

// extended decodes a value such as utf-8'en'%e2%82%ac.
func extended(s string) string {
	label, rest, ok := strings.Cut(s, "'")
	_, value, ok2 := strings.Cut(rest, "'")
	if !ok || !ok2 {
		value, label = s, ""
	}
	raw, err := url.PathUnescape(value)
	if err != nil {
		return value
	}
	return characters([]byte(raw), label)
}

// characters returns a text in a character set as valid UTF-8.
func characters(data []byte, label string) string {
	if r, err := charset.NewReaderLabel(cmp.Or(label, "utf-8"), strings.NewReader(string(data))); err == nil &&
		(label != "" || utf8.Valid(data)) {
		if out, err := io.ReadAll(io.LimitReader(r, 4*maxBody)); err == nil {
			return strings.ToValidUTF8(string(out), "\uFFFD")
		}
	}
	if utf8.Valid(data) {
		return string(data)
	}
	if r, err := charset.NewReaderLabel("windows-1252", strings.NewReader(string(data))); err == nil {
		if out, err := io.ReadAll(r); err == nil {
			return string(out)
		}
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// transfer decodes a transfer encoding.
func transfer(r io.Reader, encoding string) io.Reader {
	switch encoding {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, &alphabet{r: r})
	case "quoted-printable":
		return quotedprintable.NewReader(r)
	}
	return r
}

// alphabet passes only the characters of base64.
type alphabet struct{ r io.Reader }

func (a *alphabet) Read(p []byte) (int, error) {
	for {
		n, err := a.r.Read(p)
		kept := 0
		for _, c := range p[:n] {
			if c == '+' || c == '/' || c == '=' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
				p[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil || len(p) == 0 {
			return kept, err
		}
	}
}

// decodeText returns the text of a part. What cannot be decoded is left out.
func decodeText(p part, data []byte) string {
	decoded, err := io.ReadAll(transfer(strings.NewReader(string(data)), p.encoding))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && len(decoded) == 0 {
		decoded = data
	}
	if len(data) >= maxBody { // an incomplete character at the end
		decoded = humanize.TrimPartial(decoded)
	}
	s := characters(decoded, p.params["charset"])
	s = humanize.Breaks(s)
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFEFF' {
			return -1
		}
		return r
	}, s)
	if p.kind == "text/plain" && strings.EqualFold(p.params["format"], "flowed") {
		s = unflow(s, strings.EqualFold(p.params["delsp"], "yes"))
	}
	return s
}

// unflow joins the lines of a text with the format "flowed" (RFC 3676).
func unflow(s string, delete bool) string {
	var out []string
	open, depth := false, 0 // the last line continues, at a depth of quotation
	for line := range strings.SplitSeq(s, "\n") {
		body := strings.TrimLeft(line, ">")
		d := len(line) - len(body)
		body = strings.TrimPrefix(body, " ")
		flows := strings.HasSuffix(body, " ") && body != "-- "
		if flows && delete {
			body = strings.TrimSuffix(body, " ")
		}
		if open && d == depth && body != "-- " {
			out[len(out)-1] += body
		} else if d > 0 {
			out = append(out, strings.Repeat(">", d)+" "+body)
		} else {
			out = append(out, body)
		}
		open, depth = flows, d
	}
	return strings.Join(out, "\n")
}
