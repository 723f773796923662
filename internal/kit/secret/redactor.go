package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// minRedact is the minimum length of a text to redact. Shorter ones would match
// parts of ordinary words.
const minRedact = 6

// minLine is the minimum length of a line that is redacted on its own, because
// tools show texts line by line.
const minLine = 16

// Redactor replaces known secrets in text. The zero Redactor knows none. It is
// safe for concurrent use.
type Redactor struct {
	mu    sync.RWMutex
	known map[string]bool      // forms of the secrets
	forms map[[2]byte][]string // by their first two bytes, longest first
	// starts has a bit for each key of forms, so that text is read only once,
	// however many forms there are.
	starts [1 << 16 / 64]uint64
}

// common matches texts that are no use as a secret and occur in ordinary text:
// numbers, dates, and single words.
var common = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9.,:_+-]{1,11}|[a-z]{1,8}|[A-Z]{1,8}|[A-Z][a-z]{1,7})$`)
})

// Add registers secrets, including the encodings in which they may occur.
// Secrets that are shorter than six bytes or common words or numbers are ignored.
func (r *Redactor) Add(values ...Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known, r.forms = map[string]bool{}, map[[2]byte][]string{}
	}
	for _, v := range values {
		s := v.Reveal()
		if len(s) < minRedact || r.known[s] || common().MatchString(s) {
			continue
		}
		for _, form := range forms(s) {
			if len(form) < minRedact || r.known[form] {
				continue
			}
			r.known[form] = true
			at := [2]byte{form[0], form[1]}
			i, bit := start(at)
			r.starts[i] |= bit
			r.forms[at] = append(r.forms[at], form)
			// Longest first, because one secret may be a prefix of another.
			slices.SortStableFunc(r.forms[at], func(a, b string) int { return len(b) - len(a) })
		}
	}
}

// start returns the place of a key of forms in starts.
func start(at [2]byte) (index int, bit uint64) {
	n := int(at[0])<<8 | int(at[1])
	return n / 64, 1 << (n % 64)
}

// forms returns the forms in which a secret may occur in text: as it is, its
// long lines, and its encodings.
func forms(s string) []string {
	out := []string{s, quoted(s, true), quoted(s, false), url.QueryEscape(s), url.PathEscape(s),
		lowerEscapes(url.QueryEscape(s)), lowerEscapes(url.PathEscape(s)), reversed(s)}
	digits := hex.EncodeToString([]byte(s))
	out = append(out, digits, strings.ToUpper(digits))
	for _, enc := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			out = append(out, encoded(enc, s, before))
		}
	}
	if strings.Contains(s, "\n") {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				out = append(out, line)
			}
		}
	}
	return out
}

// quoted returns s as it occurs in JSON, where some encoders escape HTML.
func quoted(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// encoded returns the characters of a base64 text that depend on nothing but s,
// where s follows a number of other bytes.
func encoded(enc *base64.Encoding, s string, before int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + s))
	return text[(before*8+5)/6 : (before+len(s))*8/6]
}

// lowerEscapes returns a text with the %2F of URLs as %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// Redact returns the text with known secrets replaced.
func (r *Redactor) Redact(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out strings.Builder
	done := 0
	for i := 0; i+minRedact <= len(text); i++ {
		at := [2]byte{text[i], text[i+1]}
		if n, bit := start(at); r.starts[n]&bit == 0 {
			continue
		}
		for _, form := range r.forms[at] {
			if strings.HasPrefix(text[i:], form) {
				out.WriteString(text[done:i])
				out.WriteString(Redacted)
				done = i + len(form)
				i = done - 1
				break
			}
		}
	}
	if done == 0 {
		return text
	}
	return out.String() + text[done:]
}
