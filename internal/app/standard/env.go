package standard

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/cron"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/gateway"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
	"github.com/chela-ai/chela/internal/plugin/tool/skills"
	"github.com/chela-ai/chela/internal/plugin/tool/status"
)

// ToolEnv is what tools may use. A line of the table passes on to its tool the
// few fields that the tool needs.
type ToolEnv struct {
	Log     *slog.Logger
	Getenv  func(name string) string // environment variables, to which secrets may refer
	Environ []string                 // the variables that commands get; nil: os.Environ()
	Store   store.Store
	Files   *media.Files // media of the conversations
	Publish func(chela.Event)
	Journal journal.Recorder // of changes of files; nil: nothing is recorded
	Plugins json.RawMessage  // plugins of the configuration

	// For commands.
	Broker    sandbox.Broker
	Cage      exec.Cage                  // confines them; nil: nothing does
	Backends  map[string]sandbox.Backend // confine those of sandboxed sessions, by name
	Never     func() []string            // files and folders that confined commands never get
	Notes     func() []string            // files and folders that only private conversations use
	Commands  *exec.Commands             // those in the background
	Rules     func(chela.AgentID) (*allowlist.Rules, error)
	RecordUse func(uses []allowlist.Use, command string)
	// CommandStarts is called before a command of a call starts; nil: nobody is told.
	CommandStarts func(context.Context)

	// For tools about sessions and models.
	Status    func(ctx context.Context, key chela.SessionKey) (status.Status, error)
	Location  *time.Location // the person's time zone
	Vision    func(ctx context.Context, c tool.Call) (llm.Model, llm.Provider, error)
	ImageSide int // pixels of the longer side that a picture is sent with; 0: the default

	// For tools about other sessions.
	Spawner  sessions.Spawner
	Sender   sessions.Sender
	Sessions sessions.ReadOptions // without a store: there are no such tools

	Memory func(chela.AgentID) memory.Index // nil: there are no tools for it

	// Servers returns the tools of MCP servers; nil: there are none.
	Servers func() []tool.Tool

	Skills    skills.Registry // nil: there is no such tool
	Proposals *proposal.Shelf // of skills; nil: there is no tool for them

	Gateway gateway.Gateway // the gateway as the assistant changes it; nil: there is no such tool

	Scheduler cron.Scheduler // of scheduled jobs; nil: there is no such tool

	// Act carries out an action on a chat; nil: there is no tool for it. Actions are what the
	// configured channels support.
	Act     func(context.Context, action.Request) (action.Result, error)
	Actions []action.Action
}
