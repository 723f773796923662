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

	"github.com/chela-ai/chela/docs"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/openclaw"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/service"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/maintenance"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/channel/discord"
	"github.com/chela-ai/chela/internal/plugin/channel/email"
	"github.com/chela-ai/chela/internal/plugin/channel/httpchat"
	"github.com/chela-ai/chela/internal/plugin/channel/irc"
	"github.com/chela-ai/chela/internal/plugin/channel/matrix"
	"github.com/chela-ai/chela/internal/plugin/channel/signal"
	"github.com/chela-ai/chela/internal/plugin/channel/slack"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram"
	"github.com/chela-ai/chela/internal/plugin/llm/anthropic"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/plugin/llm/gemini"
	"github.com/chela-ai/chela/internal/plugin/llm/offline"
	"github.com/chela-ai/chela/internal/plugin/llm/ollama"
	"github.com/chela-ai/chela/internal/plugin/llm/openai"
	"github.com/chela-ai/chela/internal/plugin/llm/responses"
	"github.com/chela-ai/chela/internal/plugin/sandbox/docker"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
	bundledskills "github.com/chela-ai/chela/internal/plugin/skill/bundled"
	"github.com/chela-ai/chela/internal/plugin/store/postgres"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/foreign"
	"github.com/chela-ai/chela/internal/plugin/tool/browser"
	"github.com/chela-ai/chela/internal/plugin/tool/canvas"
	"github.com/chela-ai/chela/internal/plugin/tool/cron"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
	"github.com/chela-ai/chela/internal/plugin/tool/gateway"
	"github.com/chela-ai/chela/internal/plugin/tool/media"
	"github.com/chela-ai/chela/internal/plugin/tool/memory"
	"github.com/chela-ai/chela/internal/plugin/tool/message"
	"github.com/chela-ai/chela/internal/plugin/tool/nodes"
	"github.com/chela-ai/chela/internal/plugin/tool/plan"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
	"github.com/chela-ai/chela/internal/plugin/tool/skills"
	"github.com/chela-ai/chela/internal/plugin/tool/status"
	"github.com/chela-ai/chela/internal/plugin/tool/web"
	"github.com/chela-ai/chela/internal/plugin/tool/workshop"
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
	Channels(r)
	r.Skills(bundledskills.Skills)
}

// Channels registers the channels.
func Channels(r *Registry) {
	r.Channel(discord.Factory())
	r.Channel(email.Factory())
	r.Channel(httpchat.Factory())
	r.Channel(irc.Factory())
	r.Channel(matrix.Factory())
	r.Channel(signal.Factory(programsOf))
	r.Channel(slack.Factory())
	r.Channel(telegram.Factory())
}

// The dialects, as the configuration names them (models.providers.<id>.api).
const (
	Anthropic = "anthropic-messages"
	OpenAI    = "openai-completions"
	Responses = "openai-responses"
	Gemini    = "google-generative-ai"
	Ollama    = "ollama"
	Offline   = "offline"
)

// Providers registers the dialects of models.
func Providers(r *Registry) {
	r.Provider(Anthropic, func(o dialect.Options) llm.Provider { return anthropic.New(o) })
	r.Provider(OpenAI, func(o dialect.Options) llm.Provider { return openai.New(o) })
	r.Provider(Responses, func(o dialect.Options) llm.Provider { return responses.New(o) })
	r.Provider(Gemini, func(o dialect.Options) llm.Provider { return gemini.New(o) })
	r.Provider(Ollama, func(o dialect.Options) llm.Provider { return ollama.New(o) })
	r.Provider(Offline, func(dialect.Options) llm.Provider { return offline.New() })
}

// Tools registers the tools.
func Tools(r *Registry) {
	r.Tool("exec", "tools.exec", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		return one(exec.Configured(raw, env.Commands))
	})
	r.Tool("process", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Commands.Commands != nil, env.Commands.Commands.Tool()), nil
	})
	r.Tool("session_status", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return one(status.New(status.Options{Status: env.Sessions.Status, Location: env.Location}), nil)
	})
	r.Tool("plan", "tools.updatePlan", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		return plan.Configured(raw, plan.Options{Store: env.Store, Publish: env.Sessions.Publish})
	})
	r.Tool("sessions_spawn", "tools.sessions_spawn", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		var o sessions.SpawnOptions
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, err
			}
		}
		o.Coders = env.Sessions.Coders
		return offered(env.Sessions.Spawner != nil, sessions.NewSpawn(env.Sessions.Spawner, o),
			sessions.NewSubagents(env.Sessions.Spawner), sessions.NewYield(env.Sessions.Spawner)), nil
	})
	r.Tool("sessions_send", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Sessions.Sender != nil, sessions.NewSend(env.Sessions.Sender)), nil
	})
	r.Tool("sessions_list", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Sessions.Read.Store != nil, sessions.NewRead(env.Sessions.Read)...), nil
	})
	r.Tool("skills", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Assistant.Skills != nil, skills.New(env.Assistant.Skills)), nil
	})
	r.Tool("cron", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Assistant.Scheduler != nil,
			cron.New(cron.Options{Scheduler: env.Assistant.Scheduler, Store: env.Store, Location: env.Location})), nil
	})
	r.Tool("gateway", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Assistant.Gateway != nil, gateway.New(env.Assistant.Gateway)), nil
	})
	r.Tool("skill_workshop", "skills.workshop", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		t, err := workshop.Configured(raw, env.Assistant.Proposals)
		return offered(env.Assistant.Proposals != nil, t), err
	})
	r.Tool("memory_search", "plugins.slots", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		var slots struct {
			Memory string `json:"memory"`
		}
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &slots); err != nil {
				return nil, err
			}
		}
		return offered(env.Sessions.Memory != nil && slots.Memory != "none",
			memory.New(memory.Options{Index: env.Sessions.Memory})...), nil
	})
	r.Tool("nodes", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Nodes != nil, nodes.New(nodes.Options{Nodes: env.Nodes, Files: env.Files.Media})), nil
	})
	r.Tool("web_fetch", "tools.web.fetch", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		return web.ConfiguredFetch(raw, env.Web.Log, env.Web.Getenv)
	})
	r.Tool("web_search", "tools.web.search", func(env ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
		return web.ConfiguredSearch(raw, env.Web.Plugins, env.Web.Getenv)
	})
	r.Tool("mcp", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		if env.Web.Servers == nil {
			return nil, nil
		}
		return env.Web.Servers(), nil
	})
	r.FileTool("fs", "tools.exec.applyPatch",
		func(env ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error) {
			var output func(string) (*os.File, error)
			if env.Files.Media != nil {
				output = env.Files.Media.OpenOutput
			}
			return fs.Configured(raw, rule, output, docs.Pages, r.BundledSkills(), env.Files.Journal)
		})
	r.FileTool("image", "", func(env ToolEnv, rule pathpolicy.Rule, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Files.Vision != nil,
				media.New(media.Options{Files: env.Files.Media, Paths: rule, Side: env.Files.ImageSide, Model: env.Files.Vision})),
			nil
	})
	r.Tool("tts", "", func(env ToolEnv, _ json.RawMessage) ([]tool.Tool, error) {
		a := env.Assistant
		return offered(a.Act != nil && a.Speaker != nil && speech.Active(a.Speaker) != "",
			media.NewSpeech(media.SpeechOptions{Speaker: a.Speaker, Limit: a.Said, Files: env.Files.Media, Do: a.Act})), nil
	})
	r.FileTool("image_generate", "", func(env ToolEnv, rule pathpolicy.Rule, _ json.RawMessage) ([]tool.Tool, error) {
		a := env.Assistant
		return offered(a.Act != nil && a.Painter != nil, media.NewDraw(media.DrawOptions{
			Painter: a.Painter, Studio: a.Studio, Files: env.Files.Media, Paths: rule, Do: a.Act, Defer: a.Defer,
		})), nil
	})
	r.FileTool("browser", "browser", func(env ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error) {
		return browser.Configured(raw, env.Web.Browsers, rule)
	})
	r.FileTool("canvas", "", func(env ToolEnv, rule pathpolicy.Rule, _ json.RawMessage) ([]tool.Tool, error) {
		return offered(env.Canvas != nil,
			canvas.New(canvas.Options{Host: env.Canvas, Nodes: env.Nodes, Files: env.Files.Media, Paths: rule})), nil
	})
	r.FileTool("message", "tools.message",
		func(env ToolEnv, rule pathpolicy.Rule, raw json.RawMessage) ([]tool.Tool, error) {
			t, err := message.Configured(raw, message.Options{
				Do: env.Assistant.Act, Files: env.Files.Media, Paths: rule, Actions: env.Assistant.Actions,
			})
			return offered(env.Assistant.Act != nil, t), err
		})
}

// one returns a single tool as a list.
func one(t tool.Tool, err error) ([]tool.Tool, error) {
	if err != nil {
		return nil, err
	}
	return []tool.Tool{t}, nil
}

// offered returns tools, which are off if the configuration does not offer them.
func offered(on bool, tools ...tool.Tool) []tool.Tool {
	if !on {
		return tool.Off(tools...)
	}
	return tools
}

// Services registers the services.
func Services(r *Registry) {
	r.Service("maintenance", "", func(env ServiceEnv, _ json.RawMessage) (service.Service, error) {
		return service.Func(func(ctx context.Context) error {
			deleted, cancel := deletions(env.Bus)
			defer cancel()
			return maintenance.Worker{
				Log:     env.Log,
				Store:   env.Store,
				Check:   env.Check,
				Sweep:   env.Sweep,
				Deleted: deleted,
			}.Run(ctx)
		}), nil
	})
	r.Service("sessions", "session.maintenance", func(env ServiceEnv, raw json.RawMessage) (service.Service, error) {
		c, err := maintenance.ParseSessionConfig(raw)
		return maintenance.Sessions{Log: env.Log, Store: env.Store, Bus: env.Bus, Config: c, Delete: env.DeleteSession}, err
	})
	r.Service("journal", "undo", func(env ServiceEnv, raw json.RawMessage) (service.Service, error) {
		var c journal.Options
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, err
			}
		}
		return maintenance.Journal{Log: env.Log, Store: env.Store, Config: c}, nil
	})
	r.Service("isolated sessions", "cron", func(env ServiceEnv, raw json.RawMessage) (service.Service, error) {
		var c job.Config
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, err
			}
		}
		return maintenance.Isolated{Log: env.Log, Store: env.Store, Retain: c.Retain(), Delete: env.DeleteSession}, nil
	})
	if r.Shared {
		return
	}
	r.Service("memory", "", func(env ServiceEnv, _ json.RawMessage) (service.Service, error) {
		return service.Func(func(ctx context.Context) error { return maintenance.ReleaseMemory(ctx, env.Bus, env.Rest) }), nil
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

// Granted returns the rights that standing approvals gave to the commands of a
// session. own leaves out the approvals that another session asked for.
func Granted(s store.Store) func(context.Context, chela.SessionKey, bool) ([]string, error) {
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
				Dial: egress.New(egress.Options{}).Dial,
			})
		},
	})
	containers(r, "docker")
	containers(r, "podman")
}

// containers registers a program that runs commands in containers.
func containers(r *Registry, program string) {
	r.Sandbox(program, Sandbox{Containers: true, Confine: func(env SandboxEnv) sandbox.Backend {
		return docker.New(docker.Options{
			Log:     env.Log,
			Program: program,
			Host:    host.Broker{},
			Getenv:  env.Getenv,
			State:   env.State,
			Never:   env.Never,
		})
	}})
}

// programsOf returns what starts the programs of a directory, after it has ended those that
// a process left which no longer exists.
func programsOf(ctx context.Context, log *slog.Logger, dir string) (sandbox.Broker, error) {
	mark, err := markOf(dir)
	if err != nil {
		return nil, err
	}
	if _, err := host.Sweep(ctx, log, mark); err != nil {
		return nil, err
	}
	return host.New(mark), nil
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
		Open: func(ctx context.Context, path string, o StoreOptions) (Database, error) {
			db, err := sqlite.Open(ctx, sqlite.Options{Path: path, Log: o.Log, Used: o.Used})
			if err != nil {
				return nil, err
			}
			return db, nil
		},
		Verify: func(ctx context.Context, file string) (string, error) {
			s, err := sqlite.Verify(ctx, file)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("complete; %s, %s, %s, %s waiting, %s to be delivered", humanize.Many(s.Sessions, "session"),
				humanize.Many(s.Entries, "entry"),
				humanize.Many(s.Runs, "run"), humanize.Many(s.Waiting, "message"), humanize.Many(s.Undelivered, "part")), nil
		},
		Restore: sqlite.Restore,
		Recover: recoverSQLite,
	})
	r.Store("postgres", Store{
		Section: "storage", Selects: selectsPostgres, Open: openPostgres,
		Hint: "pg_dump --format=custom --file=FILE ADDRESS; pg_restore --clean --dbname=ADDRESS FILE",
	})
}

// storage is the section of the configuration about the database.
type storage struct {
	Postgres secret.Ref `json:"postgres"`
}

func selectsPostgres(raw json.RawMessage) (bool, error) {
	o, err := storageOf(raw)
	return !o.Postgres.IsZero(), err
}

func storageOf(raw json.RawMessage) (o storage, err error) {
	if len(raw) > 0 {
		if err = json.Unmarshal(raw, &o); err != nil {
			err = fmt.Errorf("storage: %w", err)
		}
	}
	return o, err
}

// openPostgres opens the database that storage.postgres names.
func openPostgres(ctx context.Context, _ string, o StoreOptions) (Database, error) {
	s, err := storageOf(o.Section)
	if err != nil {
		return nil, err
	}
	address, err := s.Postgres.Resolve(o.Env)
	if err != nil {
		return nil, fmt.Errorf("storage.postgres: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, postgres.Options{
		URL: address.Reveal(), Log: o.Log, Standby: o.Standby,
		Name: fmt.Sprintf("%s (process %d, %s)", host, os.Getpid(), o.State),
	})
	if err != nil {
		return nil, err
	}
	return db, nil
}

// OpenForeign opens a copy of the database that another program has in a folder.
var OpenForeign openclaw.OpenTables = foreign.Tables

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
