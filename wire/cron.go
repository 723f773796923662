package wire

import "encoding/json"

// Methods of scheduled jobs.
const (
	MethodCronList       = "cron.list"
	MethodCronGet        = "cron.get"
	MethodCronStatus     = "cron.status"
	MethodCronAdd        = "cron.add"
	MethodCronUpdate     = "cron.update"
	MethodCronRemove     = "cron.remove"
	MethodCronRun        = "cron.run"
	MethodCronRuns       = "cron.runs"
	MethodCronScratchGet = "cron.scratch.get"
	MethodCronScratchSet = "cron.scratch.set"
	MethodCronExport     = "cron.export" // not in OpenClaw
	MethodCronImport     = "cron.import" // not in OpenClaw
)

// EventCron reports a scheduled job that was changed or ran.
const EventCron = "cron"

// Codes in the details of an error about a job.
const (
	DetailNoJob      = "CRON_JOB_NOT_FOUND"
	DetailJobChanged = "CRON_JOB_CHANGED" // since it was read
)

// CronJob is a scheduled job. The parameters of cron.add are its fields from Name to
// FailureAlert.
type CronJob struct {
	ID             string          `json:"id,omitempty"`
	Name           string          `json:"name"`
	Description    string          `json:"description,omitempty"`
	DeclarationKey string          `json:"declarationKey,omitempty"` // of a program that adds the job again and again
	DisplayName    string          `json:"displayName,omitempty"`
	Enabled        bool            `json:"enabled"`
	DeleteAfterRun *bool           `json:"deleteAfterRun,omitempty"`
	AgentID        string          `json:"agentId,omitempty"`
	SessionKey     string          `json:"sessionKey,omitempty"` // of the session that asked for it
	Schedule       CronSchedule    `json:"schedule"`
	Trigger        *CronTrigger    `json:"trigger,omitempty"`
	SessionTarget  string          `json:"sessionTarget"` // main, isolated, current, session:NAME
	WakeMode       string          `json:"wakeMode"`      // now, next-heartbeat
	Payload        CronPayload     `json:"payload"`
	Delivery       *CronDelivery   `json:"delivery,omitempty"`
	FailureAlert   json.RawMessage `json:"failureAlert,omitempty"` // false, or a CronAlert; absent: as configured

	CreatedAt      Millis    `json:"createdAtMs"`
	UpdatedAt      Millis    `json:"updatedAtMs"`
	State          CronState `json:"state"`
	ConfigRevision string    `json:"configRevision,omitempty"` // for CronUpdate
	NextRunAt      *Millis   `json:"nextRunAtMs,omitempty"`
	LastRunAt      *Millis   `json:"lastRunAtMs,omitempty"`
	LastStatus     string    `json:"lastRunStatus,omitempty"`
	LastError      string    `json:"lastRunError,omitempty"`
	LastDelivery   string    `json:"lastDeliveryStatus,omitempty"`
	EffectiveAgent string    `json:"effectiveAgentId,omitempty"` // in lists
}

// CronSchedule is when a job is due.
type CronSchedule struct {
	Kind      string  `json:"kind"`         // at, every, cron
	At        string  `json:"at,omitempty"` // RFC 3339
	EveryMs   int64   `json:"everyMs,omitempty"`
	AnchorMs  Millis  `json:"anchorMs,omitempty"`
	Expr      string  `json:"expr,omitempty"`
	TZ        string  `json:"tz,omitempty"`
	StaggerMs *Millis `json:"staggerMs,omitempty"`
}

// CronTrigger is a check that decides whether a due job runs.
type CronTrigger struct {
	Script string `json:"script"` // "file PATH", "url URL" or "command LINE"
	Once   bool   `json:"once,omitempty"`
}

// CronPayload is what a job does.
type CronPayload struct {
	Kind           string   `json:"kind"` // systemEvent, agentTurn
	Text           string   `json:"text,omitempty"`
	Message        string   `json:"message,omitempty"`
	Model          string   `json:"model,omitempty"`
	Fallbacks      []string `json:"fallbacks,omitempty"`
	Thinking       string   `json:"thinking,omitempty"`
	TimeoutSeconds *float64 `json:"timeoutSeconds,omitempty"`
	LightContext   bool     `json:"lightContext,omitempty"`
	UnsafeExternal bool     `json:"allowUnsafeExternalContent,omitempty"`
	ToolsAllow     []string `json:"toolsAllow,omitempty"`
}

// CronDelivery is where the answer of a job goes.
type CronDelivery struct {
	Mode       string           `json:"mode"` // announce, webhook, none
	Channel    string           `json:"channel,omitempty"`
	To         string           `json:"to,omitempty"`
	ThreadID   string           `json:"threadId,omitempty"`
	AccountID  string           `json:"accountId,omitempty"`
	BestEffort bool             `json:"bestEffort,omitempty"`
	Failure    *CronDestination `json:"failureDestination,omitempty"`
	Completion *CronDestination `json:"completionDestination,omitempty"`
}

// CronDestination is where a notice about a job goes.
type CronDestination struct {
	Mode      string `json:"mode,omitempty"` // announce, webhook
	Channel   string `json:"channel,omitempty"`
	To        string `json:"to,omitempty"`
	AccountID string `json:"accountId,omitempty"`
}

// CronAlert says when somebody is told about failures.
type CronAlert struct {
	After          int     `json:"after,omitempty"`
	CooldownMs     *Millis `json:"cooldownMs,omitempty"`
	IncludeSkipped bool    `json:"includeSkipped,omitempty"`
	CronDestination
}

// CronState is what has happened to a job.
type CronState struct {
	NextRunAt         Millis        `json:"nextRunAtMs,omitempty"`
	ActivatedAt       Millis        `json:"scheduleActivatedAtMs,omitempty"`
	RunningAt         Millis        `json:"runningAtMs,omitempty"`
	LastRunAt         Millis        `json:"lastRunAtMs,omitempty"`
	LastRunStatus     string        `json:"lastRunStatus,omitempty"` // ok, error, skipped
	LastStatus        string        `json:"lastStatus,omitempty"`    // the same
	LastError         string        `json:"lastError,omitempty"`
	LastDurationMs    int64         `json:"lastDurationMs,omitempty"`
	ConsecutiveErrors int           `json:"consecutiveErrors,omitempty"`
	ConsecutiveSkips  int           `json:"consecutiveSkipped,omitempty"`
	ScheduleErrors    int           `json:"scheduleErrorCount,omitempty"`
	AutoDisabled      *CronDisabled `json:"autoDisabled,omitempty"`
	LastDelivered     *bool         `json:"lastDelivered,omitempty"`
	LastDelivery      string        `json:"lastDeliveryStatus,omitempty"`
	LastDeliveryError string        `json:"lastDeliveryError,omitempty"`
	LastAlertAt       Millis        `json:"lastFailureAlertAtMs,omitempty"`
	LastCheckAt       Millis        `json:"lastTriggerEvalAtMs,omitempty"`
	Checks            int64         `json:"triggerEvalCount,omitempty"`
	LastFiredAt       Millis        `json:"lastTriggerFireAtMs,omitempty"`
}

// CronDisabled is why a job was switched off by itself.
type CronDisabled struct {
	Reason            string `json:"reason"` // consecutive-failures, schedule-errors
	At                Millis `json:"atMs"`
	ConsecutiveErrors int    `json:"consecutiveErrors"`
}

// CronList holds the parameters of cron.list.
type CronList struct {
	SessionKey      string `json:"sessionKey,omitempty"`
	SessionAgentID  string `json:"sessionAgentId,omitempty"`
	IncludeDisabled bool   `json:"includeDisabled,omitempty"`
	Limit           int    `json:"limit,omitempty"` // at most 200; 0: 50
	Offset          int    `json:"offset,omitempty"`
	Query           string `json:"query,omitempty"`
	Enabled         string `json:"enabled,omitempty"`       // all, enabled, disabled
	ScheduleKind    string `json:"scheduleKind,omitempty"`  // all, at, every, cron
	LastRunStatus   string `json:"lastRunStatus,omitempty"` // all, ok, error, skipped, unknown
	Trigger         string `json:"trigger,omitempty"`       // all, conditional, unconditional
	SortBy          string `json:"sortBy,omitempty"`        // nextRunAtMs, updatedAtMs, name
	SortDir         string `json:"sortDir,omitempty"`       // asc, desc
	AgentID         string `json:"agentId,omitempty"`
	Compact         bool   `json:"compact,omitempty"` // the jobs are CronSummary
	Previews        *bool  `json:"includeDeliveryPreviews,omitempty"`
}

// CronPage is the result of cron.list.
type CronPage struct {
	Jobs     []CronJob              `json:"jobs"`
	Snapshot string                 `json:"snapshotRevision"` // changes with the list or its order
	Total    int                    `json:"total"`
	Offset   int                    `json:"offset"`
	Limit    int                    `json:"limit"`
	HasMore  bool                   `json:"hasMore"`
	Next     *int                   `json:"nextOffset"`
	Previews map[string]CronPreview `json:"deliveryPreviews,omitempty"` // by id
}

// CronCompactPage is the result of cron.list with compact.
type CronCompactPage struct {
	Jobs     []CronSummary `json:"jobs"`
	Snapshot string        `json:"snapshotRevision"`
	Total    int           `json:"total"`
	Offset   int           `json:"offset"`
	Limit    int           `json:"limit"`
	HasMore  bool          `json:"hasMore"`
	Next     *int          `json:"nextOffset"`
}

// CronSummary is a job in a compact list.
type CronSummary struct {
	ID             string        `json:"id"`
	Name           string        `json:"name"`
	AgentID        string        `json:"agentId,omitempty"`
	UpdatedAt      Millis        `json:"updatedAtMs"`
	DeclarationKey string        `json:"declarationKey,omitempty"`
	DisplayName    string        `json:"displayName,omitempty"`
	Enabled        bool          `json:"enabled"`
	NextRunAt      *Millis       `json:"nextRunAtMs"`
	ScheduleKind   string        `json:"scheduleKind"`
	Schedule       CronSchedule  `json:"schedule"`
	Trigger        bool          `json:"trigger,omitempty"`
	LastRunAt      *Millis       `json:"lastRunAtMs"`
	LastStatus     *string       `json:"lastRunStatus"`
	LastError      *string       `json:"lastRunError"`
	RunningAt      Millis        `json:"runningAtMs,omitempty"`
	AutoDisabled   *CronDisabled `json:"autoDisabled,omitempty"`
	LastDelivery   string        `json:"lastDeliveryStatus,omitempty"`
	EffectiveAgent string        `json:"effectiveAgentId"`
}

// CronPreview describes where the answer of a job would go.
type CronPreview struct {
	Label  string `json:"label"`
	Detail string `json:"detail"`
}

// CronID holds the parameters of methods about one job. One of the two is set.
type CronID struct {
	ID    string `json:"id,omitempty"`
	JobID string `json:"jobId,omitempty"`
}

// CronStatus is the result of cron.status.
type CronStatus struct {
	Enabled    bool    `json:"enabled"`
	Triggers   bool    `json:"triggersEnabled"`
	StorePath  string  `json:"storePath"`
	Storage    string  `json:"storage"`    // sqlite
	SQLitePath string  `json:"sqlitePath"` // the same as StorePath
	Jobs       int     `json:"jobs"`
	NextWakeAt *Millis `json:"nextWakeAtMs"`
	Running    int     `json:"running"` // not in OpenClaw
}

// CronAdded is the result of cron.add for a job without a declaration key.
type CronAdded struct {
	CronJob
	Preview CronPreview `json:"deliveryPreview"`
}

// CronDeclared is the result of cron.add for a job with a declaration key.
type CronDeclared struct {
	Created bool        `json:"created"`
	Updated bool        `json:"updated"`
	Job     CronJob     `json:"job"`
	Preview CronPreview `json:"deliveryPreview"`
}

// CronUpdate holds the parameters of cron.update.
type CronUpdate struct {
	ID       string          `json:"id,omitempty"`
	JobID    string          `json:"jobId,omitempty"`
	Patch    json.RawMessage `json:"patch"`                            // fields of a CronJob; null resets one
	Revision string          `json:"expectedConfigRevision,omitempty"` // "": any
}

// CronRemoved is the result of cron.remove.
type CronRemoved struct {
	OK      bool `json:"ok"`
	Removed bool `json:"removed"`
}

// CronRun holds the parameters of cron.run.
type CronRun struct {
	ID       string `json:"id,omitempty"`
	JobID    string `json:"jobId,omitempty"`
	Mode     string `json:"mode,omitempty"` // force (default), due, if-enabled
	Instance string `json:"expectedProcessInstanceId,omitempty"`
}

// CronStarted is the result of cron.run.
type CronStarted struct {
	OK       bool   `json:"ok"`
	Enqueued bool   `json:"enqueued,omitempty"`
	Ran      *bool  `json:"ran,omitempty"`    // false: it was not started
	Reason   string `json:"reason,omitempty"` // why not: not-due, disabled, already-running
	RunID    string `json:"runId,omitempty"`
	Instance string `json:"processInstanceId,omitempty"`
}

// CronRuns holds the parameters of cron.runs.
type CronRuns struct {
	AgentID          string   `json:"agentId,omitempty"`
	Scope            string   `json:"scope,omitempty"` // job, all
	ID               string   `json:"id,omitempty"`
	JobID            string   `json:"jobId,omitempty"`
	RunID            string   `json:"runId,omitempty"`
	Limit            int      `json:"limit,omitempty"` // at most 200; 0: 50
	Offset           int      `json:"offset,omitempty"`
	Statuses         []string `json:"statuses,omitempty"`
	Status           string   `json:"status,omitempty"` // all, ok, error, skipped
	DeliveryStatuses []string `json:"deliveryStatuses,omitempty"`
	DeliveryStatus   string   `json:"deliveryStatus,omitempty"`
	Query            string   `json:"query,omitempty"`
	SortDir          string   `json:"sortDir,omitempty"` // desc (default), asc
}

// CronRunsPage is the result of cron.runs.
type CronRunsPage struct {
	Entries []CronEntry `json:"entries"`
	Total   int         `json:"total"`
	Offset  int         `json:"offset"`
	Limit   int         `json:"limit"`
	HasMore bool        `json:"hasMore"`
	Next    *int        `json:"nextOffset"`
}

// CronEntry is a run of a job.
type CronEntry struct {
	Time          Millis     `json:"ts"`
	JobID         string     `json:"jobId"`
	Action        string     `json:"action"` // finished
	Status        string     `json:"status,omitempty"`
	Completion    string     `json:"completionStatus,omitempty"` // succeeded, failed, unknown
	Error         string     `json:"error,omitempty"`
	Summary       string     `json:"summary,omitempty"`
	Delivered     *bool      `json:"delivered,omitempty"`
	Delivery      string     `json:"deliveryStatus,omitempty"`
	DeliveryError string     `json:"deliveryError,omitempty"`
	SessionID     string     `json:"sessionId,omitempty"`
	SessionKey    string     `json:"sessionKey,omitempty"`
	RunID         string     `json:"runId,omitempty"`
	RunAt         Millis     `json:"runAtMs,omitempty"`
	DurationMs    int64      `json:"durationMs"`
	NextRunAt     Millis     `json:"nextRunAtMs,omitempty"`
	Fired         bool       `json:"triggerFired,omitempty"`
	Model         string     `json:"model,omitempty"`
	Provider      string     `json:"provider,omitempty"`
	Usage         *CronUsage `json:"usage,omitempty"`
	JobName       string     `json:"jobName,omitempty"`
}

// CronUsage is what a run has cost in tokens.
type CronUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	Total      int64 `json:"total_tokens"`
	CacheRead  int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
}

// CronScratchResult is the result of cron.scratch.get.
type CronScratchResult struct {
	Scratch  *CronScratch `json:"scratch"` // null: there is none
	Revision int64        `json:"currentRevision"`
	MaxBytes int          `json:"maxBytes"`
}

// CronScratch is a text that clients keep with a job.
type CronScratch struct {
	Content   string `json:"content"`
	Revision  int64  `json:"revision"`
	UpdatedAt Millis `json:"updatedAtMs"`
}

// CronScratchSet holds the parameters of cron.scratch.set.
type CronScratchSet struct {
	ID       string  `json:"id,omitempty"`
	JobID    string  `json:"jobId,omitempty"`
	Content  *string `json:"content"` // null removes it
	Revision *int64  `json:"expectedRevision,omitempty"`
}

// CronScratchWritten is the result of cron.scratch.set.
type CronScratchWritten struct {
	OK       bool   `json:"ok"`
	Reason   string `json:"reason,omitempty"` // revision-conflict
	Revision int64  `json:"currentRevision"`

	*CronScratchResult // if OK
}

// CronExported is the result of cron.export: a file of version 1.
type CronExported struct {
	File json.RawMessage `json:"file"`
}

// CronImport holds the parameters of cron.import.
type CronImport struct {
	File json.RawMessage `json:"file"`             // of version 1
	Skip bool            `json:"skip,omitempty"`   // import the others if some jobs cannot be used
	Name string          `json:"source,omitempty"` // of the file
}

// CronImported is the result of cron.import.
type CronImported struct {
	Added    int      `json:"added"`
	Changed  int      `json:"changed"`
	Rejected []string `json:"rejected"` // why jobs cannot be used
}

// CronEvent is the payload of cron.
type CronEvent struct {
	Action string   `json:"action"` // added, updated, removed, started, finished, imported
	JobID  string   `json:"jobId,omitempty"`
	Job    *CronJob `json:"job,omitempty"`

	// Of started and finished.
	RunID         string     `json:"runId,omitempty"`
	RunAt         Millis     `json:"runAtMs,omitempty"`
	DurationMs    int64      `json:"durationMs,omitempty"`
	Status        string     `json:"status,omitempty"`
	Error         string     `json:"error,omitempty"`
	Summary       string     `json:"summary,omitempty"`
	Delivered     *bool      `json:"delivered,omitempty"`
	Delivery      string     `json:"deliveryStatus,omitempty"`
	DeliveryError string     `json:"deliveryError,omitempty"`
	SessionID     string     `json:"sessionId,omitempty"`
	SessionKey    string     `json:"sessionKey,omitempty"`
	NextRunAt     Millis     `json:"nextRunAtMs,omitempty"`
	Model         string     `json:"model,omitempty"`
	Provider      string     `json:"provider,omitempty"`
	Usage         *CronUsage `json:"usage,omitempty"`
}
