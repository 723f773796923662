// Package methodtest provides an engine with all gateway methods, a real store
// and a scripted model for tests of methods.
package methodtest

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	coreheartbeat "github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/job/jobtest"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/export"
	"github.com/chela-ai/chela/internal/engine/heartbeat"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/runner/runnertest"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/method/agents"
	"github.com/chela-ai/chela/internal/surface/method/approvals"
	"github.com/chela-ai/chela/internal/surface/method/channels"
	"github.com/chela-ai/chela/internal/surface/method/chat"
	"github.com/chela-ai/chela/internal/surface/method/commands"
	cronmethods "github.com/chela-ai/chela/internal/surface/method/cron"
	"github.com/chela-ai/chela/internal/surface/method/devices"
	"github.com/chela-ai/chela/internal/surface/method/files"
	"github.com/chela-ai/chela/internal/surface/method/hooks"
	"github.com/chela-ai/chela/internal/surface/method/messages"
	"github.com/chela-ai/chela/internal/surface/method/models"
	sandboxmethods "github.com/chela-ai/chela/internal/surface/method/sandbox"
	"github.com/chela-ai/chela/internal/surface/method/sessions"
	"github.com/chela-ai/chela/internal/surface/method/system"
	toolmethods "github.com/chela-ai/chela/internal/surface/method/tools"
	"github.com/chela-ai/chela/internal/surface/method/usage"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// model is the scripted model.
var model = llm.Model{
	Provider: "mock", ID: "m1", Name: "Mock", Context: 100_000, Levels: []llm.Level{llm.Low, llm.High},
	Price: &llm.Price{Input: 1, Output: 2},
}

// Fixture is an engine and a client of it.
type Fixture struct {
	*client.Client
	Store  store.Store
	Bus    *bus.Bus
	Server *gateway.Server
	Pipe   *gateway.Pipe
	// Workspace is the agent's workspace.
	Workspace string
	// Accounts are those of channels, and Probe asks whether one works.
	Accounts []channel.Account
	Probe    func(ctx context.Context, name string, id chela.AccountID) (bool, error)
	// Act carries out actions on chats; nil: it refuses all.
	Act func(context.Context, action.Request) (action.Result, error)
	// ToolRules is the tool policy of the configuration.
	ToolRules policy.Config

	// Jobs are the scheduled jobs.
	Jobs jobtest.Scheduler

	// ModelKeys are the keys by provider.
	ModelKeys map[string][]models.Key

	// URL is the address at which other machines reach the gateway; "":
	// none.
	URL string
	// Page is the address of the web page; "": there is none.
	Page string

	t testing.TB
}

// New starts an engine on a new store and connects a client.
func New(t testing.TB, p llm.Provider, tools ...tool.Tool) *Fixture {
	t.Helper()
	return Open(t, filepath.Join(t.TempDir(), "chela.db"), p, tools...)
}

// Open is like New with the store in a file.
func Open(t testing.TB, path string, p llm.Provider, tools ...tool.Tool) *Fixture {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return On(t, db, path, p, tools...)
}

func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelError}))
}

// On is like New with an open store, whose file is path.
func On(t testing.TB, st store.Store, path string, p llm.Provider, tools ...tool.Tool) *Fixture {
	t.Helper()
	log := logger(t)
	h := &Fixture{t: t, Store: st, Bus: bus.New(log), Pipe: gateway.NewPipe(), Workspace: t.TempDir()}
	lanes := new(lane.Lanes)
	lanes.Set("main", 8)
	profile := runner.Profile{
		Provider: p, Model: model, Tools: tool.NewSet(tools...), Dir: h.Workspace,
	}
	own, err := leaseholder.New(context.Background(), leaseholder.Options{Log: log, Store: st, ID: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	beats := heartbeat.New(heartbeat.Options{
		Log: log, Store: st, Bus: h.Bus, Config: noHeartbeats{}, Ready: func(chela.Address) bool { return false },
		Chunks: func(chela.Address) chunk.Options { return chunk.Options{} },
	})
	dispatcher := dispatch.New(dispatch.Options{Lanes: lanes, Drain: 50 * time.Millisecond, Runner: runner.Options{
		Log: log, Store: st, Bus: h.Bus, Owner: own, Ended: []runner.Ended{beats.Ended},
		Executor: invoke.New(invoke.Options{Log: log}), Profiles: runnertest.Static{Profile: profile},
	}})
	gate := inbound.New(inbound.Options{Log: log, Store: st, Bus: h.Bus, Live: dispatcher.Live})
	h.serve(log, parts{path, dispatcher, gate, profile.Tools})

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- beats.Run(ctx) }()
	go func() { done <- dispatcher.Run(ctx) }()
	t.Cleanup(func() {
		h.Close()
		stop, end := context.WithTimeout(context.Background(), waittest.Limit)
		defer end()
		err := h.Server.Shutdown(stop, wire.Shutdown{Reason: "gateway stopping"})
		cancel()
		if err := errors.Join(err, <-done, <-done); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	h.Client = h.Dial(client.Options{Caps: []string{wire.CapToolEvents}})
	return h
}

// parts are the dependencies of the methods.
type parts struct {
	path       string // of the store
	dispatcher *dispatch.Dispatcher
	gate       *inbound.Gate
	tools      tool.Set
}

const main = chela.DefaultAgent

// noHeartbeats is the configuration of an agent whose heartbeat has no interval.
type noHeartbeats struct{}

func (noHeartbeats) Heartbeats() []coreheartbeat.Settings {
	s := coreheartbeat.Config{Target: coreheartbeat.TargetNone}.Settings(main, time.UTC)
	s.Every = 0
	return []coreheartbeat.Settings{s}
}

func (noHeartbeats) HeartbeatFile(chela.AgentID) (string, bool) { return "", false }

func (noHeartbeats) HeartbeatVisibility(chela.Address) (v coreheartbeat.Visibility) { return v }

func (noHeartbeats) IsOwnerChat(chela.Address) bool { return false }

func (noHeartbeats) Sends(session.Meta, chela.Address) bool { return true }

func known(id chela.AgentID) bool { return id == main }

// serve starts the gateway.
func (h *Fixture) serve(log *slog.Logger, p parts) {
	rows := wireview.Rows{Model: func(m session.Meta) wire.SessionModel {
		return wire.SessionModel{Provider: model.Provider, Model: model.ID, ContextWindow: int64(model.Context),
			Options: []string{"off", "high"}}
	}}
	state := system.Options{
		Store:   h.Store,
		Path:    p.path,
		Version: "1.2.3",
		Started: time.Now(),
		Default: main,
		Rows:    rows,
		Notify:  p.dispatcher.Notify,
		Agents:  func() []chela.AgentID { return []chela.AgentID{main} },
		Roster:  func() []wire.Presence { return h.Server.Roster() },
		Folder:  func() string { return "" },
	}
	h.Server = gateway.New(gateway.Options{
		Log: log, Version: "1.2.3", Methods: h.methods(p, rows, state), Bus: h.Bus, Health: state.Health,
		Session: func(ctx context.Context, key chela.SessionKey) (*wire.Session, error) {
			return sessions.Options{Store: h.Store, Rows: rows}.Describe(ctx, key, true)
		},
	})
	go func() { _ = h.Server.Serve(h.Pipe, h.Server.Upgrade(gateway.Trust(chela.Owner("process")))) }()
}

// methods returns all methods of the gateway.
func (h *Fixture) methods(p parts, rows wireview.Rows, state system.Options) rpc.Set {
	pictures, err := media.Open(filepath.Join(h.t.TempDir(), media.Dir), 1024)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { pictures.Close() })
	rules := &allowlist.Source{File: allowlist.NewFile(filepath.Join(h.t.TempDir(), allowlist.FileName)),
		Base: allowlist.Default()}
	return rpc.NewSet(
		chat.Methods(chat.Options{
			Store: h.Store, Bus: h.Bus, Gate: p.gate, Dispatcher: p.dispatcher, Rows: rows, Default: main,
			Agent: known, Metadata: func() wire.ChatMetadata {
				return wire.ChatMetadata{Models: []wire.Model{wireview.Model(model, "", true)}, Commands: []wire.Command{}}
			},
		}),
		sessions.Methods(sessions.Options{
			Store: h.Store, Path: p.path, Bus: h.Bus, Gate: p.gate, Dispatcher: p.dispatcher, Rows: rows, Default: main,
			Agent: known, Export: export.New(export.Options{
				Store: h.Store, Version: "1.2.3", Preview: p.dispatcher.Preview, Fill: pictures.Fill, Scaled: pictures.FillScaled,
				Files: func(chela.AgentID) (pathpolicy.Rule, string) { return pathpolicy.Rule{}, h.Workspace },
			}).Write, StorePart: pictures.StorePart, Model: func(s string) (string, error) {
				ref, err := llm.ParseRef(s)
				return ref.String(), err
			},
		}),
		files.Methods(files.Options{Store: h.Store, Default: main, Agent: known, Workspace: func(chela.AgentID) string {
			return h.Workspace
		}}),
		agents.Methods(agents.Options{Default: main, Scope: "per-sender", Agents: func() []agents.Agent {
			return []agents.Agent{{ID: main, Name: "Chela", Files: prompt.Open(h.Workspace, nil), Model: model}}
		}}),
		commands.Methods(commands.Options{Default: main, Agent: known, Skills: func(chela.AgentID) []*skill.Skill {
			return nil
		}}),
		toolmethods.Methods(toolmethods.Options{
			Default: main, Agent: known, Tools: func(chela.AgentID) tool.Set { return p.tools },
			Store: h.Store, Invoke: h.direct(p.tools).Do,
			Rules: func(_ context.Context, _ chela.Principal, _ chela.SessionKey,
				c policy.Conversation) (policy.Pipeline, llm.Ref, error) {
				return policy.NewCatalog(p.tools).Pipeline(h.ToolRules, policy.Config{}, "agents.entries.main", c),
					llm.Ref{Provider: model.Provider, Model: model.ID}, nil
			},
		}),
		hooks.Methods(hooks.Options{
			Default: main, Agent: known, Workspace: func(chela.AgentID) string { return h.Workspace }, Managed: h.Workspace,
			Hooks:   func() []hookdir.Hook { return nil },
			Install: func(context.Context, string, bool) (hookdir.Hook, error) { return hookdir.Hook{}, nil },
		}),
		sandboxmethods.Methods(sandboxmethods.Options{
			Default:  main,
			Agent:    known,
			Config:   func(chela.AgentID) sandbox.Config { return sandbox.Config{}.Or(sandbox.Config{}) },
			Backends: func() (map[string]sandbox.Backend, []string) { return nil, nil },
			Explain: func(_ context.Context, _ chela.Principal, key chela.SessionKey) (sandboxmethods.Explained, error) {
				return sandboxmethods.Explained{Session: sandbox.New(sandbox.Config{}.Or(sandbox.Config{}), key, h.Workspace,
					h.Workspace)}, nil
			},
		}),
		approvals.Methods(approvals.Options{
			Store:     h.Store,
			Default:   main,
			Agent:     known,
			Publish:   h.Bus.Publish,
			Subscribe: h.Bus.Subscribe,
			Decide:    p.dispatcher.Decide,
			Rules:     func() *allowlist.Source { return rules },
			Redact:    func(s string) string { return s },

			Commands: func() string { return "exec" },
		}),
		models.Methods(h.models()),
		devices.Methods(devices.Options{
			Store:     h.Store,
			Announce:  h.announce,
			Drop:      func(credential string, last func()) { h.Server.Drop(credential, last) },
			Stop:      p.dispatcher.Revoke,
			Endpoint:  func() (string, string) { return "token", h.URL },
			Page:      func() (string, bool) { return h.Page, true },
			Connected: func(credential, role string) bool { return h.Server.Connected(credential, role) },
		}),
		channels.Methods(channels.Options{Store: h.Store, Accounts: func() []channel.Account { return h.Accounts },
			Probe: func(ctx context.Context, name string, id chela.AccountID) (bool, error) {
				return h.Probe(ctx, name, id)
			}}),
		messages.Methods(messages.Options{Do: h.act, Files: pictures}),
		system.Methods(state),
		cronmethods.Methods(cronmethods.Options{
			Scheduler: &h.Jobs,
			Store:     h.Store,
			Default:   main,
			Agent:     known,
			Database:  p.path,
			Instance:  "boot",
		}),
		usage.Methods(usage.Options{Store: h.Store, Default: main, Agent: known}),
	)
}

// models returns options with one usable and one known provider.
func (h *Fixture) models() models.Options {
	return models.Options{
		Keys:    h.keys,
		Forget:  h.forget,
		Status:  func() wire.ModelsStatus { return wire.ModelsStatus{Default: model.Ref(), Reason: "set by the test"} },
		Default: main, Agent: known, Main: func() llm.Ref { return llm.Ref{Provider: model.Provider, Model: model.ID} },
		Think: func(llm.Model) llm.Level { return "" },
		Catalog: func() llm.Catalog {
			other := llm.Model{Provider: "far", ID: "m2"}
			return llm.Catalog{Models: []llm.Model{other, model}, Aliases: map[string]string{"mm": model.Ref()}}
		},
		Providers: func() []models.Provider {
			return []models.Provider{{ID: "mock", Ready: true, Key: true, From: "env", Env: "MOCK_KEY"},
				{ID: "far", Known: true}}
		},
	}
}

func (h *Fixture) keys(provider string) []models.Key { return slices.Clone(h.ModelKeys[provider]) }

// forget returns the saved keys of a provider as removed.
func (h *Fixture) forget(_ context.Context, provider string, ids []string) ([]string, error) {
	gone := []string{}
	for _, k := range h.ModelKeys[provider] {
		if k.Saved && (len(ids) == 0 || slices.Contains(ids, k.ID)) {
			gone = append(gone, k.ID)
		}
	}
	if len(gone) < len(ids) {
		return nil, chela.Errorf(chela.CodeInvalid, "no saved key %q", ids)
	}
	return gone, nil
}

// direct returns the executor of tool calls made by clients.
func (h *Fixture) direct(tools tool.Set) *invoke.Direct {
	return invoke.NewDirect(invoke.DirectOptions{
		Executor: invoke.New(invoke.Options{}), Store: h.Store, Default: chela.DefaultAgent,
		Agent: func(id chela.AgentID) bool { return id == chela.DefaultAgent },
		Scope: func(_ context.Context, _ chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
			return invoke.Scope{Agent: key.Agent(), Dir: h.Workspace, Tools: tools}, nil
		},
	})
}

func (h *Fixture) act(ctx context.Context, r action.Request) (action.Result, error) {
	if h.Act == nil {
		return action.Result{}, chela.Errorf(chela.CodeInvalid, "no channel is configured")
	}
	return h.Act(ctx, r)
}

func (h *Fixture) announce(event string, payload any) {
	h.Server.Broadcast(chela.ScopePairing, event, payload)
}

// Dial connects another client.
func (h *Fixture) Dial(o client.Options) *client.Client {
	h.t.Helper()
	o.Dial, o.Once = h.Pipe.Dial, true
	c, err := client.Dial(context.Background(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// Do calls a method that must succeed.
func Do[R any](t testing.TB, h *Fixture, method string, params any) R {
	t.Helper()
	var r R
	if err := h.Call(t.Context(), method, params, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// End reads events until the run has ended and returns its last chat event.
func (h *Fixture) End(run string) wire.Chat {
	h.t.Helper()
	for e := range h.Events() {
		if e.Name != wire.EventChat {
			continue
		}
		var c wire.Chat
		if err := e.Decode(&c); err != nil {
			h.t.Fatal(err)
		}
		if c.RunID == run && c.State != wire.StateDelta {
			return c
		}
	}
	h.t.Fatalf("the connection ended before run %s: %v", run, h.Err())
	return wire.Chat{}
}

// Put runs f in a transaction.
func (h *Fixture) Put(f func(store.Tx) error) {
	h.t.Helper()
	if err := h.Store.Update(context.Background(), store.Synced, f); err != nil {
		h.t.Fatal(err)
	}
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}
