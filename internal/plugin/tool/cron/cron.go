package cron

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Scheduler keeps jobs and runs them. Errors are for the model.
type Scheduler interface {
	// Now returns the time of the clock by which jobs run.
	Now() time.Time
	// Add stores a job. If a job with its id exists, that is returned and nothing changes.
	Add(context.Context, job.Job) (job.Job, error)
	// Update replaces a job by what f returns. A revision is that of the job that is
	// changed; empty: any.
	Update(ctx context.Context, id job.ID, f func(job.Job) (job.Job, error), revision string) (job.Job, error)
	// Remove deletes a job. It reports whether the job existed.
	Remove(context.Context, job.ID) (bool, error)
	// RunNow runs a job. A run with the given id is started once; an empty id is a new one.
	RunNow(ctx context.Context, id job.ID, when job.Start, run chela.RunID) (job.Started, error)
	// List returns all jobs, oldest first.
	List(context.Context) ([]job.Job, error)
	// Overview returns the state of the scheduler.
	Overview(context.Context) (job.Overview, error)
	// Runs returns ended runs, newest first, and the number of all that the query selects.
	Runs(context.Context, job.Query) ([]job.Run, int, error)
	// Preview describes where the answer of a job goes.
	Preview(job.Job) (label, detail string)
}

// Options configures the tool. All fields are required unless stated otherwise.
type Options struct {
	Scheduler Scheduler
	Store     store.Store
	Location  *time.Location // the person's zone; nil: the machine's
}

//go:embed cron.md
var description string

// New returns the tool.
func New(o Options) tool.Tool {
	if o.Location == nil {
		o.Location = time.Local
	}
	return cronTool{o}
}

type cronTool struct{ Options }

func (t cronTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "cron",
		Label:       "Schedule",
		Description: strings.TrimSpace(description),
		Effect:      tool.Writes,
		Names:       []string{"automations"},
		Groups:      []string{"group:automation"},
		Profiles:    []string{"coding"},
		Sandboxed:   tool.Outside,
		Subagents:   tool.NoSubagents,
		InRuns:      true,
		OwnerOnly:   true,
		Keyed:       true,
		Aliases:     map[string]string{"jobId": "id", "patch": "job"},
		Schema: json.RawMessage(`{"type":"object","required":["action"],"properties":{
			"action":{"type":"string","enum":["status","list","get","add","update","remove","run","runs"]},
			"id":{"type":"string"},
			"schedule":{"type":["string","object"]},
			"tz":{"type":"string"},
			"name":{"type":"string"},
			"text":{"type":"string"},
			"message":{"type":"string"},
			"enabled":{"type":"boolean"},
			"job":{"type":"object"}}}`),
	}
}

func (t cronTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	var a map[string]json.RawMessage
	if err := json.Unmarshal(c.Args, &a); err != nil || a == nil {
		return tool.Result{}, errors.New("arguments: want one JSON object")
	}
	var action, id, other string
	for name, to := range map[string]*string{"action": &action, "id": &id, "jobId": &other} {
		if raw, ok := a[name]; ok && json.Unmarshal(raw, to) != nil {
			return tool.Result{}, fmt.Errorf("arguments: %s must be a string", name)
		}
		delete(a, name)
	}
	switch action = strings.ToLower(strings.TrimSpace(action)); action {
	case "status":
		return t.status(ctx)
	case "list":
		return t.list(ctx, c)
	case "add", "create":
		return t.add(ctx, c, a)
	}
	var do func(context.Context, job.Job, map[string]json.RawMessage) (tool.Result, error)
	switch action {
	case "get":
		do = t.get
	case "update", "edit":
		do = t.update
	case "remove", "delete":
		do = t.remove
	case "run":
		do = func(ctx context.Context, j job.Job, _ map[string]json.RawMessage) (tool.Result, error) {
			return t.start(ctx, j, c.ID)
		}
	case "runs":
		do = t.runs
	default:
		return tool.Result{}, fmt.Errorf("action %q: want status, list, get, add, update, remove, run or runs", action)
	}
	if id = cmp.Or(id, other); id == "" {
		id = inner(a)
	}
	own, err := t.own(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	j, err := job.Find(own, id)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%w; action list shows the jobs", err)
	}
	return do(ctx, j, a)
}

// inner returns the id that the argument job holds.
func inner(a map[string]json.RawMessage) string {
	var in struct {
		ID  string `json:"id"`
		Job string `json:"jobId"`
	}
	if json.Unmarshal(a["job"], &in) != nil {
		return ""
	}
	return cmp.Or(in.ID, in.Job)
}

// own returns the jobs of the agent of the call.
func (t cronTool) own(ctx context.Context, c tool.Call) ([]job.Job, error) {
	all, err := t.Scheduler.List(ctx)
	if err != nil {
		return nil, err
	}
	var own []job.Job
	for _, j := range all {
		if j.ForAgent() == c.Agent {
			own = append(own, j)
		}
	}
	return own, nil
}

// add adds a job. Its id follows from the call, so that a repeated call adds no second one.
func (t cronTool) add(ctx context.Context, c tool.Call, a map[string]json.RawMessage) (tool.Result, error) {
	j, err := t.parse(a)
	if err != nil {
		return tool.Result{}, err
	}
	if j.Agent != "" && j.Agent != c.Agent {
		return tool.Result{}, fmt.Errorf("agentId %s: a job can be added for the agent %s only", j.Agent, c.Agent)
	}
	if j.Session != "" {
		key, err := chela.ParseSessionKey(j.Session, c.Agent)
		switch {
		case err != nil:
			return tool.Result{}, fmt.Errorf("sessionKey: %w", err)
		case key.Agent() != c.Agent:
			return tool.Result{}, fmt.Errorf("sessionKey: session %s belongs to another agent", key)
		}
		j.Session = string(key)
	}
	j.ID, j.Agent, j.Session = job.IDOf(c.ID), c.Agent, cmp.Or(j.Session, string(c.Session))
	j.Principal = chela.PrincipalFrom(ctx)
	if j.Address, err = t.address(ctx, c); err != nil {
		return tool.Result{}, err
	}
	deliverTo(&j, j.Address)
	if j, err = t.Scheduler.Add(ctx, j); err != nil {
		return tool.Result{}, err
	}
	where, _ := t.Scheduler.Preview(j)
	return t.answer(j, fmt.Sprintf("Added %s %q: %s; next %s; goes to: %s.", j.ID, j.Title(), j.Schedule,
		t.next(j), where)), nil
}

// parse reads the job that the arguments describe. An id is not needed to add one.
func (t cronTool) parse(a map[string]json.RawMessage) (job.Job, error) {
	a = maps.Clone(a)
	var in map[string]json.RawMessage
	if json.Unmarshal(a["job"], &in) == nil && in != nil {
		delete(in, "id")
		delete(in, "jobId")
		raw, err := json.Marshal(in)
		if err != nil {
			return job.Job{}, err
		}
		a["job"] = raw
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return job.Job{}, err
	}
	return job.Parse(raw, t.Scheduler.Now(), t.Location)
}

// address returns the address of the chat in which the call was asked for.
func (t cronTool) address(ctx context.Context, c tool.Call) (chela.Address, error) {
	r, err := store.Get(ctx, t.Store, func(r store.Reader) (run.Run, error) { return r.Runs().Get(c.Run) })
	if errors.Is(err, chela.ErrNotFound) { // the call was not made by a run
		return chela.Address{}, nil
	}
	return r.Address, err
}

// deliverTo makes the answers of a job go to the chat in which it was asked for, unless
// it says where they go.
func deliverTo(j *job.Job, chat chela.Address) {
	d := j.Delivery
	if d == nil || d.Mode != job.Announce || d.Channel != "" || chat.Local() {
		return
	}
	to := *d
	to.Channel, to.To = chat.Channel, chat.Peer.ID
	to.Account = cmp.Or(d.Account, string(chat.Account))
	to.Thread = cmp.Or(d.Thread, job.Text(chat.Thread))
	j.Delivery = &to
}

func (t cronTool) update(ctx context.Context, j job.Job, a map[string]json.RawMessage) (tool.Result, error) {
	if len(a) == 0 {
		return tool.Result{}, errors.New("update: say what changes, for example schedule or enabled")
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return tool.Result{}, err
	}
	j, err = t.Scheduler.Update(ctx, j.ID, func(old job.Job) (job.Job, error) {
		next, err := old.Patch(raw, t.Scheduler.Now(), t.Location)
		if err == nil && (next.Agent != old.Agent || next.Session != old.Session) {
			err = errors.New("update: agentId and sessionKey cannot be changed; add another job")
		}
		return next, err
	}, "")
	if err != nil {
		return tool.Result{}, err
	}
	return t.answer(j, fmt.Sprintf("Changed %s %q: %s; next %s.", j.ID, j.Title(), j.Schedule, t.next(j))), nil
}

func (t cronTool) remove(ctx context.Context, j job.Job, _ map[string]json.RawMessage) (tool.Result, error) {
	if _, err := t.Scheduler.Remove(ctx, j.ID); err != nil {
		return tool.Result{}, err
	}
	return tool.Text(fmt.Sprintf("Removed %s %q.", j.ID, j.Title())), nil
}

// start runs a job. call is the id of the tool call.
func (t cronTool) start(ctx context.Context, j job.Job, call string) (tool.Result, error) {
	s, err := t.Scheduler.RunNow(ctx, j.ID, job.Force, chela.RunID(job.IDOf(call)))
	switch {
	case err != nil:
		return tool.Result{}, err
	case s.Run == "":
		return tool.Text(fmt.Sprintf("Not started: %s.", s.Reason)), nil
	}
	return tool.Text(fmt.Sprintf("Started %q. Its answer goes where the job's answers go; action runs shows the outcome.",
		j.Title())), nil
}

// answer returns a result about a job.
func (t cronTool) answer(j job.Job, text string) tool.Result {
	return tool.Detailed(text, map[string]any{
		"id":          j.ID,
		"name":        j.Title(),
		"enabled":     j.Enabled,
		"nextRunAtMs": j.State.Next,
	})
}
