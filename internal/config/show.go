package config

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/secret"
)

// Written returns the configuration as it stands in the files, with the
// includes merged and the variables as they are written, for anybody to see.
//
// What is shown is what is known to be no secret. Hidden are the values of
// secret keys, all below a name that tells of a secret, texts below keys that
// this build knows nothing of, all variables, passwords in addresses, and texts
// that look like a credential. References to a secret (${NAME}, env:NAME,
// file:path) are shown.
func (t *Tree) Written() json.RawMessage {
	return encode(viewer{t: t}.show(clone(t.raw), nil, false))
}

// InForce returns the configuration that is used, as [Tree.Written] shows it.
// What came from a variable is hidden unless it can only be a setting.
func (t *Tree) InForce() json.RawMessage {
	return encode(viewer{t: t, used: true}.show(clone(t.root), nil, false))
}

// Exists reports whether the configuration's file is there.
func (t *Tree) Exists() bool {
	_, err := os.Lstat(t.path)
	return !errors.Is(err, os.ErrNotExist)
}

// viewer takes secrets out of a tree.
type viewer struct {
	t    *Tree
	used bool // values that are in force, not what is written
}

// show replaces what is hidden in v. hidden says that a name above tells of a
// secret.
func (w viewer) show(v any, path []string, hidden bool) any {
	if len(path) > 0 {
		hidden = hidden || w.secret(path)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if s, ok := e.(string); ok && hidden && refers(v, k, s) { // where a secret is
				continue
			}
			v[k] = w.show(e, join(path, k), hidden)
		}
	case []any:
		for i, e := range v {
			v[i] = w.show(e, join(path, itoa(i)), hidden)
		}
	case string:
		return w.text(v, path, hidden)
	case json.Number:
		// A number of tokens is no token.
		if hidden && !strings.HasSuffix(strings.ToLower(path[len(path)-1]), "tokens") {
			return secret.Redacted
		}
	}
	return v
}

// refers reports whether s is part of {source, id}, which names a secret and is
// none.
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
	// hiding matches names below which nothing is shown.
	hiding = pattern(`(?i)(token|passw(or)?d|passphrase|secret|key|credential|authorization|cookie|signature|webhook|dsn|(^|_)(pass|pwd|pin|auth))s?$`)
	// user is the user of an address, and what follows a name that tells of a
	// secret in its query.
	user  = pattern(`://[^/?#\s]*@`)
	query = pattern(`(?i)([?&#][^=&\s]*(token|key|secret|password|auth|sig)[^=&\s]*=)[^&\s]+`)
)

// pattern is an expression that is compiled at its first use.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// text returns s, or what stands in its place.
func (w viewer) text(s string, path []string, hidden bool) string {
	switch {
	case s == "" || !w.used && reference().MatchString(s):
		return s
	case hidden, slices.Contains(path[:len(path)-1], "env"), !w.open(path), secret.Suspect(s):
		return secret.Redacted
	}
	return query().ReplaceAllString(user().ReplaceAllString(s, "://"+secret.Redacted+"@"), "${1}"+secret.Redacted)
}

// open reports whether a text may stand at the path that is no secret.
func (w viewer) open(path []string) bool {
	n := w.t.known.at(path)
	if last := len(path) - 1; n == nil && isIndex(path[last]) { // a text of several
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

// secret reports whether the last name of the path is one below which nothing
// is shown: a secret key, or one that is not known and is named like one.
func (w viewer) secret(path []string) bool {
	k := w.key(path)
	if k != nil && (k.Kind == Secret || !strings.HasSuffix(k.Path, ".*")) {
		return k.Kind == Secret
	}
	last := path[len(path)-1]
	return !isIndex(last) && hiding().MatchString(last)
}

// key returns the key that this build knows at the path itself.
func (w viewer) key(path []string) *Key {
	n := w.t.known.at(path)
	if n == nil || n.key == nil || n.key.Doc == "" {
		return nil
	}
	if steps := strings.Count(n.key.Path, ".") + strings.Count(n.key.Path, "[]") + 1; steps != len(path) {
		return nil // it is one above
	}
	return n.key
}
