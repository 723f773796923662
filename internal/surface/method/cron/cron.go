// Package cron implements the methods about scheduled jobs.
package cron

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Scheduler keeps jobs and runs them.
type Scheduler interface {
	// Now returns the time of the clock by which jobs run.
	Now() time.Time
	// Add stores a new job. If a job with its id exists, that is returned and nothing
	// changes.
	Add(context.Context, job.Job) (job.Job, error)
	// Update replaces a job by what f returns. A revision must be that of the job, or
	// the error has the code chela.CodeConflict; an empty one is any.
	Update(ctx context.Context, id job.ID, f func(job.Job) (job.Job, error), revision string) (job.Job, error)
	// Remove deletes a job. It reports whether the job existed.
	Remove(context.Context, job.ID) (bool, error)
	// RunNow runs a job. A run with the given id is started once; an empty id is a new one.
	RunNow(ctx context.Context, id job.ID, when job.Start, run chela.RunID) (job.Started, error)
	// Get returns a job.
	Get(context.Context, job.ID) (job.Job, error)
	// List returns all jobs, oldest first.
	List(context.Context) ([]job.Job, error)
	// Overview returns the state of the scheduler.
	Overview(context.Context) (job.Overview, error)
	// Runs returns ended runs and the number of all that the query selects.
	Runs(context.Context, job.Query) ([]job.Run, int, error)
	// Preview describes where the answer of a job goes.
	Preview(job.Job) (label, detail string)
	// Import adds and replaces jobs by their ids, all or none.
	Import(ctx context.Context, jobs []job.Job, source string) (added, changed int, err error)
}

// Options configures the methods. All fields are required.
type Options struct {
	Scheduler Scheduler
	Store     store.Store // of the scratch texts
	Default   chela.AgentID
	Agent     func(chela.AgentID) bool // reports whether the agent exists
	Database  string                   // path of the database
	Instance  string                   // id of this start of the gateway
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodCronList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodCronGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodCronStatus, op, chela.ScopeRead, o.status),
		rpc.New(wire.MethodCronRuns, op, chela.ScopeRead, o.runs),
		rpc.New(wire.MethodCronAdd, op, chela.ScopeAdmin, o.add).StartsWork(),
		rpc.New(wire.MethodCronUpdate, op, chela.ScopeAdmin, o.update).StartsWork(),
		rpc.New(wire.MethodCronRemove, op, chela.ScopeAdmin, o.remove),
		rpc.New(wire.MethodCronRun, op, chela.ScopeAdmin, o.run).StartsWork(),
		rpc.New(wire.MethodCronScratchGet, op, chela.ScopeAdmin, o.readScratch).Reads(),
		rpc.New(wire.MethodCronScratchSet, op, chela.ScopeAdmin, o.writeScratch),
		rpc.New(wire.MethodCronExport, op, chela.ScopeAdmin, o.export).Reads(),
		rpc.New(wire.MethodCronImport, op, chela.ScopeAdmin, o.importFile).StartsWork(),
	}
}

// jobID returns the id of the job that a request names.
func jobID(id, other string) (job.ID, error) {
	switch {
	case id != "" && other != "" && id != other:
		return "", rpc.Invalid("id and jobId differ")
	case id == "" && other == "":
		return "", rpc.Invalid("at root: must have required property 'id'")
	}
	return job.ID(cmp.Or(id, other)), nil
}

// absent returns the error of the protocol about a job that does not exist. OpenClaw's
// command line looks for this text before it looks for a job with that name.
func absent(id job.ID, err error) error {
	if err == nil || !errors.Is(err, chela.ErrNotFound) && chela.CodeOf(err) != chela.CodeNotFound {
		return err
	}
	return wire.Errorf(wire.InvalidRequest, "cron job not found: %s",
		id).With(map[string]any{"code": wire.DetailNoJob, "jobId": string(id)})
}

func (o Options) get(ctx context.Context, _ rpc.Peer, in wire.CronID) (wire.CronJob, error) {
	id, err := jobID(in.ID, in.JobID)
	if err != nil {
		return wire.CronJob{}, err
	}
	j, err := o.Scheduler.Get(ctx, id)
	if err != nil {
		return wire.CronJob{}, absent(id, err)
	}
	return wireview.CronJob(j), nil
}

func (o Options) status(ctx context.Context, _ rpc.Peer, _ struct{}) (wire.CronStatus, error) {
	v, err := o.Scheduler.Overview(ctx)
	if err != nil {
		return wire.CronStatus{}, err
	}
	storage, path := "sqlite", o.Database
	if strings.Contains(o.Database, "://") { // an address
		storage, path = "postgres", ""
	}
	out := wire.CronStatus{
		Enabled:    v.Enabled,
		Triggers:   true,
		StorePath:  o.Database,
		Storage:    storage,
		SQLitePath: path,
		Jobs:       v.Jobs,
		Running:    v.Running,
	}
	if !v.Next.IsZero() {
		next := wire.At(v.Next)
		out.NextWakeAt = &next
	}
	return out, nil
}

func (o Options) preview(j job.Job) wire.CronPreview {
	label, detail := o.Scheduler.Preview(j)
	return wire.CronPreview{Label: label, Detail: detail}
}

// check checks the agent and the session of a job.
func (o Options) check(j *job.Job) error {
	if j.Agent != "" && !o.Agent(j.Agent) {
		return rpc.UnknownAgent(j.Agent)
	}
	if j.Session == "" {
		return nil
	}
	key, err := rpc.SessionKey(j.Session, string(j.Agent), o.Default)
	if err == nil && j.Agent != "" && key.Agent() != j.Agent {
		err = rpc.Invalid("sessionKey: session %s belongs to another agent than %s", key, j.Agent)
	}
	j.Session = string(key)
	return err
}

// add adds a job. One with a declaration key replaces the job that was added with the
// same key before.
func (o Options) add(ctx context.Context, _ rpc.Peer, in rpc.Any) (any, error) {
	j, err := job.Parse(in.Raw, o.Scheduler.Now(), nil)
	if err != nil {
		return nil, rpc.Invalid("%v", err)
	}
	if j.ID != "" {
		return nil, rpc.Invalid("id is chosen by the gateway; to add a job again and again, give it a declarationKey")
	}
	if err := o.check(&j); err != nil {
		return nil, err
	}
	if j.Target == job.TargetCurrent && j.Session == "" {
		return nil, rpc.Invalid("sessionTarget current: sessionKey is required, because there is no current session")
	}
	j.Principal = chela.PrincipalFrom(ctx)
	if j.DeclarationKey != "" {
		return o.declare(ctx, j, in.Raw)
	}
	if j, err = o.Scheduler.Add(ctx, j); err != nil {
		return nil, err
	}
	return wire.CronAdded{CronJob: wireview.CronJob(j), Preview: o.preview(j)}, nil
}

// declare adds a job with a declaration key, or makes the existing one like it. Whether
// that is enabled changes only if the request says so.
func (o Options) declare(ctx context.Context, j job.Job, raw json.RawMessage) (any, error) {
	all, err := o.Scheduler.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, have := range all {
		if have.DeclarationKey != j.DeclarationKey {
			continue
		}
		next := replaced(have, j, raw)
		updated := next.Revision() != have.Revision()
		if updated {
			have, err = o.Scheduler.Update(ctx, have.ID,
				func(old job.Job) (job.Job, error) { return replaced(old, j, raw), nil }, "")
			if err != nil {
				return nil, err
			}
		}
		return wire.CronDeclared{Updated: updated, Job: wireview.CronJob(have), Preview: o.preview(have)}, nil
	}
	if j, err = o.Scheduler.Add(ctx, j); err != nil {
		return nil, err
	}
	return wire.CronDeclared{Created: true, Job: wireview.CronJob(j), Preview: o.preview(j)}, nil
}

// replaced returns the job that has the definition of j and the identity and history of
// old.
func replaced(old, j job.Job, raw json.RawMessage) job.Job {
	j.ID, j.Created, j.Updated, j.State = old.ID, old.Created, old.Updated, old.State
	j.Principal, j.Address, j.Source, j.Extra = old.Principal, old.Address, old.Source, old.Extra
	var given struct{ Enabled, Disabled json.RawMessage }
	if json.Unmarshal(raw, &given) == nil && given.Enabled == nil && given.Disabled == nil {
		j.Enabled = old.Enabled
	}
	return j
}

func (o Options) update(ctx context.Context, _ rpc.Peer, in wire.CronUpdate) (wire.CronJob, error) {
	id, err := jobID(in.ID, in.JobID)
	if err != nil {
		return wire.CronJob{}, err
	}
	j, err := o.Scheduler.Update(ctx, id, func(old job.Job) (job.Job, error) {
		next, err := old.Patch(in.Patch, o.Scheduler.Now(), nil)
		if err != nil {
			return next, rpc.Invalid("%v", err)
		}
		return next, o.check(&next)
	}, in.Revision)
	if chela.CodeOf(err) == chela.CodeConflict && in.Revision != "" {
		now, _ := o.Scheduler.Get(ctx, id)
		return wire.CronJob{},
			wire.Errorf(wire.InvalidRequest, "the job was changed since it was read; read it again").With(map[string]any{
				"code": wire.DetailJobChanged, "expectedConfigRevision": in.Revision, "actualConfigRevision": now.Revision(),
			})
	}
	if err != nil {
		return wire.CronJob{}, absent(id, err)
	}
	return wireview.CronJob(j), nil
}

func (o Options) remove(ctx context.Context, _ rpc.Peer, in wire.CronID) (wire.CronRemoved, error) {
	id, err := jobID(in.ID, in.JobID)
	if err != nil {
		return wire.CronRemoved{}, err
	}
	removed, err := o.Scheduler.Remove(ctx, id)
	if err == nil && !removed {
		err = chela.ErrNotFound
	}
	if err != nil {
		return wire.CronRemoved{}, absent(id, err)
	}
	return wire.CronRemoved{OK: true, Removed: true}, nil
}

func (o Options) run(ctx context.Context, _ rpc.Peer, in wire.CronRun) (wire.CronStarted, error) {
	id, err := jobID(in.ID, in.JobID)
	if err != nil {
		return wire.CronStarted{}, err
	}
	how := job.Start(cmp.Or(in.Mode, string(job.Force)))
	if how != job.Force && how != job.IfDue && how != job.IfEnabled {
		return wire.CronStarted{}, oneOf("mode")
	}
	if in.Instance != "" && in.Instance != o.Instance {
		return wire.CronStarted{}, rpc.Invalid("at /expectedProcessInstanceId: the gateway was restarted")
	}
	s, err := o.Scheduler.RunNow(ctx, id, how, "")
	if err != nil {
		return wire.CronStarted{}, absent(id, err)
	}
	out := wire.CronStarted{OK: true, Enqueued: s.Run != "", RunID: string(s.Run), Reason: s.Reason, Instance: o.Instance}
	if s.Run == "" {
		out.Ran = new(bool)
	}
	return out, nil
}

// oneOf is the error about a property that is not one of the allowed values.
func oneOf(name string) error {
	return rpc.Invalid("at /%s: must be equal to one of the allowed values", name)
}

func (o Options) export(ctx context.Context, _ rpc.Peer, _ struct{}) (wire.CronExported, error) {
	all, err := o.Scheduler.List(ctx)
	if err != nil {
		return wire.CronExported{}, err
	}
	file, err := job.WriteFile(all)
	return wire.CronExported{File: file}, err
}

func (o Options) importFile(ctx context.Context, _ rpc.Peer, in wire.CronImport) (wire.CronImported, error) {
	out := wire.CronImported{Rejected: []string{}}
	jobs, err := job.ParseFile(in.File)
	if rejected, ok := errors.AsType[*job.Rejected](err); ok && in.Skip {
		for _, why := range rejected.Jobs {
			out.Rejected = append(out.Rejected, why.Error())
		}
		err = nil
	}
	if err != nil {
		return out, rpc.Invalid("%v", err)
	}
	for i := range jobs {
		jobs[i].Principal = chela.PrincipalFrom(ctx)
	}
	out.Added, out.Changed, err = o.Scheduler.Import(ctx, jobs, in.Name)
	return out, err
}
