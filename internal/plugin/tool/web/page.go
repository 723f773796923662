package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/plugin/tool/web/pdf"
)

// fetch fetches a page and extracts its text.
func (f *fetcher) fetch(ctx context.Context, u *url.URL, markdown bool) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header = f.header.Clone()
	resp, err := f.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, more, err := readSome(resp, f.MaxBytes)
	if err != nil {
		return nil, err
	}
	p := &page{final: resp.Request.URL.Redacted(), status: resp.StatusCode, fetchedAt: time.Now()}
	if more {
		p.warning = fmt.Sprintf("only the first %d bytes were read", len(body))
	}
	p.kind, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if p.kind == "" || p.kind == "application/octet-stream" {
		p.kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	f.read(ctx, p, body, resp.Header.Get("Content-Type"), resp.Request.URL, markdown)
	if p.status >= 400 {
		p.text, _ = substring(p.text, 0, maxErrorText)
		p.image = nil
	}
	p.title, _ = substring(p.title, 0, 256)
	p.text = strings.ToValidUTF8(p.text, "\uFFFD")
	return p, nil
}

// readSome reads at most n bytes of a response, and reports whether there are
// more. If the response breaks off, the part that was read is returned.
func readSome(resp *http.Response, n int64) (body []byte, more bool, err error) {
	var b bytes.Buffer
	if l := min(resp.ContentLength, n); l > 0 && !resp.Uncompressed {
		b.Grow(int(l) + bytes.MinRead)
	}
	_, err = b.ReadFrom(io.LimitReader(resp.Body, n+1))
	if err != nil && b.Len() == 0 {
		return nil, false, err
	}
	if more = err != nil || int64(b.Len()) > n; more {
		b.Truncate(int(min(int64(b.Len()), n)))
	}
	return b.Bytes(), more, nil
}

// read extracts the text of a body according to its type.
func (f *fetcher) read(ctx context.Context, p *page, body []byte, contentType string, at *url.URL, markdown bool) {
	switch kind := p.kind; {
	case kind == "text/html", kind == "application/xhtml+xml":
		p.title, p.text, p.extractor = extract(body, contentType, at, markdown, !f.Whole)
		if p.text == "" && len(body) > 0 {
			p.warn("the page has no text without running its scripts")
		}
	case kind == "application/json", strings.HasSuffix(kind, "+json"):
		p.text, p.extractor = pretty(body), "json"
	case kind == "application/pdf":
		p.pdf(ctx, body)
	case displayable(kind, body):
		p.image, p.extractor = body, "image"
		if p.warning != "" {
			p.image = nil
			p.warn("the image is too large to show")
		}
	case strings.HasPrefix(kind, "text/"), isText(kind), !looksBinary(body) && !strings.Contains(kind, "/"):
		b, err := io.ReadAll(decoded(body, contentType))
		if err != nil {
			p.warn(err.Error())
		}
		p.text, p.extractor = string(b), "raw"
	default:
		p.extractor = "none"
		p.warn(fmt.Sprintf("%s, %d bytes: the content is not text", cmp.Or(kind, "an unknown type"), len(body)))
	}
}

// Text returns the text of a document of a type: an HTML page as Markdown, the text of a
// PDF, or text in any encoding.
func Text(ctx context.Context, kind string, body []byte) (string, error) {
	p := &page{kind: kind}
	f := &fetcher{FetchOptions: FetchOptions{Whole: true}}
	f.read(ctx, p, body, kind, &url.URL{}, true)
	if p.text == "" && p.warning != "" {
		return "", errors.New(p.warning)
	}
	return p.text, ctx.Err()
}

func (p *page) warn(s string) {
	if p.warning != "" {
		s = p.warning + "; " + s
	}
	p.warning = s
}

// displayable reports whether a body is an image of a type that models
// accept.
func displayable(kind string, body []byte) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return http.DetectContentType(body) == kind
	}
	return false
}

// isText reports whether a media type outside text/ is text.
func isText(kind string) bool {
	switch kind {
	case "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/yaml", "application/x-yaml",
		"application/toml", "application/sql", "application/x-sh", "application/x-ndjson", "application/graphql",
		"application/x-www-form-urlencoded",
		"image/svg+xml":
		return true
	}
	return strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

func looksBinary(b []byte) bool {
	return bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(humanize.TrimPartial(b))
}

// pretty returns indented JSON. Invalid JSON, and JSON that would grow too
// much, is returned unchanged.
func pretty(body []byte) string {
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	var b bytes.Buffer
	if indentation(body) > 3*len(body)+1000 || json.Indent(&b, body, "", "  ") != nil {
		return string(body)
	}
	return b.String()
}

// indentation returns the number of bytes that indenting would add to JSON.
func indentation(body []byte) int {
	n, depth, quoted := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
			n += 1 + 2*depth
		case c == ']', c == '}':
			depth--
			n += 1 + 2*depth
		case c == ',':
			n += 1 + 2*depth
		}
	}
	return n
}

// pdf extracts the text of a PDF.
func (p *page) pdf(ctx context.Context, body []byte) {
	text, pages, err := pdf.Text(ctx, body)
	switch {
	case err != nil:
		p.extractor = "none"
		p.warn("no text: " + err.Error())
	case text == "":
		p.extractor = "none"
		p.warn(fmt.Sprintf("the PDF has %d pages without text; it may be scanned", pages))
	default:
		p.text, p.extractor = text, "pdf"
	}
}
