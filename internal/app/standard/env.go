package standard

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
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
	Plugins json.RawMessage // plugins of the configuration

	// For commands.
	Broker    sandbox.Broker
	Cage      exec.Cage                  // confines them; nil: nothing does
	Backends  map[string]sandbox.Backend // confine those of sandboxed sessions, by name
	Never     func() []string            // files and folders that confined commands never get
	Commands  *exec.Commands             // those in the background
	Rules     func(chela.AgentID) (*allowlist.Rules, error)
	RecordUse func(uses []allowlist.Use, command string)

	// For tools about sessions and models.
	Status      func(ctx context.Context, key chela.SessionKey) (status.Status, error)
	Location    *time.Location // the person's time zone
	Vision      func(ctx context.Context, key chela.SessionKey) (llm.Model, llm.Provider, error)
	RecordUsage func(ctx context.Context, c tool.Call, m llm.Model, u llm.Usage) error
	ImageSide   int // pixels of the longer side that a picture is sent with; 0: the default

	// For tools about other sessions.
	Spawner  sessions.Spawner
	Sender   sessions.Sender
	Sessions sessions.ReadOptions // without a store: there are no such tools

	// For tools that send messages.
	Channels func() map[string]string // configured channels, with why one is not running
	Chunks   func(chela.Address) chunk.Options
	Await    func(ctx context.Context, keys ...string) ([]outbox.Row, error)
}
