// Package watch tells when files are changed. It looks at them from time to
// time: that costs next to nothing, and works on every file system and with
// every editor, also one that writes a new file in the place of the old one.
package watch

import (
	"context"
	"os"
	"slices"
	"time"
)

// Files is files that are looked at. All fields are required.
type Files struct {
	Every time.Duration // how often they are looked at
	// Quiet returns how long nothing must change before Changed is called: who
	// saves twice in a row is heard once.
	Quiet   func() time.Duration
	Names   func() []string // of the files now; one that is not there may come
	Changed func()          // is called when any is another than before, from Run
}

// stamp is what shows that a file was changed.
type stamp struct {
	size int64
	time time.Time
	file os.FileInfo // one in its place is another file
}

// Run goes on until ctx ends. After the first look it calls Changed in any case:
// files may have been changed since they were read.
func (w Files) Run(ctx context.Context) error {
	var told []stamp // nothing: they may have been changed since they were read first
	for {
		if !sleep(ctx, w.Every) {
			return nil
		}
		now := w.look()
		if slices.EqualFunc(told, now, same) {
			continue
		}
		for last := []stamp(nil); !slices.EqualFunc(last, now, same); {
			if !sleep(ctx, w.Quiet()) {
				return nil
			}
			last, now = now, w.look()
		}
		w.Changed()
		told = now
		if files := w.look(); len(files) != len(now) { // others are looked at now
			told = files
		}
	}
}

// look returns the stamps of the files; one that is not there has the zero one.
func (w Files) look() []stamp {
	var out []stamp
	for _, name := range w.Names() {
		fi, err := os.Stat(name)
		if err != nil {
			out = append(out, stamp{})
			continue
		}
		out = append(out, stamp{fi.Size(), fi.ModTime(), fi})
	}
	return out
}

func same(a, b stamp) bool {
	return a.size == b.size && a.time.Equal(b.time) && (a.file == nil) == (b.file == nil) && (a.file == nil || os.SameFile(a.file, b.file))
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
