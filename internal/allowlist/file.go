package allowlist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/chela"
)

// FileName is the name of the document in the state directory.
const FileName = "exec-approvals.json"

// File is a document on disk, which a person may edit while it is used. It is
// safe for concurrent use.
type File struct {
	path string

	mu   sync.Mutex
	seen []byte // what doc was read from
	doc  *Document
}

// NewFile returns the document at a path, which need not exist.
func NewFile(path string) *File { return &File{path: path} }

// Path is where the document is.
func (f *File) Path() string { return f.path }

// Load returns the document as it is now, and whether there is one. It is not
// to be changed. A document that cannot be understood is an error, and stays as
// it is.
func (f *File) Load() (*Document, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load()
}

func (f *File) load() (*Document, bool, error) {
	b, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		if f.doc == nil || f.seen != nil {
			f.seen, f.doc = nil, &Document{}
		}
		return f.doc, false, nil
	}
	if err != nil {
		return nil, true, f.unusable(err)
	}
	if f.seen != nil && bytes.Equal(b, f.seen) {
		return f.doc, true, nil
	}
	d, err := Parse(b)
	if err != nil {
		return nil, true, f.unusable(err)
	}
	f.seen, f.doc = b, d
	return d, true, nil
}

func (f *File) read() ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, MaxDocument+1))
}

// unusable says that no command can be judged.
func (f *File) unusable(err error) error {
	return &chela.Error{
		Code:    chela.CodeInvalid,
		Message: fmt.Sprintf("the rules about commands in %s cannot be read, so that no command is run", f.path),
		Hint:    "correct the file, or move it away",
		Err:     err,
	}
}

// Update changes the document with what change makes of it. base is the
// [Document.Hash] of the one that the change is about; "": any. A document that
// cannot be understood is not replaced.
func (f *File) Update(base string, change func(*Document) error) (*Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, exists, err := f.load()
	if err != nil {
		return nil, err
	}
	if base != "" && base != old.Hash() {
		return nil, chela.Errorf(chela.CodeConflict, "the rules about commands were changed meanwhile")
	}
	d, err := Parse(old.Encode()) // one of its own
	if err != nil {
		return nil, fmt.Errorf("rules about commands: %w", err)
	}
	if err := change(d); err != nil {
		return nil, err
	}
	b := d.Encode()
	if d, err = Parse(b); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "rules about commands: %w", err)
	}
	if exists {
		if err := os.Chmod(f.path, 0o600); err != nil {
			return nil, fmt.Errorf("rules about commands: %w", err)
		}
	}
	if err := atomicfile.Write(f.path, b, 0o600); err != nil {
		return nil, fmt.Errorf("rules about commands: %w", err)
	}
	f.seen, f.doc = b, d
	return d, nil
}
