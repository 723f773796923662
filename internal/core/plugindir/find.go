package plugindir

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// Options says where plug-ins are.
type Options struct {
	Config Config
	State  string // the state directory
	Agents []hookdir.Agent
	Home   string                   // for ~ in paths
	Known  []string                 // ids of entries that parts of Chela read
	Getenv func(name string) string // for plugins.entries.<id>.apiKey
}

// Dir returns the folder of the plug-ins that the person installed.
func Dir(state string) string { return filepath.Join(state, "plugins") }

// WorkspaceDirs are the folders of plug-ins in a workspace.
var WorkspaceDirs = [...]string{".openclaw/extensions", ".chela/plugins"}

// maxPlugins is the maximum number of plug-ins of a folder.
const maxPlugins = 200

// Find returns all plug-ins, sorted by id, with what is wrong with each. An id of the
// configuration without a plug-in has the source Missing.
func Find(o Options) []Plugin {
	byID := map[string]*Plugin{}
	add := func(p Plugin) {
		if old := byID[p.ID]; old != nil {
			old.Warnings = append(old.Warnings, fmt.Sprintf("the plug-in in %s is ignored, because it has the same id", p.Dir))
			return
		}
		byID[p.ID] = &p
	}
	for _, path := range o.Config.Load.Paths {
		for _, p := range o.path(path) {
			add(p)
		}
	}
	for _, p := range folders(Dir(o.State), Installed) {
		add(p)
	}
	for _, a := range o.Agents {
		for _, sub := range WorkspaceDirs {
			for _, p := range folders(filepath.Join(a.Workspace, filepath.FromSlash(sub)), Workspace) {
				p.Agent = a.ID
				add(p)
			}
		}
	}
	o.stale(byID)
	var all []Plugin
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		p := byID[id]
		if p.Source != Missing {
			o.complete(p)
		}
		all = append(all, *p)
	}
	return all
}

// path returns the plug-ins of a path in plugins.load.paths.
func (o *Options) path(path string) []Plugin {
	path = o.abs(path, o.State)
	p, err := Read(path)
	p.Source = Path
	if p.File != "" {
		return []Plugin{reasoned(p, err)}
	}
	list := folders(path, Path)
	if len(list) == 0 {
		return []Plugin{reasoned(p, fmt.Errorf("plugins.load.paths: %w", err))}
	}
	return list
}

// abs returns an absolute path, from a folder if it is relative.
func (o *Options) abs(path, from string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(o.Home, rest)
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(from, path)
	}
	return filepath.Clean(path)
}

// reasoned returns a plug-in with an error as the reason why it is not used.
func reasoned(p Plugin, err error) Plugin {
	if err != nil {
		p.Reasons = append(p.Reasons, err.Error())
	}
	if p.ID == "" {
		p.ID = "plugin"
	}
	return p
}

// folders returns the plug-ins in the folders of a folder. Folders without a manifest
// are skipped.
func folders(dir string, s Source) []Plugin {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []Plugin
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || s != Path && !e.IsDir() || len(out) >= maxPlugins {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		if info, err := os.Stat(sub); err != nil || !info.IsDir() {
			continue
		}
		p, err := Read(sub)
		if p.File == "" {
			continue
		}
		p.Source = s
		out = append(out, reasoned(p, err))
	}
	return out
}

// stale adds the ids of the configuration that nothing has.
func (o *Options) stale(byID map[string]*Plugin) {
	add := func(id, text string) {
		if byID[id] == nil {
			byID[id] = &Plugin{ID: id, Source: Missing}
		}
		if p := byID[id]; p.Source == Missing {
			p.Warnings = append(p.Warnings, text)
		}
	}
	known := func(id string) bool {
		return byID[id] != nil && byID[id].Source != Missing || slices.Contains(o.Known, id)
	}
	for _, id := range slices.Sorted(maps.Keys(o.Config.Entries)) {
		e := o.Config.Entries[id]
		off := e.Enabled != nil && !*e.Enabled && e.Config == nil && e.Env == nil && e.Key.IsZero()
		if !known(id) && !off { // such an entry is left after a plug-in was removed
			add(id, fmt.Sprintf("stale entry: there is no plug-in %s; chela config unset plugins.entries.%s", id, id))
		}
	}
	for _, list := range [...]struct {
		key string
		ids []string
	}{{"allow", o.Config.Allow}, {"deny", o.Config.Deny}} {
		for _, id := range list.ids {
			if !known(id) {
				add(id, fmt.Sprintf("plugins.%s names %s, but there is no such plug-in", list.key, id))
			}
		}
	}
}

// complete adds the configuration of a plug-in and what is wrong with it.
func (o *Options) complete(p *Plugin) {
	p.Entry = o.Config.Entries[p.ID]
	p.Enabled = p.Source == Path
	if on := p.Entry.Enabled; on != nil {
		p.Enabled = *on
	}
	no := func(format string, args ...any) { p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...)) }
	if on := o.Config.Enabled; on != nil && !*on {
		no("plug-ins are off (plugins.enabled)")
	}
	switch {
	case slices.Contains(o.Config.Deny, p.ID):
		no("plugins.deny names it")
	case len(o.Config.Allow) > 0 && !slices.Contains(o.Config.Allow, p.ID):
		no("plugins.allow does not name it")
	}
	o.pin(p)
	if p.File == "" || p.broken() {
		return
	}
	o.settings(p)
	var err error
	if p.key, err = p.Entry.Key.Resolve(o.Getenv); err != nil {
		no("plugins.entries.%s.apiKey: %v", p.ID, err)
	}
	if p.allowed, err = o.permissions(p.Permissions.with(p.Entry.Permissions)); err != nil {
		no("permissions: %v", err)
	}
}

// broken reports whether the manifest cannot be used.
func (p *Plugin) broken() bool { return p.Format == OpenClaw && p.ConfigSchema == nil }

// pin compares the folder with the one that was enabled.
func (o *Options) pin(p *Plugin) {
	if p.Source == Path && p.Entry.Hash == "" || p.File == "" {
		return
	}
	if err := p.sum(); err != nil {
		p.Reasons = append(p.Reasons, err.Error())
	} else if p.Enabled && p.Hash != p.Entry.Hash {
		p.Reasons = append(p.Reasons,
			fmt.Sprintf("it was changed since it was enabled: read it, then chela plugins enable %s", p.ID))
	}
}

// settings validates the configuration.
func (o *Options) settings(p *Plugin) {
	path := "plugins.entries." + p.ID + ".config"
	p.Config = []byte("{}")
	if p.ConfigSchema == nil {
		if c := string(p.Entry.Config); c != "" && c != "null" && c != "{}" {
			p.Warnings = append(p.Warnings, path+": the plug-in takes no configuration")
		}
		return
	}
	s, err := newSettings(p.ConfigSchema)
	if err != nil { // Read has reported it
		return
	}
	config, problems := s.complete(p.Entry.Config, path)
	if p.Reasons = append(p.Reasons, problems...); len(problems) == 0 {
		p.Config = config
	}
}

// permissions returns permissions with absolute paths.
func (o *Options) permissions(p Permissions) (Permissions, error) {
	out := Permissions{Hosts: p.Hosts}
	for _, h := range p.Hosts {
		if !validHost(h) {
			return out, fmt.Errorf("host %.100q: want NAME, NAME:PORT or *.DOMAIN", h)
		}
	}
	var err error
	if out.Read, err = o.paths(p.Read); err == nil {
		out.Write, err = o.paths(p.Write)
	}
	return out, err
}

// paths returns absolute paths, none of which shows Chela's own files.
func (o *Options) paths(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		path := o.abs(name, "")
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%.100q: want an absolute path, or one that begins with ~/", name)
		}
		real, state := pathpolicy.Real(path), pathpolicy.Real(o.State)
		if pathpolicy.Inside(real, state) && !o.inWorkspace(real) || pathpolicy.Inside(state, real) {
			return nil, fmt.Errorf("%.100q: it has the configuration and state of Chela itself", name)
		}
		out = append(out, path)
	}
	return out, nil
}

// inWorkspace reports whether a path is in a workspace, which may be in the state
// directory.
func (o *Options) inWorkspace(path string) bool {
	return slices.ContainsFunc(o.Agents, func(a hookdir.Agent) bool {
		return a.Workspace != "" && pathpolicy.Inside(path, pathpolicy.Real(a.Workspace))
	})
}

// validHost reports whether a text is NAME, NAME:PORT or *.DOMAIN.
func validHost(s string) bool {
	name, port, hasPort := strings.Cut(s, ":")
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || n == 0) {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.TrimPrefix(name, "*.")
	return name != "" && len(name) <= 253 && !strings.HasPrefix(name, ".") &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
		})
}
