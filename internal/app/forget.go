package app

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/forget"
)

// makeForgetter makes the part that removes what is known about a topic.
func (e *Engine) makeForgetter() *forget.Forgetter {
	texts, _ := e.db.(store.Texts)
	return forget.New(forget.Options{
		Log: e.o.Log, Store: e.store, Texts: texts, Files: e.files,
		Workspaces: e.workspaces, Copies: e.databaseCopies, Own: e.configFiles(),
		Inputs: []string{filepath.Join(e.o.State, config.HistoryFile)}, Logs: []string{filepath.Join(e.o.State, "logs")},
		Step: e.o.Step, Stop: e.dispatch.StopRunning, Forgotten: e.forgotten,
		RemoveJob: e.forgetJob,
	})
}

// forgetJob removes a job, so that it cannot be brought back either.
func (e *Engine) forgetJob(ctx context.Context, id string) error {
	if _, err := e.cron.Remove(ctx, job.ID(id)); err != nil && !errors.Is(err, chela.ErrNotFound) {
		return err
	}
	return e.store.Update(ctx, store.Synced, func(tx store.Tx) error {
		list, err := tx.Changes().List(journal.Query{Target: id})
		if err != nil {
			return err
		}
		var ids []string
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return tx.Changes().Delete(ids...)
	})
}

// workspaces returns the folders of all agents.
func (e *Engine) workspaces() []string {
	var dirs []string
	g := e.now()
	for _, id := range g.Settings.Roster() {
		dirs = append(dirs, g.Workspace(id))
	}
	return dirs
}

// databaseCopies returns earlier databases beside the one in use.
func (e *Engine) databaseCopies() []string {
	var out []string
	if _, ok := e.db.(standard.Located); ok {
		return nil
	}
	names, _ := filepath.Glob(e.database + "?*") // the pattern is valid
	for _, name := range names {
		if rest := strings.TrimPrefix(name, e.database); rest != "-wal" && rest != "-shm" {
			out = append(out, name)
		}
	}
	return out
}

// configFiles returns the files of the configuration.
func (e *Engine) configFiles() []string {
	t := e.tree()
	if t == nil {
		return nil
	}
	return append(config.Backups(t.Path()), t.Path(), t.Path()+".last-good")
}

// forgotten drops what is cached of rows and notes.
func (e *Engine) forgotten() error {
	e.dispatch.DropTranscripts()
	return e.profiles.DropMemory()
}

// resumeForgetting completes a removal that was interrupted.
func (e *Engine) resumeForgetting(ctx context.Context) error {
	if err := e.forgetter.Resume(ctx); err != nil && ctx.Err() == nil {
		e.o.Log.Error("a removal of /forget is not complete; it is tried again at the next start", "err", err)
	}
	return nil
}
