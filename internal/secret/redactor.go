package secret

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// minRedact is the length from which a secret is looked for in text: shorter
// ones would make holes in words.
const minRedact = 6

// Redactor takes secrets out of text. The zero Redactor knows none. It is safe
// for concurrent use.
type Redactor struct {
	mu     sync.RWMutex
	forms  []string
	finder *strings.Replacer // of the forms; nil: there are none
}

// Add makes secrets known, also in the forms that JSON and URLs give them.
// Those shorter than six bytes are left out.
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
	// The longest first: a secret may begin with another one.
	slices.SortStableFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range r.forms {
		pairs = append(pairs, f, Redacted)
	}
	if pairs != nil {
		r.finder = strings.NewReplacer(pairs...)
	}
}

// forms returns how a secret may look in text.
func forms(s string) []string {
	quoted, _ := json.Marshal(s)
	return []string{s, strings.Trim(string(quoted), `"`), url.QueryEscape(s), url.PathEscape(s)}
}

// Redact returns the text without the secrets.
func (r *Redactor) Redact(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !slices.ContainsFunc(r.forms, func(form string) bool { return strings.Contains(text, form) }) {
		return text // which the finder would take far longer to see
	}
	return r.finder.Replace(text)
}
