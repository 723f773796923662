package acp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Name is the name of the tool that stands for what an agent does itself.
const Name = "coding_agent"

const (
	maxTitle = 300      // characters of the title of a call
	maxInput = 16 << 10 // bytes of the input of a call in the transcript
)

// Tool returns the tool that stands for what agents do themselves. Only the runs that an
// agent answers have it.
func (p *Pool) Tool() tool.Tool { return callTool{p} }

type callTool struct{ p *Pool }

var _ tool.Planner = callTool{}

// Spec implements tool.Tool.
func (callTool) Spec() tool.Spec {
	return tool.Spec{
		Name: Name, Label: "Coding agent", Effect: tool.Acts,
		Description: "Shows what the coding agent of the session does. It is called by the agent only.",
		Title: func(args json.RawMessage) string {
			var a callArgs
			_ = json.Unmarshal(args, &a) // an empty title is shown
			return cmp.Or(a.Title, a.Kind, a.ID)
		},
		Schema: json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"title":{"type":"string"},"kind":{"type":"string"},"input":{}},"additionalProperties":false}`),
	}
}

// callArgs are the arguments of a call.
type callArgs struct {
	ID    string          `json:"id"` // that the agent gave it
	Title string          `json:"title,omitempty"`
	Kind  string          `json:"kind,omitempty"` // read, edit, execute, …
	Input json.RawMessage `json:"input,omitempty"`
}

// rightPrefix begins the right that an approval grants. What follows identifies what was
// shown to the person.
const rightPrefix = "agent:"

// Plan implements tool.Planner. A call needs an approval if the agent asks for permission,
// which Run finds out.
func (c callTool) Plan(_ context.Context, call tool.Call) (tool.Plan, error) {
	a, err := tool.Decode[callArgs](call.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	p := tool.Plan{Effect: tool.Acts, Text: a.Title}
	if len(call.Rights) == 0 {
		return p, nil
	}
	p.Hash = call.Rights[len(call.Rights)-1]
	ag, t := c.p.turnOf(call.Session, call.Run)
	if t == nil {
		return p, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.calls[a.ID]; k != nil {
		p.Text = k.text(ag.name, ag.dir)
		p.Reason = fmt.Sprintf("the coding agent %s asks for permission", ag.name)
	}
	return p, nil
}

// text returns what a call would do, for people.
func (k *toolCall) text(name, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s", name, dir)
	if k.kind != "" {
		fmt.Fprintf(&b, " (%s)", k.kind)
	}
	b.WriteString(": " + k.title)
	if len(k.input) > 0 {
		b.WriteString("\n" + string(k.input))
	}
	if k.output != "" {
		b.WriteString("\n" + k.output)
	}
	return b.String()
}

// right returns the right to make exactly this call.
func (k *toolCall) right(name, dir string) string {
	sum := sha256.Sum256([]byte(k.text(name, dir)))
	return rightPrefix + hex.EncodeToString(sum[:12])
}

// Run implements tool.Tool. It waits until the agent has made the call, or until something
// else has to be shown.
func (c callTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	a, err := tool.Decode[callArgs](call.Args)
	if err != nil {
		return tool.Result{}, err
	}
	ag, t := c.p.turnOf(call.Session, call.Run)
	if t == nil {
		return tool.Result{},
			chela.Errorf(chela.CodeUnavailable, "the coding agent was ended meanwhile; what became of this is not known")
	}
	shown := ""
	for {
		t.mu.Lock()
		k := t.calls[a.ID]
		if k == nil {
			t.mu.Unlock()
			return tool.Result{}, chela.Errorf(chela.CodeNotFound, "the coding agent has no such call")
		}
		if k.ask != nil {
			right := k.right(ag.name, ag.dir)
			if !hasRight(call.Rights, right) {
				k.ask.asked = true
				t.mu.Unlock()
				return tool.Result{}, &tool.Blocked{Rights: []string{right}, Again: true}
			}
			k.ask.decide(true)
			k.ask = nil
		}
		output, done := k.output, true
		res := tool.Text(cmp.Or(output, "(no output)"))
		switch {
		case k.status == sdk.ToolCallStatusCompleted:
		case k.status == sdk.ToolCallStatusFailed:
			res = tool.Text(cmp.Or(output, "(failed)"))
			res.IsError = true
		case t.over || t.dropped:
			res = tool.Text(cmp.Or(output, "(the agent did not say how it ended)"))
		case t.attentionLocked():
			res = tool.Text(strings.TrimSpace(output + "\n(in progress)"))
		default:
			done = false
		}
		if done {
			k.shown = false
		}
		changed := t.changed
		t.mu.Unlock()
		if rest, ok := strings.CutPrefix(output, shown); ok && rest != "" {
			call.Update(rest)
			shown = output
		}
		if done {
			return res, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			ag.cancelTurn(t)
			return tool.Result{}, ctx.Err()
		}
	}
}

// hasRight reports whether an approval granted a right.
func hasRight(rights []string, right string) bool {
	for _, r := range rights {
		if r == right {
			return true
		}
	}
	return false
}
