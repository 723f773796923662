package wire

// The methods about the notes of agents. memory.list, memory.get, memory.index and
// memory.forget are not in OpenClaw.
const (
	MethodMemoryStatus = "doctor.memory.status"
	MethodMemorySearch = "memory.search"
	MethodMemoryList   = "memory.list"
	MethodMemoryGet    = "memory.get"
	MethodMemoryIndex  = "memory.index"
	MethodMemoryForget = "memory.forget"
)

// MemoryProbe holds the parameters of doctor.memory.status.
type MemoryProbe struct {
	AgentID string `json:"agentId,omitempty"` // "": the default agent
	Deep    bool   `json:"deep,omitempty"`    // send a request to the provider of embeddings
	Probe   bool   `json:"probe,omitempty"`   // the same
}

// MemoryAgent holds the parameters of memory.list.
type MemoryAgent struct {
	AgentID string `json:"agentId,omitempty"` // "": the default agent
}

// MemoryStatus is the result of doctor.memory.status and memory.index.
type MemoryStatus struct {
	AgentID   string          `json:"agentId"`
	Provider  string          `json:"provider"` // of embeddings; none: only words are searched
	Embedding MemoryEmbedding `json:"embedding"`
	Workspace string          `json:"workspaceDir"`
	// Indexing is set, and Index is not, while the index is compared with many files.
	Indexing *MemoryProgress `json:"indexing,omitempty"`
	Index    *MemoryIndexed  `json:"index,omitempty"`
}

// MemoryEmbedding is the state of the provider of embeddings.
type MemoryEmbedding struct {
	OK      bool   `json:"ok"`
	Checked bool   `json:"checked"`
	Error   string `json:"error,omitempty"`

	Model      string `json:"model,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"`
	Ready      int    `json:"ready,omitempty"`   // chunks with a vector
	Waiting    int    `json:"waiting,omitempty"` // chunks that have none yet
}

// MemoryProgress is how many of the changed notes are in the index.
type MemoryProgress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// MemoryIndexed is the state of an index.
type MemoryIndexed struct {
	Files   int             `json:"files"`
	Chunks  int             `json:"chunks"`
	Bytes   int64           `json:"bytes"` // of the notes
	Size    int64           `json:"sizeBytes"`
	Synced  Millis          `json:"syncedAt,omitempty"` // when it was last compared with the files
	Skipped []MemorySkipped `json:"skipped,omitempty"`
}

// MemorySkipped is a file that is not searched, and why.
type MemorySkipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// MemorySearch holds the parameters of memory.search.
type MemorySearch struct {
	AgentID    string  `json:"agentId,omitempty"` // "": the default agent
	Query      string  `json:"query"`
	MaxResults int     `json:"maxResults,omitempty"` // 0: that of the configuration
	MinScore   float64 `json:"minScore,omitempty"`   // 0: that of the configuration
}

// MemoryHits is the result of memory.search, the best hit first.
type MemoryHits struct {
	AgentID string      `json:"agentId"`
	Results []MemoryHit `json:"results"`
}

// MemoryHit is a part of a note.
type MemoryHit struct {
	Path      string  `json:"path"`
	First     int     `json:"startLine"`
	Last      int     `json:"endLine"`
	Score     float64 `json:"score"`
	Snippet   string  `json:"snippet"`
	Source    string  `json:"source"`
	Changed   Millis  `json:"changedAt,omitempty"` // when the note was last changed
	Untrusted bool    `json:"untrusted,omitempty"` // the note comes from elsewhere
}

// MemoryFiles is the result of memory.list.
type MemoryFiles struct {
	AgentID   string       `json:"agentId"`
	Workspace string       `json:"workspaceDir"`
	Files     []MemoryFile `json:"files"`
}

// MemoryFile is a note.
type MemoryFile struct {
	Path      string `json:"path"`
	Size      int64  `json:"size"`
	Changed   Millis `json:"changedAt"`
	Chunks    int    `json:"chunks"`
	Source    string `json:"source"`
	Untrusted bool   `json:"untrusted,omitempty"`
	Skipped   string `json:"skipped,omitempty"` // why it is not searched
}

// MemoryGet holds the parameters of memory.get.
type MemoryGet struct {
	AgentID string `json:"agentId,omitempty"`
	Path    string `json:"path"`
	From    int    `json:"from,omitempty"`  // first line; 0: 1
	Lines   int    `json:"lines,omitempty"` // 0: 120
}

// MemoryText is the result of memory.get.
type MemoryText struct {
	Path  string `json:"path"`
	Text  string `json:"text"`
	First int    `json:"startLine"`
	Last  int    `json:"endLine"`
	Total int    `json:"totalLines"`
}

// MemoryIndex holds the parameters of memory.index.
type MemoryIndex struct {
	AgentID string `json:"agentId,omitempty"`
	Force   bool   `json:"force,omitempty"` // make the index anew
}

// MemoryForget holds the parameters of memory.forget.
type MemoryForget struct {
	Topic string `json:"topic"`
	// Remove removes what is known about the topic; otherwise it is only listed.
	Remove bool `json:"remove,omitempty"`
}

// MemoryForgotten is the result of memory.forget.
type MemoryForgotten struct {
	Removed  bool            `json:"removed"` // the findings without Stays were removed
	Findings []MemoryFinding `json:"findings"`
	Text     string          `json:"text"` // the findings for people
}

// FindingUnsearched is the location of a note that could not be searched.
const FindingUnsearched = "not searched"

// MemoryFinding is a place where something is known about a topic.
type MemoryFinding struct {
	Location string `json:"location"`
	Name     string `json:"name,omitempty"` // of the file, session or job
	Count    int    `json:"count"`          // lines
	Sample   string `json:"sample,omitempty"`
	Stays    string `json:"stays,omitempty"` // why it is not removed
}
