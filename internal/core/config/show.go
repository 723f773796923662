package config

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Written returns the configuration of the files with secrets redacted. Includes are
// merged; variables are not replaced.
//
// Only values that are known not to be secret are shown. Redacted are the values of
// secret keys, all values below a name that suggests a secret, strings below keys
// that this build does not know, all environment variables, passwords in URLs, and
// strings that look like a credential. References to a secret (${NAME}, env:NAME,
// file:path) are shown.
func (t *Tree) Written() json.RawMessage {
	return encode(viewer{t: t}.show(Clone(t.raw), nil, false))
}

// InForce returns the effective configuration with secrets redacted, as in
// [Tree.Written]. The value of a variable is redacted unless its key allows a fixed
// set of values only.
func (t *Tree) InForce() json.RawMessage {
	return encode(viewer{t: t, used: true}.show(Clone(t.root), nil, false))
}

// Exists reports whether the configuration's file exists.
func (t *Tree) Exists() bool {
	_, err := os.Lstat(t.path)
	return !errors.Is(err, os.ErrNotExist)
}

// viewer redacts the secrets of a tree.
type viewer struct {
	t     *Tree
	used  bool // the effective values, not those of the files
	owner bool // for the owner of the files: only values below the name of a secret are redacted
}

// show redacts the secrets in v. hidden says that a name above suggests a secret.
func (w viewer) show(v any, path []string, hidden bool) any {
	if len(path) > 0 {
		hidden = hidden || w.secret(path)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if s, ok := e.(string); ok && hidden && refers(v, k, s) { // a reference to a secret
				continue
			}
			v[k] = w.show(e, join(path, k), hidden)
		}
	case []any:
		secretArg := false // the argument before names a secret
		for i, e := range v {
			arg, _ := e.(string)
			flag, _, valued := strings.Cut(arg, "=")
			named := strings.HasPrefix(arg, "-") && hiding().MatchString(flag)
			v[i] = w.show(e, join(path, itoa(i)), hidden || named && valued || secretArg && !strings.HasPrefix(arg, "-"))
			secretArg = named && !valued
		}
	case string:
		return w.text(v, path, hidden)
	case json.Number:
		// a number of tokens is not a secret
		if hidden && !strings.HasSuffix(strings.ToLower(path[len(path)-1]), "tokens") {
			return secret.Redacted
		}
	}
	return v
}

// refers reports whether s is a member of {source, id}, a reference to a secret.
func refers(object map[string]any, key, s string) bool {
	source, _ := object["source"].(string)
	switch key {
	case "source":
		return s == "env" || s == "file"
	case "id":
		return source == "file" || source == "env" && name().MatchString(s)
	}
	return false
}

var (
	name      = pattern(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	reference = pattern(`^(\$\{[A-Z_][A-Z0-9_]*\}|env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:.+)$`)
	bearer    = pattern(`(?i)\b(bearer|basic)\s+[^\s"']{8,}`) // in the command of a hook
	// hiding matches names below which all values are redacted.
	hiding = pattern(`(?i)(token|passw(or)?d|passphrase|secret|key|credential|authorization|cookie|signature|webhook([_-]?url)?|dsn|(^|_)(pass|pwd|pin|auth))s?$`)
)

// pattern returns a regular expression that is compiled at its first use.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// text returns s with secrets redacted.
func (w viewer) text(s string, path []string, hidden bool) string {
	switch {
	case s == "" || !w.used && reference().MatchString(s), w.owner && unresolved(s):
		return s
	case w.owner && !hidden:
		return secret.RedactAddresses(s)
	case hidden, slices.Contains(path[:len(path)-1], "env"), !w.open(path), secret.ContainsCredential(s),
		bearer().MatchString(s):
		return secret.Redacted
	}
	return secret.RedactAddresses(s)
}

// open reports whether a string at the path can be known not to be a secret.
func (w viewer) open(path []string) bool {
	n := w.t.known.at(path)
	if last := len(path) - 1; n == nil && isIndex(path[last]) { // an element of Texts
		if n = w.t.known.at(path[:last]); n != nil && n.key != nil && n.key.Kind != Texts {
			n = nil
		}
	}
	if n == nil || n.key == nil || n.key.Doc == "" {
		return false
	}
	if n.key.Kind == Text && n.key.Values != nil {
		return true
	}
	return n.key.Kind != Secret && !(w.used && w.t.sources[FormatPath(path)] == FromEnv)
}

// secret reports whether all values below the path are redacted: it is a secret key,
// or an unknown key whose name suggests a secret.
func (w viewer) secret(path []string) bool {
	k := w.key(path)
	if k != nil && (k.Kind == Secret || !strings.HasSuffix(k.Path, ".*")) {
		return k.Kind == Secret
	}
	return namedSecret(path)
}

// namedSecret reports whether the last name on the path suggests a secret.
func namedSecret(path []string) bool {
	for _, step := range slices.Backward(path) {
		if !isIndex(step) {
			return hiding().MatchString(step)
		}
	}
	return false
}

// key returns the known key with exactly this path.
func (w viewer) key(path []string) *Key {
	n := w.t.known.at(path)
	if n == nil || n.key == nil || n.key.Doc == "" {
		return nil
	}
	if steps := strings.Count(n.key.Path, ".") + strings.Count(n.key.Path, "[]") + 1; steps != len(path) {
		return nil // it is a key above
	}
	return n.key
}
