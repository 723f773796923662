package app

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

	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/method/approvals"
	methods "github.com/chela-ai/chela/internal/method/config"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/wire"
)

// configMethods returns the methods that show the configuration; none when
// there is no file that it comes from.
func (e *Engine) configMethods() []rpc.Method {
	tree, ok := e.o.Config.(*config.Tree)
	if !ok {
		return nil
	}
	v := configView{tree: tree, boot: e.boot, started: e.started}
	return methods.Methods(methods.Options{Snapshot: v.snapshot, Schema: v.schema, Lookup: lookupKey})
}

// commandPolicy says what the exec tool may do, and where that is set.
func (e *Engine) commandPolicy() approvals.Policy {
	mode, _ := exec.ParseMode(e.profile.opts.Tools.Exec.Mode) // was checked at the start
	p := approvals.Policy{Mode: string(mode), Path: e.o.ConfigPath}
	if tree, ok := e.o.Config.(*config.Tree); ok {
		p.Path, p.Exists = tree.Path(), tree.Exists()
	}
	return p
}

// configView shows a configuration to clients.
type configView struct {
	tree    *config.Tree // in force
	boot    string
	started time.Time
}

// snapshot reads the files again: they may have been edited since the start.
func (v configView) snapshot() (wire.ConfigSnapshot, error) {
	out := wire.ConfigSnapshot{
		Path: v.tree.Path(), Included: []string{}, Exists: v.tree.Exists(), Valid: true, Applied: v.hash(v.tree.Hash()),
		Runtime: v.tree.InForce(), Issues: []wire.ConfigIssue{}, Warnings: []wire.ConfigIssue{}, Legacy: []wire.ConfigIssue{},
	}
	out.Config = out.Runtime
	now, err := config.Load(v.tree.Path())
	if err != nil {
		// What cannot be read cannot be shown without showing too much.
		empty := json.RawMessage("{}")
		out.Parsed, out.Source, out.Resolved, out.Raw, out.Valid = empty, empty, empty, "{}\n", false
		out.Issues = issues(err)
		return out, nil
	}
	out.Hash = v.hash(now.Hash())
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

// hash returns what stands for the hash of the files. The hash itself would let
// a reader try out what is left of a text of which all but a secret is known.
func (v configView) hash(sum string) string {
	if sum == "" {
		return ""
	}
	m := hmac.New(sha256.New, []byte(v.boot))
	m.Write([]byte(sum))
	return hex.EncodeToString(m.Sum(nil))
}

// issues says why a configuration cannot be used.
func issues(err error) []wire.ConfigIssue {
	e, ok := errors.AsType[*config.Error](err)
	if !ok {
		return []wire.ConfigIssue{{Message: config.Concealed(err.Error())}}
	}
	out := []wire.ConfigIssue{}
	for _, p := range e.Problems {
		if p.Fatal {
			out = append(out, issue(p))
		}
	}
	return out
}

func issue(p config.Problem) wire.ConfigIssue {
	return wire.ConfigIssue{Path: p.Path, Message: config.Concealed(p.Message)}
}

// schema is what is known of all keys.
func (v configView) schema() wire.ConfigSchema {
	out := wire.ConfigSchema{
		Schema: config.Schema(), Hints: map[string]wire.ConfigHint{}, Version: Version, Generated: v.started.UTC().Format(time.RFC3339),
	}
	for _, k := range config.Keys() {
		out.Hints[strings.ReplaceAll(k.Path, "[]", ".*")] = *hintOf(&k)
	}
	return out
}

// lookupKey is what is known of one key.
func lookupKey(path string) (wire.ConfigPlace, bool) {
	p, ok := config.Describe(path)
	if !ok {
		return wire.ConfigPlace{}, false
	}
	out := wire.ConfigPlace{Path: p.Path, Schema: p.Schema(), Reload: reloadOf(p), Children: []wire.ConfigChild{}}
	if p.Key != nil {
		out.Hint, out.HintPath = hintOf(p.Key), p.Key.Path
	}
	for _, kid := range p.Kids {
		c := wire.ConfigChild{
			Key: kid.Name, Path: kid.Path, Type: kid.Types(), Children: len(kid.Kids) > 0, Reload: reloadOf(kid),
		}
		if kid.Key != nil {
			c.Hint, c.HintPath = hintOf(kid.Key), kid.Key.Path
		}
		out.Children = append(out.Children, c)
	}
	return out, true
}

// hintOf says how a key is shown.
func hintOf(k *config.Key) *wire.ConfigHint {
	h := &wire.ConfigHint{Label: k.Path[strings.LastIndexByte(k.Path, '.')+1:], Help: k.Doc, Sensitive: k.Kind == config.Secret}
	h.Group, _, _ = strings.Cut(k.Path, ".")
	if !k.Used() {
		h.Advanced = true
		h.Help = strings.TrimPrefix(h.Help+" (kept, and not used by this version)", " ")
	}
	return h
}

// reloadOf says when a change takes effect: the file is read at the start.
func reloadOf(p config.Place) string {
	used := p.Key != nil && p.Key.Used() || slices.ContainsFunc(p.Kids, func(k config.Place) bool { return reloadOf(k) == wire.ReloadRestart })
	if used {
		return wire.ReloadRestart
	}
	return wire.ReloadNone
}
