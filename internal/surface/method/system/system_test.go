package system_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("Hello yourself")))
	id, err := h.Send(t.Context(), "work", "hello")
	if err != nil {
		t.Fatal(err)
	}
	h.End(id)
	got := methodtest.Do[wire.Health](t, h, wire.MethodHealth, nil)
	if !got.OK || got.DefaultAgent != "main" || got.Sessions.Count != 1 ||
		got.Sessions.Recent[0].Key != "agent:main:work" {
		t.Errorf("health %+v", got)
	}
	if len(got.Agents) != 1 || !got.Agents[0].Default || got.Agents[0].Sessions.Count != 1 {
		t.Errorf("agents %+v", got.Agents)
	}
	if got.Channels == nil || got.ChannelOrder == nil || got.ChannelLabels == nil {
		t.Errorf("health without channels is not valid for clients: %+v", got)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}))
	for _, text := range []string{"hello", "and more"} {
		p := wire.ChatSend{SessionKey: "main", Message: text, IdempotencyKey: text, QueueMode: "followup"}
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, p)
		for e := range h.Events() { // until it runs
			if e.Name == wire.EventAgent || text != "hello" {
				break
			}
		}
		if text != "hello" {
			break
		}
	}
	got := methodtest.Do[wire.Status](t, h, wire.MethodStatus, nil)
	if got.Version != "1.2.3" || got.Memory <= 0 || got.Sessions.Count != 1 || got.Sessions.Defaults.Model != "m1" {
		t.Errorf("status %+v", got)
	}
	if by := got.Sessions.ByAgent; len(by) != 1 || by[0].AgentID != "main" || by[0].Count != 1 || len(by[0].Recent) != 1 ||
		by[0].Recent[0].Key != "agent:main:main" || got.CLI != nil {
		t.Errorf("sessions by agent %+v, projection %+v", by, got.CLI)
	}
	if cli := methodtest.Do[wire.Status](t, h, wire.MethodStatus, wire.StatusGet{CLI: true}).CLI; cli == nil ||
		cli.Agents.Default != "main" || !slices.Equal(cli.Agents.Rows, []wire.CLIAgent{{ID: "main"}}) {
		t.Errorf("projection %+v", cli)
	}
	if len(got.Runs) != 1 || got.Runs[0].RunID != "hello" || got.Runs[0].State != "running" || got.Queued != 1 {
		t.Errorf("runs %+v, %d queued; want hello, and 1", got.Runs, got.Queued)
	}
	if len(got.Sessions.Recent) != 1 || !got.Sessions.Recent[0].Active {
		t.Errorf("recent sessions %+v", got.Sessions.Recent)
	}
}

// TestRecent checks that health and status list the latest sessions only.
func TestRecent(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	var want []string
	for i := range 7 {
		key := fmt.Sprint("agent:main:", i)
		methodtest.Do[json.RawMessage](t, h, wire.MethodSessionsCreate, wire.SessionsCreate{Key: key})
		want = append([]string{key}, want...)
	}
	status, health := methodtest.Do[wire.Status](t, h, wire.MethodStatus, nil),
		methodtest.Do[wire.Health](t, h, wire.MethodHealth, nil)
	var inStatus, inHealth []string
	for _, s := range status.Sessions.Recent {
		inStatus = append(inStatus, s.Key)
	}
	for _, s := range health.Sessions.Recent {
		inHealth = append(inHealth, s.Key)
	}
	if !slices.Equal(inStatus, want[:5]) || !slices.Equal(inHealth, want[:5]) || status.Sessions.Count != 7 ||
		health.Sessions.Count != 7 {
		t.Errorf("status lists %q of %d, health %q of %d", inStatus, status.Sessions.Count, inHealth, health.Sessions.Count)
	}
}

func TestSystemEvent(t *testing.T) {
	t.Parallel()
	script := llmtest.NewScript(llmtest.Say("I know."))
	h := methodtest.New(t, script)
	methodtest.Do[wire.OK](t, h, wire.MethodSystemEvent, wire.SystemEvent{Text: "the kettle boils"})
	if err := h.Call(t.Context(), wire.MethodSystemEvent, wire.SystemEvent{Text: " "}, nil); err == nil {
		t.Error("an event without text was accepted")
	}
	id, err := h.Send(t.Context(), "main", "what is new")
	if err != nil {
		t.Fatal(err)
	}
	h.End(id)
	asked := ""
	for _, m := range script.Requests()[0].Messages {
		asked += m.PlainText()
	}
	if want := "the kettle boils"; !strings.Contains(asked, want) {
		t.Errorf("the model got %q, want it to contain %q", asked, want)
	}
}

func TestWake(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{wire.WakeNow, wire.WakeNext} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			script := llmtest.NewScript(llmtest.Say("I know."))
			h := methodtest.New(t, script)
			methodtest.Do[wire.OK](t, h, wire.MethodWake, wire.Wake{Mode: mode, Text: "the kettle boils"})
			if mode == wire.WakeNext {
				id, err := h.Send(t.Context(), "main", "what is new")
				if err != nil {
					t.Fatal(err)
				}
				h.End(id)
			} else {
				for e := range h.Events() {
					var c wire.Chat
					if e.Name == wire.EventChat && e.Decode(&c) == nil && c.State == wire.StateFinal {
						if c.SessionKey != "agent:main:main" || c.Message.Text() != "I know." {
							t.Errorf("the run said %+v", c)
						}
						break
					}
				}
			}
			asked := ""
			for _, m := range script.Requests()[0].Messages {
				asked += m.PlainText()
			}
			if want := "the kettle boils"; !strings.Contains(asked, want) {
				t.Errorf("the model got %q, want it to contain %q", asked, want)
			}
		})
	}
	h := methodtest.New(t, llmtest.NewScript())
	for want, in := range map[string]wire.Wake{
		"at /mode":              {Mode: "later", Text: "x"},
		"at /text: must NOT":    {Mode: wire.WakeNow, Text: " "},
		"have more than":        {Mode: wire.WakeNow, Text: strings.Repeat("x", 1<<15)},
		"unknown agent id":      {Mode: wire.WakeNow, Text: "x", AgentID: "nope"},
		`agent id "other"`:      {Mode: wire.WakeNow, Text: "x", SessionKey: "agent:other:main"},
		"invalid wake params: ": {Mode: wire.WakeNow, Text: "x", SessionKey: "agent:main:\n"},
	} {
		if err := h.Call(t.Context(), wire.MethodWake, in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+.60v: %v, want %s", in, err, want)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	if !slices.Contains(h.Hello().Features.Methods, wire.MethodSystemInfo) {
		t.Skip("no properties of this machine")
	}
	i := methodtest.Do[wire.SystemInfo](t, h, wire.MethodSystemInfo, nil)
	if i.PID != os.Getpid() || i.CPUs < 1 || i.MemoryTotal < 1 || i.MemoryFree > i.MemoryTotal || i.UptimeMs < 0 ||
		i.Label == "" || i.Runtime == "" {
		t.Errorf("this machine is %+v", i)
	}
	if i.Load != nil && len(i.Load) != 3 {
		t.Errorf("load %v", i.Load)
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[[]wire.Presence](t, h, wire.MethodSystemPresence, nil)
	var modes []string
	for _, p := range got {
		modes = append(modes, p.Mode)
	}
	if diff := cmp.Diff([]string{"gateway", "cli"}, modes); diff != "" {
		t.Error(diff)
	}
}
