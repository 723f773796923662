// Package standard is the table of the parts of a plain build: stores,
// sandboxes, model dialects, tools, hooks, services and checks. A channel is
// added with r.Channel(telegram.Factory).
//
// A custom build copies cmd/chela/main.go and adds its own parts to the
// registry that [New] returns. The first registered store and sandbox are
// used: a custom one is registered before [Register] is called.
package standard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/service"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/maintenance"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/plugin/llm/anthropic"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/plugin/llm/offline"
	"github.com/chela-ai/chela/internal/plugin/llm/openai"
	"github.com/chela-ai/chela/internal/plugin/sandbox/docker"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
	"github.com/chela-ai/chela/internal/plugin/tool/media"
	"github.com/chela-ai/chela/internal/plugin/tool/message"
	"github.com/chela-ai/chela/internal/plugin/tool/plan"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
	"github.com/chela-ai/chela/internal/plugin/tool/status"
	"github.com/chela-ai/chela/internal/plugin/tool/web"
)

// New returns a Registry of the standard parts.
func New() *Registry {
	r := new(Registry)
	Register(r)
	return r
}

// Register registers the standard parts.
func Register(r *Registry) {
	Stores(r)
	Sandboxes(r)
	Providers(r)
	Tools(r)
	Hooks(r)
	Services(r)
	Doctors(r)
}

// The dialects, as the configuration names them (models.providers.<id>.api).
const (
	Anthropic = "anthropic-messages"
	OpenAI    = "openai-completions"
	Offline   = "offline"
)

// Providers registers the dialects of models.
func Providers(r *Registry) {
	r.Provider(Anthropic, func(o dialect.Options) llm.Provider { return anthropic.New(o) })
	r.Provider(OpenAI, func(o dialect.Options) llm.Provider { return openai.New(o) })
	r.Provider(Offline, func(dialect.Options) llm.Provider { return offline.New() })
}

// Tools registers the tools.
func Tools(r *Registry) {
	r.Tool("exec", "tools.exec", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		t, err := exec.Configured(raw, exec.Options{
			Broker: env.Broker, Cage: env.Cage, Backends: env.Backends, Granted: granted(env.Store), Never: env.Never, Commands: env.Commands, Rules: env.Rules, RecordUse: env.RecordUse, Environ: env.Environ, Interactive: true,
		})
		return one(t, err)
	})
	r.Tool("process", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		if env.Commands == nil {
			return nil, nil
		}
		return one(env.Commands.Tool(), nil)
	})
	r.Tool("session_status", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return one(status.New(status.Options{Status: env.Status, Location: env.Location}), nil)
	})
	r.Tool("plan", "tools.updatePlan", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		if env.Publish == nil {
			return nil, nil
		}
		return plan.Configured(raw, plan.Options{Store: env.Store, Publish: env.Publish})
	})
	r.Tool("sessions_spawn", "tools.sessions_spawn", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		if env.Spawner == nil {
			return nil, nil
		}
		var o sessions.SpawnOptions
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, err
			}
		}
		return []tool.Tool{sessions.NewSpawn(env.Spawner, o), sessions.NewSubagents(env.Spawner), sessions.NewYield(env.Spawner)}, nil
	})
	r.Tool("sessions_send", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		if env.Sender == nil {
			return nil, nil
		}
		return one(sessions.NewSend(env.Sender), nil)
	})
	r.Tool("sessions_list", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		if env.Sessions.Store == nil {
			return nil, nil
		}
		return sessions.NewRead(env.Sessions), nil
	})
	r.Tool("web_fetch", "tools.web.fetch", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		return web.ConfiguredFetch(raw, env.Log, env.Getenv)
	})
	r.Tool("web_search", "tools.web.search", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		return web.ConfiguredSearch(raw, env.Plugins, env.Getenv)
	})
	r.FileTool("fs", "tools.exec.applyPatch", func(_ ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error) {
		return fs.Configured(raw, rule)
	})
	r.FileTool("image", "", func(env ToolEnv, rule pathpolicy.Rule, _ json.RawMessage) ([]tool.Tool, error) {
		if env.Vision == nil {
			return nil, nil
		}
		return one(media.New(media.Options{Files: env.Files, Paths: rule, Side: env.ImageSide, Model: env.Vision, RecordUsage: env.RecordUsage}), nil)
	})
	r.FileTool("message", "tools.message", func(env ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error) {
		if env.Await == nil {
			return nil, nil
		}
		t, err := message.Configured(raw, message.Options{
			Store: env.Store, Files: env.Files, Paths: rule, Publish: env.Publish, Channels: env.Channels, Chunks: env.Chunks, Await: env.Await,
		})
		return one(t, err)
	})
}

// one returns a single tool as a list.
func one(t tool.Tool, err error) ([]tool.Tool, error) {
	if err != nil {
		return nil, err
	}
	return []tool.Tool{t}, nil
}

// Hooks registers the hooks of tool calls.
func Hooks(r *Registry) {
	r.Hook("secrets", "", func(env HookEnv, _ json.RawMessage) (HookSet, error) {
		return HookSet{Before: []hook.Before{secretsHook(env.Redact)}}, nil
	})
}

// secretsHook asks a person before a tool gets a secret that Chela stores: a
// command, the address of a page or a file would give it away. It is called
// last, when the arguments are final.
func secretsHook(redact func(string) string) hook.Before {
	return hook.Before{Name: "secrets", Priority: -1000, Quick: true, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		args := string(c.Args)
		return hook.Verdict{
			Ask:    redact(args) != args,
			Reason: "its arguments contain a secret that Chela stores (a key of a service, or the gateway's credential)",
		}, nil
	}}
}

// Services registers the services.
func Services(r *Registry) {
	r.Service("maintenance", "", func(env ServiceEnv, _ json.RawMessage) (service.Service, error) {
		return service.Func(func(ctx context.Context) error {
			deleted, cancel := deletions(env.Bus)
			defer cancel()
			return maintenance.Worker{Log: env.Log, Store: env.Store, Check: env.Check, Sweep: env.Sweep, Deleted: deleted}.Run(ctx)
		}), nil
	})
	r.Service("sessions", "session.maintenance", func(env ServiceEnv, raw json.RawMessage) (service.Service, error) {
		c, err := maintenance.ParseSessionConfig(raw)
		return maintenance.Sessions{Log: env.Log, Store: env.Store, Bus: env.Bus, Config: c, Delete: env.DeleteSession}, err
	})
	r.Service("memory", "", func(env ServiceEnv, _ json.RawMessage) (service.Service, error) {
		return service.Func(func(ctx context.Context) error { return maintenance.ReleaseMemory(ctx, env.Bus) }), nil
	})
}

// deletions returns a channel that gets a value after sessions were deleted,
// until cancel is called.
func deletions(b *bus.Bus) (deleted <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	cancel = b.Subscribe(func(e chela.Event) {
		if e.Stream == chela.StreamSession && e.Phase == chela.PhaseDeleted {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	})
	return c, cancel
}

// granted returns the rights that standing approvals gave to the commands of a
// session. own leaves out the approvals that another session asked for.
func granted(s store.Store) func(context.Context, chela.SessionKey, bool) ([]string, error) {
	return func(ctx context.Context, key chela.SessionKey, own bool) (rights []string, err error) {
		err = s.View(ctx, func(r store.Reader) error {
			rights = nil
			list, err := r.Approvals().Standing(key, "exec")
			for _, q := range list {
				if !own || q.Session == key {
					rights = append(rights, q.Rights...)
				}
			}
			return err
		})
		return rights, err
	}
}

// Sandboxes registers the ways of running commands.
func Sandboxes(r *Registry) {
	r.Sandbox("host", Sandbox{
		New: func(env SandboxEnv, _ json.RawMessage) (sandbox.Broker, error) {
			mark, err := markOf(env.State)
			if err != nil {
				return nil, err
			}
			return host.New(mark), nil
		},
		Sweep: func(ctx context.Context, log *slog.Logger, env SandboxEnv) error {
			mark, err := markOf(env.State)
			if err != nil {
				return err
			}
			_, err = host.Sweep(ctx, log, mark)
			return err
		},
	})
	r.Sandbox(sandbox.Native, Sandbox{
		Confine: func(env SandboxEnv) sandbox.Backend {
			return native.New(native.Options{
				Home: env.Home, Layers: filepath.Join(env.State, "cache", "sandbox"), Never: env.Never,
				Dial: egress.New(egress.Options{}).Dial, Host: host.Broker{},
			})
		},
	})
	containers(r, "docker")
	containers(r, "podman")
}

// containers registers a program that runs commands in containers.
func containers(r *Registry, program string) {
	r.Sandbox(program, Sandbox{Containers: true, Confine: func(env SandboxEnv) sandbox.Backend {
		return docker.New(docker.Options{Log: env.Log, Program: program, Host: host.Broker{}, Getenv: env.Getenv, State: env.State, Never: env.Never})
	}})
}

// markOf returns the mark of a state directory; "": there is no directory, and so
// nothing runs for it.
func markOf(state string) (string, error) {
	if state == "" {
		return "", nil
	}
	mark, err := host.Mark(state)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return mark, err
}

// Stores registers the databases.
func Stores(r *Registry) {
	r.Store("sqlite", Store{
		File: "chela.db",
		Open: func(ctx context.Context, path string, log *slog.Logger) (Database, error) {
			db, err := sqlite.Open(ctx, sqlite.Options{Path: path, Log: log})
			if err != nil {
				return nil, damaged(err)
			}
			return db, nil
		},
		Verify: func(ctx context.Context, file string) (string, error) {
			s, err := sqlite.Verify(ctx, file)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("complete; %s, %s, %s, %s waiting, %s to be delivered", humanize.Many(s.Sessions, "session"), humanize.Many(s.Entries, "entry"),
				humanize.Many(s.Runs, "run"), humanize.Many(s.Waiting, "message"), humanize.Many(s.Undelivered, "part")), nil
		},
		Restore: sqlite.Restore,
		Recover: recoverSQLite,
	})
}

// recoverSQLite saves what can be read of a damaged database.
func recoverSQLite(ctx context.Context, path string) ([]string, error) {
	r, err := sqlite.Recover(ctx, path)
	if err != nil {
		return nil, err
	}
	rows := 0
	for _, n := range r.Rows {
		rows += n
	}
	report := []string{fmt.Sprintf("saved %d rows; %d of %d pages could not be read completely", rows, r.Bad, r.Pages)}
	if r.Changed > 0 {
		report = append(report, humanize.Many(r.Changed, "row")+" left out: the damage changed their content")
	}
	for _, key := range r.Damaged {
		report = append(report, fmt.Sprintf("session %s is incomplete", key))
	}
	for _, id := range r.Orphaned {
		report = append(report, "transcript "+id+" belongs to a session that is lost")
	}
	return append(report, "the damaged file was renamed to "+r.Renamed), nil
}

// damaged adds a hint to the error about a damaged database.
func damaged(err error) error {
	if d, ok := errors.AsType[*sqlite.DamagedError](err); ok {
		return &chela.Error{Code: chela.CodeInternal, Message: "the database is damaged", Hint: "chela backup salvage", Err: d}
	}
	return err
}
