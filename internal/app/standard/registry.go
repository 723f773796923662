package standard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/services"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/service"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Registry lists the plug-ins and services of a build. Parts are registered
// before the first engine starts; afterwards the Registry is only read. A name
// that is registered twice panics.
//
// A part has a factory. It is given an environment, from which its line passes
// on what the part may use, and the part's own section of the configuration as
// JSON (nil: absent), which the part decodes itself. A factory starts nothing.
type Registry struct {
	channels  list[channel.Factory]
	providers list[Provider]
	tools     list[toolEntry]
	stores    list[Store]
	sandboxes list[Sandbox]
	// Launches lets commands be confined by the native sandbox, which starts this
	// program again for each.
	Launches bool
	// Shared is set where the process is not the engine's alone. Its memory is then not
	// returned to the system when the engine is idle.
	Shared   bool
	services list[serviceEntry]
	hooks    list[hookEntry]
	doctors  list[Doctor]
	skills   fs.FS
}

// list is the parts of one kind in the order of their registration.
type list[T any] struct {
	names []string
	parts []T
}

func (l *list[T]) add(kind, name string, part T) {
	if name == "" || slices.Contains(l.names, name) {
		panic(fmt.Sprintf("standard: the %s %q is registered twice or has no name", kind, name))
	}
	l.names, l.parts = append(l.names, name), append(l.parts, part)
}

func (l *list[T]) get(name string) (part T, ok bool) {
	if i := slices.Index(l.names, name); i >= 0 {
		return l.parts[i], true
	}
	return part, false
}

// Channel registers a kind of channel, configured at channels.<name>.
func (r *Registry) Channel(f channel.Factory) { r.channels.add("channel", f.Name, f) }

// Channels returns the kinds of channels.
func (r *Registry) Channels() []channel.Factory { return r.channels.parts }

// Skills replaces the bundled skills, a folder each. nil: there
// are none.
func (r *Registry) Skills(fsys fs.FS) { r.skills = fsys }

// BundledSkills returns the bundled skills; nil: there are none.
func (r *Registry) BundledSkills() fs.FS { return r.skills }

// Provider makes a model provider.
type Provider func(dialect.Options) llm.Provider

// Provider registers a dialect under the name that models.providers.<id>.api has
// in the configuration.
func (r *Registry) Provider(api string, f Provider) { r.providers.add("provider", api, f) }

// NewProvider makes a provider that speaks a dialect.
func (r *Registry) NewProvider(api string, o dialect.Options) (llm.Provider, error) {
	f, ok := r.providers.get(api)
	if !ok {
		return nil, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("provider %s: api %q is not supported yet; use one of %s", o.Name, api,
				strings.Join(r.providers.names, ", ")),
			Hint: "chela config set " + shell.Quote("models.providers."+o.Name+".api") + " " + OpenAI,
		}
	}
	return f(o), nil
}

type toolEntry struct {
	section string
	agent   bool // made for each agent
	make    func(env ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error)
}

// Tool registers tools that are the same for all agents. No tools: they are off.
func (r *Registry) Tool(name, section string, f func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error)) {
	r.tools.add("tool", name,
		toolEntry{section, false, func(env ToolEnv, _ pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error) {
			return f(env, raw)
		}})
}

// FileTool registers tools that name files. They are made for each agent, with
// the rule about the files that the agent may name.
func (r *Registry) FileTool(name, section string,
	f func(env ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error)) {
	r.tools.add("tool", name, toolEntry{section, true, f})
}

// NewTools makes the tools that are the same for all agents. section returns the
// JSON at a path of the configuration.
func (r *Registry) NewTools(env ToolEnv, section func(path string) json.RawMessage) ([]tool.Tool, error) {
	return r.makeTools(env, pathpolicy.Rule{}, section, false)
}

// NewFileTools makes the tools that name files, for agents with the rule.
func (r *Registry) NewFileTools(env ToolEnv, rule pathpolicy.Rule,
	section func(path string) json.RawMessage) ([]tool.Tool, error) {
	return r.makeTools(env, rule, section, true)
}

func (r *Registry) makeTools(env ToolEnv, rule pathpolicy.Rule, section func(string) json.RawMessage,
	agent bool) ([]tool.Tool, error) {
	var all []tool.Tool
	for _, t := range r.tools.parts {
		if t.agent != agent {
			continue
		}
		tools, err := t.make(env, rule, sectionAt(section, t.section))
		if err != nil {
			return nil, fmt.Errorf("configuration, %s: %w", t.section, err)
		}
		all = append(all, tools...)
	}
	return all, nil
}

// sectionAt returns the section at a path; nil for the empty path.
func sectionAt(section func(string) json.RawMessage, path string) json.RawMessage {
	if path == "" {
		return nil
	}
	return section(path)
}

// Store describes a kind of database and what can be done with one that is
// closed. Open is required; an operation that is nil does not exist.
type Store struct {
	File    string // name of the database in the state directory; "": it is elsewhere
	Section string // path of the section of the configuration that Selects reads
	// Selects reports whether the configuration selects this store; nil: it is used when
	// no other one is selected.
	Selects func(raw json.RawMessage) (bool, error)
	Hint    string // how a database elsewhere is copied and restored
	Open    func(ctx context.Context, path string, o StoreOptions) (Database, error)
	Verify  func(ctx context.Context, file string) (summary string, err error) // reads a copy
	// replaces the database; old: the name of its copy
	Restore func(ctx context.Context, copied, path string) (old string, err error)
	// saves what can be read of a damaged one
	Recover func(ctx context.Context, path string) (report []string, err error)
}

// StoreOptions says how a database is opened.
type StoreOptions struct {
	Log *slog.Logger
	// the state directory was used before: a database without content is an error, and no new one is
	// made
	Used    bool
	Section json.RawMessage     // of Store.Section
	Env     func(string) string // environment variables
	State   string              // the state directory, which names this process to others
	// Standby is called, perhaps several times, while another process has the database, or
	// while err says why it cannot be reached. nil: Open does not wait.
	Standby func(owner string, err error)
}

// Database is a store that is open. It may implement [Backuper], [Checker], [Owned] and
// [Located].
type Database interface {
	store.Store
	Close() error
}

// Backuper is a Database that can be copied while it is in use.
type Backuper interface {
	Backup(ctx context.Context, file string) error
}

// Checker is a Database that can be read completely to find damage.
type Checker interface {
	Check(ctx context.Context) error
	Damage() error // the damage found so far, by Check or by reading
}

// Owned is a Database that another process may take over.
type Owned interface {
	Held() bool            // certainly no other process has it
	Lost() <-chan struct{} // closed when another one may have it: nothing is stored any more
}

// Located is a Database that is not in the state directory.
type Located interface {
	Location() string // without a password
}

// Store registers a kind of database.
func (r *Registry) Store(name string, s Store) { r.stores.add("store", name, s) }

// DefaultStore returns the store that is used when the configuration selects none: the
// first that was registered. It panics when there is none.
func (r *Registry) DefaultStore() Store { return r.stores.parts[0] }

// StoreOf returns the store that a configuration selects, whose Open gets its section, the
// environment variables and the state directory; by default, [Registry.DefaultStore].
func (r *Registry) StoreOf(section func(string) json.RawMessage, env func(string) string, state string) (Store, error) {
	for _, s := range r.stores.parts {
		if s.Selects == nil {
			continue
		}
		raw := section(s.Section)
		on, err := s.Selects(raw)
		switch {
		case err != nil:
			return s, err
		case on:
			open := s.Open
			s.Open = func(ctx context.Context, path string, o StoreOptions) (Database, error) {
				o.Section, o.Env, o.State = raw, env, state
				return open(ctx, path, o)
			}
			return s, nil
		}
	}
	return r.DefaultStore(), nil
}

// Sandbox describes a way of running commands.
type Sandbox struct {
	// New makes a broker that does not confine; nil: this one always confines.
	New func(env SandboxEnv, raw json.RawMessage) (sandbox.Broker, error)
	// Confine makes a backend that confines; nil: this one never confines.
	Confine    func(env SandboxEnv) sandbox.Backend
	Containers bool // Confine keeps containers, with programs of their own
	// Sweep ends the commands that a killed process left running; nil: nothing
	// survives. The caller holds the lock of the state directory.
	Sweep func(ctx context.Context, log *slog.Logger, env SandboxEnv) error
}

// SandboxEnv is what a sandbox may use.
type SandboxEnv struct {
	State string // the state directory, which identifies the installation; "": none
	Home  string // the person's home folder
	// Never returns the files and folders that commands in the sandbox never see. It
	// is called for every command. nil: there are none.
	Never func() []string

	Log    *slog.Logger
	Getenv func(name string) string // environment variables, for the programs of backends
}

// sandboxSection is where the sandbox is configured.
const sandboxSection = "agents.defaults.sandbox"

// Sandbox registers a way of running commands.
func (r *Registry) Sandbox(name string, s Sandbox) { r.sandboxes.add("sandbox", name, s) }

// NewBroker makes the broker that does not confine: the first that was
// registered.
func (r *Registry) NewBroker(env SandboxEnv, section func(path string) json.RawMessage) (sandbox.Broker, error) {
	for _, s := range r.sandboxes.parts {
		if s.New != nil {
			return s.New(env, section(sandboxSection))
		}
	}
	return nil, errors.New("no sandbox is registered")
}

// NewBackends makes the backends that confine commands, by name. The one that was
// registered first is the native one. There is none unless Launches is set.
func (r *Registry) NewBackends(env SandboxEnv) map[string]sandbox.Backend {
	all := map[string]sandbox.Backend{}
	for i, s := range r.sandboxes.parts {
		switch name := r.sandboxes.names[i]; {
		case s.Confine == nil:
		case s.Containers:
			all[name] = s.Confine(env)
		case r.Launches && all[sandbox.Native] == nil:
			all[sandbox.Native] = s.Confine(env)
		}
	}
	return all
}

// Sweep ends the commands that a killed process left running.
func (r *Registry) Sweep(ctx context.Context, log *slog.Logger, env SandboxEnv) error {
	for _, s := range r.sandboxes.parts {
		if s.Sweep == nil {
			continue
		}
		if err := s.Sweep(ctx, log, env); err != nil {
			return err
		}
	}
	return nil
}

// ServiceEnv is what a service may use.
type ServiceEnv struct {
	Log   *slog.Logger
	State string // the state directory
	Store store.Store
	Bus   *bus.Bus
	HTTP  func() *http.Client // makes a client under the egress rules: public addresses only

	Rest  func()                             // gives up what the engine keeps in memory to be faster
	Check func(context.Context) error        // reads the whole database
	Sweep func(context.Context) (int, error) // removes media files that nothing refers to
	// DeleteSession deletes a session in which no run is in progress, if the function
	// permits it in the transaction, and reports whether it did.
	DeleteSession func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error)
}

// ServiceFunc makes a service; nil: the service is off.
type ServiceFunc func(env ServiceEnv, raw json.RawMessage) (service.Service, error)

type serviceEntry struct {
	section string
	make    ServiceFunc
}

// Service registers a service. Services are started in the order of their
// registration, after the engine, and stopped in the opposite order, before it.
func (r *Registry) Service(name, section string, f ServiceFunc) {
	r.services.add("service", name, serviceEntry{section, f})
}

// Services returns how the services are made, in the order of their registration.
func (r *Registry) Services(env ServiceEnv) []services.Maker {
	var all []services.Maker
	for i, s := range r.services.parts {
		all = append(all, services.Maker{Name: r.services.names[i], Section: s.section,
			New: func(raw json.RawMessage) (service.Service, error) {
				return s.make(env, raw)
			}})
	}
	return all
}

// HookFunc adds hooks.
type HookFunc func(env HookEnv, raw json.RawMessage, to *hook.Points) error

type hookEntry struct {
	section string
	make    HookFunc
}

// Hook registers hooks. They are made when the engine starts and when the
// configuration changes.
func (r *Registry) Hook(name, section string, f HookFunc) {
	r.hooks.add("hook", name, hookEntry{section, f})
}

// NewHooks makes the hooks.
func (r *Registry) NewHooks(env HookEnv, section func(path string) json.RawMessage) (*hook.Points, error) {
	all := hook.New(env.Log)
	for _, h := range r.hooks.parts {
		if err := h.make(env, sectionAt(section, h.section), all); err != nil {
			return nil, fmt.Errorf("configuration, %s: %w", h.section, err)
		}
	}
	return all, nil
}

// DoctorEnv is what a check of an installation may use.
type DoctorEnv struct {
	State   string                            // the state directory
	Section func(path string) json.RawMessage // the configuration
	Getenv  func(name string) string
}

// Doctor checks what a part needs, without an engine.
type Doctor func(ctx context.Context, env DoctorEnv) []cli.Finding

// Doctor registers a check of an installation, for chela doctor.
func (r *Registry) Doctor(name string, f Doctor) { r.doctors.add("doctor", name, f) }

// Check runs the checks in the order of their registration.
func (r *Registry) Check(ctx context.Context, env DoctorEnv) []cli.Finding {
	var all []cli.Finding
	for _, f := range r.doctors.parts {
		all = append(all, f(ctx, env)...)
	}
	return all
}
