package journal

import (
	"context"
	"io/fs"
)

// Content is the content of a target before or after a change. The zero Content is that of
// a target that does not exist.
type Content struct {
	Exists bool
	Data   []byte // nil if Large is set
	Large  int64  // size of a content that is larger than MaxContent; 0: it is in Data
	// Mode is the permissions of a regular file. It is fs.ModeSymlink if the target is a
	// symbolic link, and Data is where it leads; fs.ModeIrregular if it is a file that is
	// not read: one with further names (hard links), a pipe or a device.
	Mode fs.FileMode
}

// Edit is a change that is about to be made.
type Edit struct {
	Kind          Kind
	Target        string // see [Kind]
	From, Folder  string // see [Change]
	Before, After Content
}

// Recorder records changes. It is safe for concurrent use.
type Recorder interface {
	// Lock waits until no other change of the targets is in progress. The caller reads
	// them afterwards, and calls unlock when it has changed them.
	Lock(ctx context.Context, targets ...string) (unlock func(), err error)
	// Plan records changes that are about to be made, by the source in ctx, and returns
	// when the record is on disk. The caller makes the changes in this order and calls
	// done with the number of those that it has made; whether the next one was made in
	// spite of an error is found out from its target.
	Plan(ctx context.Context, edits ...Edit) (done func(made int), err error)
}

// Off is a Recorder that records nothing.
type Off struct{}

var _ Recorder = Off{}

// Lock implements Recorder.
func (Off) Lock(context.Context, ...string) (func(), error) { return func() {}, nil }

// Plan implements Recorder.
func (Off) Plan(context.Context, ...Edit) (func(int), error) { return func(int) {}, nil }
