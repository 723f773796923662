package standard

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/drawing"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/llm"
	pictures "github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/browser"
	"github.com/chela-ai/chela/internal/plugin/tool/cron"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/gateway"
	"github.com/chela-ai/chela/internal/plugin/tool/media"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
	"github.com/chela-ai/chela/internal/plugin/tool/skills"
	"github.com/chela-ai/chela/internal/plugin/tool/status"
)

// ToolEnv is what tools may use, by what they are for. A line of the table passes on to
// its tool what is in one of the structs.
type ToolEnv struct {
	Store     store.Store
	Location  *time.Location // the person's time zone
	Files     FileEnv
	Commands  exec.Options // as exec gets them, apart from its section
	Nodes     node.Caller  // nil: there are none
	Canvas    canvas.Host  // nil: it is off
	Sessions  SessionEnv
	Web       WebEnv
	Assistant AssistantEnv
}

// FileEnv is for tools that read, change and look at files.
type FileEnv struct {
	Media     *pictures.Files  // of the conversations
	Journal   journal.Recorder // of changes; nil: nothing is recorded
	Vision    func(ctx context.Context, c tool.Call) (llm.Model, llm.Provider, error)
	ImageSide int // pixels of the longer side that a picture is sent with; 0: the default
}

// SessionEnv is for tools about sessions, and for what the assistant remembers in them. What is
// nil is off.
type SessionEnv struct {
	Publish func(chela.Event)
	Status  func(ctx context.Context, key chela.SessionKey) (status.Status, error)
	Spawner sessions.Spawner
	Coders  []string // coding agents that are ready
	Sender  sessions.Sender
	Read    sessions.ReadOptions // off without a store
	Memory  func(chela.AgentID) memory.Index
}

// WebEnv is for tools that reach other services.
type WebEnv struct {
	Log     *slog.Logger
	Getenv  func(name string) string // environment variables, to which secrets may refer
	Plugins json.RawMessage          // plugins of the configuration
	Servers func() []tool.Tool       // the tools of MCP servers; nil: there are none
	// Browsers are what the tool browser drives; nil: it is off.
	Browsers *browser.Browsers
}

// AssistantEnv is for tools with which the assistant writes to people, and changes what it is and
// what it will do. What is nil is off.
type AssistantEnv struct {
	// Act carries out an action on a chat. Actions are what the configured channels support.
	Act       func(context.Context, action.Request) (action.Result, error)
	Actions   []action.Action
	Scheduler cron.Scheduler // of jobs
	Gateway   gateway.Gateway
	Skills    skills.Registry
	Proposals *proposal.Shelf // of skills
	Speaker   speech.Speaker  // says texts aloud
	Said      int             // maximum characters of what is said aloud
	Painter   drawing.Painter // makes pictures
	Studio    *media.Studio   // where they are made
	// Defer stores what a session is told if the process ends before its picture is ready.
	Defer exec.Defer
}
