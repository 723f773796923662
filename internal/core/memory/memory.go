// Package memory defines what an assistant's memory answers: notes are Markdown files of
// the person, an [Index] finds them.
package memory

import (
	"context"
	"errors"
	"time"
)

// Query is a question to the memory of an agent.
type Query struct {
	Text     string
	Max      int     // hits; 0: [DefaultMax]
	MinScore float64 // of hits; 0: [DefaultMinScore]
}

// Defaults of a [Query].
const (
	DefaultMax      = 6
	DefaultMinScore = 0.35
)

// Hit is a part of a note that answers a query.
type Hit struct {
	Path    string  `json:"path"` // relative to the workspace, with slashes; absolute outside
	First   int     `json:"startLine"`
	Last    int     `json:"endLine"`
	Score   float64 `json:"score"`   // 0 to 1
	Snippet string  `json:"snippet"` // at most [SnippetSize] bytes
	Source  string  `json:"source"`  // see [SourceOf]
	// Changed is when the note was last changed.
	Changed time.Time `json:"changed,omitzero"`
	// Untrusted says that the note comes from elsewhere; see [Untrusted].
	Untrusted bool `json:"untrusted,omitempty"`
}

// SnippetSize bounds the bytes of the text of a [Hit].
const SnippetSize = 700

// Status is the state of an index.
type Status struct {
	Files   int       `json:"files"`
	Chunks  int       `json:"chunks"`
	Bytes   int64     `json:"bytes"`             // of the notes
	Size    int64     `json:"size"`              // of the index
	Synced  time.Time `json:"synced,omitzero"`   // when the files were last compared
	Skipped []Skipped `json:"skipped,omitempty"` // files that are not searched
	Vectors *Vectors  `json:"vectors,omitempty"` // nil: notes are found by their words alone
	// Reading is set while many notes are read, as they are when the index is made.
	// Then the rest is not known.
	Reading *Progress `json:"reading,omitempty"`
}

// Skipped is a file that is not searched, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Index finds notes. It follows the files: what was changed is found as it is now.
type Index interface {
	// Search returns the parts of notes that answer a query best, the best one first.
	// The error is [ErrUnavailable] if the provider of vectors that the configuration
	// names does not answer.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// Read returns the content of a note. The error is [ErrOutside] for other files.
	Read(ctx context.Context, path string) ([]byte, error)
	// Status compares the index with the files, and returns its state.
	Status(ctx context.Context) (Status, error)
	// Notes compares the index with the files, and returns them, ordered by path.
	Notes(ctx context.Context) ([]Note, error)
	// Probe sends a request to the provider of vectors. It reports false if none is used.
	Probe(ctx context.Context) (bool, error)
	// Rebuild makes the index anew.
	Rebuild(ctx context.Context) error
}

// ErrOutside reports a path that is not a note.
var ErrOutside = errors.New("is not a note")
