package wire

// MethodLogsTail reads the gateway's log.
const MethodLogsTail = "logs.tail"

// LogsTail holds the parameters of logs.tail.
type LogsTail struct {
	Cursor   *int64 `json:"cursor,omitempty" min:"0"` // from the previous result; nil: the newest lines
	Limit    int    `json:"limit,omitempty" min:"1"`
	MaxBytes int    `json:"maxBytes,omitempty" min:"1"`
}

// LogTail is the result of logs.tail.
type LogTail struct {
	File      string   `json:"file"`
	Cursor    int64    `json:"cursor"` // for the next call
	Size      int64    `json:"size"`
	Lines     []string `json:"lines"`
	Truncated bool     `json:"truncated"` // lines were skipped
	Reset     bool     `json:"reset"`     // the file was rotated
}
