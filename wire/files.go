package wire

// The methods that show the files of a conversation: those that its tools read
// and changed, and the workspace around them.
const (
	MethodFilesList = "sessions.files.list"
	MethodFilesGet  = "sessions.files.get"
	MethodFilesSet  = "sessions.files.set"
)

// What a conversation did with a file, or with what is in a folder.
const (
	FileRead     = "read"
	FileModified = "modified"
	FileMixed    = "mixed" // a folder: some were read, some changed
)

// How the content of a file can be shown.
const (
	PreviewText        = "text"
	PreviewImage       = "image"
	PreviewUnsupported = "unsupported" // not at all
)

// FilesList is the parameters of sessions.files.list.
type FilesList struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Path       string `json:"path,omitempty"`   // of a folder, below the workspace
	Search     string `json:"search,omitempty"` // part of a path: all folders are looked at
}

// Files is the result of sessions.files.list.
type Files struct {
	SessionKey string       `json:"sessionKey"`
	Root       string       `json:"root,omitempty"` // the workspace; "": there is no such session
	Files      []File       `json:"files"`          // those that were changed first
	Browser    *FileBrowser `json:"browser,omitempty"`
}

// File is a file of a conversation.
type File struct {
	Path      string  `json:"path"`                    // as the tool was told
	Workspace string  `json:"workspacePath,omitempty"` // below the workspace
	Name      string  `json:"name"`
	Kind      string  `json:"kind"`    // read, modified
	Missing   bool    `json:"missing"` // it is there no longer
	Size      int64   `json:"size,omitempty"`
	UpdatedAt Millis  `json:"updatedAtMs,omitempty"`
	Content   *string `json:"content,omitempty"`
	Hash      string  `json:"hash,omitempty"` // SHA-256 of what is in it
	MIME      string  `json:"mimeType,omitempty"`
	Encoding  string  `json:"contentEncoding,omitempty"` // utf8, base64
	Preview   string  `json:"previewKind,omitempty"`     // text, image, unsupported
}

// FileBrowser is a folder of the workspace, or what was found in all of them.
type FileBrowser struct {
	Path      string        `json:"path"`
	Parent    *string       `json:"parentPath,omitempty"`
	Search    string        `json:"search,omitempty"`
	Entries   []BrowserFile `json:"entries"`
	Truncated bool          `json:"truncated,omitempty"` // there are more
}

// BrowserFile is a file or a folder of the workspace.
type BrowserFile struct {
	Path        string `json:"path"`
	Name        string `json:"name"`
	Kind        string `json:"kind"`                  // file, directory
	SessionKind string `json:"sessionKind,omitempty"` // read, modified, mixed; "": the conversation did not touch it
	Size        int64  `json:"size,omitempty"`
	UpdatedAt   Millis `json:"updatedAtMs,omitempty"`
}

// FileGet is the parameters of sessions.files.get.
type FileGet struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Path       string `json:"path"` // as a list shows it
}

// FileSet is the parameters of sessions.files.set.
type FileSet struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Path       string `json:"path"`
	Content    string `json:"content"`
	Hash       string `json:"expectedHash"` // of what it was made from
}

// FileGot is the result of sessions.files.get and sessions.files.set.
type FileGot struct {
	SessionKey string `json:"sessionKey"`
	Root       string `json:"root,omitempty"`
	File       File   `json:"file"`
}
