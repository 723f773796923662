package app

import (
	"context"
	"io"
	"path/filepath"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/media"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/store"
)

// openMedia opens the files that rows refer to.
func openMedia(o *settings.Settings, state string) (*media.Files, error) {
	return media.Open(filepath.Join(state, media.Dir), o.Agent.ImageSide)
}

// sweeper removes the files that no row refers to any more.
type sweeper struct {
	files *media.Files
	store store.Store
}

// sweep removes what is old enough.
func (s sweeper) sweep(ctx context.Context) (int, error) {
	return s.files.Sweep(ctx, func(ctx context.Context) (refs []string, err error) {
		err = s.store.View(ctx, func(r store.Reader) error {
			refs, err = r.Media()
			return err
		})
		return refs, err
	})
}

// deletions returns a channel that tells when a session was deleted, until ctx
// ends: what was shown in it is to go soon.
func deletions(ctx context.Context, b *bus.Bus) <-chan struct{} {
	told := make(chan struct{}, 1)
	cancel := b.Subscribe(func(e chela.Event) {
		if e.Stream == chela.StreamSession && e.Phase == "deleted" {
			select {
			case told <- struct{}{}:
			default:
			}
		}
	})
	context.AfterFunc(ctx, cancel)
	return told
}

// export writes a transcript with its pictures.
func export(files *media.Files) func(io.Writer, session.Meta, []session.Entry) error {
	return func(w io.Writer, m session.Meta, entries []session.Entry) error {
		for i := range entries {
			if entries[i].Message != nil {
				entries[i].Message = files.Fill(entries[i].Message)
			}
		}
		return session.Export(w, m, entries)
	}
}

// besides is where the files are that belong to a copy of the database.
func besides(file string) string { return file + "." + media.Dir }

// withMedia has make write a copy of the database, and copies the files that it
// refers to beside it: those from before, as they may be swept meanwhile, and
// those that came.
func withMedia(state, dst string, make func() error) error {
	from := filepath.Join(state, media.Dir)
	if _, err := media.Copy(from, besides(dst)); err != nil {
		return err
	}
	if err := make(); err != nil {
		return err
	}
	_, err := media.Copy(from, besides(dst))
	return err
}

// backup writes a copy of the database while it is in use.
func (e *Engine) backup(ctx context.Context, dst string) error {
	return withMedia(e.o.State, dst, func() error { return e.db.Backup(ctx, dst) })
}
