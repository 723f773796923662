package wire

// Methods for events from outside of sessions.
const (
	MethodSystemEvent = "system-event"
	MethodWake        = "wake"
	MethodSystemInfo  = "system.info" // the machine that the gateway runs on
)

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
