package config

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Secrets returns the effective values that must not appear in any output, with
// references resolved: those of secret keys, those below a name that suggests a
// secret, environment variables, and passwords in URLs. Values that are plainly not
// secret, such as the path or the word in a variable, are left out.
func (t *Tree) Secrets() []secret.Value {
	c := collector{viewer: viewer{t: t, used: true}, vars: fileEnv(t.root)}
	c.walk(t.root, nil, false)
	return c.found
}

// collector collects the secrets of a tree.
type collector struct {
	viewer
	vars  map[string]string
	found []secret.Value
}

// env looks up a variable.
func (c *collector) env(name string) string {
	if v := c.t.opts.Env(name); v != "" {
		return v
	}
	return c.vars[name]
}

// walk collects the secrets in v. hidden says that a name above suggests a secret.
func (c *collector) walk(v any, path []string, hidden bool) {
	if len(path) > 0 {
		hidden = hidden || c.secret(path)
	}
	switch v := v.(type) {
	case map[string]any:
		var ref secret.Ref
		if hidden && json.Unmarshal(encode(v), &ref) == nil {
			c.resolve(ref)
		}
		for _, k := range sortedKeys(v) {
			c.walk(v[k], join(path, k), hidden)
		}
	case []any:
		for i, e := range v {
			c.walk(e, join(path, itoa(i)), hidden)
		}
	case json.Number:
		if hidden && !strings.HasSuffix(strings.ToLower(path[len(path)-1]), "tokens") {
			c.add(v.String())
		}
	case string:
		c.text(v, path, hidden)
	}
}

// text collects the secrets in a string.
func (c *collector) text(s string, path []string, hidden bool) {
	for _, found := range secret.InAddresses(s) {
		c.add(found)
	}
	hidden = hidden || slices.Contains(path[:len(path)-1], "env")
	if !hidden || unresolved(s) || sessionKey().MatchString(path[len(path)-1]) || !namedSecret(path) && harmless(s) {
		return
	}
	c.resolve(secret.ParseRef(s))
}

// resolve adds what a reference leads to. A part of it may be used on its own:
// the token after "Bearer", or the value of a cookie.
func (c *collector) resolve(ref secret.Ref) {
	v, err := ref.Resolve(c.env)
	if err != nil {
		return // the part that uses it reports it
	}
	c.found = append(c.found, v)
	parts := strings.FieldsFunc(v.Reveal(), func(r rune) bool { return strings.ContainsRune(" ;,\n", r) })
	if len(parts) < 2 || len(parts) > maxParts {
		return
	}
	for _, part := range parts {
		if name, value, ok := strings.Cut(part, "="); ok && name != "" && strings.Trim(value, "=") != "" {
			part = value
		}
		if !harmless(part) {
			c.add(part)
		}
	}
}

// maxParts is the highest number of parts that a secret is split into.
const maxParts = 8

// harmless reports whether the value of a variable or a header is plainly not secret:
// one of the ordinary values, or a few words and numbers, such as 2.14.0-beta and team_42.
// A key has long parts of mixed letters and digits, and a passphrase more words, unlike
// what begins as a flag does.
func harmless(s string) bool {
	if ordinary().MatchString(s) {
		return true
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" -_.,:;/@+=()[]", r) })
	mixed, words := 0, 0
	for _, p := range parts {
		digits, letters := strings.ContainsAny(p, "0123456789"), strings.Trim(p, "0123456789") != ""
		switch {
		case !word().MatchString(p):
			return false
		case digits && letters:
			mixed++
		case letters:
			words++
		}
	}
	return len(parts) > 0 && len(s) <= maxHarmless && mixed <= 2 && (words <= maxWords || strings.HasPrefix(s, "-"))
}

// maxWords is the highest number of words in a value that is not taken for a passphrase.
const maxWords = 3

// maxHarmless is the maximum length of a harmless value of several words, in bytes.
const maxHarmless = 200

func (c *collector) add(s string) { c.found = append(c.found, secret.New(s)) }

var (
	// sessionKey matches names that end in key and hold no secret.
	sessionKey = pattern(`(?i)(session|main|cache|routing|sort)_?key$`)
	// word matches a word or a number, or a word with a number, such as sha256, 4o and k8s.
	word = pattern(`^(\pL{1,20}[0-9]{0,4}|[0-9]{1,10}|[0-9]{1,6}\pL{1,8}|\pL[0-9]{1,2}\pL)$`)
	// ordinary matches values of variables and headers that are plainly not secret: a
	// number or date, a word, a path, a plain URL, a host, a locale, a zone or media
	// type.
	ordinary = pattern(`^(v?[0-9][0-9.,:_+/-]*|[A-Za-z]{1,20}|((^|:)(~|\.{1,2})?(/[\w.@ +~-]{0,40})+)+|[a-z][a-z0-9+]*://[\w.-]+(:\d+)?(/[\w.~-]{0,15})*|` +
		`[\w-]+(\.[\w-]+)*\.[a-z]{2,}(:\d+)?|localhost(:\d+)?|[a-z]{2}_[A-Z]{2}(\.[\w-]+)?|[A-Za-z]+(/[A-Za-z_+.-]+)+)$`)
)
