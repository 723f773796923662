package sessions

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
)

//go:embed subagents.md
var subagentsDescription string

// NewSubagents returns the tool subagents.
func NewSubagents(s Spawner) tool.Tool { return subagentsTool{s} }

type subagentsTool struct{ Spawner }

func (t subagentsTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "subagents",
		Label:       "Subagents",
		Description: strings.TrimSpace(subagentsDescription),
		Effect:      tool.Writes,
		Groups:      []string{"group:sessions"},
		Profiles:    []string{"messaging"},
		Sandboxed:   tool.Inside,
		Roles:       []tool.Role{tool.LeadsSubagents},
		Volatile:    []string{"runtime", "tokens"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"action":{"type":"string","enum":["list","kill","cancel","steer"]},
			"target":{"type":"string"},
			"message":{"type":"string"},
			"recentMinutes":{"type":"number","minimum":1,"description":"list: also ended ones (30)"}},
			"additionalProperties":false}`),
	}
}

// Plan implements tool.Planner: a list only reads.
func (t subagentsTool) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[subagentsArgs](c.Args)
	p := tool.Plan{Effect: tool.Writes}
	if a.Action == "" || a.Action == "list" {
		p.Effect = tool.Reads
	}
	return p, err
}

type subagentsArgs struct {
	Action  string  `json:"action"`
	Target  string  `json:"target"`
	Message string  `json:"message"`
	Recent  float64 `json:"recentMinutes"`
}

// row is one child in a list.
type row struct {
	Index   int              `json:"index"`
	Run     chela.RunID      `json:"runId"`
	Session chela.SessionKey `json:"sessionKey"`
	Label   string           `json:"label"`
	Name    string           `json:"taskName,omitempty"`
	Task    string           `json:"task"`
	Status  string           `json:"status"`
	Runtime string           `json:"runtime"`
	Tokens  int64            `json:"tokens,omitempty"`
	Model   string           `json:"model,omitempty"`
}

// defaultRecent is how long children that have ended are listed.
const defaultRecent = 30 * time.Minute

func (t subagentsTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[subagentsArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.Action {
	case "", "list":
		return t.listed(ctx, c.Session, a.Recent)
	case "kill", "cancel":
		killed, err := t.Kill(ctx, c.Session, a.Target)
		if err != nil {
			return tool.Result{}, err
		}
		labels := []string{}
		for _, k := range killed {
			labels = append(labels, k.Label)
		}
		return encoded(struct {
			Status string   `json:"status"`
			Killed int      `json:"killed"`
			Labels []string `json:"labels"`
		}{"ok", len(killed), labels})
	case "steer":
		child, err := t.Steer(ctx, c.Session, a.Target, a.Message)
		if err != nil {
			return tool.Result{}, err
		}
		return encoded(struct {
			Status  string           `json:"status"`
			Run     chela.RunID      `json:"runId"`
			Session chela.SessionKey `json:"sessionKey"`
			Label   string           `json:"label"`
		}{"accepted", child.ID, child.Session, child.Label})
	}
	return tool.Result{}, fmt.Errorf("action %q: want list, kill, cancel or steer", a.Action)
}

func (t subagentsTool) listed(ctx context.Context, key chela.SessionKey, minutes float64) (tool.Result, error) {
	l, err := t.List(ctx, key)
	if err != nil {
		return tool.Result{}, err
	}
	recent := defaultRecent
	if minutes > 0 {
		recent = time.Duration(minutes * float64(time.Minute))
	}
	out := struct {
		Requester chela.SessionKey `json:"requester"`
		Active    []row            `json:"active"`
		Recent    []row            `json:"recent"`
	}{l.Of, []row{}, []row{}}
	now := time.Now()
	for i := len(l.Children) - 1; i >= 0; i-- {
		c := l.Children[i]
		r := row{
			Index:   len(l.Children) - i,
			Run:     c.ID,
			Session: c.Session,
			Label:   c.Label,
			Name:    c.Name,
			Task:    firstLine(c.Task),
			Model:   c.Model,
			Status:  c.Status(),
			Runtime: c.Runtime(now).Round(time.Second).String(),
			Tokens:  c.Tokens.Total(),
		}
		switch {
		case c.Open():
			out.Active = append(out.Active, r)
		case now.Sub(c.Ended) <= recent:
			out.Recent = append(out.Recent, r)
		}
	}
	return encoded(out)
}

// maxTask is the maximum length of a task in a list, in bytes.
const maxTask = 160

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > maxTask {
		s = strings.ToValidUTF8(s[:maxTask], "") + "…"
	}
	return s
}

var _ tool.Planner = subagentsTool{}
