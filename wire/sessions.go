package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Session is a session as lists show it.
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
	Category    string `json:"category,omitempty"`
	Icon        string `json:"icon,omitempty"`
	Color       string `json:"color,omitempty"`
	Main        bool   `json:"isMain"`
	Background  bool   `json:"isBackground"`

	CreatedAt  Millis `json:"createdAt,omitempty"`
	SinceAt    Millis `json:"sessionStartedAt,omitempty"` // of the current transcript
	UpdatedAt  Millis `json:"updatedAt"`
	ActiveAt   Millis `json:"lastInteractionAt,omitempty"` // a person wrote
	AnsweredAt Millis `json:"lastActivityAt,omitempty"`    // a run ended
	Archived   bool   `json:"archived"`
	ArchivedAt Millis `json:"archivedAt,omitempty"`
	Pinned     bool   `json:"pinned"`
	PinnedAt   Millis `json:"pinnedAt,omitempty"`
	Unread     bool   `json:"unread"`
	ReadAt     Millis `json:"lastReadAt,omitempty"`
	UnreadAt   Millis `json:"markedUnreadAt,omitempty"`

	Provider      string   `json:"modelProvider,omitempty"`
	Model         string   `json:"model,omitempty"`
	Override      string   `json:"modelOverrideSource,omitempty"` // user: a person chose the model for this session
	ContextWindow int64    `json:"contextTokens,omitempty"`       // of the model
	Levels        []Level  `json:"thinkingLevels,omitempty"`
	Options       []string `json:"thinkingOptions,omitempty"`
	Default       string   `json:"thinkingDefault,omitempty"`
	Thinking      string   `json:"thinkingLevel,omitempty"`
	Verbose       string   `json:"verboseLevel,omitempty"`
	UsageLine     string   `json:"responseUsage,omitempty"`
	QueueMode     string   `json:"queueMode,omitempty"`

	InputTokens  int64    `json:"inputTokens"`
	OutputTokens int64    `json:"outputTokens"`
	CacheRead    int64    `json:"cacheRead,omitempty"`
	CacheWrite   int64    `json:"cacheWrite,omitempty"`
	TotalTokens  int64    `json:"totalTokens"` // size of the last prompt: what fills the context
	TotalFresh   bool     `json:"totalTokensFresh"`
	Cost         *float64 `json:"estimatedCostUsd,omitempty"` // nil: some call had no price

	Active    bool     `json:"hasActiveRun"`
	Runs      []string `json:"activeRunIds"`
	Status    string   `json:"status,omitempty"`    // running
	Waiting   bool     `json:"waiting,omitempty"`   // a call waits for a person's decision
	StartedAt Millis   `json:"startedAt,omitempty"` // of the run in progress
	Aborted   bool     `json:"abortedLastRun"`
	Queued    int      `json:"queuedMessages,omitempty"`
	Leaf      string   `json:"activeLeafEntryId,omitempty"` // the transcript's last entry; in chat.history
}

// SessionModel names a model and how it can think.
type SessionModel struct {
	Provider      string   `json:"modelProvider,omitempty"`
	Model         string   `json:"model,omitempty"`
	ContextWindow int64    `json:"contextTokens,omitempty"`
	Levels        []Level  `json:"thinkingLevels,omitempty"`
	Options       []string `json:"thinkingOptions,omitempty"` // labels of Levels
	Default       string   `json:"thinkingDefault,omitempty"`
}

// SessionsList is the parameters of sessions.list.
type SessionsList struct {
	Limit         int      `json:"limit,omitempty"` // 0: 100
	Offset        int      `json:"offset,omitempty"`
	AgentID       string   `json:"agentId,omitempty"`
	Search        string   `json:"search,omitempty"`                 // in key, label and title
	Label         string   `json:"label,omitempty"`                  // exactly
	Category      string   `json:"group,omitempty"`                  // exactly
	ActiveMinutes int      `json:"activeMinutes,omitempty"`          // updated in the last so many minutes
	ActiveOnly    bool     `json:"activeOnly,omitempty"`             // with a run in progress
	Spoken        bool     `json:"requireLastInteraction,omitempty"` // a person wrote to it
	SortBy        string   `json:"sortBy,omitempty"`                 // updatedAt, lastInteractionAt, activity
	Archived      Archived `json:"archived,omitzero"`
	Pinned        *bool    `json:"pinned,omitempty"`
	SpawnedBy     string   `json:"spawnedBy,omitempty"` // children of this session
	HasBoard      bool     `json:"hasBoard,omitempty"`  // with a board: none has
	BoardFace     string   `json:"boardFace,omitempty"` // shown as chat or dashboard: all as chat
	NoSubagents   bool     `json:"excludeSubagents,omitempty"`
	NoCron        bool     `json:"excludeCron,omitempty"`
	Preview       bool     `json:"includeLastMessage,omitempty"`
}

// SessionsSearch is the parameters of sessions.search.
type SessionsSearch struct {
	Query   string        `json:"query"`
	AgentID string        `json:"agentId,omitempty"`
	Keys    []string      `json:"sessionKeys,omitempty"` // only in these; nil: in those of Scope
	Limit   int           `json:"limit,omitempty"`       // 0: 10
	Scope   *SessionsList `json:"scope,omitempty"`       // nil: all that are not put away
}

// SessionHits is the result of sessions.search.
type SessionHits struct {
	Results   []SessionHit `json:"results"`             // best first
	Sessions  []Session    `json:"sessions,omitempty"`  // of the results, for who named a Scope
	Truncated bool         `json:"truncated,omitempty"` // there is more than was looked at, or told
}

// SessionHit is a message that was found.
type SessionHit struct {
	Key       string  `json:"sessionKey"`
	SessionID string  `json:"sessionId"`
	MessageID string  `json:"messageId"`
	Role      string  `json:"role"`
	Time      Millis  `json:"timestamp"`
	Snippet   string  `json:"snippet"`
	Score     float64 `json:"score"`
}

// Archived says which sessions are listed: true, false or "all". The zero value
// lists those that are not put away.
type Archived string

// The values of [Archived].
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

// UnmarshalJSON takes true, false or "all".
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
	Owners   []string     `json:"owners"` // none: sessions have no owners here
	Count    int          `json:"count"`
	Total    int          `json:"totalCount"`
	Limit    int          `json:"limitApplied"`
	Next     *int         `json:"nextOffset"`
	HasMore  bool         `json:"hasMore"`
	Defaults SessionModel `json:"defaults"`
	Sessions []Session    `json:"sessions"`
}

// SessionKey is the parameters of methods about one session.
type SessionKey struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
}

// SessionsDescribe is the parameters of sessions.describe.
type SessionsDescribe struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
	Preview bool   `json:"includeLastMessage,omitempty"`
}

// SessionDescribed is the result of sessions.describe.
type SessionDescribed struct {
	Session *Session `json:"session"` // nil: there is none
}

// SessionsResolve is the parameters of sessions.resolve: one of the first five
// is set.
type SessionsResolve struct {
	Key       string            `json:"key,omitempty"`
	SessionID string            `json:"sessionId,omitempty"`
	Label     string            `json:"label,omitempty"`
	ShortID   string            `json:"shortId,omitempty"` // first hexadecimal digits of the UUID that ends the key
	Reference *SessionReference `json:"reference,omitempty"`
	AgentID   string            `json:"agentId,omitempty"`
	Missing   bool              `json:"allowMissing,omitempty"` // answer that there is none instead of an error
}

// SessionReference is a session as an address in a browser names it: by its
// key, or by words of its label.
type SessionReference struct {
	Key  string `json:"key"`
	Slug string `json:"slug,omitempty"`
}

// SessionResolved is the result of sessions.resolve. When it is not OK, there
// is no such session, or there are the candidates.
type SessionResolved struct {
	OK         bool               `json:"ok"`
	Key        string             `json:"key,omitempty"`
	AgentID    string             `json:"agentId,omitempty"`
	Name       string             `json:"displayName,omitempty"`
	Candidates []SessionCandidate `json:"candidates,omitempty"`
}

// MaxCandidates bounds the candidates of a [SessionResolved].
const MaxCandidates = 10

// SessionCandidate is a session that may be meant.
type SessionCandidate struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId"`
	Name    string `json:"displayName,omitempty"`
}

// SessionsCreate is the parameters of sessions.create.
type SessionsCreate struct {
	Key         string       `json:"key,omitempty"` // "": a new one
	AgentID     string       `json:"agentId,omitempty"`
	Label       string       `json:"label,omitempty"`
	DisplayName string       `json:"displayName,omitempty"` // the label, when there is none
	Category    string       `json:"category,omitempty"`
	Model       string       `json:"model,omitempty"`
	Thinking    string       `json:"thinkingLevel,omitempty"`
	Parent      string       `json:"parentSessionKey,omitempty"` // whose settings it begins with
	Fork        bool         `json:"fork,omitempty"`             // and whose transcript
	Message     string       `json:"message,omitempty"`          // sent to it at once
	Task        string       `json:"task,omitempty"`             // the message, when there is none
	Attachments []Attachment `json:"attachments,omitempty"`      // of the message
	SendKey     string       `json:"idempotencyKey,omitempty"`
}

// SessionEntry is a session as methods that change it return it.
type SessionEntry struct {
	SessionID  string `json:"sessionId"`
	Label      string `json:"label,omitempty"`
	Category   string `json:"category,omitempty"`
	Icon       string `json:"icon,omitempty"`
	Color      string `json:"color,omitempty"`
	Model      string `json:"modelOverride,omitempty"`
	Thinking   string `json:"thinkingLevel,omitempty"`
	Verbose    string `json:"verboseLevel,omitempty"`
	UsageLine  string `json:"responseUsage,omitempty"`
	QueueMode  string `json:"queueMode,omitempty"`
	CreatedAt  Millis `json:"createdAt,omitempty"`
	SinceAt    Millis `json:"sessionStartedAt,omitempty"`
	UpdatedAt  Millis `json:"updatedAt"`
	ArchivedAt Millis `json:"archivedAt,omitempty"`
	PinnedAt   Millis `json:"pinnedAt,omitempty"`
	ReadAt     Millis `json:"lastReadAt,omitempty"`
	UnreadAt   Millis `json:"markedUnreadAt,omitempty"`
}

// SessionCreated is the result of sessions.create.
type SessionCreated struct {
	OK         bool         `json:"ok"`
	Key        string       `json:"key"`
	SessionID  string       `json:"sessionId"`
	Entry      SessionEntry `json:"entry"`
	RunStarted bool         `json:"runStarted"`
	RunID      string       `json:"runId,omitempty"`
	RunError   *Error       `json:"runError,omitempty"` // why the message was not taken
	Resolved   SessionModel `json:"resolved"`
}

// SessionsPatch is the parameters of sessions.patch. A property that is absent
// stays; null or "" sets it back to what is inherited.
type SessionsPatch struct {
	Key       string           `json:"key"`
	AgentID   string           `json:"agentId,omitempty"`
	SessionID string           `json:"expectedSessionId,omitempty"` // refused when it is another transcript
	Label     Optional[string] `json:"label,omitzero"`
	Category  Optional[string] `json:"category,omitzero"`
	Icon      Optional[string] `json:"icon,omitzero"`
	Color     Optional[string] `json:"color,omitzero"`
	Archived  Optional[bool]   `json:"archived,omitzero"`
	Pinned    Optional[bool]   `json:"pinned,omitzero"`
	Unread    Optional[bool]   `json:"unread,omitzero"`
	Model     Optional[string] `json:"model,omitzero"`
	Thinking  Optional[string] `json:"thinkingLevel,omitzero"`
	Verbose   Optional[string] `json:"verboseLevel,omitzero"`
	UsageLine Optional[string] `json:"responseUsage,omitzero"`
	QueueMode Optional[string] `json:"queueMode,omitzero"`

	// What sessions do not have here: a value that sets it is refused.
	Runtime    any `json:"agentRuntime,omitempty"`
	Fast       any `json:"fastMode,omitempty"`
	Permission any `json:"permissionMode,omitempty"`
}

// SessionsPatchMany is the parameters of sessions.patchMany.
type SessionsPatchMany struct {
	Targets []SessionTarget `json:"targets"`
	Patch   json.RawMessage `json:"patch"` // properties of SessionsPatch
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

// SessionOutcome says whether a session was changed.
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

// SessionsReset is the parameters of sessions.reset.
type SessionsReset struct {
	Key       string `json:"key"`
	AgentID   string `json:"agentId,omitempty"`
	Reason    string `json:"reason,omitempty"`            // new, reset
	SessionID string `json:"expectedSessionId,omitempty"` // refused when it is another transcript
}

// SessionsDelete is the parameters of sessions.delete.
type SessionsDelete struct {
	Key       string `json:"key"`
	AgentID   string `json:"agentId,omitempty"`
	SessionID string `json:"expectedSessionId,omitempty"` // refused when it is another transcript
	Archived  bool   `json:"archivedOnly,omitempty"`      // refused when it was not put away
}

// SessionCompacted is the result of sessions.compact.
type SessionCompacted struct {
	OK        bool   `json:"ok"`
	Key       string `json:"key"`
	Compacted bool   `json:"compacted"`
	Reason    string `json:"reason,omitempty"` // why it was not
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

// SessionsPreview is the parameters of sessions.preview.
type SessionsPreview struct {
	Keys     []string `json:"keys"`
	Limit    int      `json:"limit,omitempty"`    // items of each; 0: 12
	MaxChars int      `json:"maxChars,omitempty"` // of each item; 0: 240
}

// SessionPreviews is the result of sessions.preview.
type SessionPreviews struct {
	Time     Millis           `json:"ts"`
	Previews []SessionPreview `json:"previews"`
}

// SessionPreview is the end of a transcript, newest last.
type SessionPreview struct {
	Key    string        `json:"key"`
	Status string        `json:"status"` // ok, empty, missing
	Items  []PreviewItem `json:"items"`
}

// PreviewItem is a message of a preview.
type PreviewItem struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// SessionExported is the result of sessions.export.
type SessionExported struct {
	Key       string `json:"key"`
	SessionID string `json:"sessionId"`
	FileName  string `json:"fileName"`
	JSONL     string `json:"jsonl"`
}

// SessionsImport is the parameters of sessions.import.
type SessionsImport struct {
	JSONL   string `json:"jsonl"`
	Key     string `json:"key,omitempty"` // of the session that it becomes, which must not exist; "": a new one
	AgentID string `json:"agentId,omitempty"`
}

// SessionImported is the result of sessions.import.
type SessionImported struct {
	OK        bool   `json:"ok"`
	Key       string `json:"key"`
	SessionID string `json:"sessionId"`
	Entries   int    `json:"entries"`
	Skipped   int    `json:"skipped,omitempty"`  // lines that are damaged or of a kind that is not known
	Branched  int    `json:"branched,omitempty"` // entries of branches that were left
	Doubled   int    `json:"doubled,omitempty"`  // entries whose id came again; the last one counts
}

// SessionsSend is the parameters of sessions.send.
type SessionsSend struct {
	Key            string       `json:"key"`
	Message        string       `json:"message"`
	IdempotencyKey string       `json:"idempotencyKey,omitempty"` // "": a new one
	AgentID        string       `json:"agentId,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// SessionsAbort is the parameters of sessions.abort: Key or RunID is set. The
// result is that of chat.abort.
type SessionsAbort struct {
	Key     string `json:"key,omitempty"`
	RunID   string `json:"runId,omitempty"`
	AgentID string `json:"agentId,omitempty"`
}

// Subscribed is the result of the subscribe methods.
type Subscribed struct {
	Subscribed bool   `json:"subscribed"`
	Key        string `json:"key,omitempty"`
}

// SessionsGet is the parameters of sessions.get.
type SessionsGet struct {
	Key        string `json:"key,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"` // another name of key
	AgentID    string `json:"agentId,omitempty"`
	Limit      int    `json:"limit,omitempty"` // 0: 200
}

// SessionMessages is the result of sessions.get: the newest messages, in order.
type SessionMessages struct {
	Messages []Message `json:"messages"`
}
