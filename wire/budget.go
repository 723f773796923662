package wire

// Methods about budgets of money. They are Chela's own.
const (
	MethodBudgetStatus = "budget.status"
	MethodBudgetSet    = "budget.set"
)

// BudgetGet holds the parameters of budget.status.
type BudgetGet struct {
	AgentID string `json:"agentId,omitempty"` // "": the default agent
}

// BudgetSet holds the parameters of budget.set, which sets a budget until the day ends.
type BudgetSet struct {
	AgentID string  `json:"agentId,omitempty"` // "": the budget of all agents
	USD     float64 `json:"usd"`               // 0: the configured amount
}

// BudgetStatus is the result of budget.status and budget.set: what model calls may cost.
// Amounts are in US dollars.
type BudgetStatus struct {
	AgentID  string   `json:"agentId"`
	Day      string   `json:"day"` // YYYY-MM-DD
	ResetsAt Millis   `json:"resetsAt"`
	TimeZone string   `json:"timeZone"`
	Budgets  []Budget `json:"budgets"` // of the day; that of all agents first
	Task     float64  `json:"usdPerTask,omitempty"`
	Run      float64  `json:"usdPerRun,omitempty"`
}

// Scopes of a [Budget].
const (
	BudgetOfAll   = "all"
	BudgetOfAgent = "agent"
)

// Budget is what model calls may cost on a day.
type Budget struct {
	Scope      string  `json:"scope"`
	Limit      float64 `json:"limit"`
	Configured float64 `json:"configured"` // the limit, if no other one was set for the day
	Spent      float64 `json:"spent"`
	Held       float64 `json:"held"` // reserved for calls in progress, and for those that a crash interrupted
	Left       float64 `json:"left"`
}

// ReceiptGet holds the parameters of usage.receipt.
type ReceiptGet struct {
	RunID string `json:"runId"`
}

// UsageReceipt is the result of usage.receipt: what a task has used, which is a run with all
// runs that it caused.
type UsageReceipt struct {
	RunID  string       `json:"runId"` // that began the task
	Totals UsageSum     `json:"totals"`
	Models []ModelUsage `json:"models"` // most expensive first
	Runs   []RunUsage   `json:"runs"`   // in the order of their first model calls
}

// RunUsage is the usage of one run.
type RunUsage struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	Label      string `json:"label,omitempty"`
	UsageSum
}
