package email

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/mail"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
	"golang.org/x/net/idna"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxHeader  = 128 << 10 // bytes of a header that are read
	maxFields  = 2000
	maxAddress = 200 // bytes
	maxID      = 250 // bytes of a message id
	maxName    = 100 // bytes of a display name
	maxSubject = 200 // bytes
)

// field is a field of a header.
type field struct {
	key   string // in lower case
	value string // unfolded
}

// header is a header in the order of its fields. The topmost field was added last.
type header []field

// parseHeader parses a header. Lines that are no fields are skipped.
func parseHeader(data []byte) header {
	var h header
	for len(data) > 0 && len(h) < maxFields {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break // the end of the header
		}
		s := strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r == 0x7f {
				return ' '
			}
			return r
		}, string(line))
		if s[0] == ' ' || s[0] == '\t' {
			if n := len(h); n > 0 {
				h[n-1].value = strings.TrimSpace(h[n-1].value + " " + strings.TrimSpace(s))
			}
			continue
		}
		key, value, ok := strings.Cut(s, ":")
		key = strings.TrimRight(key, " \t")
		if !ok || key == "" || strings.ContainsAny(key, " \t") {
			h = append(h, field{}) // what follows does not continue the field before
			continue
		}
		h = append(h, field{strings.ToLower(key), strings.TrimSpace(value)})
	}
	return h
}

// all returns the values of a field, the topmost first.
func (h header) all(key string) []string {
	var out []string
	for _, f := range h {
		if f.key == key {
			out = append(out, f.value)
		}
	}
	return out
}

// get returns the topmost value of a field; "": there is none.
func (h header) get(key string) string {
	for _, f := range h {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// has reports whether there is a field.
func (h header) has(key string) bool {
	for _, f := range h {
		if f.key == key {
			return true
		}
	}
	return false
}

// wordDecoder decodes the words of headers that are not ASCII.
var wordDecoder = &mime.WordDecoder{CharsetReader: charset.NewReaderLabel}

// decode returns a value for people: with its words decoded, in one line, of at most most
// bytes.
func decode(s string, most int) string {
	if d, err := wordDecoder.DecodeHeader(s); err == nil {
		s = d
	}
	return humanize.TruncateBytes(humanize.OneLine(s), most)
}

// normalize returns an address in the form in which equal ones are the same: ASCII, in
// lower case.
func normalize(address string) (string, error) {
	i := strings.LastIndexByte(address, '@')
	if i < 1 || len(address) > maxAddress {
		return "", fmt.Errorf("%q is no address such as ann@example.org", humanize.TruncateBytes(address, maxAddress))
	}
	local, domain := address[:i], address[i+1:]
	domain, err := toASCII(domain)
	if err != nil || !strings.Contains(domain, ".") && domain != "localhost" || strings.HasPrefix(domain, ".") {
		return "", fmt.Errorf("%q has no valid domain", address)
	}
	for j := range len(local) {
		// Letters outside of ASCII are refused, because different ones look the same and
		// some of them have a lower case in ASCII.
		if c := local[j]; c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>[]:;@\,"`, c) >= 0 {
			return "", fmt.Errorf("%q has a character that is not supported", address)
		}
	}
	if out := strings.ToLower(local) + "@" + domain; len(out) <= maxAddress {
		return out, nil
	}
	return "", fmt.Errorf("%q is too long", address)
}

// toASCII returns a domain in lower case and in ASCII.
func toASCII(domain string) (string, error) {
	d, err := idna.Lookup.ToASCII(strings.TrimSuffix(domain, "."))
	if err != nil {
		return "", err
	}
	for i := range len(d) {
		if c := d[i]; c != '.' && c != '-' && c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "", errors.New("invalid domain")
		}
	}
	if d == "" {
		return "", errors.New("empty domain")
	}
	return d, nil
}

// domainOf returns the domain of a normalized address.
func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// addresses parses a list of addresses.
func addresses(list string) ([]*mail.Address, error) {
	p := mail.AddressParser{WordDecoder: wordDecoder}
	return p.ParseList(list)
}

// from returns the only author of a mail.
func (h header) from() (address, name string, err error) {
	fields := h.all("from")
	if len(fields) != 1 {
		return "", "", fmt.Errorf("%d From headers", len(fields))
	}
	list, err := addresses(fields[0])
	if err != nil {
		return "", "", errors.New("an invalid From header")
	}
	if len(list) != 1 {
		return "", "", fmt.Errorf("%d authors", len(list))
	}
	address, err = normalize(list[0].Address)
	return address, humanize.TruncateBytes(humanize.OneLine(list[0].Name), maxName), err
}

// recipients returns the normalized addresses of To and Cc. There may be only one field
// of each, because more may have been added to a signed mail.
func (h header) recipients() ([]string, error) {
	var out []string
	for _, key := range []string{"to", "cc"} {
		fields := h.all(key)
		if len(fields) > 1 {
			return nil, fmt.Errorf("%d %s headers", len(fields), key)
		}
		if len(fields) == 0 || fields[0] == "" {
			continue
		}
		list, err := addresses(fields[0])
		if err != nil {
			continue // such as undisclosed-recipients:;
		}
		for _, a := range list {
			if s, err := normalize(a.Address); err == nil {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// ids returns the message ids in a value, without their brackets, at most n.
func ids(value string, n int) []string {
	var out []string
	for len(out) < n {
		_, rest, ok := strings.Cut(value, "<")
		if !ok {
			break
		}
		id, after, ok := strings.Cut(rest, ">")
		if !ok {
			break
		}
		if isID(id) {
			out = append(out, id)
		}
		value = after
	}
	return out
}

// isID reports whether s is a message id that can be written into a header.
func isID(s string) bool {
	if len(s) < 3 || len(s) > maxID || !strings.Contains(s, "@") {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '<' || s[i] == '>' {
			return false
		}
	}
	return true
}

// messageID returns the id of a mail; "": it has none that can be used.
func (h header) messageID() string {
	if list := ids(h.get("message-id"), 1); len(list) == 1 {
		return list[0]
	}
	return ""
}

// date returns the time that the sender wrote; zero: none.
func (h header) date() time.Time {
	t, err := mail.ParseDate(h.get("date"))
	if err != nil {
		return time.Time{}
	}
	return t
}
