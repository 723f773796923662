package session

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
)

// Meta is what is known of the conversation under a key. A reset gives it a
// new ID; the old transcript stays and is listed by Table.Past.
type Meta struct {
	Key      chela.SessionKey `json:"key"`
	ID       string           `json:"sessionId"`          // of the current transcript
	Previous string           `json:"previous,omitempty"` // transcript before the last reset, for undoing it
	Agent    chela.AgentID    `json:"agentId"`
	Label    string           `json:"label,omitempty"`
	Title    string           `json:"title,omitempty"` // first words of the first message
	Created  time.Time        `json:"createdAt"`
	Started  time.Time        `json:"sessionStartedAt"` // of the current ID
	Updated  time.Time        `json:"updatedAt"`
	Active   time.Time        `json:"lastInteractionAt"`     // last message of a person
	Answered time.Time        `json:"lastAnswerAt,omitzero"` // end of the last run
	Address  chela.Address    `json:"lastAddress,omitzero"`

	// How lists show it.
	Category string    `json:"category,omitempty"`
	Icon     string    `json:"icon,omitempty"`
	Color    string    `json:"color,omitempty"`
	Pinned   time.Time `json:"pinnedAt,omitzero"`   // zero: it is not
	Archived time.Time `json:"archivedAt,omitzero"` // put away; zero: it is not
	Read     time.Time `json:"lastReadAt,omitzero"`
	Unread   time.Time `json:"markedUnreadAt,omitzero"` // by a person; zero: it is not

	// Settings of this session; empty: inherited.
	Model   string     `json:"model,omitempty"` // provider/model, pinned by a person
	Think   string     `json:"thinkingLevel,omitempty"`
	Verbose string     `json:"verboseLevel,omitempty"`  // off, on, full
	Usage   string     `json:"responseUsage,omitempty"` // off, tokens, full
	Queue   QueuePrefs `json:"queue,omitzero"`

	// Counters of the current ID.
	Tokens  llm.Usage `json:"usage,omitzero"`
	Context int64     `json:"contextTokens,omitempty"` // size of the last prompt
	NanoUSD int64     `json:"nanoUSD,omitempty"`
	Priced  bool      `json:"priced,omitempty"` // every call of it had a price
	Calls   int64     `json:"modelCalls,omitempty"`
	Aborted bool      `json:"abortedLastRun,omitempty"`

	// Fallback is the model that answered last, in place of the one that was
	// asked; empty: that one did.
	Fallback string `json:"fallbackModel,omitempty"`
}

// QueuePrefs are a session's own queue settings; zero fields are inherited.
type QueuePrefs struct {
	Mode     string        `json:"mode,omitempty"`
	Debounce time.Duration `json:"debounceNs,omitempty"`
	Cap      int           `json:"cap,omitempty"`
	Drop     string        `json:"drop,omitempty"`
}

// Past is a transcript that was left by a reset.
type Past struct {
	ID      string    `json:"sessionId"`
	Started time.Time `json:"startedAt"`
	Ended   time.Time `json:"endedAt"`
	Reason  string    `json:"reason"` // new, reset, daily, idle, undo, deleted
	Entries int       `json:"entries"`
}

// Kind says what an entry is.
type Kind string

// The kinds of entries. Only messages and cuts change what a model is sent.
const (
	KindMessage Kind = "message" // Message is set
	KindCut     Kind = "cut"     // entries before First are no longer sent
	KindNotice  Kind = "notice"  // Text was shown to the person; never sent
	KindCommand Kind = "command" // a slash command and its answer; never sent
	KindModel   Kind = "model_change"
	KindThink   Kind = "thinking_level_change"
)

// Entry is one row of a transcript.
type Entry struct {
	ID      string // unique in the transcript
	Seq     int64  // 1-based position, given by the table
	Kind    Kind
	Time    time.Time
	Run     chela.RunID  // that wrote it; empty: none
	Message *llm.Message // of KindMessage; immutable
	Text    string       // of notice, command and changes
	First   int64        // of KindCut: Seq of the first entry that is still sent

	// Details of a tool result, for surfaces; never sent to a model. At most
	// MaxDetails bytes are kept; Cut says that there were more.
	Details json.RawMessage
	Cut     bool

	Sender  chela.Sender // of a person's message
	ItemID  string       // of a person's message: the queue item it came in
	Usage   *llm.Usage   // of an assistant message
	NanoUSD int64        // cost of that call, at that time's price; -1: no price known
	Partial bool         // an assistant message that was cut by an abort
}

// MaxDetails bounds Entry.Details.
const MaxDetails = 16 << 10

// CallState says how far a tool call is.
type CallState string

// The states of a call. Closed is final.
const (
	Planned  CallState = "planned"  // the model asked; nothing happened
	Waiting  CallState = "waiting"  // for a person's decision
	Approved CallState = "approved" // will run once
	Started  CallState = "started"  // side effects may have happened
	Closed   CallState = "closed"   // its result is in the transcript
	Denied   CallState = "denied"   // decided against; its result is still to be written
)

// Call is a tool call of a run.
type Call struct {
	ID       string // unique: run id, round and position; the provider's id is Wire.ID
	Run      chela.RunID
	Session  chela.SessionKey
	Wire     llm.ToolCall // as the model asked
	State    CallState
	Effect   string // tool.Effect in words, when it was started
	Approval string // id of the approval it waits for
	// Detached says that the run went on without it: its result was answered
	// with "waiting for approval" and the real one comes as a queue item.
	Detached bool
	Updated  time.Time

	Seq     int64   // position among all calls, given by the table
	Outcome Outcome // what became of it
}

// Outcome says what became of a call. Together with the call it is the record
// of who had what done: no secret is in it, and no content of a file.
type Outcome struct {
	Who      string        // the principal for whom it was made
	Ran      string        // the arguments it was made with, short
	Decision string        // allowed, refused, denied, blocked, stopped; empty: it did not come to one
	Rule     string        // that decided
	Result   string        // ok, error, aborted, stopped, not recorded (by a version before this record); empty: it is not known, or was not begun
	Took     time.Duration // from the question whether it may run to its end
}

// CallQuery selects calls for a list.
type CallQuery struct {
	Session  chela.SessionKey // empty: any
	Run      chela.RunID      // empty: any
	Tool     string           // as the model called it; empty: any
	Decision string           // empty: any
	Result   string           // empty: any
	Since    time.Time        // changed at or after; zero: any
	Before   int64            // older than the call with that Seq; 0: the newest
	Limit    int
}

// Query selects sessions for a list.
type Query struct {
	Agent    chela.AgentID // "": any
	ID       string        // of the current transcript; "": any
	Search   string        // in key, label, title; case-insensitive; "": any
	Label    string        // exactly; "": any
	Category string        // exactly; "": any
	Since    time.Time     // updated at or after; zero: any
	Archived Archived
	Pinned   *bool    // nil: any
	Spoken   bool     // a person wrote to it
	Running  bool     // a run of it is in progress
	Without  []string // parts of keys, as ":subagent:", of which it has none
	Order    Order
	Limit    int // 0: 100
	Offset   int
}

// Archived says whether a query finds sessions that were put away.
type Archived string

// The values of [Archived].
const (
	Present      Archived = "" // only those that were not
	ArchivedOnly Archived = "only"
	ArchivedToo  Archived = "too"
)

// Order is what a list is sorted by, the newest first.
type Order string

// The orders.
const (
	ByUpdate Order = ""
	ByActive Order = "active" // when a person wrote last
)

// Reader reads sessions and their transcripts.
type Reader interface {
	// Get returns a session, or chela.ErrNotFound.
	Get(chela.SessionKey) (Meta, error)
	// List returns sessions, newest first, and how many match in all.
	List(Query) ([]Meta, int, error)
	// Past returns the transcripts that resets left, newest first.
	Past(chela.SessionKey) ([]Past, error)
	// Entries returns entries of a transcript with Seq > after, in order, at
	// most limit (0: all).
	Entries(id string, after int64, limit int) ([]Entry, error)
	// Last returns the newest n entries of a transcript, in order.
	Last(id string, n int) ([]Entry, error)
	// Count returns how many entries a transcript has.
	Count(id string) (int, error)
}

// Lookup returns the session under the key; one that is not stored yet, which
// its first message will begin, has its key and agent only.
func Lookup(r Reader, key chela.SessionKey) (Meta, error) {
	m, err := r.Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return Meta{Key: key, Agent: key.Agent()}, nil
	}
	return m, err
}

// Table is the sessions inside a transaction.
type Table interface {
	Reader
	// Put stores a session by its key, new or changed.
	Put(Meta) error
	// Append adds entries to a transcript and sets their Seq.
	Append(id string, entries ...*Entry) error
	// Archive records that a transcript was left.
	Archive(key chela.SessionKey, p Past) error
	// Unarchive takes a transcript out of the past again.
	Unarchive(key chela.SessionKey, id string) error
	// Delete removes a session with its past and all its rows. Its calls stay,
	// closed, without their arguments.
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
	// Recent returns calls, the newest first.
	Recent(CallQuery) ([]Call, error)
}

// Calls is the tool calls inside a transaction.
type Calls interface {
	CallReader
	// Plan stores new calls.
	Plan(...Call) error
	// Move changes a call's state. It fails with a chela.CodeConflict error
	// when the call is in none of the from states (any, when none is given).
	Move(id string, to CallState, from ...CallState) error
	// Close writes what became of a call, which is Closed now.
	Close(id string, o Outcome) error
	// Put stores a call by its id, all but its Outcome and Seq.
	Put(Call) error
}
