package wire

// MethodLogsTail reads the gateway's log.
const MethodLogsTail = "logs.tail"

// LogsTail is the parameters of logs.tail.
type LogsTail struct {
	Cursor   *int64 `json:"cursor,omitempty"` // of the last result; nil: the newest lines
	Limit    int    `json:"limit,omitempty"`
	MaxBytes int    `json:"maxBytes,omitempty"`
}

// LogTail is the result of logs.tail.
type LogTail struct {
	File      string   `json:"file"`
	Cursor    int64    `json:"cursor"` // where the next call goes on
	Size      int64    `json:"size"`
	Lines     []string `json:"lines"`
	Truncated bool     `json:"truncated"` // lines were left out
	Reset     bool     `json:"reset"`     // the file was begun anew
}
