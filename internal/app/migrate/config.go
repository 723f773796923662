package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// bookkeeping are sections of the configuration in which OpenClaw notes things for itself.
var bookkeeping = [...]string{"meta", "wizard", "$schema"}

// leaf is a value of the configuration that is not an object.
type leaf struct {
	path  []string
	value any
}

func (l leaf) name() string { return config.FormatPath(l.path) }

// leaves returns the values of a configuration, in the order of their paths. An empty
// object is a value.
func leaves(v any, at []string) []leaf {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 && len(at) > 0 {
		return []leaf{{at, v}}
	}
	var all []leaf
	for _, k := range sortedKeys(m) {
		all = append(all, leaves(m[k], append(slices.Clip(at), k))...)
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// configuration adds the configuration.
func (p *plan) configuration(ctx context.Context) error {
	if p.config == nil {
		return nil
	}
	theirs := p.selected()
	p.dropLeaves(theirs)
	if err := p.dropUnusable(ctx, theirs); err != nil {
		return err
	}
	return p.mergeConfig(ctx, theirs)
}

// selected returns the part of the configuration that is taken.
func (p *plan) selected() map[string]any {
	theirs := config.Clone(p.config).(map[string]any)
	if p.o.Agent != "" {
		agents, one := map[string]any{}, p.agentConfigs()[p.o.Agent]
		if one == nil {
			return map[string]any{}
		}
		one = config.Clone(one).(map[string]any)
		delete(one, "id")
		delete(one, "default")
		agents["entries"] = map[string]any{p.o.Agent: one}
		p.leave("the configuration", "only that of the agent "+p.o.Agent+" (--agent)")
		theirs = map[string]any{"agents": agents}
	}
	for _, name := range bookkeeping {
		if _, ok := theirs[name]; ok {
			delete(theirs, name)
			p.leave("configuration "+name, "bookkeeping of OpenClaw")
		}
	}
	return theirs
}

// dropLeaves rewrites paths, and removes what is not taken.
func (p *plan) dropLeaves(theirs map[string]any) {
	for _, l := range leaves(theirs, nil) {
		last := l.path[len(l.path)-1]
		switch v := l.value.(type) {
		case string:
			if last == "agentDir" {
				remove(theirs, l.path)
				p.leave("configuration "+l.name(), "Chela keeps what an agent has in its own database")
				continue
			}
			if next, ok := p.reference(l.name(), v); ok {
				put(theirs, l.path, next)
			}
		case []any:
			next := make([]any, len(v))
			for i, e := range v {
				next[i] = p.rewritten(l.name(), e)
			}
			put(theirs, l.path, next)
		}
	}
}

// rewritten returns an element of a list with its paths rewritten.
func (p *plan) rewritten(name string, v any) any {
	switch v := v.(type) {
	case string:
		if next, ok := p.reference(name, v); ok {
			return next
		}
	case []any:
		for i := range v {
			v[i] = p.rewritten(name, v[i])
		}
	case map[string]any:
		delete(v, "agentDir")
		for _, k := range sortedKeys(v) {
			v[k] = p.rewritten(name+"."+k, v[k])
		}
	}
	return v
}

// maxReference is the size of a file that is copied because the configuration names it.
const maxReference = 1 << 20

// reference returns the new place of a path in the folder of OpenClaw. It reports false
// if v is not such a path.
func (p *plan) reference(name, v string) (string, bool) {
	prefix := ""
	file := v
	if rest, ok := strings.CutPrefix(v, "file:"); ok {
		prefix, file = "file:", rest
	}
	rel, ok := p.inside(file)
	if !ok {
		if abs := expand(file); filepath.IsAbs(abs) && below(filepath.ToSlash(abs)) != "" && !exists(abs) {
			p.leave("configuration "+name, "it is taken, but names "+v+", which does not exist")
		}
		return "", false
	}
	for from := rel; ; from = path.Dir(from) {
		if to := p.moved[from]; to != "" {
			return prefix + filepath.Join(to, filepath.FromSlash(strings.TrimPrefix(rel, from))), true
		}
		if from == "." || from == "/" {
			break
		}
	}
	if !p.home.IsFile(rel) || p.o.NoSecrets {
		p.leave("configuration "+name, "it still names "+v+", in OpenClaw's folder")
		return "", false
	}
	c := &copying{base: filepath.Join(settings.KeyDir(p.start.State), "openclaw"), rel: rel, perm: 0o600, from: rel}
	info, err := os.Stat(filepath.Join(p.home.Dir, filepath.FromSlash(rel)))
	if err == nil && info.Size() > maxReference {
		err = errors.New("it is too large")
	}
	if err != nil {
		p.leave("configuration "+name, "it still names "+v+", in OpenClaw's folder: "+pathError(err).Error())
		return "", false
	}
	p.moved[rel] = c.path()
	p.tree(groupKeys, rel, c.path(), []*copying{c}, never)
	return prefix + c.path(), true
}

// dropUnusable removes what Chela does not know, what is invalid, and keys if they are not
// wanted.
func (p *plan) dropUnusable(ctx context.Context, theirs map[string]any) error {
	bare := config.Options{Env: func(string) string { return "" }}
	read := func() (*config.Tree, []config.Problem, error) {
		t, err := bare.ReadText(p.start.Config, mustJSON(theirs))
		if e, ok := errors.AsType[*config.Error](err); ok {
			return nil, e.Problems, err
		}
		if err != nil {
			return nil, nil, err
		}
		return t, t.Warnings(), nil
	}
	tree, problems, err := read()
	for dropped := true; dropped; tree, problems, err = read() {
		dropped = false
		for _, problem := range problems {
			steps, perr := config.ParsePath(problem.Path)
			if !problem.Fatal && !problem.Unknown || problem.Path == "" || perr != nil || !remove(theirs, steps) {
				continue
			}
			dropped = true
			why := "Chela does not know this setting"
			if problem.Fatal {
				why = problem.Message
			}
			p.leave("configuration "+problem.Path, why)
			if strings.Contains(problem.Path, "[") { // the numbers of the elements may differ now
				break
			}
		}
	}
	if err != nil {
		p.unreadable("the configuration", err)
		clear(theirs)
		return nil
	}
	if p.o.NoSecrets {
		p.dropSecrets(theirs, tree)
	}
	p.dropRefused(ctx, theirs)
	return nil
}

// dropSecrets removes the values that are shown as redacted.
func (p *plan) dropSecrets(theirs map[string]any, tree *config.Tree) {
	var shown any
	if decodeNumbers(tree.Written(), &shown) != nil {
		return
	}
	for _, l := range leaves(theirs, nil) {
		v, ok := config.ValueAt(shown, l.path)
		if ok && bytes.Contains(mustJSON(v), []byte(secret.Redacted)) &&
			!bytes.Contains(mustJSON(l.value), []byte(secret.Redacted)) {
			remove(theirs, l.path)
			p.leave("configuration "+l.name(), "it may be a secret (--no-secrets)")
		}
	}
}

// dropRefused removes the sections with which an engine would not start.
func (p *plan) dropRefused(ctx context.Context, theirs map[string]any) {
	refused := func(v map[string]any) error {
		t, err := (config.Options{}).ReadText(p.start.Config, mustJSON(v))
		if err != nil {
			return err
		}
		return p.m.Validate(ctx, p.start, t)
	}
	for len(theirs) > 0 {
		why := refused(theirs)
		if why == nil {
			return
		}
		culprit := culpritOf(theirs, refused)
		if culprit == nil {
			p.unreadable("the configuration", fmt.Errorf("an engine refuses it: %w", why))
			clear(theirs)
			return
		}
		remove(theirs, culprit)
		p.leave("configuration "+config.FormatPath(culprit), "it would prevent the start: "+why.Error())
	}
}

// culpritOf returns the smallest of the two outer levels without which a configuration is
// accepted; nil: there is none.
func culpritOf(v map[string]any, refused func(map[string]any) error) []string {
	for _, k := range sortedKeys(v) {
		inner, _ := v[k].(map[string]any)
		for _, k2 := range sortedKeys(inner) {
			c := config.Clone(v).(map[string]any)
			remove(c, []string{k, k2})
			if refused(c) == nil {
				return []string{k, k2}
			}
		}
		c := config.Clone(v).(map[string]any)
		remove(c, []string{k})
		if refused(c) == nil {
			return []string{k}
		}
	}
	return nil
}

// mergeConfig adds the values that are missing here. After an Apply that was interrupted, it sets
// the values of that Apply again, so that Undo restores what was there before the first attempt.
func (p *plan) mergeConfig(ctx context.Context, theirs map[string]any) error {
	text, err := os.ReadFile(p.start.Config)
	if errors.Is(err, fs.ErrNotExist) {
		text = nil
	} else if err != nil {
		return err
	}
	before := ""
	if text != nil {
		before = hashOf(text)
	}
	known := p.last.find(kindConfig, p.start.Config)
	var edits []config.Edit
	st := step{Kind: kindConfig, Name: p.start.Config, Before: before}
	if known != nil && before == known.After { // of an Apply that did not end
		st.Before = known.Before
	}
	for _, l := range leaves(theirs, nil) {
		raw, name := mustJSON(l.value), l.name()
		i := item{group: groupConfig, MigratedItem: cli.MigratedItem{What: name, Action: cli.ItemAdd}}
		old, there := p.setting(l.path)
		switch {
		case there && bytes.Equal(canonical(old), canonical(raw)):
			i.Action = cli.ItemSame
		case there && !p.o.Overwrite && set(known, name, old) == nil, p.hidden(l.path):
			i.Action = cli.ItemConflict
		default:
			v := value{Path: name, After: hashOf(canonical(raw))}
			if there {
				i.Action, v.Old = cli.ItemReplace, old
			}
			if ours := set(known, name, old); there && ours != nil {
				v.Old = ours.Old
			}
			st.Values = append(st.Values, v)
			edits = append(edits, config.Edit{Path: name, Value: raw})
		}
		p.add(i)
	}
	if len(edits) == 0 {
		return nil
	}
	next, err := edited(text, theirs, edits)
	if err != nil {
		return fmt.Errorf("%s: %w", p.start.Config, err)
	}
	st.After = hashOf(next)
	p.note(ctx, next)
	// The file is one step: the item that carries it out is the last setting.
	last := &p.items[len(p.items)-1]
	last.steps = []step{st}
	last.do = func(_ context.Context, a *application) error { return a.writeConfig(before, next) }
	return nil
}

// edited returns the text of the configuration with edits. A new one is written in one
// piece.
func edited(text []byte, theirs map[string]any, edits []config.Edit) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		b, err := json.MarshalIndent(theirs, "", "  ")
		return append(b, '\n'), err
	}
	return config.Edited(text, edits...)
}

// set returns how an Apply that did not end set a value; nil: it did not.
func set(known *step, name string, now json.RawMessage) *value {
	if known == nil {
		return nil
	}
	i := slices.IndexFunc(known.Values, func(v value) bool { return v.Path == name && v.After == hashOf(canonical(now)) })
	if i < 0 {
		return nil
	}
	return &known.Values[i]
}

// setting returns the value that the configuration here has at a path.
func (p *plan) setting(steps []string) (json.RawMessage, bool) {
	raw := p.ours.Section(config.FormatPath(steps))
	return raw, raw != nil
}

// hidden reports whether a value above a path is no object, so that it cannot be set.
func (p *plan) hidden(steps []string) bool {
	for n := 1; n < len(steps); n++ {
		raw, ok := p.setting(steps[:n])
		if ok && !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) && !bytes.Equal(raw, []byte("null")) {
			return true
		}
	}
	return false
}

// note notes the settings that are taken and allow more, or have no effect.
func (p *plan) note(ctx context.Context, text []byte) {
	t, err := (config.Options{}).ReadText(p.start.Config, text)
	if err != nil {
		return
	}
	if loose := p.ours.Loosened(t); len(loose) > 0 {
		p.notes = append(p.notes, "Settings that allow more than your present ones: "+strings.Join(loose, ", "))
	}
	if idle := p.m.Ineffective(ctx, p.start, t); len(idle) > 0 {
		p.notes = append(p.notes, "Settings that have no effect in this version: "+strings.Join(idle, ", "))
	}
}

// writeConfig writes the configuration.
func (a *application) writeConfig(before string, text []byte) error {
	file := a.p.start.Config
	if err := a.p.m.before("configuration"); err != nil {
		return err
	}
	have, err := hashFile(file)
	switch {
	case err != nil:
		return err
	case have == hashOf(text):
		return nil
	case have != before:
		return fmt.Errorf("%s was changed meanwhile; try again", file)
	case have != "":
		if err := a.record.keep(file, have); err != nil {
			return err
		}
	default:
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
	}
	return atomicfile.Write(file, text, 0o600)
}

// put sets the value at a path that exists.
func put(m map[string]any, steps []string, v any) {
	if at, ok := config.ValueAt(m, steps[:len(steps)-1]); ok {
		if m, ok := at.(map[string]any); ok {
			m[steps[len(steps)-1]] = v
		}
	}
}

// remove removes the value at a path, and objects that become empty. It reports whether
// there was one.
func remove(m map[string]any, steps []string) bool {
	_, ok := without(m, steps)
	return ok
}

// without returns a value without that at a path in it.
func without(v any, steps []string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[steps[0]]
		if !ok {
			return v, false
		}
		if len(steps) == 1 {
			delete(v, steps[0])
			return v, true
		}
		next, ok := without(inner, steps[1:])
		v[steps[0]] = next
		if m, isObject := next.(map[string]any); ok && isObject && len(m) == 0 {
			delete(v, steps[0])
		}
		return v, ok
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(v) {
			return v, false
		}
		if len(steps) == 1 {
			return slices.Delete(v, i, i+1), true
		}
		next, ok := without(v[i], steps[1:])
		v[i] = next
		return v, ok
	}
	return v, false
}

// mustJSON encodes a value that was decoded from JSON.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// decodeNumbers decodes JSON without changing numbers.
func decodeNumbers(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

// canonical returns JSON with sorted keys and without blanks.
func canonical(raw []byte) []byte {
	var v any
	if decodeNumbers(raw, &v) != nil {
		return raw
	}
	return mustJSON(v)
}
