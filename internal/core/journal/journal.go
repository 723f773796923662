package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// MaxContent is the size of the largest content that is kept, in bytes.
const MaxContent = 8 << 20

// Kind is the kind of what was changed.
type Kind string

// The kinds.
const (
	File   Kind = "file"   // Target is an absolute path without links
	Config Kind = "config" // Target is the absolute path of a file of the configuration
	Job    Kind = "job"    // Target is the id of a scheduled job
)

// State is the state of a change.
type State string

// The states. All but Planned are final.
const (
	Planned State = "planned" // about to be made
	Done    State = "done"
	Failed  State = "failed"  // not made
	Unclear State = "unclear" // the process ended during the change, and then the target was changed again
)

// Version is the content of a target at one time. The zero Version is that of a target that
// does not exist.
type Version struct {
	Exists   bool        `json:"exists,omitempty"`
	Ref      string      `json:"ref,omitempty"`  // of the content in media.Files; empty: it is not kept there
	Text     string      `json:"text,omitempty"` // the content of a job; where a symbolic link leads
	Hash     string      `json:"hash,omitempty"` // SHA-256; empty: the content is too large
	Size     int64       `json:"size,omitempty"`
	Mode     fs.FileMode `json:"mode,omitempty"`    // see [Content.Mode]
	Modified time.Time   `json:"modified,omitzero"` // of a file that was found changed
}

// Kept reports whether the target can be brought back to the version.
func (v Version) Kept() bool { return !v.Exists || v.Ref != "" || v.Text != "" }

// Link reports whether the target is a symbolic link.
func (v Version) Link() bool { return v.Mode&fs.ModeSymlink != 0 }

// Same reports whether two versions have the same content.
func (v Version) Same(o Version) bool {
	return v.Exists == o.Exists && (!v.Exists || v.Hash != "" && v.Hash == o.Hash)
}

// HashOf returns the hash of a content.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// TextVersion returns the version of a small content that is kept in the row.
func TextVersion(text string) Version {
	return Version{Exists: true, Text: text, Hash: HashOf([]byte(text)), Size: int64(len(text))}
}

// Source is what makes a change.
type Source struct {
	Agent   chela.AgentID    `json:"agent,omitempty"`
	Session chela.SessionKey `json:"session,omitempty"`
	Run     chela.RunID      `json:"run,omitempty"`
	Call    string           `json:"call,omitempty"` // the tool call
	Tool    string           `json:"tool,omitempty"` // the tool, command or method; empty: it was found changed
	By      string           `json:"by,omitempty"`   // the principal
}

type sourceKey struct{}

// WithSource returns a context in which changes have the source s.
func WithSource(ctx context.Context, s Source) context.Context {
	return context.WithValue(ctx, sourceKey{}, s)
}

// SourceFrom returns the source in ctx. Without one, it is the principal in ctx.
func SourceFrom(ctx context.Context) Source {
	s, _ := ctx.Value(sourceKey{}).(Source)
	if s.By == "" {
		s.By = chela.PrincipalFrom(ctx).ID
	}
	return s
}

// Change is one change of one target.
type Change struct {
	Seq  int64     `json:"-"` // rises with each change; assigned by the table
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	Source
	Home   chela.SessionKey `json:"home,omitempty"` // the session in which it is undone: that of the root of the run
	Unit   string           `json:"unit"`           // changes that are undone together
	Origin chela.Origin     `json:"origin,omitzero"`
	Doubt  string           `json:"doubt,omitempty"` // why the content is not trusted; empty: it is

	Kind   Kind    `json:"kind"`
	Target string  `json:"target"`
	From   string  `json:"from,omitempty"`   // the file that was moved here; empty: none
	Folder string  `json:"folder,omitempty"` // the topmost folder that was made for the file; empty: none
	Before Version `json:"before,omitzero"`
	After  Version `json:"after,omitzero"`

	State    State    `json:"state"`
	Undoes   []string `json:"undoes,omitempty"`   // ids of the changes that this one undoes, newest first
	UndoneBy string   `json:"undoneBy,omitempty"` // id of the change that undid this one; empty: it is in force
}

// Seen reports whether the change only records a content that was found.
func (c Change) Seen() bool { return c.After.Exists && c.Before.Same(c.After) }

// Found reports whether the change was made outside of tools, and found afterwards.
func (c Change) Found() bool { return c.Tool == "" }

// InForce reports whether the change was made and is not undone.
func (c Change) InForce() bool { return c.State == Done && c.UndoneBy == "" }

// Query selects changes. The zero Query selects all.
type Query struct {
	Agent  chela.AgentID    // empty: any
	Home   chela.SessionKey // empty: any
	Run    chela.RunID      // empty: any
	Unit   string           // empty: any
	Target string           // empty: any
	Below  string           // a folder in which the target is; empty: any
	Since  time.Time        // made at or after; zero: any
	Until  time.Time        // made before; zero: any
	Before int64            // only changes with a smaller Seq; 0: no limit
	Limit  int              // 0: no limit
}

// Reader reads changes.
type Reader interface {
	// Get returns a change, or chela.ErrNotFound.
	Get(id string) (Change, error)
	// List returns changes, newest first.
	List(Query) ([]Change, error)
	// Open returns the changes that are planned, oldest first.
	Open() ([]Change, error)
	// Latest returns the newest change that was made of each file in a folder and the
	// folders below it.
	Latest(folder string) ([]Change, error)
	// LatestOf returns the newest change that was made of each of some targets. Targets
	// without a change are left out. There are at most 1,000 targets.
	LatestOf(targets ...string) ([]Change, error)
}

// Table reads and writes changes in a transaction.
type Table interface {
	Reader
	// Add stores new changes.
	Add(...Change) error
	// Set replaces a change by id, except its place in the order, its time and its target.
	Set(Change) error
	// Delete deletes changes. An unknown id is ignored.
	Delete(ids ...string) error
	// Prune deletes changes that are not planned: those from before t, and the oldest
	// ones if all together keep more than size bytes of content. Of a file that exists,
	// the newest change is kept as one that was seen, without its earlier content, unless
	// the size requires its deletion. It returns the number of changes that it deleted.
	Prune(t time.Time, size int64) (int, error)
}

// RowSize is the size that a change has besides its contents, for [Table.Prune].
const RowSize = 1 << 10

// Size returns the number of bytes that a change counts for [Table.Prune].
func (c Change) Size() int64 {
	n := int64(RowSize)
	if c.Before.Ref != "" {
		n += c.Before.Size
	}
	if c.After.Ref != "" && c.After.Ref != c.Before.Ref {
		n += c.After.Size
	}
	return n
}
