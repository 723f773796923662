package plugindir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// placeholder matches ${NAME}.
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`) })

// expand replaces the placeholders of values in one pass. Others remain.
func expand(text string, values map[string]string) string {
	return placeholder().ReplaceAllStringFunc(text, func(p string) string {
		if v, ok := values[p[2:len(p)-1]]; ok {
			return v
		}
		return p
	})
}

// unknownData is a path that stands for the data folder while it is unknown.
func unknownData(dir string) string { return filepath.Join(filepath.Dir(dir), ".plugin-data") }

// resolve returns a server with absolute paths. Those of the plug-in must be in its
// folder, and the working directory may be in the data folder.
func (p *Plugin) resolve(s mcp.Server, data string) (mcp.Server, error) {
	values := map[string]string{"PLUGIN_ROOT": p.Dir, "CLAUDE_PLUGIN_ROOT": p.Dir, "PLUGIN_DATA": data}
	fill := func(text string) string { return expand(text, values) }
	s.Command, s.Args, s.Env = fill(s.Command), slices.Clone(s.Args), maps.Clone(s.Env)
	s.Headers = maps.Clone(s.Headers)
	if err := s.Validate(); err != nil {
		return s, err
	}
	if s.Command == "" {
		return s, nil
	}
	for name, v := range s.Env {
		s.Env[name] = fill(v)
	}
	var err error
	if strings.ContainsAny(s.Command, `/\`) || s.Command == "." || s.Command == ".." {
		if s.Command, err = p.program(s.Command); err != nil {
			return s, fmt.Errorf("command: %w", err)
		}
	}
	for i, a := range s.Args {
		if s.Args[i] = fill(a); strings.HasPrefix(s.Args[i], "./") {
			if s.Args[i], err = p.inside(s.Args[i], ""); err != nil {
				return s, fmt.Errorf("args: %w", err)
			}
		}
	}
	if s.Dir, err = p.inside(fill(cmp.Or(s.Dir, s.WorkDir, ".")), data); err != nil {
		return s, fmt.Errorf("cwd: %w", err)
	}
	s.WorkDir = ""
	return s, nil
}

// program returns the path of a program, which exists if it is the plug-in's.
func (p *Plugin) program(name string) (string, error) {
	if filepath.IsAbs(name) && !pathpolicy.Inside(filepath.Clean(name), p.Dir) {
		return name, nil // a program of the system
	}
	path, err := p.inside(name, "")
	if err != nil {
		return path, err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	return path, err
}

// inside returns the absolute path of a file in the plug-in's folder, or in the data
// folder if that is not empty. Links must not lead out of it.
func (p *Plugin) inside(name, data string) (string, error) {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	path = filepath.Clean(path)
	real := pathpolicy.Real(path)
	if !pathpolicy.Inside(real, p.Dir) && (data == "" || !pathpolicy.Inside(real, pathpolicy.Real(data))) {
		return "", fmt.Errorf("%.100q is not in the plug-in's folder", name)
	}
	return path, nil
}

// Environ returns the variables of the plug-in's programs. data is its data folder,
// which must exist when they start.
func (p *Plugin) Environ(data string) map[string]string {
	env := map[string]string{"PYTHONDONTWRITEBYTECODE": "1"} // its cache would change the folder
	maps.Copy(env, p.Entry.Env)
	env["PLUGIN_ROOT"], env["PLUGIN_DATA"], env["CLAUDE_PLUGIN_ROOT"] = p.Dir, data, p.Dir
	env["CHELA_PLUGIN_ID"], env["CHELA_PLUGIN_CONFIG"] = p.ID, string(p.Config)
	delete(env, "CHELA_PLUGIN_API_KEY")
	if !p.key.IsZero() {
		env["CHELA_PLUGIN_API_KEY"] = p.key.Reveal()
	}
	return env
}

// Rights returns what the plug-in's programs may use; nil: everything. data is its data
// folder.
func (p *Plugin) Rights(data string) *sandbox.Rights {
	if !p.confined() {
		return nil
	}
	reals := func(paths []string) (out []string) {
		for _, path := range paths {
			if path = pathpolicy.Real(path); exists(path) {
				out = append(out, path)
			}
		}
		return out
	}
	return &sandbox.Rights{
		Workspace: p.Dir,
		Hosts:     slices.Clone(p.allowed.Hosts),
		Read:      reals(p.allowed.Read),
		Change:    reals(p.allowed.Write),
		Own:       pathpolicy.Real(data),
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p *Plugin) confined() bool { return p.Entry.Sandbox == nil || *p.Entry.Sandbox }

// Check returns why a program of the plug-in must not be started.
func (p *Plugin) Check() error {
	if p.Changed() {
		return fmt.Errorf("the plug-in %s was changed since it was enabled: read it, then chela plugins enable %s", p.ID,
			p.ID)
	}
	return nil
}

// MCPServers returns the servers of a plug-in that is used, by name, ready for the
// client. Its own program has the plug-in's id as its name. data is the data folder,
// which must exist when they start.
func (p *Plugin) MCPServers(data string) (map[string]mcp.Server, error) {
	if !p.Loadable() {
		return nil, nil
	}
	env := p.Environ(data)
	out := map[string]mcp.Server{}
	var errs []error
	add := func(name string, s mcp.Server) {
		s, err := p.resolve(s, data)
		if err != nil {
			errs = append(errs, fmt.Errorf("plug-in %s: server %s: %w", p.ID, name, err))
			return
		}
		if s.Command != "" {
			if s.Env == nil {
				s.Env = map[string]string{}
			}
			maps.Copy(s.Env, env)
		}
		for key, v := range s.Headers {
			s.Headers[key] = expand(v, env)
		}
		s.Plugin, s.Rights, s.Check = p.ID, p.Rights(data), p.Check
		out[name] = s
	}
	for name, s := range p.Servers {
		if name != p.ID || p.Process == nil {
			add(name, s)
		}
	}
	if p.Process != nil {
		s := *p.Process
		s.Own = append([]mcp.Declared{}, p.Tools...) // not nil: others are refused
		add(p.ID, s)
	}
	return out, errors.Join(errs...)
}
