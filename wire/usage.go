package wire

// The methods about what was spent.
const (
	MethodUsageCost     = "usage.cost"
	MethodUsageStatus   = "usage.status"
	MethodSessionsUsage = "sessions.usage"
	MethodUsageCourse   = "sessions.usage.timeseries"
	MethodUsageLogs     = "sessions.usage.logs"
)

// UsageCost is the parameters of usage.cost.
type UsageCost struct {
	Days       int    `json:"days,omitempty"` // 0: 30; not looked at when dates are given
	SessionKey string `json:"sessionKey,omitempty"`
	Start      string `json:"startDate,omitempty"` // YYYY-MM-DD
	End        string `json:"endDate,omitempty"`   // the last day that counts
	Mode       string `json:"mode,omitempty"`      // when a day begins: utc, gateway: as where the gateway is, specific: as in Offset
	Offset     string `json:"utcOffset,omitempty"` // UTC+2, UTC-3:30
}

// UsageReport is the result of usage.cost.
type UsageReport struct {
	UpdatedAt Millis     `json:"updatedAt"`
	Days      int        `json:"days"`
	Daily     []UsageDay `json:"daily"` // one per day, oldest first
	Totals    UsageSum   `json:"totals"`
	Models    []UsageOf  `json:"models"` // costliest first
}

// UsageSum is what several calls spent together.
type UsageSum struct {
	Calls      int64            `json:"calls"`
	Input      int64            `json:"input"`
	Output     int64            `json:"output"`
	CacheRead  int64            `json:"cacheRead"`
	CacheWrite int64            `json:"cacheWrite"`
	Total      int64            `json:"totalTokens"`
	Cost       float64          `json:"totalCost"`
	Missing    int64            `json:"missingCostEntries"`           // calls without a price
	Unpriced   map[string]int64 `json:"missingCostByModel,omitempty"` // of totals: by provider/model
}

// UsageDay is one day.
type UsageDay struct {
	Date string `json:"date"`
	UsageSum
}

// UsageOf is one model.
type UsageOf struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	UsageSum
}

// UsageStatus is the result of usage.status: what providers say is left of
// their quotas.
type UsageStatus struct {
	UpdatedAt Millis          `json:"updatedAt"`
	Providers []ProviderQuota `json:"providers"`
}

// ProviderQuota is what a provider says is left.
type ProviderQuota struct {
	Provider string `json:"provider"`
	Name     string `json:"displayName"`
}

// SessionsUsageGet is the parameters of sessions.usage.
type SessionsUsageGet struct {
	Key     string `json:"key,omitempty"` // "": all sessions
	AgentID string `json:"agentId,omitempty"`
	Range   string `json:"range,omitempty"`     // 7d, 30d, 90d, 1y, all; not looked at when dates are given
	Limit   int    `json:"limit,omitempty"`     // of sessions; 0: 50
	Start   string `json:"startDate,omitempty"` // YYYY-MM-DD
	End     string `json:"endDate,omitempty"`   // the last day that counts
	Mode    string `json:"mode,omitempty"`      // when a day begins: utc, gateway: as where the gateway is, specific: as in Offset
	Offset  string `json:"utcOffset,omitempty"` // UTC+2, UTC-3:30
}

// SessionsUsage is the result of sessions.usage.
type SessionsUsage struct {
	UpdatedAt  Millis         `json:"updatedAt"`
	Start      string         `json:"startDate"`
	End        string         `json:"endDate"`
	Sessions   []SessionUsage `json:"sessions"` // costliest first
	Totals     UsageSum       `json:"totals"`   // of all sessions, also those that are not listed
	Aggregates UsageGroups    `json:"aggregates"`
}

// SessionUsage is what a session spent.
type SessionUsage struct {
	Key       string      `json:"key"`
	Label     string      `json:"label,omitempty"`
	SessionID string      `json:"sessionId,omitempty"`
	Scope     string      `json:"scope"` // instance
	UpdatedAt Millis      `json:"updatedAt,omitempty"`
	AgentID   string      `json:"agentId"`
	Usage     UsageDetail `json:"usage"`
}

// UsageDetail is a sum with its days and models.
type UsageDetail struct {
	UsageSum
	Dates  []string     `json:"activityDates"`
	Daily  []UsagePoint `json:"dailyBreakdown"`
	Models []UsageGroup `json:"modelUsage"`
}

// UsagePoint is what was spent on a day.
type UsagePoint struct {
	Date   string  `json:"date"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// UsageGroups is the same sums, grouped.
type UsageGroups struct {
	Sessions  int          `json:"sessionCount"`
	Models    []UsageGroup `json:"byModel"`
	Providers []UsageGroup `json:"byProvider"`
	Agents    []UsageAgent `json:"byAgent"`
	Daily     []UsagePoint `json:"daily"`
}

// UsageGroup is what a model, or a provider, was paid.
type UsageGroup struct {
	Provider string   `json:"provider"`
	Model    string   `json:"model,omitempty"`
	Count    int64    `json:"count"`
	Totals   UsageSum `json:"totals"`
}

// UsageAgent is what an agent spent.
type UsageAgent struct {
	AgentID string   `json:"agentId"`
	Totals  UsageSum `json:"totals"`
}

// SessionUsageOf is the parameters of sessions.usage.timeseries and
// sessions.usage.logs.
type SessionUsageOf struct {
	Key   string `json:"key"`
	Limit int    `json:"limit,omitempty"` // of the messages of logs; 0: 200
}

// UsageCourse is the result of sessions.usage.timeseries: what the session spent
// in the course of its conversation.
type UsageCourse struct {
	SessionID string      `json:"sessionId"`
	Points    []UsageStep `json:"points"` // oldest first; at most 200, several calls in one when there were more
}

// UsageStep is what was spent up to a time, and since the step before.
type UsageStep struct {
	Time       Millis  `json:"timestamp"`
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Total      int64   `json:"totalTokens"`
	Cost       float64 `json:"cost"`
	Tokens     int64   `json:"cumulativeTokens"`
	Spent      float64 `json:"cumulativeCost"`
}

// UsageLogs is the result of sessions.usage.logs: what was said, with what it
// cost.
type UsageLogs struct {
	Logs []UsageLog `json:"logs"` // oldest first
}

// UsageLog is one message.
type UsageLog struct {
	Time    Millis   `json:"timestamp"`
	Role    string   `json:"role"`
	Content string   `json:"content"` // as text; tools as "[Tool: name]", results below "[Tool Result]"
	Tokens  int64    `json:"tokens,omitempty"`
	Cost    *float64 `json:"cost,omitempty"` // nil: no price is known
}
