package allowlist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// FileName is the name of the document in the state directory.
const FileName = "exec-approvals.json"

// File is a document on disk, which a person may edit at any time. It is safe
// for concurrent use.
type File struct {
	path string

	mu  sync.Mutex
	raw []byte // content from which doc was read
	doc *Document
}

// NewFile returns the document at a path. The file need not exist.
func NewFile(path string) *File { return &File{path: path} }

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Load returns the current document and whether the file exists. The document
// must not be modified. A file that cannot be parsed is an error.
func (f *File) Load() (*Document, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load()
}

func (f *File) load() (*Document, bool, error) {
	b, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		if f.doc == nil || f.raw != nil {
			f.raw, f.doc = nil, &Document{}
		}
		return f.doc, false, nil
	}
	if err != nil {
		return nil, true, f.invalid(err)
	}
	if f.raw != nil && bytes.Equal(b, f.raw) {
		return f.doc, true, nil
	}
	d, err := Parse(b)
	if err != nil {
		return nil, true, f.invalid(err)
	}
	f.raw, f.doc = b, d
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

// invalid returns the error for a file that cannot be read. No command can be
// judged then.
func (f *File) invalid(err error) error {
	return &chela.Error{
		Code:    chela.CodeInvalid,
		Message: fmt.Sprintf("the command rules in %s cannot be read, so no command is run", f.path),
		Hint:    "correct the file or move it away",
		Err:     err,
	}
}

// Update applies change to the document and writes it. base is the
// [Document.Hash] of the document that the change was made for; "" accepts
// any. A file that cannot be parsed is not replaced.
func (f *File) Update(base string, change func(*Document) error) (*Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, exists, err := f.load()
	if err != nil {
		return nil, err
	}
	if base != "" && base != old.Hash() {
		return nil, chela.Errorf(chela.CodeConflict, "the command rules were changed in the meantime")
	}
	d, err := Parse(old.Encode()) // a copy
	if err != nil {
		return nil, fmt.Errorf("command rules: %w", err)
	}
	if err := change(d); err != nil {
		return nil, err
	}
	b := d.Encode()
	if d, err = Parse(b); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "command rules: %w", err)
	}
	if exists {
		if err := os.Chmod(f.path, 0o600); err != nil {
			return nil, fmt.Errorf("command rules: %w", err)
		}
	}
	if err := atomicfile.Write(f.path, b, 0o600); err != nil {
		return nil, fmt.Errorf("command rules: %w", err)
	}
	f.raw, f.doc = b, d
	return d, nil
}
