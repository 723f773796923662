package wire

// Methods for events from outside of sessions.
const (
	MethodSystemEvent = "system-event"
	MethodWake        = "wake"
	MethodSystemInfo  = "system.info" // the machine that the gateway runs on
	MethodLanes       = "diagnostics.lanes"
)

// Lanes is the result of diagnostics.lanes: the work that runs and waits now.
type Lanes struct {
	Time     Millis        `json:"ts"`
	Lanes    []Lane        `json:"lanes"`
	Sessions *SessionLanes `json:"dynamic"` // nil: no session works
}

// Lane is a queue of runs with a limit.
type Lane struct {
	Lane       string  `json:"lane"`
	Active     int     `json:"activeCount"`
	Queued     int     `json:"queuedCount"`
	Max        int     `json:"maxConcurrent"`
	Draining   bool    `json:"draining"`
	Generation int     `json:"generation"`
	Blocked    *string `json:"blockedBy"` // always nil: no lane waits for another one
}

// SessionLanes is the sum of the queues of single sessions, in each of which one run
// works at a time.
type SessionLanes struct {
	Lanes  int `json:"laneCount"`
	Active int `json:"activeCount"`
	Queued int `json:"queuedCount"`
	Behind int `json:"queuedLaneCount"`
}

// SystemEvent holds the parameters of system-event: a line of text for the
// session's next run.
type SystemEvent struct {
	Text       string `json:"text"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// Wake holds the parameters of wake: a line of text for the session, now or
// with its next run.
type Wake struct {
	Mode       string `json:"mode"` // WakeNow, WakeNext
	Text       string `json:"text"`
	SessionKey string `json:"sessionKey,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
}

// When a [Wake] is delivered.
const (
	WakeNow  = "now" // starts a run
	WakeNext = "next-heartbeat"
)

// SystemInfo is the result of system.info. Unknown properties are omitted.
type SystemInfo struct {
	Machine     string    `json:"machineName"`
	Hostname    string    `json:"hostname"`
	Platform    string    `json:"platform"`
	Release     string    `json:"release"`
	Arch        string    `json:"arch"`
	Label       string    `json:"osLabel"`
	Address     string    `json:"lanAddress,omitempty"`
	Port        int       `json:"port,omitempty"`
	Runtime     string    `json:"nodeVersion"` // the Go version of the gateway
	PID         int       `json:"pid"`
	Instance    string    `json:"processInstanceId,omitempty"`
	UptimeMs    int64     `json:"uptimeMs"`
	CPUs        int       `json:"cpuCount"`
	CPU         string    `json:"cpuModel,omitempty"`
	Load        []float64 `json:"loadAverage,omitempty"` // of 1, 5 and 15 minutes
	MemoryTotal int64     `json:"memoryTotalBytes"`
	MemoryFree  int64     `json:"memoryFreeBytes"`
	DiskTotal   int64     `json:"diskTotalBytes,omitempty"`
	DiskFree    int64     `json:"diskAvailableBytes,omitempty"`
	DiskPath    string    `json:"diskPath,omitempty"`
}
