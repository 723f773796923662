package wire

// Methods for the files of a session: the files its tools read and changed, and
// the workspace around them.
const (
	MethodFilesList = "sessions.files.list"
	MethodFilesGet  = "sessions.files.get"
	MethodFilesSet  = "sessions.files.set"
)

// How a session used a file or the files of a folder.
const (
	FileRead     = "read"
	FileModified = "modified"
	FileMixed    = "mixed" // a folder: some read, some changed
)

// How the content of a file can be shown.
const (
	PreviewText        = "text"
	PreviewImage       = "image"
	PreviewUnsupported = "unsupported" // cannot be shown
)

// FilesList holds the parameters of sessions.files.list.
type FilesList struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Path       string `json:"path,omitempty"`   // folder, relative to the workspace
	Search     string `json:"search,omitempty"` // part of a path, in all folders
}

// Files is the result of sessions.files.list.
type Files struct {
	SessionKey string       `json:"sessionKey"`
	Root       string       `json:"root,omitempty"` // the workspace; "": no such session
	Files      []File       `json:"files"`          // changed files first
	Browser    *FileBrowser `json:"browser,omitempty"`
}

// File is a file a session used.
type File struct {
	Path      string  `json:"path"`                    // as the tool received it
	Workspace string  `json:"workspacePath,omitempty"` // relative to the workspace
	Name      string  `json:"name"`
	Kind      string  `json:"kind"`    // read, modified
	Missing   bool    `json:"missing"` // no longer exists
	Size      int64   `json:"size,omitempty"`
	UpdatedAt Millis  `json:"updatedAtMs,omitempty"`
	Content   *string `json:"content,omitempty"`
	Hash      string  `json:"hash,omitempty"` // SHA-256 of the content
	MIME      string  `json:"mimeType,omitempty"`
	Encoding  string  `json:"contentEncoding,omitempty"` // utf8, base64
	Preview   string  `json:"previewKind,omitempty"`     // text, image, unsupported
}

// FileBrowser is the content of a workspace folder, or the results of a search.
type FileBrowser struct {
	Path      string        `json:"path"`
	Parent    *string       `json:"parentPath,omitempty"`
	Search    string        `json:"search,omitempty"`
	Entries   []BrowserFile `json:"entries"`
	Truncated bool          `json:"truncated,omitempty"` // more exist
}

// BrowserFile is a file or a folder of the workspace.
type BrowserFile struct {
	Path        string `json:"path"`
	Name        string `json:"name"`
	Kind        string `json:"kind"`                  // file, directory
	SessionKind string `json:"sessionKind,omitempty"` // read, modified, mixed; "": not used by the session
	Size        int64  `json:"size,omitempty"`
	UpdatedAt   Millis `json:"updatedAtMs,omitempty"`
}

// FileGet holds the parameters of sessions.files.get.
type FileGet struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Path       string `json:"path"` // as listed
}

// FileSet holds the parameters of sessions.files.set.
type FileSet struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Path       string `json:"path"`
	Content    string `json:"content"`
	Hash       string `json:"expectedHash"` // of the content it is based on
}

// FileGot is the result of sessions.files.get and sessions.files.set.
type FileGot struct {
	SessionKey string `json:"sessionKey"`
	Root       string `json:"root,omitempty"`
	File       File   `json:"file"`
}
