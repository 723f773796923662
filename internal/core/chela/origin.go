package chela

// OriginKind is the kind of an origin.
type OriginKind string

// The kinds of origins.
const (
	OriginPerson    OriginKind = "person"    // a message of a person
	OriginCron      OriginKind = "cron"      // a scheduled job
	OriginHeartbeat OriginKind = "heartbeat" // the periodic check of a session
	OriginSubagent  OriginKind = "subagent"  // the result of a run that this session started
	OriginHook      OriginKind = "hook"      // a hook of the configuration
	OriginWebhook   OriginKind = "webhook"   // an HTTP request from another program
	OriginProcess   OriginKind = "process"   // a command or a tool call that ended in the background
	OriginAgent     OriginKind = "agent"     // a message of another session's agent
	OriginSystem    OriginKind = "system"    // a text of Chela itself
)

// Origin is the source of a queue item, a run or a transcript entry. It is comparable.
type Origin struct {
	Kind    OriginKind `json:"kind,omitempty"`
	ID      string     `json:"id,omitempty"`     // of the person, job, session, hook, call or process
	Address Address    `json:"address,omitzero"` // address of the source; zero: the address of the item, or none

	// Exchange is the id of the exchange between sessions that a message of an agent belongs
	// to, and Turn its place there: see exchange.Step.
	Exchange string `json:"exchange,omitempty"`
	Turn     int    `json:"turn,omitempty"`
}
