package wire

// Session is a session as lists show it.
type Session struct {
	Key         string `json:"key"`
	Kind        string `json:"kind"` // direct, group, global, unknown
	AgentID     string `json:"agentId"`
	SessionID   string `json:"sessionId"`
	Label       string `json:"label,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Title       string `json:"derivedTitle,omitempty"`
	Preview     string `json:"lastMessagePreview,omitempty"`
	Channel     string `json:"channel,omitempty"`

	CreatedAt Millis `json:"createdAt,omitempty"`
	StartedAt Millis `json:"sessionStartedAt,omitempty"`
	UpdatedAt Millis `json:"updatedAt"`
	ActiveAt  Millis `json:"lastInteractionAt,omitempty"`

	Provider      string `json:"modelProvider,omitempty"`
	Model         string `json:"model,omitempty"`
	ContextWindow int64  `json:"contextTokens,omitempty"` // of the model
	Thinking      string `json:"thinkingLevel,omitempty"`
	Verbose       string `json:"verboseLevel,omitempty"`
	UsageLine     string `json:"responseUsage,omitempty"`
	QueueMode     string `json:"queueMode,omitempty"`

	InputTokens  int64    `json:"inputTokens"`
	OutputTokens int64    `json:"outputTokens"`
	CacheRead    int64    `json:"cacheRead,omitempty"`
	CacheWrite   int64    `json:"cacheWrite,omitempty"`
	TotalTokens  int64    `json:"totalTokens"` // size of the last prompt: what fills the context
	TotalFresh   bool     `json:"totalTokensFresh"`
	Cost         *float64 `json:"estimatedCostUsd,omitempty"` // nil: some call had no price

	Active  bool     `json:"hasActiveRun"`
	Runs    []string `json:"activeRunIds"`
	Status  string   `json:"status,omitempty"` // running, waiting
	Aborted bool     `json:"abortedLastRun"`
	Queued  int      `json:"queuedMessages,omitempty"`
}

// SessionModel names a model.
type SessionModel struct {
	Provider      string `json:"modelProvider,omitempty"`
	Model         string `json:"model,omitempty"`
	ContextWindow int64  `json:"contextTokens,omitempty"`
}

// SessionsList is the parameters of sessions.list.
type SessionsList struct {
	Limit          int    `json:"limit,omitempty"` // 0: 100
	Offset         int    `json:"offset,omitempty"`
	ActiveMinutes  int    `json:"activeMinutes,omitempty"` // updated in the last so many minutes
	AgentID        string `json:"agentId,omitempty"`
	Search         string `json:"search,omitempty"` // in key, label and title
	IncludePreview bool   `json:"includeLastMessage,omitempty"`
}

// SessionList is the result of sessions.list.
type SessionList struct {
	Time     Millis       `json:"ts"`
	Path     string       `json:"path"`
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

// SessionDescribed is the result of sessions.describe.
type SessionDescribed struct {
	Session *Session `json:"session"` // nil: there is none
}

// SessionsResolve is the parameters of sessions.resolve: one of the first
// three is set.
type SessionsResolve struct {
	Key       string `json:"key,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	Label     string `json:"label,omitempty"`
	AgentID   string `json:"agentId,omitempty"`
}

// SessionResolved is the result of sessions.resolve.
type SessionResolved struct {
	OK      bool   `json:"ok"`
	Key     string `json:"key"`
	AgentID string `json:"agentId"`
}

// SessionsCreate is the parameters of sessions.create.
type SessionsCreate struct {
	Key      string `json:"key,omitempty"` // "": a new one
	AgentID  string `json:"agentId,omitempty"`
	Label    string `json:"label,omitempty"`
	Model    string `json:"model,omitempty"`
	Thinking string `json:"thinkingLevel,omitempty"`
	Message  string `json:"message,omitempty"` // sent to it at once
	SendKey  string `json:"idempotencyKey,omitempty"`
}

// SessionEntry is a session as methods that change it return it.
type SessionEntry struct {
	SessionID string `json:"sessionId"`
	Label     string `json:"label,omitempty"`
	Model     string `json:"modelOverride,omitempty"`
	Thinking  string `json:"thinkingLevel,omitempty"`
	Verbose   string `json:"verboseLevel,omitempty"`
	UsageLine string `json:"responseUsage,omitempty"`
	QueueMode string `json:"queueMode,omitempty"`
	CreatedAt Millis `json:"createdAt,omitempty"`
	StartedAt Millis `json:"sessionStartedAt,omitempty"`
	UpdatedAt Millis `json:"updatedAt"`
}

// SessionCreated is the result of sessions.create.
type SessionCreated struct {
	OK         bool         `json:"ok"`
	Key        string       `json:"key"`
	SessionID  string       `json:"sessionId"`
	Entry      SessionEntry `json:"entry"`
	RunStarted bool         `json:"runStarted"`
	RunID      string       `json:"runId,omitempty"`
	Resolved   SessionModel `json:"resolved"`
}

// SessionsPatch is the parameters of sessions.patch. A property that is absent
// stays; null or "" sets it back to what is inherited.
type SessionsPatch struct {
	Key       string           `json:"key"`
	AgentID   string           `json:"agentId,omitempty"`
	Label     Optional[string] `json:"label,omitzero"`
	Model     Optional[string] `json:"model,omitzero"`
	Thinking  Optional[string] `json:"thinkingLevel,omitzero"`
	Verbose   Optional[string] `json:"verboseLevel,omitzero"`
	UsageLine Optional[string] `json:"responseUsage,omitzero"`
	QueueMode Optional[string] `json:"queueMode,omitzero"`
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
	Key     string `json:"key"`
	AgentID string `json:"agentId,omitempty"`
	Reason  string `json:"reason,omitempty"` // new, reset
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

// SessionsSend is the parameters of sessions.send.
type SessionsSend struct {
	Key            string       `json:"key"`
	Message        string       `json:"message"`
	IdempotencyKey string       `json:"idempotencyKey,omitempty"` // "": a new one
	AgentID        string       `json:"agentId,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// SessionsAbort is the parameters of sessions.abort; the result is that of
// chat.abort.
type SessionsAbort struct {
	Key     string `json:"key"`
	RunID   string `json:"runId,omitempty"`
	AgentID string `json:"agentId,omitempty"`
}

// Subscribed is the result of the subscribe methods.
type Subscribed struct {
	Subscribed bool   `json:"subscribed"`
	Key        string `json:"key,omitempty"`
}
