package wire

// The methods about what the assistant changed. None of them is in OpenClaw.
const (
	MethodWorkspaceLog     = "workspace.log"
	MethodWorkspaceDiff    = "workspace.diff"
	MethodWorkspaceRestore = "workspace.restore"
	MethodUndoPlan         = "undo.plan"
	MethodUndoApply        = "undo.apply"
	MethodMemoryWhy        = "memory.why"
)

// The values of [Change.Action].
const (
	ChangeCreated = "created"
	ChangeChanged = "changed"
	ChangeDeleted = "deleted"
	ChangeSeen    = "seen" // the file was found, and nothing was known about it before
)

// WorkspaceLog holds the parameters of workspace.log.
type WorkspaceLog struct {
	AgentID string `json:"agentId,omitempty"`       // "": the default agent
	Path    string `json:"path,omitempty"`          // a file or folder; "": the workspace
	All     bool   `json:"all,omitempty"`           // without a path: also settings, jobs and files elsewhere
	Since   string `json:"since,omitempty"`         // 14:00, 2h, 2026-11-24 or RFC 3339
	Limit   int    `json:"limit,omitempty" min:"1"` // at most 500; 0: 50
	Cursor  int64  `json:"cursor,omitempty"`        // WorkspaceChanges.Next of the page before
}

// WorkspaceChanges is the result of workspace.log, newest first.
type WorkspaceChanges struct {
	Changes []Change `json:"changes"`
	Next    int64    `json:"next,omitempty"` // cursor of the next page; 0: this is the last one
}

// Change is a change of a file, a setting or a job.
type Change struct {
	ID         string   `json:"id"`
	Time       Millis   `json:"ts"`
	Kind       string   `json:"kind"` // file, config, job
	Action     string   `json:"action"`
	Path       string   `json:"path"` // for people
	Target     string   `json:"target"`
	From       string   `json:"from,omitempty"` // the file that was moved here
	Added      int      `json:"added"`          // lines
	Removed    int      `json:"removed"`
	Binary     bool     `json:"binary,omitempty"` // it has no lines
	State      string   `json:"state"`
	AgentID    string   `json:"agentId,omitempty"`
	SessionKey string   `json:"sessionKey,omitempty"`
	RunID      string   `json:"runId,omitempty"`
	CallID     string   `json:"toolCallId,omitempty"`
	Tool       string   `json:"tool,omitempty"` // "": it was changed outside of tools
	By         string   `json:"by,omitempty"`
	Origin     string   `json:"origin,omitempty"` // of the run: person, cron, webhook, …
	OriginID   string   `json:"originId,omitempty"`
	Untrusted  string   `json:"untrusted,omitempty"` // why the content is not trusted
	Undoes     []string `json:"undoes,omitempty"`
	UndoneBy   string   `json:"undoneBy,omitempty"`
}

// WorkspaceDiff holds the parameters of workspace.diff: a change, or a file, whose newest
// change is meant.
type WorkspaceDiff struct {
	AgentID string `json:"agentId,omitempty"`
	Change  string `json:"change,omitempty"` // its id, or the beginning of it
	Path    string `json:"path,omitempty"`
}

// WorkspaceDifference is the result of workspace.diff.
type WorkspaceDifference struct {
	Change Change `json:"change"`
	Text   string `json:"text"` // in the unified format
}

// WorkspaceRestore holds the parameters of workspace.restore: a change, as which it left its
// file, or a file and a time.
type WorkspaceRestore struct {
	AgentID string `json:"agentId,omitempty"`
	Change  string `json:"change,omitempty"`
	Path    string `json:"path,omitempty"`
	Time    string `json:"time,omitempty"`
	Before  bool   `json:"before,omitempty"` // as the file was before the change
}

// WorkspaceRestored is the result of workspace.restore.
type WorkspaceRestored struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"` // false: the file is so already
	Deleted bool   `json:"deleted"` // the file did not exist then
}

// UndoPlan holds the parameters of undo.plan.
type UndoPlan struct {
	SessionKey string `json:"sessionKey,omitempty"` // "": all sessions
	Turns      int    `json:"turns,omitempty"`      // 0: the last one; with since: all
	Since      string `json:"since,omitempty"`
	Undo       bool   `json:"undo,omitempty"` // takes back the last undo
}

// UndoPlanned is the result of undo.plan.
type UndoPlanned struct {
	Hash     string     `json:"hash,omitempty"` // for undo.apply, within 10 minutes; "": there is nothing to do
	Text     string     `json:"text"`           // the plan for people
	Steps    []UndoStep `json:"steps"`
	NotDone  []string   `json:"notUndone"` // what cannot be undone, such as "2 commands"
	Possible int        `json:"possible"`  // number of the steps that are possible
}

// UndoStep takes back the changes of one target.
type UndoStep struct {
	Kind     string   `json:"kind"`
	Path     string   `json:"path"`
	Changes  []string `json:"changes"` // ids
	Refused  string   `json:"refused,omitempty"`
	Diff     string   `json:"diff,omitempty"`     // what the step changes
	Conflict string   `json:"conflict,omitempty"` // how the target was changed since
}

// UndoApply holds the parameters of undo.apply.
type UndoApply struct {
	Hash string `json:"hash"`
}

// UndoApplied is the result of undo.apply.
type UndoApplied struct {
	Text   string   `json:"text"`
	Undone []string `json:"undone"` // targets, for people
	Failed []string `json:"failed"`
}

// MemoryWhy holds the parameters of memory.why: a file with or without a line, or words.
type MemoryWhy struct {
	AgentID string `json:"agentId,omitempty"`
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"` // counted from 1; 0: the last lines
	Words   string `json:"words,omitempty"`
}

// MemorySources is the result of memory.why.
type MemorySources struct {
	Lines []MemorySource `json:"lines"`
}

// MemorySource is a line, and the change that introduced it.
type MemorySource struct {
	Path   string  `json:"path"`
	Line   int     `json:"line"`
	Text   string  `json:"text"`
	Change *Change `json:"change,omitempty"` // nil: the line is older than what is recorded
}
