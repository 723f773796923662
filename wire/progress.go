package wire

// Methods of the progress card of a session: its plan, as other clients know it.
const (
	MethodProgressGet     = "progressCard.get"
	MethodProgressPut     = "progressCard.put"
	MethodProgressRefresh = "progressCard.refresh"
)

// EventProgressChanged reports that the progress card of a session has changed.
const EventProgressChanged = "progressCard.changed"

// ProgressCard is the plan of a session. Its steps have only the states pending,
// in_progress and completed.
type ProgressCard struct {
	SessionKey string         `json:"sessionKey"`
	Revision   int64          `json:"revision"` // grows with each change
	UpdatedAt  Millis         `json:"updatedAt"`
	Steps      []ProgressStep `json:"steps"`
}

// ProgressStep is a step of a [ProgressCard].
type ProgressStep struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

// ProgressGet are the parameters of progressCard.get.
type ProgressGet struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
}

// ProgressFound is the result of progressCard.get and progressCard.put.
type ProgressFound struct {
	Card *ProgressCard `json:"card"` // nil: there is none
}

// ProgressPut are the parameters of progressCard.put.
type ProgressPut struct {
	SessionKey       string         `json:"sessionKey"`
	AgentID          string         `json:"agentId,omitempty"`
	Plan             []ProgressStep `json:"plan,omitempty"` // none: the plan is removed
	ExpectedRevision int64          `json:"expectedRevision,omitempty"`
}

// ProgressRefresh are the parameters of progressCard.refresh.
type ProgressRefresh struct {
	SessionKey     string `json:"sessionKey"`
	AgentID        string `json:"agentId,omitempty"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// ProgressRefreshed is the result of progressCard.refresh.
type ProgressRefreshed struct {
	RunID    string `json:"runId"`
	Status   string `json:"status"` // accepted
	Revision int64  `json:"revision"`
}

// ProgressChanged is the payload of progressCard.changed.
type ProgressChanged struct {
	SessionKey string `json:"sessionKey"`
	Revision   *int64 `json:"revision"` // nil: there is no card any more
}
