package wire

// MethodSystemInfo describes the machine that the gateway runs on.
const MethodSystemInfo = "system.info"

// SystemInfo is the result of system.info. What is not known of a machine is
// left out.
type SystemInfo struct {
	Machine     string    `json:"machineName"`
	Hostname    string    `json:"hostname"`
	Platform    string    `json:"platform"`
	Release     string    `json:"release"`
	Arch        string    `json:"arch"`
	Label       string    `json:"osLabel"`
	Address     string    `json:"lanAddress,omitempty"`
	Port        int       `json:"port,omitempty"`
	Runtime     string    `json:"nodeVersion"` // what the gateway was built with
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
