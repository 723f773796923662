package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// plan is what the model does for a message or a task.
type plan struct {
	kind   string
	rounds [][]planned
	end    string // say, silent, skip, nothing, hang, refuse, overflow, loop
}

// planned is a tool call of a plan.
type planned struct {
	key  string // of the call; the label of a subagent
	tool string
	args map[string]any
}

// maxRounds is the limit of rounds of tool calls of a run.
const maxRounds = 8

// planOf returns the plan for a tag.
func (w *world) planOf(tag string) plan {
	r := w.rnd("plan", tag)
	depth := strings.Count(tag, ".c")
	var kind string
	switch {
	case strings.HasPrefix(tag, "probe"):
		return w.probePlan(tag)
	case strings.HasPrefix(tag, "p."):
		return plan{kind: "probe"}
	case tag == beatTag, strings.HasPrefix(tag, "b"):
		return plan{kind: tag, end: "say"}
	case strings.HasPrefix(tag, "w"): // a webhook
		kind = pick(r, weighted[string]{10, "say"}, weighted[string]{4, "read"}, weighted[string]{4, "tools"},
			weighted[string]{2, "silent"}, weighted[string]{2, "refuse"}, weighted[string]{2, "hang"})
	case strings.HasSuffix(tag, ".x"): // a message of another session
		kind = pick(r, weighted[string]{6, "say"}, weighted[string]{3, "read"}, weighted[string]{1, "silent"},
			weighted[string]{1, "hang"}, weighted[string]{1, "refuse"})
	case depth == 0:
		kind = pick(r, weighted[string]{26, "say"}, weighted[string]{26, "tools"}, weighted[string]{26, "spawn"},
			weighted[string]{10, "send"}, weighted[string]{5, "silent"},
			weighted[string]{5, "hang"}, weighted[string]{5, "refuse"}, weighted[string]{3, "overflow"},
			weighted[string]{4, "loop"})
		if own := cmp.Or(w.byTagKind(tag), w.jobKind(tag)); own != "" {
			kind = own
		}
	case depth == 1:
		kind = pick(r, weighted[string]{20, "say"}, weighted[string]{25, "tools"}, weighted[string]{25, "spawn"},
			weighted[string]{8, "hang"},
			weighted[string]{6, "refuse"}, weighted[string]{8, "nothing"}, weighted[string]{8, "skip"})
	default:
		kind = pick(r, weighted[string]{40, "say"}, weighted[string]{30, "tools"}, weighted[string]{10, "hang"},
			weighted[string]{5, "refuse"},
			weighted[string]{5, "nothing"}, weighted[string]{10, "skip"})
	}
	p := plan{kind: kind, end: kind}
	round := 0
	add := func(calls ...planned) {
		for i := range calls {
			if calls[i].key == "" {
				calls[i].key = fmt.Sprintf("%s.%d.%d", tag, round, i)
			}
			if calls[i].args == nil {
				calls[i].args = map[string]any{"key": calls[i].key}
			}
		}
		p.rounds = append(p.rounds, calls)
		round++
	}
	switch kind {
	case "tools":
		p.end = "say"
		for range 1 + r.IntN(3) {
			var calls []planned
			for range 1 + r.IntN(3) {
				calls = append(calls,
					planned{tool: pick(r, weighted[string]{3, "look"}, weighted[string]{2, "put"}, weighted[string]{3, "act"},
						weighted[string]{2, "wait"}, weighted[string]{2, "ask"}, weighted[string]{3, "later"})})
			}
			add(calls...)
		}
	case "spawn":
		p.end = "say"
		var calls []planned
		for i := range 1 + r.IntN(4-min(depth, 1)*2) {
			label := fmt.Sprintf("%s.c%d", tag, i)
			args := map[string]any{"task": "do <<" + label + ">>", "label": label}
			if k := w.planOf(label).kind; k == "hang" || r.IntN(8) == 0 {
				args["runTimeoutSeconds"] = 5 + r.IntN(200)
			}
			if r.IntN(6) == 0 {
				args["cleanup"] = "delete"
			}
			if r.IntN(6) == 0 {
				args["context"] = "fork"
			}
			calls = append(calls, planned{key: label, tool: "sessions_spawn", args: args})
		}
		first := calls[0].key
		if r.IntN(3) == 0 {
			calls = append(calls, planned{tool: pick(r, weighted[string]{1, "act"}, weighted[string]{1, "look"})})
		}
		add(calls...)
		switch r.IntN(6) {
		case 0:
			add(planned{tool: "wait"})
			add(planned{tool: "subagents", args: map[string]any{"action": "kill", "target": first}})
		case 2:
			add(planned{tool: "wait"})
			add(planned{key: first + ".x", tool: "sessions_send", args: w.sendArgs(r, "label", first, first+".x")})
		case 1:
			add(planned{tool: "subagents", args: map[string]any{
				"action":  "steer",
				"target":  first,
				"message": "also consider the <<" + first + ".steer>>",
			}})
		}
		if r.IntN(2) == 0 {
			add(planned{tool: "sessions_yield", args: map[string]any{}})
		}
	case "read":
		p.end = "say"
		add(planned{tool: pick(r, weighted[string]{1, "look"}, weighted[string]{1, "wait"})})
	case "send":
		p.end = "say"
		to := pick(r, weighted[string]{6, "main:main"}, weighted[string]{2, "main:second"},
			weighted[string]{1, "main:able:direct:ann"},
			weighted[string]{1, "main:able:group:club"}, weighted[string]{1, "main:plain:direct:bob"})
		add(planned{key: tag + ".x", tool: "sessions_send", args: w.sendArgs(r, "sessionKey", "agent:"+to, tag+".x")})
		if r.IntN(2) == 0 {
			add(planned{tool: pick(r, weighted[string]{1, "look"}, weighted[string]{1, "wait"})})
		}
	case "loop":
		for i := range 3 * maxRounds {
			add(planned{tool: "look", args: map[string]any{"key": fmt.Sprint(tag, ".loop", i)}})
		}
		p.end = "say"
	}
	return p
}

// sendArgs returns the arguments of a message to another session.
func (w *world) sendArgs(r *rand.Rand, by, target, tag string) map[string]any {
	return map[string]any{
		by: target, "message": "tell me about <<" + tag + ">>",
		"timeoutSeconds": pick(r, weighted[int]{1, 0}, weighted[int]{2, 5}, weighted[int]{1, 60}),
	}
}

func (w *world) byTagKind(tag string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.byTag[tag]; m != nil {
		return m.kind
	}
	return ""
}

// probePlan is the plan of a probe: "probe.N" starts N subagents that must run at the
// same time.
func (w *world) probePlan(tag string) plan {
	p := plan{kind: "probe", end: "say"}
	var calls []planned
	var n int
	fmt.Sscanf(tag, "probe.%d", &n)
	for i := range n {
		label := fmt.Sprintf("p.%s.%d", tag, i)
		calls = append(calls,
			planned{key: label, tool: "sessions_spawn", args: map[string]any{"task": "do <<" + label + ">>", "label": label}})
	}
	if n > 0 {
		p.rounds = [][]planned{calls}
	}
	return p
}

// model is the model as a gateway sees it.
type model struct{ l *life }

var announced = regexp.MustCompile(`The subagent "([^"]+)"`)

// Stream implements llm.Provider.
func (m model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(m.l.ctx, cancel)()
		if m.l.dead() {
			yield(llm.Event{}, errDead)
			return
		}
		for e, err := range llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			return m.l.w.answerTo(ctx, r)
		}).Stream(ctx, r) {
			if m.l.dead() {
				yield(llm.Event{}, errDead)
				return
			}
			// A session that is deleted when its run resumes has no messages any more.
			if llm.ClassOf(err) == llm.ClassFormat && !strings.Contains(err.Error(), "refused") && len(r.Messages) > 0 {
				m.l.w.broken("LOOP: the model was sent an invalid request: %v", err)
			}
			if e.Kind == llm.Done {
				m.l.w.spend(r.Session, e.Usage)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (w *world) spend(session string, u llm.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used[session] = w.used[session].Add(u)
}

// answerTo returns the model's answer to a request.
func (w *world) answerTo(ctx context.Context, r *llm.Request) llmtest.Step {
	made := map[string]bool{} // calls in the transcript
	begin := 0                // of the messages since the last answer
	for i, m := range r.Messages {
		if m.Role != llm.RoleAssistant {
			continue
		}
		for _, c := range m.Calls() {
			key, _, _ := strings.Cut(c.ID, "~")
			made[key] = true
		}
		if len(m.Calls()) == 0 {
			begin = i + 1
		}
	}
	var tags, news []string
	label := labelOf(r)
	for _, m := range r.Messages[begin:] {
		if m.Role != llm.RoleUser {
			continue
		}
		text := m.PlainText()
		if strings.Contains(text, exchange.Marker) {
			if !strings.Contains(text, "Your answer is sent to that session") { // it repeats an earlier message
				continue
			}
			tags = nil // in a fork that was stopped before it began, they are those of the requester
		}
		if strings.HasPrefix(text, subagent.Heading) { // of a fork: what precedes it is not its task
			tags, news = nil, nil
		}
		if a := announced.FindStringSubmatch(text); a != nil {
			news = append(news, a[1])
			continue
		}
		tags = append(tags, tagsIn(text)...)
	}
	last := ""
	if len(tags) > 0 {
		last = tags[len(tags)-1]
	}
	w.mu.Lock()
	w.asked[last]++
	n := w.asked[last]
	w.mu.Unlock()
	w.tell("model: asked about %s, news %s, session %.8s, time %d", strings.Join(tags, " "),
		strings.Join(news, " "), r.Session, n)
	if p := w.probeOf(last); p != nil {
		return w.waitProbe(ctx, last, p)
	}
	rnd := w.rnd("answer", last, n, len(made))
	step := w.step(tags, news, label, made, len(r.Tools) > 0, rnd)
	step.Delay = pick(rnd, weighted[time.Duration]{5, seconds(rnd, 0, 2)}, weighted[time.Duration]{3, seconds(rnd, 1, 20)},
		weighted[time.Duration]{1, seconds(rnd, 20, 90)})
	step.Usage = &llm.Usage{Input: int64(100 + rnd.IntN(900)), Output: int64(1 + rnd.IntN(99))}
	if step.Fault.Status == 0 && step.Fault.Hang == 0 && w.chance(9, "model fails", last, n, len(made)) {
		w.tell("model: fails")
		switch rnd.IntN(5) {
		case 0:
			return llmtest.Step{Delay: step.Delay, Fault: llmtest.Fault{Status: 429, RetryAfter: fmt.Sprint(1 + rnd.IntN(90))}}
		case 1:
			return llmtest.Step{Delay: step.Delay, Fault: llmtest.Fault{Status: 500}}
		case 2:
			return llmtest.Step{Delay: step.Delay, Fault: llmtest.Fault{Status: 529}}
		case 3: // the stream is cut
			return llmtest.Step{Delay: step.Delay, Parts: []llm.Part{llm.Text("half an")},
				Fault: llmtest.Fault{Error: true, Status: 500}}
		default:
			return llmtest.Step{Delay: step.Delay}
		}
	}
	return step
}

// labelOf returns the label of the subagent that makes a request, or "".
func labelOf(r *llm.Request) string {
	text := ""
	for _, b := range r.System {
		text += b.Text
	}
	for _, m := range r.Messages {
		if t := m.PlainText(); m.Role == llm.RoleUser && strings.HasPrefix(t, subagent.Heading) {
			text = t // it is a fork, with the prompt of its requester
		}
	}
	_, rest, _ := strings.Cut(text, "- Label: ")
	label, _, _ := strings.Cut(rest, "\n")
	return label
}

// step returns the next step of the plans of some tags.
func (w *world) step(tags, news []string, label string, made map[string]bool, tools bool,
	rnd interface{ IntN(int) int }) llmtest.Step {
	end := "say"
	for i, tag := range tags {
		p := w.planOf(tag)
		if i == len(tags)-1 && len(news) == 0 {
			end = p.end
		}
		if !tools || strings.HasSuffix(tag, ".steer") {
			continue
		}
		for _, round := range p.rounds {
			if slices.ContainsFunc(round, func(c planned) bool { return made[c.key] }) {
				continue
			}
			return w.issue(round)
		}
	}
	if len(tags) > 0 && tags[len(tags)-1] == beatTag && len(news) == 0 {
		end = w.beatAnswer(rnd.IntN(1000))
	}
	switch end {
	case "ok":
		return llmtest.Say(run.HeartbeatOK)
	case "hang":
		return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangBody}}
	case "refuse":
		return llmtest.Status(400, "refused for what it says")
	case "busy":
		return llmtest.Status(503, "overloaded")
	case "overflow":
		return llmtest.Status(400, "prompt is too long")
	case "nothing":
		return llmtest.Say("")
	case "silent":
		return llmtest.Say("NO_REPLY")
	case "skip":
		return llmtest.Say("ANNOUNCE_SKIP")
	}
	w.mu.Lock()
	w.serial++
	token := fmt.Sprintf("answer-%d.", w.serial)
	w.answers[token] = &answer{tags: slices.Concat(tags, news), child: label}
	w.mu.Unlock()
	text := fmt.Sprintf("%s to %s", token, strings.Join(tags, " "))
	for _, n := range news {
		text += ", with the result of " + n
	}
	step := llmtest.Say(text)
	if rnd.IntN(3) == 0 {
		step.Gap = time.Duration(rnd.IntN(3000)) * time.Millisecond
	}
	return step
}

// issue returns a step with the calls.
func (w *world) issue(round []planned) llmtest.Step {
	var calls []llm.ToolCall
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range round {
		w.issued[c.key]++
		args, err := json.Marshal(c.args)
		if err != nil {
			panic(err)
		}
		calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("%s~%d", c.key, w.issued[c.key]), Name: c.tool, Args: args})
	}
	return llmtest.Calls(calls...)
}

func (w *world) probeOf(tag string) *probe {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probes[tag]
}

// waitProbe answers when all calls of the probe have arrived.
func (w *world) waitProbe(ctx context.Context, tag string, p *probe) llmtest.Step {
	w.mu.Lock()
	if p.arrived++; p.arrived == p.want {
		close(p.all)
	}
	w.mu.Unlock()
	select {
	case <-p.all:
	case <-time.After(5 * time.Minute):
	case <-ctx.Done():
	}
	return llmtest.Say("probed " + tag)
}
