// Package watch reports changed files. It polls them, which costs little and
// works on every file system and with every editor, including those that
// replace files.
package watch

import (
	"context"
	"os"
	"time"
)

// Files is a set of watched files. All fields are required.
type Files struct {
	Every time.Duration // polling interval
	// Quiet returns how long files must be unchanged before Changed is
	// called, so that several saves in a row are reported once.
	Quiet   func() time.Duration
	Names   func() []string // of the files, which need not exist
	Changed func()          // called by Run after a change
}

// stamp identifies a version of a file.
type stamp struct {
	size int64
	time time.Time
	file os.FileInfo // to detect a replaced file
}

// Run polls until ctx ends. It always calls Changed after the first poll,
// because files may have changed since they were read.
func (w Files) Run(ctx context.Context) error {
	var reported map[string]stamp // empty: report the first poll
	for {
		if !sleep(ctx, w.Every) {
			return nil
		}
		now := w.poll()
		if unchanged(reported, now) {
			continue
		}
		for last := map[string]stamp(nil); !unchanged(last, now); {
			if !sleep(ctx, w.Quiet()) {
				return nil
			}
			last, now = now, w.poll()
		}
		reported = now // a change from now on is reported again
		w.Changed()
	}
}

// unchanged reports whether the files of now had the same stamps before. Files
// that are not watched any more do not matter.
func unchanged(before, now map[string]stamp) bool {
	for name, s := range now {
		if b, ok := before[name]; !ok || !same(b, s) {
			return false
		}
	}
	return before != nil
}

// poll returns the stamps of the files; that of a missing file is zero.
func (w Files) poll() map[string]stamp {
	out := make(map[string]stamp)
	for _, name := range w.Names() {
		out[name] = stamp{}
		if fi, err := os.Stat(name); err == nil {
			out[name] = stamp{fi.Size(), fi.ModTime(), fi}
		}
	}
	return out
}

func same(a, b stamp) bool {
	return a.size == b.size && a.time.Equal(b.time) && (a.file == nil) == (b.file == nil) &&
		(a.file == nil || os.SameFile(a.file, b.file))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
