package hookdir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Config is hooks.internal.
type Config struct {
	Enabled *bool            `json:"enabled"` // nil: true
	Entries map[string]Entry `json:"entries"` // by key of a hook
	Load    struct {
		Dirs []string `json:"extraDirs"`
	} `json:"load"`
}

// Entry is the configuration of one hook.
type Entry struct {
	// nil: true for folders that the person installed and in plug-ins, else false
	Enabled   *bool             `json:"enabled"`
	Env       map[string]string `json:"env"` // variables of its program
	TimeoutMS int               `json:"timeoutMs"`
	Priority  int               `json:"priority"`
	Tools     []string          `json:"tools"` // only for these tools; none: all
	// nil: true, false for hooks of a workspace or a plug-in
	Conversation *bool           `json:"allowConversationAccess"`
	Prompt       *bool           `json:"allowPromptInjection"` // likewise
	Hash         string          `json:"sha256"`               // of a hook of a workspace, when it was enabled
	Raw          json.RawMessage `json:"-"`                    // the whole entry, for hooks that are part of Chela
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Entry) UnmarshalJSON(b []byte) error {
	type plain Entry
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	e.Raw = slices.Clone(b)
	return nil
}

// or returns the entry with what it lacks taken from that of the hook's plug-in.
func (e Entry) or(p Entry) Entry {
	env := maps.Clone(p.Env)
	if env == nil {
		env = e.Env
	} else {
		maps.Copy(env, e.Env)
	}
	e.Env, e.TimeoutMS = env, cmp.Or(e.TimeoutMS, p.TimeoutMS)
	e.Conversation, e.Prompt = cmp.Or(e.Conversation, p.Conversation), cmp.Or(e.Prompt, p.Prompt)
	return e
}

// maxTimeout is the longest time limit that can be configured.
const maxTimeout = 10 * time.Minute

// Timeout returns the time limit; 0: that of the point.
func (e Entry) Timeout() time.Duration {
	return min(max(0, time.Duration(e.TimeoutMS)*time.Millisecond), maxTimeout)
}

// Allowed returns whether a hook may see conversations and change prompts.
func (h *Hook) Allowed() (conversation, prompt bool) {
	own := h.Source != Workspace && h.Source != Plugin
	conversation, prompt = own, own
	if p := h.Entry.Conversation; p != nil {
		conversation = *p
	}
	if p := h.Entry.Prompt; p != nil {
		prompt = *p
	}
	return conversation, prompt
}

// Agent is an agent's workspace.
type Agent struct{ ID, Workspace string }

// PluginHooks is the hooks of a plug-in that is used.
type PluginHooks struct {
	ID    string
	Dirs  []string // that contain the folders of hooks
	Entry Entry    // for all of them, where their own entries say nothing
}

// Options says where hooks are.
type Options struct {
	Config  Config
	Bundled []Hook
	Managed string // folder of the hooks that the person installed
	Plugins []PluginHooks
	Agents  []Agent
	Home    string   // for ~ in paths
	Events  []string // that exist
	Look    func(program string) string
	Getenv  func(name string) string
	Section func(path string) json.RawMessage // of the configuration
}

// maxHooks is the maximum number of hooks of a folder.
const maxHooks = 200

// Find returns all hooks, sorted by name, with what is wrong with each.
func Find(o Options) []Hook {
	byName := map[string]Hook{}
	for _, h := range o.Bundled {
		h.Source, h.Key = Bundled, cmp.Or(h.Key, h.Name)
		byName[h.Name] = h
	}
	for _, dir := range o.Config.Load.Dirs {
		for _, h := range o.folder(o.path(dir), Extra) {
			byName[h.Name] = h
		}
	}
	for _, h := range o.folder(o.Managed, Managed) {
		byName[h.Name] = h
	}
	add := func(h Hook) {
		if old, ok := byName[h.Name]; ok {
			old.Warnings = append(old.Warnings, fmt.Sprintf("the hook in %s is ignored, because it has the same name", h.Dir))
			h = old
		}
		byName[h.Name] = h
	}
	for _, p := range o.Plugins {
		for _, dir := range p.Dirs {
			for _, h := range o.folder(dir, Plugin) {
				h.Plugin, h.Entry = p.ID, p.Entry
				add(h)
			}
		}
	}
	for _, a := range o.Agents {
		for _, h := range o.folder(filepath.Join(a.Workspace, "hooks"), Workspace) {
			h.Agent = a.ID
			add(h)
		}
	}
	var all []Hook
	for _, h := range byName {
		o.complete(&h)
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Hook) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// path returns an absolute path.
func (o *Options) path(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "~"); ok {
		return filepath.Join(o.Home, rest)
	}
	if !filepath.IsAbs(dir) {
		return filepath.Join(filepath.Dir(o.Managed), dir)
	}
	return dir
}

// folder returns the hooks in the folders of a folder.
func (o *Options) folder(dir string, s Source) []Hook {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && s != Extra || s == Workspace { // an extra folder was configured by its name
			return nil
		}
		return []Hook{{Name: filepath.Base(dir), Key: filepath.Base(dir), Source: s, Dir: dir,
			Reasons: []string{err.Error()}}}
	}
	var out []Hook
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || len(out) >= maxHooks {
			continue
		}
		if info, err := os.Stat(sub); err != nil || !info.IsDir() || s == Workspace && !e.IsDir() {
			continue
		}
		if fileIn(sub) == "" {
			continue
		}
		h, err := Read(sub, o.Look)
		if h.Source = s; err != nil {
			h.Reasons = append(h.Reasons, err.Error())
		}
		out = append(out, h)
	}
	return out
}

// complete adds the configuration of a hook and what is wrong with it.
func (o *Options) complete(h *Hook) {
	h.Entry = o.Config.Entries[h.Key].or(h.Entry)
	h.Enabled = h.Source == Managed || h.Source == Extra || h.Source == Plugin
	if p := h.Entry.Enabled; p != nil {
		h.Enabled = *p
	}
	if p := o.Config.Enabled; p != nil && !*p {
		h.Enabled = false
	}
	h.check(o)
	for _, name := range h.Events {
		if !slices.Contains(o.Events, name) {
			h.Warnings = append(h.Warnings, unknownEvent(name, o.Events))
		}
	}
	if len(h.Events) > 0 && len(h.Reasons) == 0 &&
		!slices.ContainsFunc(h.Events, func(e string) bool { return slices.Contains(o.Events, e) }) {
		h.Reasons = append(h.Reasons, "none of its events exists")
	}
	if h.Source != Workspace {
		return
	}
	var err error
	if h.Hash, err = Hash(h.Dir); err != nil {
		h.Reasons = append(h.Reasons, err.Error())
	} else if h.Enabled && h.Hash != h.Entry.Hash {
		h.Reasons = append(h.Reasons,
			"it is in a workspace and was changed since it was enabled: read it, then chela hooks enable "+h.Name)
	}
}

// unknownEvent says that there is no such event, and what may have been meant.
func unknownEvent(name string, known []string) string {
	text := fmt.Sprintf("unknown event %q", name)
	best, at := 3, ""
	for _, k := range known {
		if d := spelling.Distance(name, k); d < best {
			best, at = d, k
		}
	}
	if at != "" {
		text += fmt.Sprintf("; did you mean %s?", at)
	}
	return text
}
