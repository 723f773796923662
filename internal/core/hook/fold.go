package hook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// foldVerdict adds the verdict of a hook. A block is final. Arguments replace those
// of the call, for the next hook as well.
func foldVerdict(e *Call, total *Verdict, v Verdict, by string) effect {
	refuse := func(why string) effect {
		total.Block, total.Reason = true, why
		return final
	}
	if v.Block {
		return refuse(cmp.Or(v.Reason, "the hook "+by+" blocked it"))
	}
	if v.Ask {
		total.Ask, total.Asks = true, append(total.Asks, Ask{by, v.Reason, v.Wait})
	}
	if v.Args == nil {
		return nothing
	}
	if e.Valid != nil {
		if err := e.Valid(v.Args); err != nil {
			return refuse(fmt.Sprintf("the hook %s returned invalid arguments: %v", by, err))
		}
	}
	e.Args, total.Args = v.Args, v.Args
	return changed
}

func refuseCall(total *Verdict, why string) { total.Block, total.Reason = true, why }

// maxWait bounds the time for which an approval can be requested.
const maxWait = 24 * time.Hour

// approval is a request for an approval in JSON.
type approval struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Severity    string `json:"severity"`
	TimeoutMS   int64  `json:"timeoutMs"`
}

// UnmarshalJSON implements json.Unmarshaler. A request for an approval is the member
// requireApproval: true, a reason, or {title, description, severity, timeoutMs}.
func (v *Verdict) UnmarshalJSON(b []byte) error {
	type plain Verdict
	var in struct {
		plain
		Approval json.RawMessage `json:"requireApproval"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*v = Verdict(in.plain)
	if string(v.Args) == "null" {
		v.Args = nil
	}
	var a approval
	switch raw := strings.TrimSpace(string(in.Approval)); {
	case raw == "", raw == "null", raw == "false":
		return nil
	case raw == "true":
	case raw[0] == '"':
		if err := json.Unmarshal(in.Approval, &a.Title); err != nil {
			return err
		}
	default:
		if err := json.Unmarshal(in.Approval, &a); err != nil {
			return fmt.Errorf("requireApproval: %w", err)
		}
	}
	var parts []string
	for _, s := range [...]string{a.Title, a.Description} {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	if reason := strings.Join(parts, ": "); reason != "" {
		v.Reason = reason
		if a.Severity != "" {
			v.Reason = "[" + a.Severity + "] " + reason
		}
	}
	v.Ask, v.Wait = true, time.Duration(min(max(a.TimeoutMS, 0), maxWait.Milliseconds()))*time.Millisecond
	return nil
}

// foldModel keeps the first choice.
func foldModel(_ *BeforeModelResolve, total *ModelChoice, c ModelChoice, _ string) effect {
	if c == (ModelChoice{}) {
		return nothing
	}
	*total = c
	return final
}

func foldPrompt(e *BeforePromptBuild, total *PromptChange, c PromptChange, _ string) effect {
	if c.ToolsAllow != nil {
		allowed := c.ToolsAllow
		if total.ToolsAllow != nil {
			allowed = slices.DeleteFunc(slices.Clone(total.ToolsAllow),
				func(t string) bool { return !slices.Contains(c.ToolsAllow, t) })
		}
		total.ToolsAllow = allowed
		e.Tools = slices.DeleteFunc(slices.Clone(e.Tools), func(t string) bool { return !slices.Contains(allowed, t) })
	}
	total.System = cmp.Or(total.System, c.System)
	for _, t := range [...]struct {
		to   *string
		text string
	}{{&total.PrependContext, c.PrependContext}, {&total.PrependSystem, c.PrependSystem},
		{&total.AppendSystem, c.AppendSystem}} {
		if t.text != "" && *t.to != "" {
			t.text = "\n\n" + t.text
		}
		*t.to += t.text
	}
	return changed
}

// foldClaim keeps the answer of the first hook that handles the message.
func foldClaim[E any](_ *E, total *Claim, c Claim, _ string) effect {
	if !c.Handled {
		return nothing
	}
	c.Text = cmp.Or(c.Text, c.Reply.Text)
	*total = c
	return final
}

func foldBlock[E any](_ *E, total *Block, b Block, by string) effect {
	if !b.Block {
		return nothing
	}
	refuseBlock(total, cmp.Or(b.Reason, "the hook "+by+" blocked it"))
	return final
}

func refuseBlock(total *Block, why string) { *total = Block{Block: true, Reason: why} }

func foldBootstrap(e *AgentBootstrap, total *BootstrapFiles, b BootstrapFiles, _ string) effect {
	if b.Files == nil {
		return nothing
	}
	e.Files, total.Files = b.Files, b.Files
	return changed
}

func foldRevision(_ *BeforeAgentFinalize, total *Revision, r Revision, by string) effect {
	if r.Action != "revise" {
		return nothing
	}
	*total = r
	total.Reason = cmp.Or(r.Reason, "the hook "+by+" asks you to check your answer")
	return final
}

// foldText returns the fold of a point at which hooks replace the text at.
func foldText[E any](at func(*E) *string) func(*E, *TextChange, TextChange, string) effect {
	return func(e *E, total *TextChange, c TextChange, _ string) effect {
		switch {
		case c.Block:
			*total = TextChange{Block: true}
			return final
		case c.Text == nil:
			return nothing
		}
		*at(e), total.Text = *c.Text, c.Text
		return changed
	}
}

func foldEnv(_ *ResolveExecEnv, total *ExecEnv, v ExecEnv, _ string) effect {
	if len(v.Env) == 0 {
		return nothing
	}
	if total.Env == nil {
		total.Env = map[string]string{}
	}
	maps.Copy(total.Env, v.Env)
	return changed
}

func foldSend(e *MessageSending, total *Send, s Send, by string) effect {
	if s.Cancel {
		refuseSend(total, cmp.Or(s.Reason, "the hook "+by+" cancelled it"))
		return final
	}
	if s.Content == nil {
		return nothing
	}
	e.Content, total.Content = *s.Content, s.Content
	return changed
}

func refuseSend(total *Send, why string) { *total = Send{Cancel: true, Reason: why} }

func foldSpawning(_ *SubagentSpawning, total *Spawning, s Spawning, by string) effect {
	switch s.Status {
	case "error":
		refuseSpawning(total, cmp.Or(s.Error, "the hook "+by+" refused it"))
		return final
	case "ok":
		total.Status = s.Status
		total.Ready, total.Thread = total.Ready || s.Ready, cmp.Or(total.Thread, s.Thread)
		return changed
	}
	return nothing
}

func refuseSpawning(total *Spawning, why string) { *total = Spawning{Status: "error", Error: why} }

func foldTarget(_ *SubagentDeliveryTarget, total *DeliveryTarget, t DeliveryTarget, _ string) effect {
	if t.Origin == nil {
		return nothing
	}
	*total = t
	return final
}

func foldHeartbeat(_ *HeartbeatPrompt, total *HeartbeatContribution, c HeartbeatContribution, _ string) effect {
	if c == (HeartbeatContribution{}) {
		return nothing
	}
	total.Prepend, total.Append = strings.TrimSpace(total.Prepend+"\n\n"+c.Prepend),
		strings.TrimSpace(total.Append+"\n\n"+c.Append)
	return changed
}
