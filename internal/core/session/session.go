package session

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
)

// Meta describes the conversation under a key. A reset changes ID; Table.Past lists the
// old transcripts.
type Meta struct {
	Key      chela.SessionKey `json:"key"`
	ID       string           `json:"sessionId"`          // of the current transcript
	Previous string           `json:"previous,omitempty"` // transcript before the last reset, for undo
	// Opened is why the transcript began, until a person's first run in it has begun:
	// the reason of the reset. After [Refresh] it is [Soft].
	Opened string `json:"openedBy,omitempty"`

	Agent    chela.AgentID `json:"agentId"`
	Label    string        `json:"label,omitempty"`
	Title    string        `json:"title,omitempty"` // first words of the first message
	Created  time.Time     `json:"createdAt"`
	Started  time.Time     `json:"sessionStartedAt"` // of the current ID
	Updated  time.Time     `json:"updatedAt"`
	Active   time.Time     `json:"lastInteractionAt"`     // time of the last message of a person
	Answered time.Time     `json:"lastAnswerAt,omitzero"` // time of the end of the last run
	Address  chela.Address `json:"lastAddress,omitzero"`
	Group    string        `json:"group,omitempty"` // title of the group of Address, as the platform says

	// Isolated is set if each run of the session begins anew, as those of webhooks do. Its
	// transcripts are deleted after some time.
	Isolated bool `json:"isolated,omitempty"`

	// Presentation in lists.
	Category string    `json:"category,omitempty"`
	Icon     string    `json:"icon,omitempty"`
	Color    string    `json:"color,omitempty"`
	Pinned   time.Time `json:"pinnedAt,omitzero"`   // zero: not pinned
	Archived time.Time `json:"archivedAt,omitzero"` // hidden from lists; zero: not archived
	Read     time.Time `json:"lastReadAt,omitzero"`
	Unread   time.Time `json:"markedUnreadAt,omitzero"` // by a person; zero: not marked

	// Settings of this session; empty: inherited.
	Model   string      `json:"model,omitempty"` // provider/model, pinned by a person
	Think   string      `json:"thinkingLevel,omitempty"`
	Fast    string      `json:"fastMode,omitempty"`      // off, on, auto
	Verbose string      `json:"verboseLevel,omitempty"`  // off, on, full
	Usage   string      `json:"responseUsage,omitempty"` // off, tokens, full
	Queue   queue.Prefs `json:"queue,omitzero"`
	// Elevated is whether commands leave the sandbox: off, on, ask, full.
	Elevated  string `json:"elevatedLevel,omitempty"`
	Reasoning string `json:"reasoningLevel,omitempty"` // off, on, stream
	// Exec restricts the commands of its runs.
	Exec run.Exec `json:"exec,omitzero"`
	Send string   `json:"sendPolicy,omitempty"` // SendOn or SendOff; see [SendPolicy]
	// Activation is which messages of a group are answered: mention, always.
	Activation string `json:"groupActivation,omitempty"`

	// Bounds limits every run of the session.
	Bounds Bounds `json:"bounds,omitzero"`
	// Prompt is a part of the system prompt of every run: the task of a subagent.
	Prompt string `json:"prompt,omitempty"`
	// Fork is set for a session that was forked from a run of another one.
	Fork *Fork `json:"fork,omitempty"`

	// External is the coding agent that answers in the session; nil: a model does.
	External *External `json:"external,omitempty"`

	// Counters of the current ID.
	Tokens  llm.Usage `json:"usage,omitzero"`
	Context int64     `json:"contextTokens,omitempty"` // size of the last prompt
	NanoUSD int64     `json:"nanoUSD,omitempty"`
	Priced  bool      `json:"priced,omitempty"` // every model call had a price
	Calls   int64     `json:"modelCalls,omitempty"`
	Aborted bool      `json:"abortedLastRun,omitempty"`

	// Compactions counts those of the current ID. Before the next one the model is asked
	// once to save notes: Flushed is the time, and FlushCount was Compactions then.
	Compactions int       `json:"compactionCount,omitempty"`
	Flushed     time.Time `json:"memoryFlushAt,omitzero"` // zero: not yet
	FlushCount  int       `json:"memoryFlushCompactionCount,omitempty"`

	// Children is what subagents of the session, and theirs, have used. It is counted
	// when each of them ends.
	Children Spent `json:"children,omitzero"`

	// Interrupted is the run that a message interrupted. The next run of a person
	// replaces it. It is empty after that run has begun.
	Interrupted chela.RunID `json:"interruptedRun,omitempty"`

	// Plan is what the model has set out to do. It belongs to the current ID.
	Plan plan.Plan `json:"plan,omitzero"`

	// Focus is the chats of the session whose messages go to sessions of subagents.
	Focus []Focus `json:"focus,omitempty"`

	// Learned is what model calls have shown about the window of the model.
	Learned Learned `json:"learnedWindow,omitzero"`

	// Fallback is the model that gave the last answer instead of the configured one.
	// It is empty if the configured model answered.
	Fallback string `json:"fallbackModel,omitempty"`
	// Media says how the attachments of the last run's messages were read; empty: there
	// were none.
	Media string `json:"mediaResults,omitempty"`
}

// Learned is what the model calls of a session have shown. It is kept when a session gets
// another transcript.
type Learned struct {
	Model string    `json:"model,omitempty"`      // provider/model of the last call
	Ratio float64   `json:"tokenRatio,omitempty"` // of its real tokens to the estimated ones; 0: unknown
	Last  time.Time `json:"lastCallAt,omitzero"`  // when it was called
	// Limits are the windows in tokens that providers named in errors, by provider/model.
	Limits []Limit `json:"limits,omitempty"`
}

// Limit is the window of a model that its provider named.
type Limit struct {
	Model  string `json:"model"` // provider/model
	Tokens int    `json:"tokens"`
}

// maxLimits is the number of models whose limits a session retains.
const maxLimits = 8

// Limit returns the window of a model in tokens that its provider named; 0: none.
func (l Learned) Limit(model string) int {
	for _, k := range l.Limits {
		if k.Model == model {
			return k.Tokens
		}
	}
	return 0
}

// RatioOf returns the ratio for a model; 0: unknown.
func (l Learned) RatioOf(model string) float64 {
	if l.Model != model {
		return 0
	}
	return l.Ratio
}

// WithLimit returns l with the window that the provider of a model named. It retains
// those of the last eight models.
func (l Learned) WithLimit(model string, tokens int) Learned {
	limits := slices.DeleteFunc(slices.Clone(l.Limits), func(k Limit) bool { return k.Model == model })
	limits = append(limits, Limit{model, tokens})
	l.Limits = limits[max(0, len(limits)-maxLimits):]
	return l
}

// Spent is a sum of usage.
type Spent struct {
	Runs    int       `json:"runs,omitempty"`
	Tokens  llm.Usage `json:"usage,omitzero"`
	NanoUSD int64     `json:"nanoUSD,omitempty"`
	// Unpriced is set if a model call had no price, so that NanoUSD is incomplete.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Add returns the sum of s and t.
func (s Spent) Add(t Spent) Spent {
	return Spent{Runs: s.Runs + t.Runs, Tokens: s.Tokens.Add(t.Tokens), NanoUSD: s.NanoUSD + t.NanoUSD,
		Unpriced: s.Unpriced || t.Unpriced}
}

// EventPayload marks the session as the data of an event.
func (Meta) EventPayload() {}

// Past is a transcript from before a reset.
type Past struct {
	ID      string    `json:"sessionId"`
	Started time.Time `json:"startedAt"`
	Ended   time.Time `json:"endedAt"`
	Reason  string    `json:"reason"` // new, reset, daily, idle, undo, deleted
	Entries int       `json:"entries"`
}

// Kind is the kind of an entry.
type Kind string

// The kinds of entries. Notices without a message, commands and changes of settings do not
// change what a model is sent.
const (
	KindMessage Kind = "message" // Message is set
	KindCut     Kind = "cut"     // entries before First are no longer sent, but Message, if it is set
	KindPrune   Kind = "prune"   // the entries that Prune names are sent in a shorter form
	KindNotice  Kind = "notice"  // Text was shown to the person; never sent, but Message, if it is set
	KindAgain   Kind = "again"   // Message is that of an earlier entry that is not sent any more; not shown
	KindCommand Kind = "command" // a slash command and its answer; never sent
	KindModel   Kind = "model_change"
	KindThink   Kind = "thinking_level_change"
	KindVoid    Kind = "void" // the entries that Voids refers to are no longer sent; their rows are kept
)

// DocumentHeading begins the line in a person's message before the text of a file that was
// attached to it.
const DocumentHeading = "[Document"

// Entry is one row of a transcript.
type Entry struct {
	ID   string // unique in the transcript
	Seq  int64  // 1-based position, assigned by the table
	Kind Kind
	Time time.Time
	Run  chela.RunID // the run that wrote the entry; empty: none
	// Message of KindMessage, of KindAgain, of KindCut with a summary, and of a KindNotice that
	// ends a run without an answer; immutable. A KindNotice that shows pictures has them in a
	// message without a role, which is never sent.
	Message *llm.Message
	Text    string       // of notices, commands, and changes of the model or thinking level; the summary of KindCut
	First   int64        // of KindCut: Seq of the first entry that is still sent
	Voids   Ref          // of KindVoid
	Prune   *Prune       // of KindPrune; immutable
	Origin  chela.Origin // of the queue item for which it was written

	// Details of a tool result, for surfaces, or the Compaction of KindCut; never sent to
	// a model. Cut reports that they were truncated to MaxDetails bytes.
	Details json.RawMessage
	Cut     bool

	Sender  chela.Sender // of a person's message
	ItemID  string       // of a person's message: the id of its queue item
	Usage   *llm.Usage   // of an assistant message
	NanoUSD int64        // cost of the model call, at the price at that time; -1: unknown
	Partial bool         // an assistant message that was truncated by an abort
}

// Ref refers to an entry of the same transcript, or to all entries of a run.
type Ref struct {
	Entry string      `json:"entry,omitempty"`
	Run   chela.RunID `json:"run,omitempty"`
}

// MaxDetails is the maximum size of Entry.Details in bytes.
const MaxDetails = 16 << 10

// EventPayload marks the entry as the data of an event.
func (Entry) EventPayload() {}

// CallState is the state of a tool call.
type CallState string

// The states of a call. Closed is final.
const (
	Planned  CallState = "planned"  // requested by the model; nothing happened yet
	Waiting  CallState = "waiting"  // for a person's decision
	Approved CallState = "approved" // will run once
	Started  CallState = "started"  // side effects may have happened
	Closed   CallState = "closed"   // its result is in the transcript
	Denied   CallState = "denied"   // denied; its result is not yet written
)

// Call is a tool call of a run.
type Call struct {
	ID       string // unique: run id, round and position; the provider's id is Wire.ID
	Run      chela.RunID
	Session  chela.SessionKey
	Wire     llm.ToolCall // as requested by the model
	State    CallState
	Effect   string   // tool.Effect as text, set when the call is started
	Approval string   // id of the approval it waits for
	Rights   []string // rights beyond those of the run that the call needs; part of the approved plan
	// Detached is set if the run continued without the result. The model got the
	// result "waiting for approval"; the actual result follows as a queue item.
	Detached bool
	Updated  time.Time

	Seq     int64   // position among all calls, assigned by the table
	Outcome Outcome // of a closed call
}

// Outcome is the outcome of a call. Together with the call it is the audit record:
// it contains neither secrets nor file contents.
type Outcome struct {
	Who      string        // the principal on whose behalf the call was made
	Ran      string        // the arguments, shortened
	Decision Decision      // empty: no decision was made
	Rule     string        // the rule that decided
	Result   Result        // empty: unknown, or not started
	Took     time.Duration // from the authorization to the end of the call
}

// Decision is the decision whether a call runs.
type Decision string

// The decisions.
const (
	DecisionAllowed   Decision = "allowed"
	DecisionRefused   Decision = "refused"   // the call is invalid, or the caller has no such tool
	DecisionDenied    Decision = "denied"    // by a person or by the plan of the tool
	DecisionBlocked   Decision = "blocked"   // by a hook, by loop detection, or for lack of rights
	DecisionStopped   Decision = "stopped"   // together with the run, which reached a limit
	DecisionSuspended Decision = "suspended" // a person must decide; only in the log
)

// Result is how a call ended.
type Result string

// The results. Calls of older versions can have the result "not recorded".
const (
	ResultOK        Result = "ok"
	ResultError     Result = "error"
	ResultAborted   Result = "aborted"
	ResultStopped   Result = "stopped"   // the run ended
	ResultUnknown   Result = "unknown"   // it had started before a crash
	ResultSuspended Result = "suspended" // only in the log
)

// CallQuery selects calls for a list.
type CallQuery struct {
	Session  chela.SessionKey // empty: any
	Run      chela.RunID      // empty: any
	Tool     string           // name used by the model; empty: any
	Decision Decision         // empty: any
	Result   Result           // empty: any
	Since    time.Time        // changed at or after; zero: any
	Before   int64            // only calls with a smaller Seq; 0: no limit
	Limit    int
}

// Query selects sessions for a list.
type Query struct {
	Agent      chela.AgentID // "": any
	ID         string        // of the current transcript; "": any
	Search     string        // in key, label, title; case-insensitive; "": any
	Label      string        // exactly; "": any
	Category   string        // exactly; "": any
	Since      time.Time     // updated at or after; zero: any
	Archived   Archived
	Pinned     *bool           // nil: any
	Interacted bool            // a person has written in the session
	Running    bool            // a run is in progress
	Without    []chela.KeyKind // exclude keys of these kinds: KeyCron, KeyHook, KeySubagent
	Order      Order
	Limit      int // 0: 100
	Offset     int
}

// Archived determines whether a query returns archived sessions.
type Archived string

// The values of [Archived].
const (
	Present      Archived = "" // only sessions that are not archived
	ArchivedOnly Archived = "only"
	ArchivedToo  Archived = "too"
)

// Order is the sort order of a list; the newest session is first, except in ByAge.
type Order string

// The orders.
const (
	ByUpdate Order = ""
	ByActive Order = "active" // by the time of the last message of a person
	ByAge    Order = "age"    // by update, the oldest first
)

// Reader reads sessions and their transcripts.
type Reader interface {
	// Get returns a session, or chela.ErrNotFound.
	Get(chela.SessionKey) (Meta, error)
	// List returns sessions, newest first, and the total number of matches.
	List(Query) ([]Meta, int, error)
	// Counts returns how many sessions each agent has.
	Counts() (map[chela.AgentID]int, error)
	// Past returns the transcripts archived by resets, newest first.
	Past(chela.SessionKey) ([]Past, error)
	// Entries returns at most limit (0: all) entries of a transcript with Seq >
	// after, in order.
	Entries(id string, after int64, limit int) ([]Entry, error)
	// Last returns the newest n entries of a transcript, in order.
	Last(id string, n int) ([]Entry, error)
	// Count returns the number of entries of a transcript.
	Count(id string) (int, error)
	// Size returns the size of a transcript in bytes, without files that it refers to.
	Size(id string) (int64, error)
}

// New returns a session that begins now.
func New(key chela.SessionKey, now time.Time) Meta {
	return Meta{Key: key, ID: uuid.NewString(), Agent: key.Agent(), Created: now, Started: now, Updated: now, Active: now}
}

// Lookup returns the session under the key. For a session that is not stored yet, it
// returns a Meta with only the key and the agent.
func Lookup(r Reader, key chela.SessionKey) (Meta, error) {
	m, err := r.Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return Meta{Key: key, Agent: key.Agent()}, nil
	}
	return m, err
}

// SetPlan replaces the plan of a session, and reports whether it is another one.
func SetPlan(t Table, m Meta, p plan.Plan) (changed bool, err error) {
	if p.Equal(m.Plan) {
		return false, nil
	}
	m.Plan = p
	return true, t.Put(m)
}

// Table reads and writes sessions in a transaction.
type Table interface {
	Reader
	// Put inserts or replaces a session by key.
	Put(Meta) error
	// Append adds entries to a transcript and sets their Seq.
	Append(id string, entries ...*Entry) error
	// Archive adds a transcript to the past transcripts of a session.
	Archive(key chela.SessionKey, p Past) error
	// PrunePast deletes the past transcripts of a session that ended before t, and returns
	// their number.
	PrunePast(key chela.SessionKey, t time.Time) (int, error)
	// Unarchive removes a transcript from the past transcripts of a session.
	Unarchive(key chela.SessionKey, id string) error
	// Delete removes a session with its past transcripts and all its rows. Its calls
	// are kept, closed and without their arguments.
	Delete(chela.SessionKey) error
}

// CallReader reads tool calls.
type CallReader interface {
	// Call returns a call, or chela.ErrNotFound.
	Call(id string) (Call, error)
	// Open returns the calls of a run that are not Closed, in order.
	Open(chela.RunID) ([]Call, error)
	// OpenDetached returns the detached calls of a session that are not Closed.
	OpenDetached(chela.SessionKey) ([]Call, error)
	// Recent returns calls, newest first.
	Recent(CallQuery) ([]Call, error)
}

// Calls reads and writes tool calls in a transaction.
type Calls interface {
	CallReader
	// Plan stores new calls.
	Plan(...Call) error
	// Move changes the state of a call. It fails with a chela.CodeConflict error if
	// the call is in none of the from states. Without from states, any state is
	// accepted.
	Move(id string, to CallState, from ...CallState) error
	// Close stores the outcome of a call and moves it to Closed.
	Close(id string, o Outcome) error
	// Put replaces a call by id, except its Outcome and Seq.
	Put(Call) error
}
