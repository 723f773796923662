package standard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/hook/bundled"
	"github.com/chela-ai/chela/internal/plugin/hook/exec"
	hookhttp "github.com/chela-ai/chela/internal/plugin/hook/http"
)

// HookEnv is what a hook may use.
type HookEnv struct {
	Log      *slog.Logger
	Redact   func(string) string // replaces the secrets in a text
	State    string              // the state directory
	Instance string              // id of this start
	Home     string              // the person's home folder
	Environ  []string            // the variables of this process; nil: os.Environ()
	Store    store.Store         // nil: the hooks are only checked
	Broker   sandbox.Broker      // starts programs
	Cage     sandbox.Broker      // confines those of plug-ins; nil: nothing does
	Plugins  []plugindir.Plugin
	Data     func(plugin string) string // folder in which the programs of a plug-in keep files
	Agents   []hookdir.Agent            // with their workspaces
	Private  func() []string            // files and folders that hooks of Chela never read; nil: there are none
	Section  func(path string) json.RawMessage
	// Found takes the hooks of folders that were found; nil: nobody asks.
	Found func([]hookdir.Hook)
}

// Hooks registers the hooks.
func Hooks(r *Registry) {
	r.Hook("secrets", "", func(env HookEnv, _ json.RawMessage, to *hook.Points) error {
		to.BeforeToolCall.Add(secretsHook(env.Redact))
		return nil
	})
	r.Hook("points", "hooks.points", configuredHooks)
	r.Hook("internal", "hooks.internal", installedHooks)
}

// secretsHook asks a person before a tool gets a secret that Chela stores: a
// command, the address of a page or a file would give it away. It is called
// last, when the arguments are final.
func secretsHook(redact func(string) string) hook.Before {
	return hook.Before{Name: "secrets", Priority: -1000, Quick: true,
		Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
			args := string(c.Args)
			return hook.Verdict{
				Ask:    redact(args) != args,
				Reason: "its arguments contain a secret that Chela stores (a key of a service, or the gateway's credential)",
			}, nil
		}}
}

// environ returns the variables for programs.
func (e *HookEnv) environ() []string {
	if e.Environ != nil {
		return e.Environ
	}
	return os.Environ()
}

// runner returns what runs programs.
func (e *HookEnv) runner() exec.Runner {
	return exec.Runner{Broker: e.Broker, Cage: e.Cage, Environ: e.environ(), State: e.State, Redact: e.Redact}
}

// FindHooks returns the hooks of folders, with those that are part of Chela.
func FindHooks(env HookEnv, raw json.RawMessage) ([]hookdir.Hook, error) {
	var c hookdir.Config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
	}
	o := hookdir.Options{
		Config:  c,
		Managed: HookDir(env.State),
		Agents:  env.Agents,
		Home:    env.Home,
		Events:  hook.New(nil).Names(),
		Look:    sandbox.Look(env.environ()),
		Section: env.Section,
		Getenv:  os.Getenv,
	}
	if o.Section == nil {
		o.Section = func(string) json.RawMessage { return nil }
	}
	for _, b := range bundled.All() {
		o.Bundled = append(o.Bundled, b.Hook)
	}
	for i := range env.Plugins {
		p := &env.Plugins[i]
		if !p.Loadable() {
			continue
		}
		conversation, prompt := p.Entry.Allowed()
		o.Plugins = append(o.Plugins, hookdir.PluginHooks{ID: p.ID, Dirs: p.Hooks, Entry: hookdir.Entry{
			Env: p.Environ(env.Data(p.ID)), TimeoutMS: p.Entry.Hooks.TimeoutMS, Conversation: &conversation, Prompt: &prompt,
		}})
	}
	return hookdir.Find(o), nil
}

// HookDir is the folder of the hooks that the person installed.
func HookDir(state string) string { return filepath.Join(state, "hooks") }

// installedHooks adds the hooks of folders.
func installedHooks(env HookEnv, raw json.RawMessage, to *hook.Points) error {
	found, err := FindHooks(env, raw)
	if err != nil {
		return err
	}
	for i := range found {
		h := &found[i]
		for _, w := range h.Warnings {
			env.Log.Warn("hook", "hook", h.Name, "source", h.Source, "problem", w)
		}
		if h.Enabled && len(h.Reasons) > 0 {
			env.Log.Warn("hook is not used", "hook", h.Name, "source", h.Source, "problem", h.Reasons[0])
		}
		if !h.Loadable() {
			continue
		}
		used, err := addInstalled(env, h, to)
		switch {
		case err == nil:
		case used:
			h.Warnings = append(h.Warnings, err.Error())
			env.Log.Warn("hook", "hook", h.Name, "source", h.Source, "problem", err.Error())
		default:
			h.Reasons = append(h.Reasons, err.Error())
			env.Log.Warn("hook is not used", "hook", h.Name, "source", h.Source, "problem", err.Error())
		}
	}
	if env.Found != nil {
		env.Found(found)
	}
	return nil
}

// addInstalled adds a hook of a folder, or one that is part of Chela. It reports whether
// the hook has at least one point.
func addInstalled(env HookEnv, h *hookdir.Hook, to *hook.Points) (used bool, err error) {
	if h.Source == hookdir.Bundled {
		all := bundled.All()
		i := slices.IndexFunc(all, func(b bundled.Hook) bool { return b.Name == h.Name })
		return false, all[i].Add(bundled.Env{
			Log:      env.Log,
			State:    env.State,
			Instance: env.Instance,
			Store:    env.Store,
			Agents:   env.Agents,
			Private:  env.Private,
			Redact:   env.Redact,
		}, h.Entry.Raw, to)
	}
	own := *h
	p := hook.Program{Name: h.Name, Priority: h.Entry.Priority, Timeout: h.Entry.Timeout(), Tools: h.Entry.Tools}
	p.Conversation, p.Prompt = h.Allowed()
	command := exec.Command{Name: h.Name, Argv: h.Argv, Dir: h.Dir, Env: h.Entry.Env, Check: func() error {
		if own.Changed() {
			return errors.New("it was changed since it was enabled")
		}
		return nil
	}}
	if i := slices.IndexFunc(env.Plugins, func(p plugindir.Plugin) bool { return p.ID == h.Plugin }); i >= 0 {
		plugin, data := &env.Plugins[i], env.Data(h.Plugin)
		command.Rights = plugin.Rights(data)
		command.Check = func() error {
			if err := plugin.Check(); err != nil {
				return err
			}
			return os.MkdirAll(data, 0o700)
		}
	}
	p.Func = env.runner().Func(command)
	var errs []error
	for _, name := range h.Events {
		switch err := to.Program(name, p); {
		case err == nil:
			used = true
		case slices.Contains(to.Names(), name): // others got a warning
			errs = append(errs, err)
		}
	}
	return used, errors.Join(errs...)
}

// PointHook is an element of hooks.points: a program or an HTTP endpoint at a point.
type PointHook struct {
	Point        string            `json:"point"`
	Name         string            `json:"name"`    // for the log; "": the point with a number
	Command      commandLine       `json:"command"` // a program with its arguments, or a line for the shell
	Dir          string            `json:"cwd"`     // of the program; "": the state directory
	Env          map[string]string `json:"env"`     // further variables of the program
	URL          string            `json:"url"`     // an endpoint
	Headers      map[string]string `json:"headers"` // of its requests
	TimeoutMS    int               `json:"timeoutMs"`
	Priority     int               `json:"priority"`
	Tools        []string          `json:"tools"`   // only for these tools; none: all
	Enabled      *bool             `json:"enabled"` // nil: true
	Conversation *bool             `json:"allowConversationAccess"`
	Prompt       *bool             `json:"allowPromptInjection"`
}

// commandLine is a program with its arguments.
type commandLine []string

// UnmarshalJSON accepts an array, or a line for the shell.
func (c *commandLine) UnmarshalJSON(b []byte) error {
	var line string
	if json.Unmarshal(b, &line) == nil {
		*c = nil
		if line != "" {
			*c = commandLine{"sh", "-c", line}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(c))
}

// configuredHooks adds the hooks of hooks.points.
func configuredHooks(env HookEnv, raw json.RawMessage, to *hook.Points) error {
	if len(raw) == 0 {
		return nil
	}
	var list []PointHook
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for i, h := range list {
		if h.Enabled != nil && !*h.Enabled {
			continue
		}
		if err := addConfigured(env, h, i, to); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func addConfigured(env HookEnv, h PointHook, i int, to *hook.Points) error {
	yes := func(b *bool) bool { return b == nil || *b }
	p := hook.Program{
		Name:         cmp.Or(h.Name, fmt.Sprintf("%s-%d", h.Point, i)),
		Priority:     h.Priority,
		Timeout:      hookdir.Entry{TimeoutMS: h.TimeoutMS}.Timeout(),
		Tools:        h.Tools,
		Conversation: yes(h.Conversation),
		Prompt:       yes(h.Prompt),
	}
	switch {
	case (len(h.Command) == 0) == (h.URL == ""):
		return errors.New("want either command or url")
	case h.URL != "":
		u, err := url.Parse(h.URL)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("url %q: want http:// or https://", h.URL)
		}
		p.Func = hookhttp.Endpoint{URL: h.URL, Headers: h.Headers, Client: HostClient(u), Redact: env.Redact}.Func()
	default:
		argv := slices.Clone(h.Command)
		if !filepath.IsAbs(argv[0]) {
			if program := sandbox.Look(env.environ())(argv[0]); program != "" {
				argv[0] = program
			} else {
				env.Log.Warn("hook cannot run", "hook", p.Name, "problem", fmt.Sprintf("the program %s is not in PATH", argv[0]))
			}
		}
		p.Func = env.runner().Func(exec.Command{Name: p.Name, Argv: argv, Dir: cmp.Or(h.Dir, env.State), Env: h.Env})
	}
	return to.Program(h.Point, p)
}

// HostClient returns a client that reaches only the host of an address, wherever it is:
// the person named it.
func HostClient(u *url.URL) *http.Client {
	return egress.Client(egress.Options{Policy: egress.Policy{Hosts: []string{HostPort(u)}}})
}

// HostPort returns the host and the port of an HTTP address.
func HostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}
