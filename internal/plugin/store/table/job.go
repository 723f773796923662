package table

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
)

// jobs is the table of scheduled jobs and of their runs.
type jobs struct{ c *Tables }

var _ job.Table = jobs{}

const (
	jobIntact    = "intact(n, id, due, job, crc)"
	jobRunIntact = "intact(n, job, slot, id, ended, run, crc)"
)

func (t jobs) list(where string, args ...any) ([]job.Job, error) {
	return Collect(t.c, ScanJSON[job.Job], "SELECT job, "+jobIntact+" FROM job WHERE "+where, args...)
}

func (t jobs) runs(where string, args ...any) ([]job.Run, error) {
	return Collect(t.c, ScanJSON[job.Run], "SELECT run, "+jobRunIntact+" FROM job_run WHERE "+where, args...)
}

// Get returns a job by its id.
func (t jobs) Get(id job.ID) (job.Job, error) { return get(t.list, "job", "id = ?", string(id)) }

// List returns all jobs, oldest first.
func (t jobs) List() ([]job.Job, error) { return t.list("TRUE ORDER BY n") }

// Relative returns the enabled jobs whose next slot is not a time of the clock, oldest
// first.
func (t jobs) Relative() ([]job.Job, error) {
	return t.list(
		`due > 0 AND (json_extract(job, '$.schedule.kind') = ? OR CAST(json_extract(job, '$.state.retries') AS INTEGER) > 0
OR CAST(json_extract(job, '$.state.missedRuns') AS INTEGER) > 0) ORDER BY n`, string(job.KindEvery))
}

// Count returns the number of jobs.
func (t jobs) Count() (int, error) {
	n, err := t.c.Number("SELECT count(*) FROM job")
	return int(n), err
}

// Due returns at most n enabled jobs whose next slot is not after tm, earliest slot first.
func (t jobs) Due(tm time.Time, n int) ([]job.Job, error) {
	return t.list("due > 0 AND due <= ? ORDER BY due, n LIMIT ?", int64(job.At(tm)), n)
}

// Next returns the earliest next slot of all enabled jobs; zero if there is none.
func (t jobs) Next() (time.Time, error) {
	due, err := t.c.Number("SELECT coalesce(min(due), 0) FROM job WHERE due > 0")
	return job.Millis(due).Time(), err
}

// Put inserts or replaces a job by its id.
func (t jobs) Put(v job.Job) error {
	s, err := encode(v)
	if err != nil {
		return fmt.Errorf("job %s: %w", v.ID, err)
	}
	due := v.State.Next
	if !v.Enabled {
		due = 0
	}
	_, err = t.c.Exec(`INSERT INTO job (id, due, job) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET due = excluded.due, job = excluded.job WHERE `+jobIntact, str(v.ID), int64(due), s)
	return err
}

// Delete deletes a job and reports whether it existed. Its runs are kept.
func (t jobs) Delete(id job.ID) (bool, error) {
	n, err := t.c.Exec("DELETE FROM job WHERE id = ?", str(id))
	return n > 0, err
}

// Run returns a run by its id.
func (t jobs) Run(id chela.RunID) (job.Run, error) {
	return get(t.runs, "run of a job", "id = ?", string(id))
}

// OpenRuns returns the runs that have not ended, oldest first.
func (t jobs) OpenRuns() ([]job.Run, error) { return t.runs("ended = 0 ORDER BY n") }

// Claim stores the run of a slot. It reports false if the slot of the job has one.
func (t jobs) Claim(r job.Run) (bool, error) {
	s, err := encode(r)
	if err != nil {
		return false, fmt.Errorf("run of job %s: %w", r.Job, err)
	}
	n, err := t.c.Exec(
		"INSERT INTO job_run (job, slot, id, ended, run) VALUES (?, ?, ?, ?, ?) ON CONFLICT (job, slot) DO NOTHING",
		str(r.Job), int64(r.Slot), str(r.ID), int64(r.Ended), s)
	return n > 0, err
}

// PutRun replaces a run by its id.
func (t jobs) PutRun(r job.Run) error {
	s, err := encode(r)
	if err != nil {
		return fmt.Errorf("run of job %s: %w", r.Job, err)
	}
	_, err = t.c.Exec("UPDATE job_run SET ended = ?, run = ? WHERE id = ? AND "+jobRunIntact, int64(r.Ended), s, str(r.ID))
	return err
}

// maxScanned is the number of runs that a query with conditions on their records reads.
const maxScanned = 20_000

// Runs returns ended runs, and the number of all that the query selects. A query with
// conditions other than the job reads the newest maxScanned runs only.
func (t jobs) Runs(q job.Query) ([]job.Run, int, error) {
	where, args := "ended > 0", []any{}
	if q.Job != "" {
		where, args = "job = ? AND ended > 0", []any{str(q.Job)}
	}
	order := " ORDER BY n DESC"
	if q.Oldest {
		order = " ORDER BY n"
	}
	if len(q.Statuses) == 0 && len(q.Deliveries) == 0 && q.Agent == "" && q.Run == "" && q.Text == "" {
		total, err := t.c.Number("SELECT count(*) FROM job_run WHERE "+where, args...)
		if err != nil {
			return nil, 0, err
		}
		list, err := t.runs(where+order+" LIMIT ? OFFSET ?", append(args, q.Limit, q.Offset)...)
		return list, int(total), err
	}
	list := []job.Run{}
	total := 0
	err := t.c.Query(func(r *Row) error {
		v, err := ScanJSON[job.Run](r)
		if err != nil || !q.Matches(v) {
			return err
		}
		if total++; total > q.Offset && len(list) < q.Limit {
			list = append(list, v)
		}
		return nil
	}, "SELECT run, "+jobRunIntact+" FROM job_run WHERE "+where+order+" LIMIT ?", append(args, maxScanned)...)
	return list, total, err
}

// PruneRuns deletes the oldest ended runs of each job, so that at most n remain, and
// returns their number.
func (t jobs) PruneRuns(n int) (int, error) {
	return t.c.Exec(`DELETE FROM job_run WHERE ended > 0 AND n IN (
SELECT n FROM (SELECT n, row_number() OVER (PARTITION BY job ORDER BY n DESC) AS newer FROM job_run WHERE ended > 0) AS x WHERE newer > ?)`, n)
}
