package subagent

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Attachment is a file that a child is given.
type Attachment struct {
	Name string // of the file, without a folder
	Data []byte
}

// Attachments is tools.sessions_spawn.attachments. Nil fields are unset.
type Attachments struct {
	Enabled  bool `json:"enabled"`
	MaxTotal *int `json:"maxTotalBytes"`
	MaxFiles *int `json:"maxFiles"`
	MaxFile  *int `json:"maxFileBytes"`
	// the files of a child with cleanup keep are not removed when it is archived
	Retain bool `json:"retainOnSessionKeep"`
}

// The defaults of [Attachments].
const (
	defaultMaxTotal = 5 << 20
	defaultMaxFiles = 50
	defaultMaxFile  = 1 << 20
)

// Check returns why the files may not be attached.
func (a Attachments) Check(files []Attachment) error {
	if len(files) > 0 && !a.Enabled {
		return chela.Errorf(chela.CodeForbidden, "attachments are switched off (tools.sessions_spawn.attachments.enabled)")
	}
	if n := value(a.MaxFiles, defaultMaxFiles); len(files) > n {
		return chela.Errorf(chela.CodeInvalid,
			"%d attachments, at most %d are allowed (tools.sessions_spawn.attachments.maxFiles)", len(files), n)
	}
	total := 0
	var names []string
	for _, f := range files {
		switch {
		case f.Name == "" || f.Name[0] == '.' || !filepath.IsLocal(f.Name) || strings.ContainsAny(f.Name, "/\\\x00") ||
			len(f.Name) > 200:
			return chela.Errorf(chela.CodeInvalid, "attachment %q: want the name of a file, without a folder and a leading dot",
				humanize.Truncate(f.Name, MaxLabel))
		case slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, f.Name) }):
			return chela.Errorf(chela.CodeInvalid, "attachment %q: another one has the same name", f.Name)
		case len(f.Data) > value(a.MaxFile, defaultMaxFile):
			return chela.Errorf(chela.CodeInvalid,
				"attachment %q has %s, at most %s are allowed (tools.sessions_spawn.attachments.maxFileBytes)",
				f.Name, humanize.Bytes(int64(len(f.Data))), humanize.Bytes(int64(value(a.MaxFile, defaultMaxFile))))
		}
		names, total = append(names, f.Name), total+len(f.Data)
	}
	if n := value(a.MaxTotal, defaultMaxTotal); total > n {
		return chela.Errorf(chela.CodeInvalid,
			"the attachments have %s, at most %s are allowed (tools.sessions_spawn.attachments.maxTotalBytes)",
			humanize.Bytes(int64(total)), humanize.Bytes(int64(n)))
	}
	return nil
}

// FilesFolder returns the folder with the attachments of a child, below the folder of its
// session's tools.
func (c Child) FilesFolder() string { return filepath.Join(".chela", "attachments", string(c.ID)) }
