package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// DeliveryContext is a chat.
type DeliveryContext struct {
	Channel   string `json:"channel"`
	To        string `json:"to"` // as the method send takes it
	AccountID string `json:"accountId,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
}

// Session is a session in a list.
type Session struct {
	Key         string `json:"key"`
	Kind        string `json:"kind"`               // direct, group, global, unknown
	ChatType    string `json:"chatType,omitempty"` // direct, group, channel
	Class       string `json:"classification,omitempty"`
	AgentID     string `json:"agentId"`
	SessionID   string `json:"sessionId"`
	Label       string `json:"label,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Title       string `json:"derivedTitle,omitempty"`
	Preview     string `json:"lastMessagePreview,omitempty"`
	Channel     string `json:"channel,omitempty"`
	AccountID   string `json:"accountId,omitempty"`
	// Delivery is the chat to which answers go; nil: there is none.
	Delivery   *DeliveryContext `json:"deliveryContext,omitempty"`
	Category   string           `json:"category,omitempty"`
	Icon       string           `json:"icon,omitempty"`
	Color      string           `json:"color,omitempty"`
	Main       bool             `json:"isMain"`
	Background bool             `json:"isBackground"`

	CreatedAt  Millis `json:"createdAt,omitempty"`
	SinceAt    Millis `json:"sessionStartedAt,omitempty"` // of the current transcript
	UpdatedAt  Millis `json:"updatedAt"`
	ActiveAt   Millis `json:"lastInteractionAt,omitempty"` // last message from a person
	AnsweredAt Millis `json:"lastActivityAt,omitempty"`    // end of the last run
	Archived   bool   `json:"archived"`
	ArchivedAt Millis `json:"archivedAt,omitempty"`
	Pinned     bool   `json:"pinned"`
	PinnedAt   Millis `json:"pinnedAt,omitempty"`
	Unread     bool   `json:"unread"`
	ReadAt     Millis `json:"lastReadAt,omitempty"`
	UnreadAt   Millis `json:"markedUnreadAt,omitempty"`

	Provider      string   `json:"modelProvider,omitempty"`
	Model         string   `json:"model,omitempty"`
	Override      string   `json:"modelOverrideSource,omitempty"` // user: a person chose the model
	ContextWindow int64    `json:"contextTokens,omitempty"`       // of the model
	Levels        []Level  `json:"thinkingLevels,omitempty"`
	Options       []string `json:"thinkingOptions,omitempty"`
	Default       string   `json:"thinkingDefault,omitempty"`
	Thinking      string   `json:"thinkingLevel,omitempty"`
	Fast          any      `json:"fastMode,omitempty"` // true, false or auto; nil: inherited
	Verbose       string   `json:"verboseLevel,omitempty"`
	UsageLine     string   `json:"responseUsage,omitempty"`
	QueueMode     string   `json:"queueMode,omitempty"`
	SessionExec
	// allow, deny: whether answers are sent to the chat; empty: there is no chat
	SendPolicy string `json:"sendPolicy,omitempty"`

	InputTokens  int64    `json:"inputTokens"`
	OutputTokens int64    `json:"outputTokens"`
	CacheRead    int64    `json:"cacheRead,omitempty"`
	CacheWrite   int64    `json:"cacheWrite,omitempty"`
	TotalTokens  int64    `json:"totalTokens"` // size of the last prompt
	TotalFresh   bool     `json:"totalTokensFresh"`
	Cost         *float64 `json:"estimatedCostUsd,omitempty"` // nil: the price of some call is unknown

	Active    bool     `json:"hasActiveRun"`
	Runs      []string `json:"activeRunIds"`
	Status    string   `json:"status,omitempty"`    // running
	Waiting   bool     `json:"waiting,omitempty"`   // for an approval
	StartedAt Millis   `json:"startedAt,omitempty"` // of the active run
	Aborted   bool     `json:"abortedLastRun"`
	Queued    int      `json:"queuedMessages,omitempty"`
	Leaf      string   `json:"activeLeafEntryId,omitempty"` // last entry of the transcript; in chat.history
	Plan      *Plan    `json:"plan,omitempty"`              // in sessions.describe; nil: there is none

	SpawnedBy  string `json:"spawnedBy,omitempty"` // key of the session that started it
	SpawnDepth int    `json:"spawnDepth,omitempty"`
	Role       string `json:"subagentRole,omitempty"` // orchestrator, leaf
	// children or none: the subagents that it may stop and steer
	ControlScope string `json:"subagentControlScope,omitempty"`
}

// SessionModel is a model and its thinking levels.
type SessionModel struct {
	Provider      string   `json:"modelProvider,omitempty"`
	Model         string   `json:"model,omitempty"`
	ContextWindow int64    `json:"contextTokens,omitempty"`
	Levels        []Level  `json:"thinkingLevels,omitempty"`
	Options       []string `json:"thinkingOptions,omitempty"` // labels of Levels
	Default       string   `json:"thinkingDefault,omitempty"`
}

// SessionsList holds the parameters of sessions.list.
type SessionsList struct {
	Limit              int      `json:"limit,omitempty" min:"1"` // 0: 100
	Offset             int      `json:"offset,omitempty" min:"0"`
	AgentID            string   `json:"agentId,omitempty"`
	Search             string   `json:"search,omitempty"`                 // substring of key, label or title
	Label              string   `json:"label,omitempty"`                  // exact match
	Category           string   `json:"group,omitempty"`                  // exact match
	ActiveMinutes      int      `json:"activeMinutes,omitempty" min:"1"`  // updated within this many minutes
	ActiveOnly         bool     `json:"activeOnly,omitempty"`             // with an active run
	RequireInteraction bool     `json:"requireLastInteraction,omitempty"` // with a message from a person
	SortBy             string   `json:"sortBy,omitempty"`                 // updatedAt, lastInteractionAt, activity
	Archived           Archived `json:"archived,omitzero"`
	Pinned             *bool    `json:"pinned,omitempty"`
	SpawnedBy          string   `json:"spawnedBy,omitempty"` // children of this session only
	HasBoard           bool     `json:"hasBoard,omitempty"`  // no session has a board
	BoardFace          string   `json:"boardFace,omitempty"` // chat or dashboard; every session is chat
	NoSubagents        bool     `json:"excludeSubagents,omitempty"`
	NoCron             bool     `json:"excludeCron,omitempty"`
	Preview            bool     `json:"includeLastMessage,omitempty"`
}

// SessionsSearch holds the parameters of sessions.search.
type SessionsSearch struct {
	Query   string        `json:"query"`
	AgentID string        `json:"agentId,omitempty"`
	Keys    []string      `json:"sessionKeys,omitempty"`   // only in these; nil: in those of Scope
	Limit   int           `json:"limit,omitempty" min:"1"` // nil: those of Scope
	Scope   *SessionsList `json:"scope,omitempty"`         // nil: all that are not archived
}

// SessionHits is the result of sessions.search.
type SessionHits struct {
	Results   []SessionHit `json:"results"`             // best first
	Sessions  []Session    `json:"sessions,omitempty"`  // of the results, if Scope is set
	Truncated bool         `json:"truncated,omitempty"` // the search or its results were cut
}

// SessionHit is a matching message.
type SessionHit struct {
	Key       string  `json:"sessionKey"`
	SessionID string  `json:"sessionId"`
	MessageID string  `json:"messageId"`
	Role      string  `json:"role"`
	Time      Millis  `json:"timestamp"`
	Snippet   string  `json:"snippet"`
	Score     float64 `json:"score"`
}

// Archived selects sessions: true, false or "all". The zero value selects
// sessions that are not archived.
type Archived string

// Values of [Archived].
const (
	ArchivedOnly Archived = "true"
	ArchivedAll  Archived = "all"
)

// MarshalJSON writes true, false or "all".
func (a Archived) MarshalJSON() ([]byte, error) {
	if a == ArchivedAll {
		return []byte(`"all"`), nil
	}
	return strconv.AppendBool(nil, a == ArchivedOnly), nil
}

// UnmarshalJSON accepts true, false or "all".
func (a *Archived) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case "true":
		*a = ArchivedOnly
	case "false", "null":
		*a = ""
	case `"all"`:
		*a = ArchivedAll
	default:
		return fmt.Errorf("archived: %s, want true, false or \"all\"", s)
	}
	return nil
}

// SessionList is the result of sessions.list.
type SessionList struct {
	Time     Millis       `json:"ts"`
	Path     string       `json:"path"`
	Owners   []string     `json:"owners"` // always empty: sessions have no owners
	Count    int          `json:"count"`
	Total    int          `json:"totalCount"`
	Limit    int          `json:"limitApplied"`
	Next     *int         `json:"nextOffset"`
	HasMore  bool         `json:"hasMore"`
	Defaults SessionModel `json:"defaults"`
	Sessions []Session    `json:"sessions"`
}

// SessionKey holds the parameters of methods about one session.
type SessionKey struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
}

// SessionsDescribe holds the parameters of sessions.describe.
type SessionsDescribe struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
	Preview bool   `json:"includeLastMessage,omitempty"`
}

// SessionDescribed is the result of sessions.describe.
type SessionDescribed struct {
	Session *Session `json:"session"` // nil: not found
}

// SessionsResolve holds the parameters of sessions.resolve. One of the first
// five fields is set.
type SessionsResolve struct {
	Key       string            `json:"key,omitempty"`
	SessionID string            `json:"sessionId,omitempty"`
	Label     string            `json:"label,omitempty"`
	ShortID   string            `json:"shortId,omitempty"` // leading hexadecimal digits of the UUID in the key
	Reference *SessionReference `json:"reference,omitempty"`
	AgentID   string            `json:"agentId,omitempty"`
	Missing   bool              `json:"allowMissing,omitempty"` // return OK false instead of an error
}

// SessionReference is a session named in a browser's address: by its key, or by
// words of its label.
type SessionReference struct {
	Key  string `json:"key"`
	Slug string `json:"slug,omitempty"`
}

// SessionResolved is the result of sessions.resolve. If it is not OK, the
// session does not exist or is one of the candidates.
type SessionResolved struct {
	OK         bool               `json:"ok"`
	Key        string             `json:"key,omitempty"`
	AgentID    string             `json:"agentId,omitempty"`
	Name       string             `json:"displayName,omitempty"`
	Candidates []SessionCandidate `json:"candidates,omitempty"`
}

// MaxCandidates is the maximum number of candidates in a [SessionResolved].
const MaxCandidates = 10

// SessionCandidate is a possible match.
type SessionCandidate struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId"`
	Name    string `json:"displayName,omitempty"`
}

// SessionsCreate holds the parameters of sessions.create.
type SessionsCreate struct {
	Key         string       `json:"key,omitempty"` // "": a new one
	AgentID     string       `json:"agentId,omitempty"`
	Label       string       `json:"label,omitempty"`
	DisplayName string       `json:"displayName,omitempty"` // used if Label is empty
	Category    string       `json:"category,omitempty"`
	Model       string       `json:"model,omitempty"`
	Thinking    string       `json:"thinkingLevel,omitempty"`
	Fast        any          `json:"fastMode,omitempty"`         // true, false or auto
	Parent      string       `json:"parentSessionKey,omitempty"` // its settings are copied
	Fork        bool         `json:"fork,omitempty"`             // copy its transcript, too
	Message     string       `json:"message,omitempty"`          // first message
	Task        string       `json:"task,omitempty"`             // used if Message is empty
	Attachments []Attachment `json:"attachments,omitempty"`      // of the message
	SendKey     string       `json:"idempotencyKey,omitempty"`
}

// SessionEntry is a session as returned by methods that change it.
type SessionEntry struct {
	SessionID  string `json:"sessionId"`
	Label      string `json:"label,omitempty"`
	Category   string `json:"category,omitempty"`
	Icon       string `json:"icon,omitempty"`
	Color      string `json:"color,omitempty"`
	Model      string `json:"modelOverride,omitempty"`
	Thinking   string `json:"thinkingLevel,omitempty"`
	Fast       any    `json:"fastMode,omitempty"` // true, false or auto; nil: inherited
	Verbose    string `json:"verboseLevel,omitempty"`
	UsageLine  string `json:"responseUsage,omitempty"`
	QueueMode  string `json:"queueMode,omitempty"`
	SendPolicy string `json:"sendPolicy,omitempty"` // allow, deny; empty: that of the configuration
	CreatedAt  Millis `json:"createdAt,omitempty"`
	SinceAt    Millis `json:"sessionStartedAt,omitempty"`
	UpdatedAt  Millis `json:"updatedAt"`
	ArchivedAt Millis `json:"archivedAt,omitempty"`
	PinnedAt   Millis `json:"pinnedAt,omitempty"`
	ReadAt     Millis `json:"lastReadAt,omitempty"`
	UnreadAt   Millis `json:"markedUnreadAt,omitempty"`

	Compactions int `json:"compactionCount,omitempty"`
	SessionExec
}

// SessionExec restricts the commands of a session. Empty fields restrict nothing.
type SessionExec struct {
	ExecHost     string `json:"execHost,omitempty"`     // sandbox, gateway
	ExecSecurity string `json:"execSecurity,omitempty"` // deny, allowlist, full
	ExecAsk      string `json:"execAsk,omitempty"`      // off, on-miss, always
}

// SessionCreated is the result of sessions.create.
type SessionCreated struct {
	OK         bool         `json:"ok"`
	Key        string       `json:"key"`
	SessionID  string       `json:"sessionId"`
	Entry      SessionEntry `json:"entry"`
	RunStarted bool         `json:"runStarted"`
	RunID      string       `json:"runId,omitempty"`
	RunError   *Error       `json:"runError,omitempty"` // why the message was refused
	Resolved   SessionModel `json:"resolved"`
}

// SessionsPatch holds the parameters of sessions.patch. Absent properties are
// left unchanged; null and "" restore the inherited value.
type SessionsPatch struct {
	Key          string           `json:"key"`
	AgentID      string           `json:"agentId,omitempty"`
	SessionID    string           `json:"expectedSessionId,omitempty"` // refused if the session has another transcript
	Label        Optional[string] `json:"label,omitzero"`
	Category     Optional[string] `json:"category,omitzero"`
	Icon         Optional[string] `json:"icon,omitzero"`
	Color        Optional[string] `json:"color,omitzero"`
	Archived     Optional[bool]   `json:"archived,omitzero"`
	Pinned       Optional[bool]   `json:"pinned,omitzero"`
	Unread       Optional[bool]   `json:"unread,omitzero"`
	Model        Optional[string] `json:"model,omitzero"`
	Thinking     Optional[string] `json:"thinkingLevel,omitzero"`
	Fast         Optional[any]    `json:"fastMode,omitzero"` // true, false or auto
	Verbose      Optional[string] `json:"verboseLevel,omitzero"`
	UsageLine    Optional[string] `json:"responseUsage,omitzero"`
	QueueMode    Optional[string] `json:"queueMode,omitzero"`
	ExecHost     Optional[string] `json:"execHost,omitzero"`
	ExecSecurity Optional[string] `json:"execSecurity,omitzero"`
	ExecAsk      Optional[string] `json:"execAsk,omitzero"`
	Send         Optional[string] `json:"sendPolicy,omitzero"` // allow, deny

	// UnreadAt makes Unread apply only if the session is marked as unread since then, or, if
	// it is null, not marked.
	UnreadAt Optional[Millis] `json:"expectedMarkedUnreadAt,omitzero"`
}

// SessionsPatchMany holds the parameters of sessions.patchMany.
type SessionsPatchMany struct {
	Targets []SessionTarget `json:"targets"`
	Patch   json.RawMessage `json:"patch"` // properties of a SessionsPatch
}

// SessionTarget is a session of sessions.patchMany.
type SessionTarget struct {
	Key       string `json:"key"`
	AgentID   string `json:"agentId,omitempty"`
	SessionID string `json:"expectedSessionId,omitempty"`
}

// SessionsPatchedMany is the result of sessions.patchMany, in the order of the
// targets.
type SessionsPatchedMany struct {
	Outcomes []SessionOutcome `json:"outcomes"`
}

// SessionOutcome is the result for one session.
type SessionOutcome struct {
	OK    bool   `json:"ok"`
	Key   string `json:"key"`
	Error *Error `json:"error,omitempty"`
}

// SessionPatched is the result of sessions.patch.
type SessionPatched struct {
	OK       bool         `json:"ok"`
	Path     string       `json:"path"`
	Key      string       `json:"key"`
	Entry    SessionEntry `json:"entry"`
	Resolved SessionModel `json:"resolved"`
}

// SessionsReset holds the parameters of sessions.reset.
type SessionsReset struct {
	Key       string `json:"key"`
	AgentID   string `json:"agentId,omitempty"`
	Reason    string `json:"reason,omitempty"`            // new, reset
	SessionID string `json:"expectedSessionId,omitempty"` // refused if the session has another transcript
}

// SessionsDelete holds the parameters of sessions.delete.
type SessionsDelete struct {
	Key       string `json:"key"`
	AgentID   string `json:"agentId,omitempty"`
	SessionID string `json:"expectedSessionId,omitempty"` // refused if the session has another transcript
	Archived  bool   `json:"archivedOnly,omitempty"`      // refused if the session is not archived
	// UpdatedAt is the row's time; the session is not deleted if it has changed since.
	UpdatedAt  Millis `json:"expectedSessionUpdatedAt,omitempty"`
	Transcript *bool  `json:"deleteTranscript,omitempty"` // false is refused
}

// SessionCompacted is the result of sessions.compact.
type SessionCompacted struct {
	OK        bool   `json:"ok"`
	Key       string `json:"key"`
	Compacted bool   `json:"compacted"`
	Reason    string `json:"reason,omitempty"` // why it was not compacted
	Kept      int    `json:"kept,omitempty"`   // with maxLines: the number of lines that stay

	Result *CompactionResult `json:"result,omitempty"` // of a summary
}

// CompactionResult describes a summary.
type CompactionResult struct {
	Summary      string `json:"summary"`
	FirstKept    string `json:"firstKeptEntryId"`
	TokensBefore int    `json:"tokensBefore"` // estimates
	TokensAfter  int    `json:"tokensAfter"`
}

// SessionsCompact holds the parameters of sessions.compact.
type SessionsCompact struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
	// keep only the newest lines, without a summary: the first line of a transcript, and messages; 0:
	// summarize
	MaxLines int `json:"maxLines,omitempty" min:"1"`
}

// SessionReset is the result of sessions.reset.
type SessionReset struct {
	OK       bool         `json:"ok"`
	Key      string       `json:"key"`
	Entry    SessionEntry `json:"entry"`
	Resolved SessionModel `json:"resolved"`
}

// SessionDeleted is the result of sessions.delete.
type SessionDeleted struct {
	OK       bool     `json:"ok"`
	Key      string   `json:"key"`
	Deleted  bool     `json:"deleted"`
	Archived []string `json:"archived"`
}

// SessionsPreview holds the parameters of sessions.preview.
type SessionsPreview struct {
	Keys     []string `json:"keys"`
	Limit    int      `json:"limit,omitempty" min:"1"`    // items of each; 0: 12
	MaxChars int      `json:"maxChars,omitempty" min:"1"` // of each item; 0: 240
}

// SessionPreviews is the result of sessions.preview.
type SessionPreviews struct {
	Time     Millis           `json:"ts"`
	Previews []SessionPreview `json:"previews"`
}

// SessionPreview is the end of a transcript, oldest first.
type SessionPreview struct {
	Key    string        `json:"key"`
	Status string        `json:"status"` // ok, empty, missing
	Items  []PreviewItem `json:"items"`
}

// PreviewItem is a message in a preview.
type PreviewItem struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// SessionsExport holds the parameters of sessions.export.
type SessionsExport struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
	Format  string `json:"format,omitempty"` // jsonl (also ""), html, trajectory
}

// SessionExported is the result of sessions.export. A trajectory consists of JSON lines.
type SessionExported struct {
	Key       string `json:"key"`
	SessionID string `json:"sessionId"`
	FileName  string `json:"fileName"`
	JSONL     string `json:"jsonl,omitempty"`
	HTML      string `json:"html,omitempty"`
}

// SessionsImport holds the parameters of sessions.import.
type SessionsImport struct {
	JSONL   string `json:"jsonl"`
	Key     string `json:"key,omitempty"` // key of the imported session, which must not exist; "": generated
	AgentID string `json:"agentId,omitempty"`
	Label   string `json:"label,omitempty"` // used if the transcript does not contain one
}

// SessionImported is the result of sessions.import.
type SessionImported struct {
	OK        bool   `json:"ok"`
	Key       string `json:"key"`
	SessionID string `json:"sessionId"`
	Entries   int    `json:"entries"`
	Skipped   int    `json:"skipped,omitempty"`  // damaged lines and lines of unknown kind
	Branched  int    `json:"branched,omitempty"` // entries on abandoned branches
	Doubled   int    `json:"doubled,omitempty"`  // entries with a repeated id; the last one is used
}

// SessionsSend holds the parameters of sessions.send.
type SessionsSend struct {
	Key            string       `json:"key"`
	Message        string       `json:"message"`
	IdempotencyKey string       `json:"idempotencyKey,omitempty"` // "": generated
	AgentID        string       `json:"agentId,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// SessionsAbort holds the parameters of sessions.abort. Key or RunID is set.
// The result is the one of chat.abort.
type SessionsAbort struct {
	Key         string `json:"key,omitempty"`
	RunID       string `json:"runId,omitempty"`
	AgentID     string `json:"agentId,omitempty"`
	ClearQueued bool   `json:"clearQueued,omitempty"` // without RunID: also cancel the waiting messages
}

// Subscribed is the result of the subscribe methods.
type Subscribed struct {
	Subscribed bool   `json:"subscribed"`
	Key        string `json:"key,omitempty"`
}

// SessionsGet holds the parameters of sessions.get.
type SessionsGet struct {
	Key        string `json:"key,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"` // alias of Key
	AgentID    string `json:"agentId,omitempty"`
	Limit      int    `json:"limit,omitempty"` // 0: 200
}

// SessionMessages is the result of sessions.get: the newest messages, in order.
type SessionMessages struct {
	Messages []Message `json:"messages"`
}
