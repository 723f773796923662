package secret

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// minRedact is the minimum length of a secret to redact. Shorter ones would
// match parts of ordinary words.
const minRedact = 6

// Redactor replaces known secrets in text. The zero Redactor knows none. It is
// safe for concurrent use.
type Redactor struct {
	mu     sync.RWMutex
	forms  []string
	finder *strings.Replacer // of forms; nil if there are none
}

// Add registers secrets, including their JSON and URL encodings. Secrets
// shorter than six bytes are ignored.
func (r *Redactor) Add(values ...Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		for _, form := range forms(v.Reveal()) {
			if len(form) >= minRedact && !slices.Contains(r.forms, form) {
				r.forms = append(r.forms, form)
			}
		}
	}
	// Longest first, because one secret may be a prefix of another.
	slices.SortStableFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range r.forms {
		pairs = append(pairs, f, Redacted)
	}
	if pairs != nil {
		r.finder = strings.NewReplacer(pairs...)
	}
}

// forms returns the encodings of a secret that may occur in text.
func forms(s string) []string {
	quoted, _ := json.Marshal(s)
	return []string{s, strings.Trim(string(quoted), `"`), url.QueryEscape(s), url.PathEscape(s)}
}

// Redact returns the text with known secrets replaced.
func (r *Redactor) Redact(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !slices.ContainsFunc(r.forms, func(form string) bool { return strings.Contains(text, form) }) {
		return text // much faster than the finder
	}
	return r.finder.Replace(text)
}
