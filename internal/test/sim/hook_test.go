package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
)

// hooked is what the hooks of a day saw.
type hooked struct {
	asked map[string]int      // calls that the hooks let pass, by key
	ended map[chela.RunID]int // ends of runs
}

// hookLimit is the time limit of the hooks, and hookHang is how long one hangs.
const (
	hookLimit = 3 * time.Second
	hookHang  = 20 * time.Second
)

// verdict is what the hooks do with a call: block, hang, crash, change or "".
func (w *world) verdict(key string) string {
	if w.hooked == nil {
		return ""
	}
	return pick(w.rnd("hook", key), weighted[string]{20, ""}, weighted[string]{3, "block"}, weighted[string]{1, "hang"},
		weighted[string]{3, "crash"}, weighted[string]{3, "change"})
}

// hooks adds the hooks of a life. One decides about calls, and sometimes it hangs and is
// cut off, or crashes. One forbids some runs, and one observes their ends; it hangs and
// crashes, too.
func (l *life) hooks(to *hook.Points) {
	w := l.w
	if w.hooked == nil {
		return
	}
	hang := func() {
		select {
		case <-time.After(hookHang): // it ignores its time limit
		case <-l.ctx.Done():
		}
	}
	to.BeforeToolCall.Add(hook.Before{Name: "judge", Timeout: hookLimit,
		Func: func(_ context.Context, c hook.Call) (v hook.Verdict, err error) {
			var args map[string]any
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return v, err
			}
			key, _ := args["key"].(string)
			if key == "" {
				return v, nil // not one of the tools of the world
			}
			switch w.verdict(key) {
			case "block":
				return hook.Verdict{Block: true, Reason: "the judge forbids " + key}, nil
			case "hang":
				hang()
			case "crash":
				w.hookPassed(key)
				panic("the judge crashes")
			case "change":
				args["judged"] = true
				v.Args, err = json.Marshal(args)
			}
			w.hookPassed(key)
			return v, err
		}})
	to.BeforeAgentRun.Add(hook.Hook[hook.RunStart, hook.Block]{Name: "guard", Timeout: hookLimit,
		Func: func(_ context.Context, s hook.RunStart) (b hook.Block, err error) {
			tags := tagsIn(s.Prompt)
			switch {
			case slices.ContainsFunc(tags, w.forbidden):
				b = hook.Block{Block: true, Reason: "the guard forbids it"}
			case w.rnd("guard", s.Run).IntN(4) == 0:
				panic("the guard crashes")
			}
			return b, nil
		}})
	to.AgentEnd.Add(hook.Hook[hook.AgentEnd, hook.None]{Name: "witness", Timeout: hookLimit,
		Func: func(_ context.Context, e hook.AgentEnd) (hook.None, error) {
			if l.dead() {
				return hook.None{}, nil
			}
			w.mu.Lock()
			w.hooked.ended[e.Run]++
			w.mu.Unlock()
			switch w.rnd("witness", e.Run).IntN(6) {
			case 0:
				hang()
			case 1:
				panic("the witness crashes")
			}
			return hook.None{}, nil
		}})
}

// hookPassed notes that the hooks did not refuse a call.
func (w *world) hookPassed(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooked.asked[key]++
}

// forbidden reports whether the hooks forbid the runs for a tag, which is that of a
// webhook: its run has no other messages.
func (w *world) forbidden(tag string) bool {
	own := func(h *webhook) bool { return h.tag == tag && !h.wake }
	return w.hooked != nil && slices.ContainsFunc(w.webhooks, own) && w.rnd("forbidden", tag).IntN(4) == 0
}

// witnessed is how long after the end of a run its observer has been told.
const witnessed = 30 * time.Second

// checkHooks checks that what hooks refuse has no effect, that one that fails refuses
// nothing, and that the observer was told of the end of each run once.
func (s *state) checkHooks() {
	w := s.w
	if w.hooked == nil {
		return
	}
	for key, c := range w.calls {
		switch v := w.verdict(key); {
		case c.effects == 0:
		case v == "block", v == "hang":
			w.broken("HOOK: the hook of %s answers %q, and it had its effect", key, v)
		case w.hooked.asked[key] == 0:
			w.broken("HOOK: %s had its effect, and no hook was asked", key)
		}
	}
	for _, list := range s.entries {
		for _, e := range list {
			if e.Kind != session.KindMessage || e.Message.Role != llm.RoleTool {
				continue
			}
			text := e.Message.PlainText()
			if key, ok := strings.CutPrefix(text, "did "); ok && (w.verdict(key) == "block" || w.verdict(key) == "hang") {
				w.broken("HOOK: the hook of %s answers %q, and its result says that it ran", key, w.verdict(key))
			}
			for _, key := range between(text, "the judge forbids ", `"`) {
				if w.verdict(key) != "block" {
					w.broken("HOOK: the hook of %s answers %q, and its result is %q", key, w.verdict(key), text)
				}
			}
			if key, _, _ := strings.Cut(e.Message.CallID, "~"); w.verdict(key) == "crash" &&
				strings.Contains(text, "hook judge") && s.w.calls[key] != nil {
				w.broken("HOOK: the hook of %s crashes, and its result is %q", key, text)
			}
		}
	}
	for _, r := range s.runs {
		n := w.hooked.ended[r.ID]
		switch {
		case n > 1:
			w.broken("HOOK: the observer was told %d times that run %s has ended", n, r.ID)
		case n == 0 && r.State == run.OK && r.Kind == run.Turn && s.calm(r.Ended):
			w.broken("HOOK: the observer was not told that run %s of %s has ended at %s", r.ID, r.Session, s.at(r.Ended))
		}
	}
	for tag, n := range w.asked {
		if n > 0 && w.forbidden(tag) {
			w.broken("HOOK: a hook forbids %s, and the model was asked %d times", tag, n)
		}
	}
}

// calm reports whether the gateway that ran at a time went on for a while.
func (s *state) calm(t time.Time) bool {
	return slices.ContainsFunc(s.w.spans, func(p *span) bool {
		return !p.from.IsZero() && t.After(p.from) && (p.to.IsZero() || t.Add(witnessed).Before(p.to))
	})
}
