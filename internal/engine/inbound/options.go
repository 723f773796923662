package inbound

import (
	"context"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Options configures a Gate.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	Bus   *bus.Bus

	// Route returns the agent and the session for a message; nil: those of the zero
	// route.Table. A message without a route is refused.
	Route func(route.Query) route.Route

	// Access decides whether a principal may write, and returns it with the scopes
	// that it has. An error refuses the message; nil: the empty Senders.
	Access func(chela.Principal, chela.Inbound) (chela.Principal, error)

	// Always reports whether messages in a group are answered without a mention;
	// nil: they are not.
	Always func(chela.Address) bool

	// Reset returns when the session is reset automatically; nil: never.
	Reset func(session.Meta) session.ResetPolicy

	// Focus returns whether chats may be focused on subagents; nil: the zero
	// FocusPolicy.
	Focus func() session.FocusPolicy

	// Reserve is [dispatch.Dispatcher.Reserve]. If it returns nil, the message
	// waits for the dispatcher; if the field is nil, all messages do.
	Reserve func(chela.SessionKey) *dispatch.Reservation

	// Redact removes known secrets from messages; nil: they are not changed.
	Redact func(string) string

	// Live reports whether a run of the session is in progress; nil: never.
	Live func(chela.SessionKey) bool

	// StopRuns stops the active runs of a session in a synced commit. It returns their
	// number, and what is to be done after the commit; nil: runs are not stopped.
	StopRuns func(store.Tx, chela.SessionKey) (n int, after func(), err error)
	// StopChildren stops the subagents of a session in a commit. It returns their
	// number, and what is to be done after the commit; nil: there are none.
	StopChildren func(store.Tx, chela.SessionKey) (n int, after func(), err error)
	// Subagents starts and controls subagents; nil: there are none.
	Subagents Subagents
	// Agents returns the agents; nil: none are listed.
	Agents func() []chela.Agent
	// Decide decides an approval as the principal of ctx; nil: there are none.
	Decide func(ctx context.Context, id, decision string) (approval.Request, error)

	// Tools returns the tools of a run that the principal would start in the
	// session; nil: none.
	Tools func(context.Context, chela.Principal, chela.SessionKey) ([]tool.Spec, error)
	// Configuration returns the target of /config. If it or the field is nil,
	// /config is disabled.
	Configuration func() Configuration

	// Catalog returns the models that can be selected, Model the current one.
	Catalog func() llm.Catalog
	Model   func(session.Meta) llm.Model
	// Inherit returns the settings that apply where the session has none.
	Inherit func(session.Meta) Settings

	// Elevated returns whether commands of a principal may leave the sandbox of a
	// session; nil: they may not.
	Elevated func(chela.Principal, session.Meta) sandbox.Elevated

	// StoreMedia stores the content of an attachment and returns a reference to
	// it. A chela.CodeInvalid error says that it is not accepted; nil: messages
	// contain their attachments.
	StoreMedia func(chela.Media) (chela.Media, error)

	// Bot returns the name of the bot at an address, for commands such as
	// /status@name; nil or "": unknown.
	Bot func(chela.Address) string
	// Chunks returns how answers are split for an address; nil: the defaults of
	// package chunk.
	Chunks func(chela.Address) chunk.Options

	Version string
	Started time.Time // of the process; zero: not shown
}

// Settings are the settings that a session may override.
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
	if o.Focus == nil {
		o.Focus = func() session.FocusPolicy { return session.FocusPolicy{} }
	}
	if o.Reserve == nil {
		o.Reserve = func(chela.SessionKey) *dispatch.Reservation { return nil }
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Live == nil {
		o.Live = func(chela.SessionKey) bool { return false }
	}
	if o.StopRuns == nil {
		o.StopRuns = func(store.Tx, chela.SessionKey) (int, func(), error) { return 0, func() {}, nil }
	}
	if o.StopChildren == nil {
		o.StopChildren = func(store.Tx, chela.SessionKey) (int, func(), error) { return 0, func() {}, nil }
	}
	if o.Agents == nil {
		o.Agents = func() []chela.Agent { return nil }
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
		o.Model = pinnedModel
	}
	if o.Elevated == nil {
		o.Elevated = func(chela.Principal, session.Meta) sandbox.Elevated {
			return sandbox.Elevated{Reason: "there is no sandbox"}
		}
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
	return &Gate{o: o, names: byName()}
}

// pinnedModel returns the model of a session if no catalog is available.
func pinnedModel(m session.Meta) llm.Model {
	r, err := llm.ParseRef(m.Model)
	if err != nil {
		return llm.Model{Provider: "unknown", ID: "unknown"}
	}
	return llm.Model{Provider: r.Provider, ID: r.Model}
}
