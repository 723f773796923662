package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// maxScratch is the maximum size of a scratch text in bytes.
const maxScratch = 256 << 10

// scratch is the stored form of a scratch text.
type scratch struct {
	Content  *string     `json:"content"` // nil: it was removed
	Revision int64       `json:"revision"`
	Updated  wire.Millis `json:"updatedAtMs"`
}

func (s scratch) view() *wire.CronScratchResult {
	out := &wire.CronScratchResult{Revision: s.Revision, MaxBytes: maxScratch}
	if s.Content != nil {
		out.Scratch = &wire.CronScratch{Content: *s.Content, Revision: s.Revision, UpdatedAt: s.Updated}
	}
	return out
}

// settings reads the table of settings and the jobs.
type settings interface {
	Setting(name string) (string, error)
}

// readStored returns the scratch text of a job that exists.
func readStored(r settings, jobs job.Reader, id job.ID) (scratch, error) {
	var s scratch
	if _, err := jobs.Get(id); err != nil {
		return s, absent(id, err)
	}
	text, err := r.Setting(job.ScratchSetting(id))
	if err != nil || text == "" {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("scratch text of job %s: %w", id, err)
	}
	return s, nil
}

func (o Options) readScratch(ctx context.Context, _ rpc.Peer, in wire.CronID) (wire.CronScratchResult, error) {
	id, err := jobID(in.ID, in.JobID)
	if err != nil {
		return wire.CronScratchResult{}, err
	}
	s, err := store.Get(ctx, o.Store, func(r store.Reader) (scratch, error) { return readStored(r, r.Jobs(), id) })
	return *s.view(), err
}

// errConflict ends a transaction because of another revision.
var errConflict = errors.New("another revision")

func (o Options) writeScratch(ctx context.Context, _ rpc.Peer,
	in wire.CronScratchSet) (wire.CronScratchWritten, error) {
	id, err := jobID(in.ID, in.JobID)
	if err != nil {
		return wire.CronScratchWritten{}, err
	}
	if in.Content != nil && len(*in.Content) > maxScratch {
		return wire.CronScratchWritten{}, rpc.Invalid("at /content: must not have more than %d characters", maxScratch)
	}
	now := wire.At(time.Now())
	var s scratch
	err = o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		if s, err = readStored(tx, tx.Jobs(), id); err != nil {
			return err
		}
		if in.Revision != nil && *in.Revision != s.Revision {
			return errConflict
		}
		s = scratch{Content: in.Content, Revision: s.Revision + 1, Updated: now}
		raw, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return tx.SetSetting(job.ScratchSetting(id), string(raw))
	})
	switch {
	case errors.Is(err, errConflict):
		return wire.CronScratchWritten{Reason: "revision-conflict", Revision: s.Revision}, nil
	case err != nil:
		return wire.CronScratchWritten{}, err
	}
	return wire.CronScratchWritten{OK: true, Revision: s.Revision, CronScratchResult: s.view()}, nil
}
