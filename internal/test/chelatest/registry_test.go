package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	coreservice "github.com/chela-ai/chela/internal/core/service"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/test/toy/curfew"
	"github.com/chela-ai/chela/internal/test/toy/greeter"
	"github.com/chela-ai/chela/internal/test/toy/metronome"
	"github.com/chela-ai/chela/internal/test/toy/postbox"
	"github.com/chela-ai/chela/wire"
)

// configuredWith starts a gateway on a configuration file.
func configuredWith(t *testing.T, text string, o Options) (*Gateway, *Client) {
	t.Helper()
	o.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Dir, "chela.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g := Start(t, o)
	return g, g.Client()
}

// patch merges a patch into the configuration file of the gateway.
func (c *Client) patch(text string) {
	c.t.Helper()
	if err := c.Call(c.t.Context(), wire.MethodConfigPatch, map[string]any{"raw": text, "baseHash": c.hash()},
		nil); err != nil {
		c.t.Fatalf("patch %s: %v", text, err)
	}
}

// hash returns the hash of the configuration.
func (c *Client) hash() string {
	c.t.Helper()
	var now wire.ConfigSnapshot
	if err := c.Call(c.t.Context(), wire.MethodConfigGet, nil, &now); err != nil {
		c.t.Fatal(err)
	}
	return now.Hash
}

// eventually waits until get returns want.
func eventually(t *testing.T, what string, want []string, get func() []string) {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s", what, cmp.Diff(want, got))
		}
	}()
	waittest.Until(t, what, func() bool { got = get(); return slices.Equal(got, want) })
}

func TestRegisteredTool(t *testing.T) {
	_, c := configuredWith(t, `{tools: {greeter: {greeting: "good morning"}}}`,
		Options{Model: uses(), Register: func(r *standard.Registry) {
			r.Tool("greeter", "tools.greeter", func(_ standard.ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
				return greeter.New(raw)
			})
		}})
	if got := c.Ask("main", "greet {}").Text; got != "good morning" {
		t.Errorf("the tool answers %q", got)
	}
	c.patch(`{"tools": {"greeter": {"greeting": "good night"}}}`)
	if got := c.Ask("main", "greet {}").Text; got != "good night" {
		t.Errorf("the tool answers %q after the change", got)
	}
	c.patch(`{"tools": {"greeter": null}}`)
	if got := c.Ask("main", "greet {}").Text; strings.Contains(got, "good") {
		t.Errorf("the tool answers %q after its section was removed", got)
	}
}

func TestRegisteredToolDenied(t *testing.T) {
	for group, want := range map[string]bool{"group:fs": true, "group:toys": false} {
		_, c := configuredWith(t, `{tools: {greeter: {greeting: "good morning"}, deny: ["`+group+`"]}}`,
			Options{Model: uses(), Register: func(r *standard.Registry) {
				r.Tool("greeter", "tools.greeter", func(_ standard.ToolEnv, raw json.RawMessage) ([]tool.Tool, error) {
					return greeter.New(raw)
				})
			}})
		if got := c.Ask("main", "greet {}").Text; (got == "good morning") != want {
			t.Errorf("without %s, the tool answers %q", group, got)
		}
	}
}

func TestRegisteredService(t *testing.T) {
	log := new(metronome.Log)
	g, c := configuredWith(t, `{first: {tempo: "slow", live: true}, second: {tempo: "slow"}}`,
		Options{Model: uses(), Register: func(r *standard.Registry) {
			for _, name := range []string{"first", "second"} {
				r.Service(name, name, func(_ standard.ServiceEnv, raw json.RawMessage) (coreservice.Service, error) {
					return metronome.New(name, raw, log)
				})
			}
		}})
	want := []string{"start first slow", "start second slow"}
	eventually(t, "after the start", want, func() []string { return slices.Sorted(slices.Values(log.Events())) })
	c.patch(`{"agents": {"defaults": {"userTimezone": "Europe/Rome"}}}`)
	c.patch(`{"first": {"tempo": "fast"}}`)
	c.patch(`{"second": {"tempo": "fast"}}`)
	want = []string{"reload first fast", "stop second", "start second fast"}
	eventually(t, "after the changes", want, func() []string { return log.Events()[2:] })
	g.Stop()
	if diff := cmp.Diff([]string{"stop second", "stop first"}, log.Events()[5:]); diff != "" {
		t.Errorf("at the end: %s", diff)
	}
}

func TestRegisteredHook(t *testing.T) {
	_, c := configuredWith(t, `{curfew: {tools: ["ls"]}}`, Options{Model: uses(), Register: func(r *standard.Registry) {
		r.Hook("curfew", "curfew", func(_ standard.HookEnv, raw json.RawMessage, to *hook.Points) error {
			h, err := curfew.New(raw)
			to.BeforeToolCall.Add(h)
			return err
		})
	}})
	if got := c.Ask("main", `ls {"path":"."}`).Text; !strings.Contains(got, "not after midnight") {
		t.Errorf("a call that the hook refuses: %q", got)
	}
	if got := c.Ask("main", `read {"path":"AGENTS.md"}`).Text; strings.Contains(got, "midnight") {
		t.Errorf("another call: %q", got)
	}
}

func TestRegisteredChannel(t *testing.T) {
	p := new(postbox.Platform)
	_, c := configuredWith(t,
		`{channels: {postbox: {allowFrom: ["p"], accounts: {home: {number: "1"}, work: {number: "2"}}}}}`, Options{
			Model:    llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("hello") }),
			Register: func(r *standard.Registry) { r.Channel(p.Factory()) },
		})
	sent := 0
	answers := func(id string) {
		t.Helper()
		a := chela.Address{Channel: "postbox", Account: chela.AccountID(id), Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
		want := append(p.Account(id).Texts(a), "hello")
		sent++
		if err := p.Account(id).Say(t.Context(),
			chela.Inbound{ID: string(rune('a' + sent)), Address: a, Sender: chela.Sender{ID: "p"}, Text: "hi"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "answers on "+id, want, func() []string { return p.Account(id).Texts(a) })
	}
	answers("home")
	answers("work")
	eventually(t, "after the start", []string{"start home 1", "start work 2"},
		func() []string { return slices.Sorted(slices.Values(p.Events())) })

	c.patch(`{"channels": {"postbox": {"accounts": {"work": {"number": "3"}}}}}`)
	eventually(t, "one account was changed", []string{"stop work 2", "start work 3"},
		func() []string { return p.Events()[2:] })
	answers("work")
	answers("home")

	if err := c.Call(t.Context(), wire.MethodConfigPatch,
		map[string]any{"raw": `{"channels": {"postbox": {"accounts": {"work": {"number": "1"}}}}}`, "baseHash": c.hash()},
		nil); err == nil || !strings.Contains(err.Error(), "the same") {
		t.Errorf("two accounts of one identity: error %v", err)
	}
	c.patch(`{"channels": {"postbox": {"accounts": {"home": null}}}}`)
	eventually(t, "one account was removed", []string{"stop home 1"}, func() []string { return p.Events()[4:] })
	answers("work")
}

// TestRegisteredPipeline leads a message through everything that a channel takes part in. The
// channel is known to the gateway by the public interface alone.
func TestRegisteredPipeline(t *testing.T) {
	t.Run("CH-19 PL-10 a registered channel has the full pipeline", func(t *testing.T) {
		synctest.Test(t, registeredPipeline)
	})
}

func registeredPipeline(t *testing.T) {
	p := new(postbox.Platform)
	model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
		return llmtest.Step{Parts: llmtest.Say("The answer has two sentences. This is the second one.").Parts, Chunk: 10,
			Gap: 300 * time.Millisecond}
	})
	g, _ := configuredWith(t, `{channels: {postbox: {dmPolicy: "pairing", allowFrom: ["p"], streaming: "partial", accounts: {home: {number: "1"}}}}, messages: {ackReaction: "👀", ackReactionScope: "all"}}`, Options{
		Model: model, Register: func(r *standard.Registry) { r.Channel(p.Factory()) },
	})
	defer g.Stop()
	fake := p.Account("home")
	at := func(peer string) chela.Address {
		return chela.Address{Channel: "postbox", Account: "home", Peer: chela.Peer{Kind: chela.Direct, ID: peer}}
	}
	say := func(id, from string) {
		if err := fake.Say(t.Context(), chela.Inbound{ID: id, Address: at(from), Sender: chela.Sender{ID: from},
			Text: "hi"}); err != nil {
			t.Fatal(err)
		}
	}
	say("m1", "p")
	say("m1", "p") // the platform delivers it twice
	eventually(t, "the reply", []string{"The answer has two sentences. This is the second one."},
		func() []string { return fake.Texts(at("p")) })
	if edits := fake.Calls("edit"); len(edits) == 0 {
		t.Error("the reply was not edited while it was written")
	}
	reactions := fake.Calls("react")
	if len(reactions) == 0 || reactions[0].Address != at("p") {
		t.Errorf("reactions: %+v", reactions)
	}
	say("m2", "stranger")
	time.Sleep(time.Minute)
	if got := strings.Join(fake.Texts(at("stranger")), "|"); !strings.Contains(got, "chela pairing approve") {
		t.Errorf("a stranger is told %q", got)
	}
	if n := len(model.Requests()); n != 1 {
		t.Errorf("%d calls of the model, want one", n)
	}
}
