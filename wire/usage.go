package wire

// Methods about usage and cost.
const (
	MethodUsageCost       = "usage.cost"
	MethodUsageStatus     = "usage.status"
	MethodUsageReceipt    = "usage.receipt"
	MethodSessionsUsage   = "sessions.usage"
	MethodUsageTimeseries = "sessions.usage.timeseries"
	MethodUsageLogs       = "sessions.usage.logs"
)

// UsageCost holds the parameters of usage.cost.
type UsageCost struct {
	Days       int    `json:"days,omitempty"` // 0: 30; ignored if dates are given
	SessionKey string `json:"sessionKey,omitempty"`
	Start      string `json:"startDate,omitempty"` // YYYY-MM-DD
	End        string `json:"endDate,omitempty"`   // inclusive
	// time zone of the days: utc, gateway (the gateway's zone), specific (Offset)
	Mode   string `json:"mode,omitempty"`
	Offset string `json:"utcOffset,omitempty"` // UTC+2, UTC-3:30
}

// UsageReport is the result of usage.cost.
type UsageReport struct {
	UpdatedAt Millis       `json:"updatedAt"`
	Days      int          `json:"days"`
	Daily     []UsageDay   `json:"daily"` // one per day, oldest first
	Totals    UsageSum     `json:"totals"`
	Models    []ModelUsage `json:"models"` // most expensive first
}

// UsageSum is the total of several model calls.
type UsageSum struct {
	Calls      int64            `json:"calls"`
	Input      int64            `json:"input"`
	Output     int64            `json:"output"`
	CacheRead  int64            `json:"cacheRead"`
	CacheWrite int64            `json:"cacheWrite"`
	Total      int64            `json:"totalTokens"`
	Cost       float64          `json:"totalCost"`
	Missing    int64            `json:"missingCostEntries"`           // calls with unknown price
	Unpriced   map[string]int64 `json:"missingCostByModel,omitempty"` // totals only: calls by provider/model
}

// UsageDay is the usage of one day.
type UsageDay struct {
	Date string `json:"date"`
	UsageSum
}

// ModelUsage is the usage of one model.
type ModelUsage struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	UsageSum
}

// UsageStatus is the result of usage.status: the remaining quotas that
// providers report.
type UsageStatus struct {
	UpdatedAt Millis          `json:"updatedAt"`
	Providers []ProviderQuota `json:"providers"`
}

// ProviderQuota is the remaining quota of a provider.
type ProviderQuota struct {
	Provider string `json:"provider"`
	Name     string `json:"displayName"`
}

// SessionsUsageGet holds the parameters of sessions.usage.
type SessionsUsageGet struct {
	Key     string `json:"key,omitempty"` // "": all sessions
	AgentID string `json:"agentId,omitempty"`
	Range   string `json:"range,omitempty"`     // 7d, 30d, 90d, 1y, all; ignored if dates are given
	Limit   int    `json:"limit,omitempty"`     // of sessions; 0: 50
	Start   string `json:"startDate,omitempty"` // YYYY-MM-DD
	End     string `json:"endDate,omitempty"`   // inclusive
	// time zone of the days: utc, gateway (the gateway's zone), specific (Offset)
	Mode   string `json:"mode,omitempty"`
	Offset string `json:"utcOffset,omitempty"` // UTC+2, UTC-3:30
}

// SessionsUsage is the result of sessions.usage.
type SessionsUsage struct {
	UpdatedAt  Millis         `json:"updatedAt"`
	Start      string         `json:"startDate"`
	End        string         `json:"endDate"`
	Sessions   []SessionUsage `json:"sessions"` // most expensive first
	Totals     UsageSum       `json:"totals"`   // of all sessions, listed or not
	Aggregates UsageGroups    `json:"aggregates"`
}

// SessionUsage is the usage of one session.
type SessionUsage struct {
	Key       string      `json:"key"`
	Label     string      `json:"label,omitempty"`
	SessionID string      `json:"sessionId,omitempty"`
	Scope     string      `json:"scope"` // instance
	UpdatedAt Millis      `json:"updatedAt,omitempty"`
	AgentID   string      `json:"agentId"`
	Usage     UsageDetail `json:"usage"`
}

// UsageDetail is a total, broken down by day and model.
type UsageDetail struct {
	UsageSum
	Messages MessageCounts `json:"messageCounts"`

	Dates  []string     `json:"activityDates"`
	Daily  []UsagePoint `json:"dailyBreakdown"`
	Models []UsageGroup `json:"modelUsage"`
}

// UsagePoint is the usage of one day.
type UsagePoint struct {
	Date   string  `json:"date"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// UsageGroups is the totals grouped by several keys.
type UsageGroups struct {
	Sessions  int             `json:"sessionCount"`
	Messages  MessageCounts   `json:"messages"`
	Tools     ToolUsage       `json:"tools"`
	Models    []UsageGroup    `json:"byModel"`
	Providers []UsageGroup    `json:"byProvider"`
	Agents    []UsageAgent    `json:"byAgent"`
	Channels  []UsageChannel  `json:"byChannel"`
	CostDaily []UsageDay      `json:"costDaily"`    // days with usage, oldest first
	Latency   []None          `json:"dailyLatency"` // empty: not stored
	ModelDays []UsageModelDay `json:"modelDaily"`   // oldest day first
	Daily     []UsageActivity `json:"daily"`
}

// MessageCounts counts messages. An answer of a model is one message of the assistant; the
// others are those that began or joined runs, for as long as the gateway keeps them.
type MessageCounts struct {
	Total     int64 `json:"total"`
	User      int64 `json:"user"`
	Assistant int64 `json:"assistant"`
	Calls     int64 `json:"toolCalls"`
	Results   int64 `json:"toolResults"`
	Errors    int64 `json:"errors"` // failed tool calls
}

// ToolUsage counts the tool calls.
type ToolUsage struct {
	Calls int64       `json:"totalCalls"`
	Names int         `json:"uniqueTools"`
	Tools []ToolCount `json:"tools"` // most used first
}

// ToolCount counts the calls of a tool.
type ToolCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// UsageChannel is the total of the sessions whose last message came from a channel.
type UsageChannel struct {
	Channel string   `json:"channel"`
	Totals  UsageSum `json:"totals"`
}

// UsageModelDay is the usage of a model on a day.
type UsageModelDay struct {
	Date     string  `json:"date"`
	Provider string  `json:"provider"`
	Model    string  `json:"model"`
	Tokens   int64   `json:"tokens"`
	Cost     float64 `json:"cost"`
	Count    int64   `json:"count"`
}

// UsageActivity is the usage and the messages of one day.
type UsageActivity struct {
	UsagePoint
	Messages int64 `json:"messages"`
	Calls    int64 `json:"toolCalls"`
	Errors   int64 `json:"errors"`
}

// UsageGroup is the total of one model or provider.
type UsageGroup struct {
	Provider string   `json:"provider"`
	Model    string   `json:"model,omitempty"`
	Count    int64    `json:"count"`
	Totals   UsageSum `json:"totals"`
}

// UsageAgent is the total of one agent.
type UsageAgent struct {
	AgentID string   `json:"agentId"`
	Totals  UsageSum `json:"totals"`
}

// SessionUsageGet holds the parameters of sessions.usage.timeseries and
// sessions.usage.logs.
type SessionUsageGet struct {
	Key   string `json:"key"`
	Limit int    `json:"limit,omitempty"` // of the messages of logs; 0: 200
}

// UsageTimeseries is the result of sessions.usage.timeseries: the usage of a
// session over time.
type UsageTimeseries struct {
	SessionID string                 `json:"sessionId"`
	Points    []UsageTimeseriesPoint `json:"points"` // oldest first; at most 200, calls are merged if there are more
}

// UsageTimeseriesPoint is the usage since the previous step, and the cumulative
// usage.
type UsageTimeseriesPoint struct {
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

// UsageLogs is the result of sessions.usage.logs: messages and their cost.
type UsageLogs struct {
	Logs []UsageLog `json:"logs"` // oldest first
}

// UsageLog is one message.
type UsageLog struct {
	Time    Millis   `json:"timestamp"`
	Role    string   `json:"role"`
	Content string   `json:"content"` // as text; tools as "[Tool: name]", results below "[Tool Result]"
	Tokens  int64    `json:"tokens,omitempty"`
	Cost    *float64 `json:"cost,omitempty"` // nil: unknown price
}
