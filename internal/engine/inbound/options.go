package inbound

import (
	"context"
	"log/slog"
	"regexp"
	"time"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/export"
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

	// Rules returns who may write on the account of an address; nil: guests in direct
	// chats.
	Rules func(chela.Address) *admission.Rules

	// Access returns a principal who may write with the scopes that it has beside those of
	// the rules. An error refuses the message; nil: the same principal.
	Access func(chela.Principal, chela.Inbound) (chela.Principal, error)

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
	// Coders starts and ends coding agents; nil: there are none.
	Coders Coders
	// Thread creates a thread in a chat and returns its address; nil: none is created.
	Thread func(ctx context.Context, at chela.Address, name string) (chela.Address, error)
	// Agents returns the agents; nil: none are listed.
	Agents func() []chela.Agent
	// Types returns the agent types of an agent, see spawn.Config; nil: there are none.
	Types func(chela.AgentID) []subagent.Type
	// Decide decides an approval as the principal of ctx; nil: there are none.
	Decide func(ctx context.Context, id, decision string) (approval.Request, error)

	// Tools returns the tools of a run that the principal would start in the
	// session; nil: none.
	Tools func(context.Context, chela.Principal, chela.SessionKey) ([]tool.Spec, error)
	// Configuration returns the target of /config. If it or the field is nil,
	// /config is disabled.
	Configuration func() Configuration
	// FixedConfig returns the key that forbids changes of the configuration from a chat;
	// "": they are allowed. nil: always.
	FixedConfig func(chela.Address) string

	// Debug returns the target of /debug. If it or the field is nil, /debug is disabled.
	Debug func() Overrides

	// Catalog returns the models that can be selected, Model the current one.
	Catalog func() llm.Catalog
	Model   func(session.Meta) llm.Model
	// Unusable returns why the model of a session's next run cannot be asked, such as a
	// missing key; nil: it can.
	Unusable func(session.Meta) error
	// Window returns the context window of the session's next run; nil: that of Model.
	Window func(session.Meta) window.Size
	// Inspect is [runner.Runner.Inspect]; nil: the context cannot be inspected.
	Inspect func(context.Context, chela.Principal, chela.SessionKey, chela.Address) (window.Report, error)
	// Export is [export.Exporter.Save]; nil: sessions are not exported.
	Export func(context.Context, export.Format, export.Target, string) (export.File, error)
	// Forget finds and removes what is known about a topic; nil: /forget is not available.
	Forget Forgetter
	// Undo takes back changes; nil: they cannot be taken back.
	Undo Undo
	// Zone returns the person's time zone; nil: that of this machine.
	Zone func() *time.Location
	// Inherit returns the settings that apply where the session has none.
	Inherit func(session.Meta) Settings

	// Sends reports whether what a session says is sent to a chat; nil:
	// [session.SendAlways]. Commands are answered in any case.
	Sends func(session.Meta, chela.Address) bool

	// Voice says texts aloud; nil: nothing is said.
	Voice speech.Voice

	// Limits returns the budgets of money of an agent; nil: there are none.
	Limits func(chela.AgentID) usage.Limits

	// OwnerChat reports whether an address is a direct chat with a person who may change
	// settings; nil: none is.
	OwnerChat func(chela.Address) bool

	// Elevated returns whether commands of a principal may leave the sandbox of a
	// session; nil: they may not.
	Elevated func(chela.Principal, session.Meta) sandbox.Elevated

	// Exec returns what /exec chooses from for a principal in a session; nil: the rules of
	// a new installation, without a sandbox.
	Exec func(context.Context, chela.Principal, chela.SessionKey) (ExecRule, error)

	// StoreMedia stores the content of an attachment and returns a reference to
	// it. A chela.CodeInvalid error says that it is not accepted; nil: messages
	// contain their attachments.
	StoreMedia func(chela.Media) (chela.Media, error)
	// Fetch gets the content of an attachment that a channel announced, of at most most
	// bytes; nil: nothing is fetched.
	Fetch func(ctx context.Context, from chela.Address, m chela.Media, most int) (chela.Media, error)

	// Transcribes reports whether the recordings of a message are transcribed before it
	// is handled, and Transcribe returns its attachments with the transcripts; see
	// [Gate.Run]. Both are nil: recordings are not transcribed here.
	Transcribes func(queue.Item) bool
	Transcribe  func(context.Context, queue.Item) ([]chela.Media, error)
	// Echo returns how a transcript is shown in the chat, with {transcript}; nil or "":
	// it is not.
	Echo func() string
	// Skills returns the skills that an agent uses; nil: none.
	Skills func(chela.AgentID) []*skill.Skill
	// CallSkill calls the tool of a skill for a command, as the principal of its item, and
	// returns the answer. It calls the tool once for an item. nil: none is called.
	CallSkill func(ctx context.Context, it queue.Item, c skill.Command, input string) (string, error)
	// Aside answers a question beside the conversation of an item; nil: /btw is not
	// available.
	Aside func(ctx context.Context, it queue.Item, question string) (string, error)
	// Rights returns the principal as which somebody who may write uses commands and
	// directives; nil: the same.
	Rights func(chela.Principal, chela.Inbound) chela.Principal
	// Allowed returns which commands are permitted; nil: those of the default
	// configuration.
	Allowed func() Allowed
	// Admin answers a command about the gateway for the principal of ctx; nil: there are
	// none.
	Admin func(ctx context.Context, name, args string, key chela.SessionKey) (string, error)
	// Bash runs a command as a principal, or, for "poll" and "stop", asks about the last
	// one; nil: there are no commands.
	Bash func(ctx context.Context, who chela.Principal, key chela.SessionKey, command string) (string, error)
	// Mentions returns the patterns of texts that address an agent in a group; nil: only
	// the mentions that the platform knows do.
	Mentions func(chela.AgentID) []*regexp.Regexp

	// Bot returns the name of the bot at an address, for commands such as
	// /status@name; nil or "": unknown.
	Bot func(chela.Address) string
	// Hooks are told of messages and commands; nil: there are none.
	Hooks *hook.Points
	// Workspace returns the workspace of an agent, for hooks; nil: they are not told.
	Workspace func(chela.AgentID) string
	// Chunks returns how answers are split for an address; nil: the defaults of
	// package chunk.
	Chunks func(chela.Address) chunk.Options

	Version string
	Started time.Time // of the process; zero: not shown
}

// Settings are the settings that a session may override.
type Settings struct {
	Think     llm.Level
	Fast      llm.Fast
	Verbose   string
	Reasoning string
	Usage     string
	Queue     queue.Policy
}

// Gate admits messages. It is safe for concurrent use.
type Gate struct {
	o      Options
	names  map[string]Command // by name and alias
	unread chan struct{}      // capacity 1: recordings wait for their transcription

	forgetting forgetting
	bots       bots
}

// New returns a Gate.
func New(o Options) *Gate {
	if o.Route == nil {
		o.Route = new(route.Table).Resolve
	}
	if o.Sends == nil {
		o.Sends = session.SendAlways
	}
	if o.Rules == nil {
		o.Rules = func(chela.Address) *admission.Rules { return new(admission.Rules) }
	}
	if o.Access == nil {
		o.Access = func(who chela.Principal, _ chela.Inbound) (chela.Principal, error) { return who, nil }
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
	if o.Types == nil {
		o.Types = func(chela.AgentID) []subagent.Type { return nil }
	}
	if o.Agents == nil {
		o.Agents = func() []chela.Agent { return nil }
	}
	if o.Tools == nil {
		o.Tools = func(context.Context, chela.Principal, chela.SessionKey) ([]tool.Spec, error) { return nil, nil }
	}
	if o.Debug == nil {
		o.Debug = func() Overrides { return nil }
	}
	if o.FixedConfig == nil {
		o.FixedConfig = func(chela.Address) string { return "" }
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
	if o.Unusable == nil {
		o.Unusable = func(session.Meta) error { return nil }
	}
	if o.Inspect == nil {
		o.Inspect = func(context.Context, chela.Principal, chela.SessionKey, chela.Address) (window.Report, error) {
			return window.Report{}, chela.Errorf(chela.CodeInvalid, "the context cannot be inspected here")
		}
	}
	if o.Export == nil {
		o.Export = func(context.Context, export.Format, export.Target, string) (export.File, error) {
			return export.File{}, chela.Errorf(chela.CodeInvalid, "sessions cannot be exported here")
		}
	}
	if o.Window == nil {
		o.Window = func(m session.Meta) window.Size { return window.Resolve(window.Claims{Model: o.Model(m).Context}) }
	}
	if o.Elevated == nil {
		o.Elevated = func(chela.Principal, session.Meta) sandbox.Elevated {
			return sandbox.Elevated{Reason: "there is no sandbox"}
		}
	}
	if o.Exec == nil {
		o.Exec = func(context.Context, chela.Principal, chela.SessionKey) (ExecRule, error) {
			return ExecRule{Policy: allowlist.Default(), NoSandbox: "commands are not sandboxed here"}, nil
		}
	}
	if o.OwnerChat == nil {
		o.OwnerChat = func(chela.Address) bool { return false }
	}
	if o.Limits == nil {
		o.Limits = func(chela.AgentID) usage.Limits { return usage.Limits{} }
	}
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.Local }
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
	if o.Hooks == nil {
		o.Hooks = hook.New(o.Log)
	}
	g := &Gate{o: o, names: byName(), unread: make(chan struct{}, 1)}
	o.Hooks.Command.Reply(g.replyToCommand)
	o.Hooks.BeforeCompaction.Reply(g.replyToCompaction)
	o.Hooks.AfterCompaction.Reply(g.replyToCompaction)
	return g
}

// pinnedModel returns the model of a session if no catalog is available.
func pinnedModel(m session.Meta) llm.Model {
	r, err := llm.ParseRef(m.Model)
	if err != nil {
		return llm.Model{Provider: "unknown", ID: "unknown"}
	}
	return llm.Model{Provider: r.Provider, ID: r.Model}
}
