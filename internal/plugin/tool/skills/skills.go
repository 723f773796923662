// Package skills implements the tool skills, with which a model searches the registry of
// skills and installs one, if the person agrees.
package skills

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

//go:embed skills.md
var text string

// Found is a skill of the registry.
type Found struct{ Name, Version, Description string }

// Registry is a registry of skills.
type Registry interface {
	// Search returns the skills that fit some words.
	Search(ctx context.Context, words string, limit int) ([]Found, error)
	// Install installs a skill, whose files must have the hash. It replaces none. A
	// preview installs nothing, and its hash may be empty.
	Install(ctx context.Context, name, version, hash string, preview bool) (skill.Candidate, error)
}

// New returns the tool.
func New(r Registry) tool.Tool { return skillsTool{r, untrusted.New()} }

type skillsTool struct {
	r     Registry
	label untrusted.Labeler
}

var _ tool.Planner = skillsTool{}

// maxFound is the number of skills that a search returns.
const maxFound = 20

type args struct {
	Action  string `json:"action"`
	Query   string `json:"query"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (skillsTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "skills", Label: "Skills", Description: text, Effect: tool.Acts,
		Groups: []string{"group:agents"}, Subagents: tool.NoSubagents,
		Schema: json.RawMessage(`{"type":"object","required":["action"],"properties":{
			"action":{"type":"string","enum":["search","install"]},
			"query":{"type":"string","description":"search: a few words"},
			"name":{"type":"string","description":"install: the name that search returned"},
			"version":{"type":"string","description":"default: the newest"}},
			"additionalProperties":false}`),
	}
}

// Plan implements tool.Planner: an installation asks, and shows what would be installed.
func (t skillsTool) Plan(ctx context.Context, c tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil || a.Action != "install" {
		return tool.Plan{Effect: tool.Reads}, err
	}
	k, err := t.r.Install(ctx, a.Name, a.Version, "", true)
	if err != nil {
		return tool.Plan{}, err
	}
	p := tool.Plan{
		Effect: tool.Acts,
		Ask:    true,
		Once:   true,
		Reason: "installs a skill",
		Text:   describe(k),
		Hash:   k.Origin.Hash,
		Value:  k.Origin.Hash,
	}
	switch {
	case k.Exists:
		p.Deny = fmt.Sprintf("the skill %s is installed already; the person can update it: chela skills update %s",
			k.Skill.Name, k.Dir)
	case skill.Worst(k.Findings) == skill.Critical:
		p.Deny = fmt.Sprintf(
			"a scan has critical findings, so that only the person can install it: chela skills install %s --force\n%s",
			a.Name, findings(k))
	}
	return p, nil
}

// describe describes a skill that would be installed, for the person.
func describe(k skill.Candidate) string {
	s := fmt.Sprintf("Install the skill %s %s from the registry for all agents.\n%s\nsha256 %s", k.Skill.Name,
		k.Origin.Version, k.Skill.Description, k.Origin.Hash)
	if len(k.Findings) > 0 {
		s += "\nA scan found:\n" + findings(k)
	}
	return s
}

func findings(k skill.Candidate) string {
	var lines []string
	for _, f := range k.Findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

func (t skillsTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[args](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	if a.Action == "install" {
		return t.install(ctx, c, a)
	}
	found, err := t.r.Search(ctx, a.Query, maxFound)
	if err != nil {
		return tool.Result{}, err
	}
	if len(found) == 0 {
		return tool.Text("The registry has no such skill."), nil
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Name, f.Version, f.Description)
	}
	return tool.Text(t.label.Wrap("skills", "Descriptions by the authors of skills: "+untrusted.Data,
		strings.TrimSpace(b.String()))), nil
}

func (t skillsTool) install(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	if c.Plan == nil {
		return tool.Result{}, fmt.Errorf("install %s: it was not planned", a.Name)
	}
	hash, _ := c.Plan.Value.(string)
	k, err := t.r.Install(ctx, a.Name, a.Version, hash, false)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(fmt.Sprintf("Installed %s %s. Read %s to use it.", k.Skill.Name, k.Origin.Version, k.Skill.File)), nil
}
