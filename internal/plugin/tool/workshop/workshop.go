// Package workshop implements the tool skill_workshop, with which a model proposes skills.
package workshop

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// auto is the policy of approvals under which nobody is asked about skills that only the
// assistant has written. The other one is "pending".
const auto = "auto"

//go:embed workshop.md
var description string

// Configured returns the tool for the section skills.workshop of the configuration.
func Configured(raw json.RawMessage, shelf *proposal.Shelf) (tool.Tool, error) {
	var o struct {
		Policy string `json:"approvalPolicy"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, err
		}
	}
	return workshop{shelf, o.Policy == auto}, nil
}

type workshop struct {
	shelf *proposal.Shelf
	auto  bool
}

func (t workshop) Spec() tool.Spec {
	return tool.Spec{
		Name:        "skill_workshop",
		Label:       "Skill proposals",
		Description: strings.TrimSpace(description),
		Effect:      tool.Writes,
		OwnerOnly:   true,
		Groups:      []string{"group:agents"},
		Aliases: map[string]string{
			"proposal_id":      "id",
			"skill_name":       "name",
			"proposal_content": "content",
			"support_files":    "files",
		},
		Schema: json.RawMessage(`{"type":"object","required":["action"],"properties":{
			"action":{"type":"string","enum":["create","update","revise","list","inspect","read","history","apply","reject","quarantine","rollback"]},
			"id":{"type":"string"},
			"name":{"type":"string"},
			"description":{"type":"string"},
			"content":{"type":"string"},
			"files":{"type":"array","items":{"type":"object","required":["path","content"],"properties":{
				"path":{"type":"string"},"content":{"type":"string"}},"additionalProperties":false}},
			"remove":{"type":"array","items":{"type":"string"}},
			"reason":{"type":"string"}},
			"additionalProperties":false}`),
	}
}

type args struct {
	Action      string          `json:"action"`
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Content     string          `json:"content"`
	Files       []proposal.File `json:"files"`
	Remove      []string        `json:"remove"`
	Reason      string          `json:"reason"`
}

// Plan implements tool.Planner: a person is asked before a live skill changes.
func (t workshop) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	sum := sha256.Sum256(c.Args)
	p := tool.Plan{Effect: tool.Writes, Text: "skill_workshop " + string(c.Args), Hash: hex.EncodeToString(sum[:])}
	switch a.Action {
	case "list", "inspect", "read", "history":
		p.Effect = tool.Reads
	case "apply", "rollback":
		return t.plan(c, a)
	}
	return p, nil
}

// plan describes what apply and rollback would do.
func (t workshop) plan(c tool.Call, a args) (tool.Plan, error) {
	p, files, err := t.get(c, a.ID)
	if err != nil {
		return tool.Plan{}, err
	}
	plan := tool.Plan{Effect: tool.Writes, Once: true}
	var b strings.Builder
	if a.Action == "rollback" {
		plan.Reason = "it puts back an earlier skill"
		fmt.Fprintf(&b, "skill_workshop: roll back the proposal %s, after which the skill %s is as it was before", p.ID,
			p.Name)
	} else {
		plan.Reason = "it adds a skill"
		verb := "add"
		if p.Update {
			plan.Reason, verb = "it changes a skill", "change"
		}
		fmt.Fprintf(&b, "skill_workshop: %s the skill %s by the proposal %s\n%s", verb, p.Name, p.ID, text(p, files, true))
	}
	plan.Text = strings.TrimSpace(b.String())
	plan.Ask = !t.auto || !p.Own
	sum := sha256.Sum256([]byte(strings.Join([]string{a.Action, p.ID, p.Hash, p.Base, plan.Text}, "\x00")))
	plan.Hash = hex.EncodeToString(sum[:])
	return plan, nil
}

// get returns a proposal of the agent of a call.
func (t workshop) get(c tool.Call, id string) (proposal.Proposal, []proposal.File, error) {
	if id == "" {
		return proposal.Proposal{}, nil, errors.New("id is missing; action list shows the proposals")
	}
	p, files, err := t.shelf.Get(id)
	if err == nil && p.Agent != c.Agent {
		err = fmt.Errorf("the proposal %s belongs to another agent", p.ID)
	}
	return p, files, err
}

func (t workshop) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	d := proposal.Draft{
		Agent:       c.Agent,
		Name:        a.Name,
		Description: a.Description,
		Content:     a.Content,
		Files:       a.Files,
		Remove:      a.Remove,
		Reason:      a.Reason,
		By:          proposal.ByAgent,
		Session:     string(c.Session),
	}
	switch a.Action {
	case "create", "update":
		d.Update = a.Action == "update"
		p, err := t.shelf.Create(d)
		return result(p, nil, "It is pending: tell the person, and apply it when they want it.", err)
	case "list":
		return t.list(c)
	}
	p, files, err := t.get(c, a.ID)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.Action {
	case "revise":
		p, err = t.shelf.Revise(p.ID, d)
		return result(p, nil, "", err)
	case "inspect":
		return result(p, files, "", nil)
	case "read":
		return tool.Text(content(files)), nil
	case "history":
		return history(p), nil
	case "reject":
		p, err = t.shelf.Close(p.ID, "", proposal.Rejected, proposal.ByAgent, a.Reason)
		return result(p, nil, "", err)
	case "quarantine":
		p, err = t.shelf.Close(p.ID, "", proposal.Quarantined, proposal.ByAgent, a.Reason)
		return result(p, nil, "", err)
	case "apply", "rollback":
		return t.change(ctx, c, a, p)
	}
	return tool.Result{},
		fmt.Errorf("action %q: want create, update, revise, list, inspect, read, history, apply, reject, quarantine or rollback", a.Action)
}

// change carries out apply and rollback, if the plan is the one that was allowed.
func (t workshop) change(ctx context.Context, c tool.Call, a args, p proposal.Proposal) (tool.Result, error) {
	plan, err := t.plan(c, a)
	switch {
	case err != nil:
		return tool.Result{}, err
	case plan.Ask && (c.Plan == nil || c.Plan.Hash != plan.Hash):
		return tool.Result{}, errors.New("not allowed: the proposal is not the one that was approved")
	case a.Action == "rollback":
		p, err = t.shelf.Rollback(ctx, p.ID, proposal.ByAgent)
		return result(p, nil, "The skill is as it was before; it counts from the next turn.", err)
	}
	p, err = t.shelf.Apply(ctx, p.ID, p.Hash, proposal.ByAgent)
	return result(p, nil, "It counts from the next turn. Tell the person; `rollback` undoes it.", err)
}

func (t workshop) list(c tool.Call) (tool.Result, error) {
	all, err := t.shelf.List(c.Agent)
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	const most = 50
	for _, p := range all[:min(most, len(all))] {
		fmt.Fprintf(&b, "%s  %s  %s: %s\n", p.ID, p.State, p.Name, p.Description)
	}
	if len(all) == 0 {
		b.WriteString("There are no proposals.")
	}
	return tool.Text(strings.TrimSpace(b.String())), nil
}

// result describes a proposal, with what follows.
func result(p proposal.Proposal, files []proposal.File, next string, err error) (tool.Result, error) {
	if err != nil {
		return tool.Result{}, err
	}
	s := fmt.Sprintf("Proposal %s: the skill %s is %s.\n%s", p.ID, p.Name, p.State, text(p, files, false))
	return tool.Detailed(strings.TrimSpace(strings.TrimSpace(s)+"\n"+next),
		map[string]any{"id": p.ID, "name": p.Name, "state": p.State, "findings": p.Findings}), nil
}

// text describes a proposal for people. whole shows SKILL.md.
func text(p proposal.Proposal, files []proposal.File, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Description: %s\n", p.Description)
	if p.Reason != "" {
		fmt.Fprintf(&b, "Reason: %s\n", p.Reason)
	}
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "Scanner: %s\n", f)
	}
	for i, f := range files {
		if whole && i == 0 {
			fmt.Fprintf(&b, "%s:\n%s\n", f.Path, strings.TrimSpace(f.Content))
			continue
		}
		sum := sha256.Sum256([]byte(f.Content))
		fmt.Fprintf(&b, "%s (%s, sha256 %s)\n", f.Path, humanize.Bytes(int64(len(f.Content))), hex.EncodeToString(sum[:6]))
	}
	return b.String()
}

// content returns the files of a proposal.
func content(files []proposal.File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "=== %s\n%s\n", f.Path, f.Content)
	}
	return strings.TrimSpace(b.String())
}

func history(p proposal.Proposal) tool.Result {
	var b strings.Builder
	for _, e := range p.Events {
		fmt.Fprintf(&b, "%s  %s by %s", e.Time.Format("2006-01-02 15:04:05"), e.State, e.By)
		if e.Note != "" {
			b.WriteString(": " + e.Note)
		}
		b.WriteByte('\n')
	}
	return tool.Text(strings.TrimSpace(b.String()))
}

var _ tool.Planner = workshop{}
