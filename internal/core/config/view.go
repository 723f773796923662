package config

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/wire"
)

// View shows a configuration to clients of the gateway, with its secrets redacted.
type View struct {
	Tree     *Tree  // the one in use
	Instance string // id of this start of the process
	Started  time.Time
	Version  string
}

// Snapshot returns the configuration in use and that of the files, which it reads
// again.
func (v View) Snapshot() (wire.ConfigSnapshot, error) {
	out := wire.ConfigSnapshot{
		Path: v.Tree.Path(), Included: []string{}, Exists: v.Tree.Exists(), Valid: true, Applied: v.Sum(v.Tree.Hash()),
		Runtime: v.Tree.InForce(), Issues: []wire.ConfigIssue{}, Warnings: []wire.ConfigIssue{}, Legacy: []wire.ConfigIssue{},
	}
	out.Config = out.Runtime
	now := v.Tree.Now()
	if err := now.Broken(); err != nil {
		// an invalid file cannot be shown, because its secrets cannot be found
		empty := json.RawMessage("{}")
		out.Parsed, out.Source, out.Resolved, out.Raw, out.Valid = empty, empty, empty, "{}\n", false
		out.Issues, out.Hash = issues(err), v.Sum(now.Hash())
		return out, nil
	}
	out.Hash = v.Sum(now.Hash())
	if files := now.Files(); len(files) > 1 {
		out.Included = files[1:]
	}
	out.Parsed, out.Resolved = now.Written(), now.InForce()
	out.Source = out.Parsed
	for _, p := range append(now.Warnings(), now.Unguarded()...) {
		out.Warnings = append(out.Warnings, issue(p))
	}
	var text bytes.Buffer
	if err := json.Indent(&text, out.Parsed, "", "  "); err != nil {
		return out, err
	}
	out.Raw = text.String() + "\n"
	return out, nil
}

// Sum returns a keyed hash of the hash of the files, for clients. With the plain hash
// a client that knows the rest of the text could guess a secret in it.
func (v View) Sum(hash string) string {
	if hash == "" {
		return ""
	}
	m := hmac.New(sha256.New, []byte(v.Instance))
	m.Write([]byte(hash))
	return hex.EncodeToString(m.Sum(nil))
}

// issues returns the fatal problems of a configuration.
func issues(err error) []wire.ConfigIssue {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return []wire.ConfigIssue{{Message: secret.RedactCredentials(err.Error())}}
	}
	out := []wire.ConfigIssue{}
	for _, p := range e.Problems {
		if p.Fatal {
			out = append(out, issue(p))
		}
	}
	return out
}

func issue(p Problem) wire.ConfigIssue {
	return wire.ConfigIssue{Path: p.Path, Message: secret.RedactCredentials(p.Message)}
}

// Schema describes all known keys.
func (v View) Schema() wire.ConfigSchema {
	out := wire.ConfigSchema{
		Schema: Schema(), Hints: map[string]wire.ConfigHint{}, Version: v.Version,
		Generated: v.Started.UTC().Format(time.RFC3339),
	}
	for _, k := range Keys() {
		out.Hints[strings.ReplaceAll(k.Path, "[]", ".*")] = *hintOf(&k)
	}
	return out
}

// Lookup describes a key. It reports false for an unknown one.
func Lookup(path string) (wire.ConfigKey, bool) {
	n, path := find(path)
	if n == nil {
		return wire.ConfigKey{}, false
	}
	out := wire.ConfigKey{Path: path, Schema: encode(n.own()), Reload: n.reload(path), Children: []wire.ConfigChild{}}
	if n.key != nil {
		out.Hint, out.HintPath = hintOf(n.key), n.key.Path
	}
	for _, name := range sortedNames(n) {
		kid, at := n.kid(name), strings.TrimPrefix(path+"."+name, ".")
		c := wire.ConfigChild{
			Key:      name,
			Path:     at,
			Type:     kid.types(),
			Children: len(sortedNames(kid)) > 0,
			Reload:   kid.reload(at),
		}
		if kid.key != nil {
			c.Hint, c.HintPath = hintOf(kid.key), kid.key.Path
		}
		out.Children = append(out.Children, c)
	}
	return out, true
}

// hintOf returns how clients show a key.
func hintOf(k *Key) *wire.ConfigHint {
	h := &wire.ConfigHint{Label: k.Path[strings.LastIndexByte(k.Path, '.')+1:], Help: k.Doc, Sensitive: k.Kind == Secret}
	h.Group, _, _ = strings.Cut(k.Path, ".")
	if !k.Used() {
		h.Advanced = true
		h.Help = strings.TrimPrefix(h.Help+" (preserved, but not used by this version)", " ")
	}
	return h
}

// reload returns when a change of the node at a path takes effect.
func (n *node) reload(path string) string {
	path = strings.ReplaceAll(path, "[]", "")
	switch {
	case !n.used():
		return wire.ReloadNone
	case Cold(path) || above(path):
		return wire.ReloadRestart
	}
	return wire.ReloadHot
}

// used reports whether this build uses a key or one below it.
func (n *node) used() bool {
	return n.key != nil && n.key.Used() ||
		slices.ContainsFunc(sortedNames(n), func(name string) bool { return n.kid(name).used() })
}
