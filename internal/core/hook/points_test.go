package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/hook"
)

// answers returns a program that answers with a text.
func answers(text string, seen *[]string) hook.Program {
	var mu sync.Mutex
	return hook.Program{Name: "p", Conversation: true, Prompt: true,
		Func: func(_ context.Context, in []byte) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if seen != nil {
				*seen = append(*seen, string(in))
			}
			return []byte(text), nil
		}}
}

func TestSending(t *testing.T) {
	t.Parallel()
	adds := func(name string, priority int) hook.Hook[hook.MessageSending, hook.Send] {
		return hook.Hook[hook.MessageSending, hook.Send]{Name: name, Priority: priority,
			Func: func(_ context.Context, e hook.MessageSending) (hook.Send, error) {
				text := e.Content + name
				return hook.Send{Content: &text}, nil
			}}
	}
	t.Run("HOOK-02 B sees the text of A", func(t *testing.T) {
		p := hook.New(silent())
		p.MessageSending.Add(adds("B", 1))
		p.MessageSending.Add(adds("A", 2))
		out, err := p.MessageSending.Decide(t.Context(), hook.MessageSending{Content: "-"})
		if err != nil || *out.Answer.Content != "-AB" || !slices.Equal(out.Changed, []string{"A", "B"}) {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("HOOK-03 an answer is not sent if a hook hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := hook.New(silent())
			p.MessageSending.Add(hook.Hook[hook.MessageSending, hook.Send]{Name: "deaf",
				Func: func(ctx context.Context, _ hook.MessageSending) (hook.Send, error) {
					<-ctx.Done()
					return hook.Send{}, ctx.Err()
				}})
			begun := time.Now()
			out, err := p.MessageSending.Decide(t.Context(), hook.MessageSending{Content: "-"})
			if err != nil || !out.Answer.Cancel || time.Since(begun) != 15*time.Second {
				t.Errorf("%+v, %v after %v", out, err, time.Since(begun))
			}
		})
	})
	t.Run("block:false and cancel:false are no decision", func(t *testing.T) {
		p := hook.New(silent())
		for _, at := range []string{"before_tool_call", "message_sending", "before_agent_run"} {
			if err := p.Program(at, answers(`{"block": false, "cancel": false}`, nil)); err != nil {
				t.Fatal(err)
			}
		}
		c, _ := p.BeforeToolCall.Decide(t.Context(), hook.Call{})
		s, _ := p.MessageSending.Decide(t.Context(), hook.MessageSending{})
		r, _ := p.BeforeAgentRun.Decide(t.Context(), hook.RunStart{})
		if c.Answer.Block || s.Answer.Cancel || r.Answer.Block || c.By+s.By+r.By != "" {
			t.Errorf("%+v %+v %+v", c, s, r)
		}
	})
}

func TestFolds(t *testing.T) {
	t.Parallel()
	p := hook.New(silent())
	for _, a := range []string{
		`{"systemPrompt": "S", "prependContext": "a", "toolsAllow": ["read", "exec"]}`,
		`{"systemPrompt": "T", "prependContext": "b", "appendSystemContext": "z", "toolsAllow": ["exec", "read", "x"]}`,
		`{"toolsAllow": ["read", "other"], "prependSystemContext": "y"}`,
	} {
		if err := p.Program("before_prompt_build", answers(a, nil)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := p.BeforePromptBuild.Decide(t.Context(), hook.BeforePromptBuild{})
	want := hook.PromptChange{
		System:         "S",
		PrependContext: "a\n\nb",
		AppendSystem:   "z",
		PrependSystem:  "y",
		ToolsAllow:     []string{"read"},
	}
	if diff := cmp.Diff(want, out.Answer); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for at, tt := range map[string]struct {
		answer string
		decide func() any
		want   string
	}{
		"before_model_resolve": {`{"providerOverride": "mock", "modelOverride": "m"}`, func() any {
			o, _ := p.BeforeModelResolve.Decide(t.Context(), hook.BeforeModelResolve{})
			return o.Answer.Ref()
		}, "mock/m"},
		"before_agent_reply": {`{"handled": true, "reply": {"text": "hi"}}`, func() any {
			o, _ := p.BeforeAgentReply.Decide(t.Context(), hook.RunStart{})
			return o.Answer.Text
		}, "hi"},
		"inbound_claim": {`{"handled": true}`, func() any {
			o, _ := p.InboundClaim.Decide(t.Context(), hook.InboundClaim{})
			return o.By
		}, "p"},
		"before_agent_finalize": {`{"action": "revise"}`, func() any {
			o, _ := p.BeforeAgentFinalize.Decide(t.Context(), hook.BeforeAgentFinalize{})
			return o.Answer.Reason
		}, "the hook p asks you to check your answer"},
		"tool_result_persist": {`{"text": "short"}`, func() any {
			o, _ := p.ToolResultPersist.Decide(t.Context(), hook.ToolResultPersist{})
			return *o.Answer.Text
		}, "short"},
		"before_message_write": {`{"block": true}`, func() any {
			o, _ := p.BeforeMessageWrite.Decide(t.Context(), hook.BeforeMessageWrite{})
			return o.Answer.Block
		}, "true"},
		"resolve_exec_env": {`{"env": {"A": "1"}}`, func() any {
			o, _ := p.ResolveExecEnv.Decide(t.Context(), hook.ResolveExecEnv{Tool: "exec"})
			return o.Answer.Env["A"]
		}, "1"},
		"subagent_spawning": {`{"status": "error"}`, func() any {
			o, _ := p.SubagentSpawning.Decide(t.Context(), hook.SubagentSpawning{})
			return o.Answer.Error
		}, "the hook p refused it"},
		"subagent_delivery_target": {`{"origin": {"channel": "c", "accountId": "a", "to": "1", "threadId": "2"}}`,
			func() any {
				o, _ := p.SubagentDeliveryTarget.Decide(t.Context(), hook.SubagentDeliveryTarget{})
				a := o.Answer.Origin.Address()
				return fmt.Sprint(a.Channel, a.Account, a.Peer.Kind, a.Peer.ID, a.Thread)
			}, "cadirect12"},
		"before_install": {`{"block": true, "blockReason": "no"}`, func() any {
			o, _ := p.BeforeInstall.Decide(t.Context(), hook.BeforeInstall{})
			return o.Answer.Reason
		}, "no"},
		"heartbeat_prompt_contribution": {`{"prependContext": "x"}`, func() any {
			o, _ := p.HeartbeatPrompt.Decide(t.Context(), hook.HeartbeatPrompt{})
			return o.Answer.Prepend
		}, "x"},
		"agent:bootstrap": {`{"context": {"bootstrapFiles": [{"name": "SOUL.md", "content": "x"}]}}`, func() any {
			o, _ := p.AgentBootstrap.Decide(t.Context(), hook.AgentBootstrap{})
			return o.Answer.Files[0].Text
		}, "x"},
	} {
		if err := p.Program(at, answers(tt.answer, nil)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(tt.decide()); got != tt.want {
			t.Errorf("%s: %q, want %q", at, got, tt.want)
		}
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	t.Run("HK-06 HOOK-08 an unknown event is an error, and all names are known", func(t *testing.T) {
		p := hook.New(silent())
		if err := p.Program("comand:new", answers("", nil)); err == nil {
			t.Error("accepted")
		}
		for _, name := range p.Names() {
			if err := p.Program(name, answers("", nil)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, pt := range p.All() {
			if !pt.Any() {
				t.Errorf("no name leads to %s", pt.Name())
			}
		}
	})
	t.Run("a family name stands for all of its events, an event for itself", func(t *testing.T) {
		p := hook.New(silent())
		var family, one []string
		if err := p.Program("command", answers("", &family)); err != nil {
			t.Fatal(err)
		}
		if err := p.Program("command:new", answers("", &one)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"new", "status", "stop"} {
			p.Command.Notify(t.Context(), hook.Command{Name: name, Context: hook.Context{Session: "agent:main:main"}})
		}
		p.Wait(t.Context())
		if len(family) != 3 || len(one) != 1 || !strings.Contains(one[0], `"type":"command"`) ||
			!strings.Contains(one[0], `"action":"new"`) || !strings.Contains(one[0], `"sessionKey":"agent:main:main"`) {
			t.Errorf("family %q, one %q", family, one)
		}
	})
	t.Run("conversations and prompts need permission", func(t *testing.T) {
		p := hook.New(silent())
		for _, at := range []string{"llm_input", "llm_output", "agent_end", "before_agent_finalize",
			"before_prompt_build", "agent:bootstrap"} {
			h := answers("", nil)
			h.Conversation, h.Prompt = false, false
			if err := p.Program(at, h); err == nil || !strings.Contains(err.Error(), "allow") {
				t.Errorf("%s: %v", at, err)
			}
		}
	})
	t.Run("only for the tools that are named", func(t *testing.T) {
		p := hook.New(silent())
		h := answers(`{"block": true}`, nil)
		h.Tools = []string{"exec"}
		if err := p.Program("before_tool_call", h); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"exec": true, "read": false} {
			if d, _ := p.BeforeToolCall.Decide(t.Context(), hook.Call{Tool: name}); d.Answer.Block != want {
				t.Errorf("%s: %+v", name, d)
			}
		}
	})
	t.Run("requests for approval", func(t *testing.T) {
		for answer, want := range map[string]string{
			`{"requireApproval": {"title": "Delete", "description": "all files", "severity": "high"}}`: "true [high] Delete: all files",
			`{"requireApproval": true, "blockReason": "look"}`:                                         "true look",
			`{"requireApproval": "sure?"}`:                                                             "true sure?",
			`{"requireApproval": false}`:                                                               "false ",
			`{"requireApproval": null}`:                                                                "false ",
			`{}`:                                                                                       "false ",
		} {
			var v hook.Verdict
			if err := json.Unmarshal([]byte(answer), &v); err != nil {
				t.Errorf("%s: %v", answer, err)
			} else if got := fmt.Sprint(v.Ask, " ", v.Reason); got != want {
				t.Errorf("%s: %q, want %q", answer, got, want)
			}
		}
	})
	t.Run("an unknown member is a warning, and the others count", func(t *testing.T) {
		var log bytes.Buffer
		p := hook.New(slog.New(slog.NewTextHandler(&log, nil)))
		if err := p.Program("before_tool_call", answers(`{"blok": 1, "block": true}`, nil)); err != nil {
			t.Fatal(err)
		}
		if d, _ := p.BeforeToolCall.Decide(t.Context(), hook.Call{}); !d.Answer.Block ||
			!strings.Contains(log.String(), "blok") {
			t.Errorf("%+v, log %s", d, log.String())
		}
	})
}

func TestLongAnswer(t *testing.T) {
	t.Parallel()
	p := hook.New(silent())
	long := strings.Repeat(" ", hook.MaxAnswer) + "x"
	for _, answer := range []string{`{"block": true, "x": "` + long + `"}`, `{"blockReason": "no", "block": false}`} {
		if err := p.Program("before_tool_call", answers(answer, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := p.BeforeToolCall.Decide(t.Context(), hook.Call{}); err != nil || out.Answer.Block {
		t.Errorf("%v %v", out.Answer.Block, err)
	}
}

func TestRequireApproval(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]hook.Ask{
		`true`:  {Hook: "p"},
		`"why"`: {Hook: "p", Reason: "why"},
		`{"title": "Careful", "description": "it is late", "severity": "high", "timeoutMs": 2500}`: {Hook: "p",
			Reason: "[high] Careful: it is late", Wait: 2500 * time.Millisecond},
		`{"title": "x", "timeoutMs": -1}`:                  {Hook: "p", Reason: "x"},
		`{"title": "x", "timeoutMs": 9223372036854775807}`: {Hook: "p", Reason: "x", Wait: 24 * time.Hour},
	} {
		p := hook.New(silent())
		if err := p.Program("before_tool_call", answers(`{"requireApproval": `+answer+`}`, nil)); err != nil {
			t.Fatal(err)
		}
		out, err := p.BeforeToolCall.Decide(t.Context(), hook.Call{})
		if err != nil || !out.Answer.Ask || !slices.Equal(out.Answer.Asks, []hook.Ask{want}) {
			t.Errorf("%s: %+v %v, want %+v", answer, out.Answer, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	p := hook.New(silent())
	calls := 0
	p.SessionPatch.Add(hook.Hook[hook.SessionPatch, hook.None]{Name: "echo",
		Func: func(ctx context.Context, e hook.SessionPatch) (hook.None, error) {
			calls++
			p.SessionPatch.Notify(ctx, e)
			return hook.None{}, nil
		}})
	p.SessionPatch.Notify(t.Context(), hook.SessionPatch{})
	p.Wait(t.Context())
	if calls != hook.MaxDepth {
		t.Errorf("%d calls, want %d", calls, hook.MaxDepth)
	}
	var nested hook.Outcome[hook.Verdict]
	ask := func(ctx context.Context, c hook.Call) (hook.Verdict, error) {
		out, err := p.BeforeToolCall.Decide(ctx, c)
		nested = out
		return out.Answer, err
	}
	p.BeforeToolCall.Add(hook.Before{Name: "again", Func: ask})
	out, err := p.BeforeToolCall.Decide(t.Context(), hook.Call{})
	if err != nil || !out.Answer.Block || !nested.Answer.Block {
		t.Errorf("a policy point refuses at the limit: %+v, %v", out, err)
	}
}

func TestUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, s)
		}
		group := func(name string, slow time.Duration) *hook.Points {
			p := hook.New(silent())
			p.SessionPatch.Add(hook.Hook[hook.SessionPatch, hook.None]{Name: name,
				Func: func(ctx context.Context, _ hook.SessionPatch) (hook.None, error) {
					note(name + " begins")
					select {
					case <-time.After(slow):
					case <-ctx.Done():
						time.Sleep(time.Second) // it needs some time to stop
					}
					note(name + " ends")
					return hook.None{}, ctx.Err()
				}})
			p.BeforeToolCall.Add(hook.Before{Name: name, Func: func(context.Context, hook.Call) (hook.Verdict, error) {
				return hook.Verdict{Block: true, Reason: name}, nil
			}})
			return p
		}
		p := hook.New(silent())
		p.Use("a", group("old", 10*time.Second))
		p.SessionPatch.Notify(t.Context(), hook.SessionPatch{})
		p.SessionPatch.Notify(t.Context(), hook.SessionPatch{}) // waits, and is dropped with its hook
		time.Sleep(time.Second)
		p.Use("a", group("new", 0))
		p.SessionPatch.Notify(t.Context(), hook.SessionPatch{})
		if d, _ := p.BeforeToolCall.Decide(t.Context(), hook.Call{}); d.Answer.Reason != "new" {
			t.Errorf("decided by %q", d.Answer.Reason)
		}
		time.Sleep(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(log) < 2 || log[0] != "old begins" || !slices.Equal(log[len(log)-2:], []string{"new begins", "new ends"}) ||
			slices.Index(log, "new begins") < slices.Index(log, "old ends") {
			t.Errorf("%q", log)
		}
		p.Close(t.Context())
		if p.SessionPatch.Any() || p.BeforeToolCall.Any() {
			t.Error("hooks after Close")
		}
	})
}

// FuzzAnswer decodes arbitrary answers at each point.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"block":true}`, `{"context":{"bootstrapFiles":[{"name":"x","content":"y"}]}}`, `{"messages":["a"]}`, "null",
		"[1]", `{"requireApproval":{"title":1}}`,
		`{"toolsAllow":null}`, `{"params":{"a":1}}`, `{"requireApproval":[]}`, `{"requireApproval": ""}`, `{"context":null}`,
		"\xff", `{"env":{"A":"1"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		p := hook.New(nil)
		for _, name := range p.Names() {
			if err := p.Program(name, answers(string(answer), nil)); err != nil {
				t.Fatal(err)
			}
		}
		c, err := p.BeforeToolCall.Decide(t.Context(), hook.Call{Tool: "x", Args: json.RawMessage(`{}`)})
		if err != nil || c.Answer.Args != nil && !json.Valid(c.Answer.Args) {
			t.Errorf("%+v, %v", c, err)
		}
		_, _ = p.AgentBootstrap.Decide(t.Context(), hook.AgentBootstrap{})
		_, _ = p.BeforePromptBuild.Decide(t.Context(), hook.BeforePromptBuild{})
		_, _ = p.MessageSending.Decide(t.Context(), hook.MessageSending{})
		p.Command.Notify(t.Context(), hook.Command{Name: "new"})
		p.Wait(t.Context())
	})
}

// A point without hooks costs nothing.
func TestNoHookNoAllocation(t *testing.T) {
	p, ctx := hook.New(nil), t.Context()
	call, done, msg := hook.Call{Tool: "exec", Args: json.RawMessage(`{}`)}, hook.Done{}, hook.MessageSending{Content: "x"}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = p.BeforeToolCall.Decide(ctx, call)
		_, _ = p.MessageSending.Decide(ctx, msg)
		p.AfterToolCall.Notify(ctx, done)
		p.Command.Notify(ctx, hook.Command{Name: "x"})
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkNoHook(b *testing.B) {
	p, ctx := hook.New(nil), b.Context()
	call := hook.Call{Tool: "exec", Args: json.RawMessage(`{}`)}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.BeforeToolCall.Decide(ctx, call)
	}
}
