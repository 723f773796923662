// Package plan implements the tool plan, with which a model writes the plan of its
// session (core/plan).
package plan

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

//go:embed plan.md
var description string

// Options are the dependencies of the tool.
type Options struct {
	Store   store.Store
	Publish func(chela.Event) // tells observers of a new plan, after it was committed
}

// Configured returns the tool, which is off if the section of the configuration
// (tools.updatePlan) is false, or if nobody can be told of a plan.
func Configured(raw json.RawMessage, o Options) ([]tool.Tool, error) {
	on := true
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &on); err != nil {
			return nil, fmt.Errorf("tools.updatePlan: %w", err)
		}
	}
	if !on || o.Publish == nil {
		return tool.Off(planTool{o}), nil
	}
	return []tool.Tool{planTool{o}}, nil
}

type planTool struct{ Options }

func (t planTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "plan",
		Label:       "Plan",
		Description: strings.TrimSpace(description),
		Effect:      tool.Writes,
		Keyed:       true,
		Names:       []string{"update_plan", "progress_card"},
		Groups:      []string{"group:agents"},
		Sandboxed:   tool.Inside,
		Roles:       []tool.Role{tool.KeepsPlan},
		Title:       title,
		Aliases:     map[string]string{"plan": "steps", "todos": "steps"},
		Schema: json.RawMessage(`{"type":"object","required":["steps"],"properties":{
			"steps":{"type":"array","maxItems":50,"items":{"type":"object","required":["title"],"properties":{
				"id":{"type":"string","description":"default: its position"},
				"title":{"type":"string"},
				"state":{"type":"string","enum":["pending","in_progress","completed","failed","cancelled"]},
				"after":{"type":"array","items":{"type":"string"},"description":"ids it depends on"}},
				"additionalProperties":false}}},
			"additionalProperties":false}`),
	}
}

// title returns the title of a call: how far the plan is, and its steps in progress.
func title(args json.RawMessage) string {
	var a planArgs
	_ = json.Unmarshal(args, &a) // a model sent it: a field may have another type
	done, now := 0, []string{}
	for _, s := range a.Steps {
		switch {
		case s.State.Final():
			done++
		case s.State == plan.InProgress:
			now = append(now, s.Title)
		}
	}
	return fmt.Sprintf("%d/%d %s", done, len(a.Steps), strings.Join(now, ", "))
}

type planArgs struct {
	Steps []plan.Step `json:"steps"`
}

// Run replaces the plan of the session. A second call with the same steps changes nothing.
func (t planTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[planArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	p, err := plan.New(a.Steps, time.Now())
	if err != nil {
		return tool.Result{}, err
	}
	changed := false
	err = t.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(c.Session)
		if err != nil {
			return fmt.Errorf("session %s: %w", c.Session, err)
		}
		if err := current(tx, m, c.Run); err != nil {
			return err
		}
		changed, err = session.SetPlan(tx.Sessions(), m, p)
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	if changed {
		t.Publish(chela.Event{Run: c.Run, Session: c.Session, Stream: chela.StreamPlan, Data: p})
	}
	return tool.Detailed(report(p), p), nil
}

// current returns an error if the run of a call has ended, or belongs to an earlier
// transcript of the session: its plan must not replace that of the present work.
func current(tx store.Tx, m session.Meta, id chela.RunID) error {
	if id == "" { // a person called the tool
		return nil
	}
	r, err := tx.Runs().Get(id)
	switch {
	case errors.Is(err, chela.ErrNotFound):
		return nil
	case err != nil:
		return err
	case r.State.Final() || r.Kind != run.Turn || r.SessionID != m.ID:
		return chela.Errorf(chela.CodeConflict, "the plan was not changed: this run is over, or a new conversation has begun")
	}
	return nil
}

// report returns what the model is told about the new plan.
func report(p plan.Plan) string {
	var active, ready []string
	for _, s := range p.Steps {
		switch {
		case s.State == plan.InProgress:
			active = append(active, s.ID)
		case s.State == plan.Pending && len(p.Waits(s)) == 0:
			ready = append(ready, s.ID)
		}
	}
	switch {
	case len(p.Steps) == 0:
		return "The plan is empty."
	case !p.Open():
		return fmt.Sprintf("The plan is finished: %d of %d steps are done.", p.Done(), len(p.Steps))
	}
	text := fmt.Sprintf("%d of %d steps are done.", p.Done(), len(p.Steps))
	if len(active) > 0 {
		text += " In progress: " + strings.Join(active, ", ") + "."
	}
	if len(ready) > 0 {
		text += " Can be started: " + strings.Join(ready, ", ") + "."
	}
	return text
}
