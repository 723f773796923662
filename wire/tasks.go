package wire

import "encoding/json"

// Methods of tasks.
const (
	MethodTasksList    = "tasks.list"
	MethodTasksGet     = "tasks.get"
	MethodTasksCancel  = "tasks.cancel"
	MethodTasksRetry   = "tasks.retry"
	MethodTasksDismiss = "tasks.dismiss"
	MethodTasksHistory = "tasks.history"
)

// EventTask reports a task that was created or changed.
const EventTask = "task"

// States of a [Task]. The last four are final.
const (
	TaskQueued    = "queued"
	TaskRunning   = "running"
	TaskCompleted = "completed"
	TaskFailed    = "failed"
	TaskCancelled = "cancelled"
	TaskTimedOut  = "timed_out"
)

// What became of the result of a [Task].
const (
	DeliveryPending       = "pending"
	DeliveryDelivered     = "delivered"
	DeliveryQueued        = "session_queued" // it waits for the session that gets it
	DeliveryFailed        = "failed"         // blocked: tasks.retry sends it again
	DeliveryDismissed     = "dismissed"
	DeliveryNotApplicable = "not_applicable"
)

// Task is work in the background, or an answer that could not be delivered.
type Task struct {
	ID              string        `json:"id"`
	TaskID          string        `json:"taskId"`  // the same
	Kind            string        `json:"kind"`    // subagent, command, cli, turn
	Runtime         string        `json:"runtime"` // subagent, cli
	Status          string        `json:"status"`
	Execution       TaskExecution `json:"execution"`
	Title           string        `json:"title"`
	AgentID         string        `json:"agentId"`
	SessionKey      string        `json:"sessionKey"` // that gets the result
	ChildSessionKey string        `json:"childSessionKey,omitempty"`
	HasTranscript   bool          `json:"hasTranscript"`
	OwnerKey        string        `json:"ownerKey"`
	RunID           string        `json:"runId,omitempty"`
	SourceID        string        `json:"sourceId,omitempty"`
	ParentTaskID    string        `json:"parentTaskId,omitempty"`
	CreatedAt       Millis        `json:"createdAt"`
	UpdatedAt       Millis        `json:"updatedAt"`
	StartedAt       Millis        `json:"startedAt,omitempty"`
	EndedAt         Millis        `json:"endedAt,omitempty"`
	Summary         string        `json:"terminalSummary,omitempty"`
	Error           string        `json:"error,omitempty"`
	Delivery        string        `json:"deliveryStatus"`
	Outcome         string        `json:"terminalOutcome,omitempty"` // succeeded, blocked
	Result          string        `json:"result,omitempty"`          // in tasks.get
	Prompt          string        `json:"prompt,omitempty"`          // in tasks.get
}

// TaskExecution is the state of the work, without its outcome.
type TaskExecution struct {
	State string `json:"state"` // unknown, running, finished
}

// Strings is a list of strings. It is also accepted as a single string.
type Strings []string

// UnmarshalJSON accepts both forms.
func (s *Strings) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*s = Strings{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(s))
}

// TasksList holds the parameters of tasks.list.
type TasksList struct {
	Status     Strings `json:"status,omitempty"` // one or several states
	AgentID    string  `json:"agentId,omitempty"`
	SessionKey string  `json:"sessionKey,omitempty"`
	Limit      int     `json:"limit,omitempty"` // 0: 100
	Cursor     string  `json:"cursor,omitempty"`
	SortBy     string  `json:"sortBy,omitempty"`       // updatedAt, endedAt
	Turns      bool    `json:"includeTurns,omitempty"` // not in OpenClaw: with turns that are in progress or wait
}

// TasksPage is the result of tasks.list, newest first.
type TasksPage struct {
	Tasks []Task `json:"tasks"`
	Next  string `json:"nextCursor,omitempty"`
}

// TaskGet holds the parameters of tasks.get.
type TaskGet struct {
	ID string `json:"taskId"`
}

// TaskFound is the result of tasks.get.
type TaskFound struct {
	Task Task `json:"task"`
}

// TaskCancel holds the parameters of tasks.cancel.
type TaskCancel struct {
	ID     string `json:"taskId"`
	Reason string `json:"reason,omitempty"`
}

// TaskStopped is the result of tasks.cancel.
type TaskStopped struct {
	Found     bool   `json:"found"`
	Cancelled bool   `json:"cancelled"`
	Reason    string `json:"reason,omitempty"` // why not
	Task      *Task  `json:"task,omitempty"`
}

// TaskIDs holds the parameters of tasks.retry and tasks.dismiss: 1 to 10 ids.
type TaskIDs struct {
	IDs []string `json:"taskIds"`
}

// TasksRecovered is the result of tasks.retry and tasks.dismiss, in the order of the ids.
type TasksRecovered struct {
	Results []TaskRecovered `json:"results"`
}

// TaskRecovered is the result for one task.
type TaskRecovered struct {
	ID            string `json:"taskId"`
	OK            bool   `json:"ok"`
	Reason        string `json:"reason,omitempty"`        // why not
	DuplicateRisk bool   `json:"duplicateRisk,omitempty"` // the answer may have arrived before
	Task          *Task  `json:"task,omitempty"`
}

// TaskHistory holds the parameters of tasks.history.
type TaskHistory struct {
	ID     string `json:"taskId"`
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty" min:"1"` // 0: 100
}

// TaskMessages is the result of tasks.history: the transcript of a task, oldest first.
type TaskMessages struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"nextCursor,omitempty"` // of older messages
}

// TaskChanged is the payload of task.
type TaskChanged struct {
	Action string `json:"action"` // upserted
	Task   Task   `json:"task"`
}
