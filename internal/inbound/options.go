package inbound

import (
	"context"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/route"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// Options is what a Gate works with.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	Bus   *bus.Bus

	// Route says which session answers an address. nil: the zero route.Table.
	Route func(chela.Address) route.Route

	// Access decides whether a principal may have the agent work, and as whom:
	// it may return a principal with other scopes. An error refuses. nil: the
	// empty Senders.
	Access func(chela.Principal, chela.Inbound) (chela.Principal, error)

	// Always reports whether a group's messages are answered without a
	// mention. nil: none are.
	Always func(chela.Address) bool

	// Reset returns when the session begins anew by itself. nil: never.
	Reset func(session.Meta) session.ResetPolicy

	// Reserve keeps what the session's next run needs while a message for it is
	// taken; nil says that the session is busy, or would have to wait. The field
	// nil: runs begin when somebody looks.
	Reserve func(chela.SessionKey) Place

	// Live reports whether a run of the session is in progress. nil: never.
	Live func(chela.SessionKey) bool

	// Abort ends a run of the session. nil: runs end by themselves.
	Abort func(context.Context, chela.SessionKey, chela.RunID) ([]chela.RunID, error)
	// Decide answers an approval as the principal of ctx. nil: nothing asks.
	Decide func(ctx context.Context, id, decision string) (approval.Request, error)

	// Tools returns the tools that a run would be given that the principal starts
	// in the session. nil: none.
	Tools func(context.Context, chela.Principal, chela.SessionKey) ([]tool.Spec, error)
	// Configuration is what /config works on; one that is nil, or the field: it
	// is off.
	Configuration func() Configuration

	// Catalog is the models that can be chosen; Model is the one in force.
	Catalog func() llm.Catalog
	Model   func(session.Meta) llm.Model
	// Inherit is what a session has where it sets nothing itself.
	Inherit func(session.Meta) Settings

	// Keep keeps the content of an attachment and returns it with a reference
	// in its place; chela.CodeInvalid says that it is not taken. nil: the
	// message carries it.
	Keep func(chela.Media) (chela.Media, error)

	// Bot is our own name at an address, by which a command can be meant for
	// us. nil, or empty: not known.
	Bot func(chela.Address) string
	// Chunks says how an answer is divided for an address. nil: as package
	// chunk does it.
	Chunks func(chela.Address) chunk.Options

	Version string
	Started time.Time // of the process; zero: not shown
}

// Place is what an idle session's next run needs to begin. It is left in any
// case.
type Place interface {
	// Begin begins a run for a message in the transaction that put it, in state
	// Taken for the run of its id. false: it did not, and the message has to wait.
	Begin(store.Tx, session.Meta, queue.Item) (bool, error)
	// Leave says whether a run began in a transaction that was committed.
	Leave(begun bool)
}

// Settings are choices that a session may make for itself.
type Settings struct {
	Think   llm.Level
	Verbose string
	Usage   string
	Queue   queue.Policy
}

// Gate admits messages. It is safe for concurrent use.
type Gate struct {
	o     Options
	names map[string]Command // by name and alias
}

// New returns a Gate.
func New(o Options) *Gate {
	if o.Route == nil {
		o.Route = new(route.Table).Resolve
	}
	if o.Access == nil {
		o.Access = Senders(nil).Access
	}
	if o.Always == nil {
		o.Always = func(chela.Address) bool { return false }
	}
	if o.Reserve == nil {
		o.Reserve = func(chela.SessionKey) Place { return nil }
	}
	if o.Live == nil {
		o.Live = func(chela.SessionKey) bool { return false }
	}
	if o.Abort == nil {
		o.Abort = func(context.Context, chela.SessionKey, chela.RunID) ([]chela.RunID, error) { return nil, nil }
	}
	if o.Tools == nil {
		o.Tools = func(context.Context, chela.Principal, chela.SessionKey) ([]tool.Spec, error) { return nil, nil }
	}
	if o.Configuration == nil {
		o.Configuration = func() Configuration { return nil }
	}
	if o.Catalog == nil {
		o.Catalog = func() llm.Catalog { return llm.Catalog{} }
	}
	if o.Model == nil {
		o.Model = pinned
	}
	if o.Inherit == nil {
		o.Inherit = func(session.Meta) Settings { return Settings{} }
	}
	if o.Bot == nil {
		o.Bot = func(chela.Address) string { return "" }
	}
	if o.Chunks == nil {
		o.Chunks = func(chela.Address) chunk.Options { return chunk.Options{} }
	}
	return &Gate{o: o, names: names()}
}

// pinned is the model of a session when nobody knows which others there are.
func pinned(m session.Meta) llm.Model {
	r, err := llm.ParseRef(m.Model)
	if err != nil {
		return llm.Model{Provider: "unknown", ID: "unknown"}
	}
	return llm.Model{Provider: r.Provider, ID: r.Model}
}
