package chelatest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// dialApp connects an app in a role.
func dialApp(t *testing.T, g *Gateway, role string, key ed25519.PrivateKey, scopes ...string) *Client {
	t.Helper()
	c, err := client.Dial(t.Context(), appOptions(g, role, key, scopes...))
	if err != nil {
		t.Fatalf("connect an app as %s: %v", role, err)
	}
	t.Cleanup(func() { c.Close() })
	return &Client{Client: c, t: t}
}

func appOptions(g *Gateway, role string, key ed25519.PrivateKey, scopes ...string) client.Options {
	o := client.Options{
		URL:    g.URL(),
		ID:     "chela",
		Mode:   wire.ModeCLI,
		Role:   role,
		Scopes: scopes,
		Auth:   &wire.Auth{Token: nodeToken},
		Key:    key,
		Once:   true,
	}
	if role == wire.RoleNode {
		o.ID, o.Mode, o.Caps, o.Family, o.Scopes = "node-host", wire.ModeNode, []string{"voiceWake"}, familyHere(), []string{}
	}
	return o
}

// payload returns the payload of the next event with a name.
func (c *Client) payload(name string) string {
	c.t.Helper()
	for {
		if e := waittest.For(c.t, "the event "+name, c.Events()); e.Name == name {
			return string(e.Payload)
		}
	}
}

// talkGateway starts a gateway with a service that speaks.
func talkGateway(t *testing.T, m *mouth, dir string, conf Config) *Gateway {
	t.Helper()
	all := Config{"gateway.auth": json.RawMessage(`{"mode": "token", "token": "` + nodeToken + `"}`)}
	for k, v := range conf {
		all[k] = v
	}
	o := Options{
		Dir: dir, Listen: &endpoint.Listen{Port: -1}, Config: all, Env: map[string]string{},
		Model: llmtest.NewScript(llmtest.Say("it is noon"), llmtest.Say("it is one"), llmtest.Say("it is two")),
	}
	both := http.NewServeMux()
	both.Handle("/v1/audio/speech", m)
	o.HTTP = overMemory(t, both)
	return Start(t, o)
}

func TestTalk(t *testing.T) {
	t.Parallel()
	tts := json.RawMessage(fmt.Sprintf(mouthed, "off"))
	t.Run("ND-14 wake words are kept, and told to the other apps", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		g := talkGateway(t, &mouth{}, dir, nil)
		one, two := dialApp(t, g, "", nil, wire.ScopeRead, wire.ScopeWrite), dialApp(t, g, "", nil, wire.ScopeRead)
		node := dialApp(t, g, wire.RoleNode, newKey(t))
		defaults := `{"triggers":["chela","openclaw","computer"]}`
		if got := node.payload(wire.EventWakeChanged); got != defaults {
			t.Errorf("a node that connects is told %s", got)
		}
		var words json.RawMessage
		one.must(wire.MethodWakeGet, nil, &words)
		if string(words) != defaults {
			t.Errorf("at first: %s", words)
		}
		want := `{"triggers":["hey chela","小爱"]}`
		one.must(wire.MethodWakeSet, wire.WakeWords{Triggers: []string{" hey  chela", "小爱", "HEY CHELA", ""}}, &words)
		if string(words) != want {
			t.Errorf("the answer is %s", words)
		}
		for name, c := range map[string]*Client{"the other app": two, "the app itself": one, "the node": node} {
			if got := c.payload(wire.EventWakeChanged); got != want {
				t.Errorf("%s is told %s", name, got)
			}
		}
		for _, refused := range [][]string{make([]string, 0, 40), {strings.Repeat("x", 65)}} {
			for len(refused) < cap(refused) {
				refused = append(refused, fmt.Sprint("word ", len(refused)))
			}
			saysNo(t, "too much", one.Call(t.Context(), wire.MethodWakeSet, wire.WakeWords{Triggers: refused}, nil), "triggers")
		}
		saysNo(t, "an app that only reads", two.Call(t.Context(), wire.MethodWakeSet, wire.WakeWords{Triggers: []string{"x"}},
			nil), "missing scope")
		g.Stop()
		g = talkGateway(t, &mouth{}, dir, nil)
		g.Client().must(wire.MethodWakeGet, nil, &words)
		if string(words) != want {
			t.Errorf("after a restart: %s", words)
		}
		if got := dialApp(t, g, wire.RoleNode, newKey(t)).payload(wire.EventWakeChanged); got != want {
			t.Errorf("a node after a restart is told %s", got)
		}
	})
	t.Run("ND-15 what is said is a turn, and the answer is said", func(t *testing.T) {
		t.Parallel()
		m := &mouth{}
		g := talkGateway(t, m, "",
			Config{"tts": tts,
				"talk": json.RawMessage(`{"interruptOnSpeech": true, "silenceTimeoutMs": 900, "speechLocale": "de-DE",
			"providers": {"mouth": {"voiceId": "calm", "voiceAliases": {"Clara": "v9"}, "apiKey": "secret"}}}`)})
		app, other := dialApp(t, g, "", nil, wire.ScopeRead, wire.ScopeWrite),
			dialApp(t, g, "", nil, wire.ScopeRead, wire.ScopeWrite)
		reader := dialApp(t, g, "", nil, wire.ScopeRead)
		var conf json.RawMessage
		app.must(wire.MethodTalkConfig, nil, &conf)
		if want := `{"config":{"talk":{"providers":{"mouth":{"voiceId":"calm","voiceAliases":{"Clara":"v9"}}},"resolved":{"provider":"mouth","config":{"voiceId":"calm","voiceAliases":{"Clara":"v9"}}},"speechLocale":"de-DE","interruptOnSpeech":true,"silenceTimeoutMs":900},"session":{"mainKey":"main"}}}`; string(conf) != want {
			t.Errorf("talk.config: %s", conf)
		}
		saysNo(t, "secrets for a reader", app.Call(t.Context(), wire.MethodTalkConfig, wire.TalkConfigGet{Secrets: true},
			nil), "operator.talk.secrets")
		app.must(wire.MethodTalkMode, wire.TalkMode{Enabled: true, Phase: "listening"}, nil)
		if got := other.payload(wire.EventTalkMode); !strings.HasPrefix(got, `{"enabled":true,"phase":"listening","ts":`) {
			t.Errorf("talk.mode: %s", got)
		}
		saysNo(t, "talking of a reader", reader.Call(t.Context(), wire.MethodTalkMode, wire.TalkMode{Enabled: true}, nil),
			"missing scope")
		answer := app.Ask("main", "what time is it")
		if answer.Text != "it is noon" {
			t.Errorf("the answer is %+v", answer)
		}
		speed := 1.5
		var spoken wire.TalkAudio
		app.must(wire.MethodTalkSpeak, wire.TalkSpeak{Text: answer.Text, Voice: "clara", Speed: &speed, Format: "pcm_44100"},
			&spoken)
		app.must(wire.MethodTalkSpeak, wire.TalkSpeak{Text: answer.Text + " [[tts]]", Model: "big", Format: "mp3_44100_128"},
			nil)
		if spoken.Provider != "mouth" || spoken.Type != "audio/ogg" || spoken.Format != "opus" ||
			spoken.Extension != ".ogg" || !strings.Contains(string(spoken.Audio), "it is noon") {
			t.Errorf("talk.speak: %.300v", spoken)
		}
		if got, want := fmt.Sprint(m.asked), "[t v9 mp3: it is noon big calm mp3: it is noon]"; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		var h wire.History
		app.must("chat.history", wire.ChatHistory{SessionKey: "main"}, &h)
		if len(h.Messages) != 2 {
			t.Errorf("%d messages in the session, want one turn", len(h.Messages))
		}
	})
	t.Run("ND-15 without a provider the text is there, and the error says so", func(t *testing.T) {
		t.Parallel()
		g := talkGateway(t, &mouth{}, "", nil)
		app := dialApp(t, g, "", nil, wire.ScopeRead, wire.ScopeWrite)
		if answer := app.Ask("main", "what time is it"); answer.Text != "it is noon" {
			t.Errorf("the answer is %+v", answer)
		}
		err := app.Call(t.Context(), wire.MethodTalkSpeak, wire.TalkSpeak{Text: "it is noon"}, nil)
		saysNo(t, "nobody speaks", err, "no voice is configured (chela tts status)")
		if e, ok := errors.AsType[*wire.Error](err); !ok ||
			!strings.Contains(string(e.Details), `"reason":"talk_unconfigured","fallbackEligible":true`) {
			t.Errorf("%+v", err)
		}
	})
	t.Run("a failing provider and wrong settings", func(t *testing.T) {
		t.Parallel()
		m := &mouth{status: http.StatusServiceUnavailable}
		g := talkGateway(t, m, "", Config{"tts": tts})
		app := dialApp(t, g, "", nil, wire.ScopeRead, wire.ScopeWrite)
		err := app.Call(t.Context(), wire.MethodTalkSpeak, wire.TalkSpeak{Text: "x"}, nil)
		saysNo(t, "it fails", err, "no capacity")
		if e, ok := errors.AsType[*wire.Error](err); !ok || !strings.Contains(string(e.Details), `"synthesis_failed"`) {
			t.Errorf("%+v", err)
		}
		for params, want := range map[string]string{
			`{"text": ""}`: "must not be empty",
			`{"text": "` + strings.Repeat("x", 4001) + `"}`: "tts.maxTextLength",
			`{"text": "x", "speed": 3}`:                     "not between 0.5 and 2",
			`{"text": "x", "rateWpm": 1}`:                   "not between 0.5 and 2",
			`{"text": "x", "stability": 2}`:                 "between 0 and 1",
			`{"text": "x", "latencyTier": 5}`:               "between 0 and 4",
			`{"text": "x", "normalize": "maybe"}`:           "auto, on or off",

			`{"text": "x", "seed": -1}`:           "between 0 and",
			`{"text": "x", "language": "german"}`: "two letters",
			`{"text": "x", "loud": true}`:         "unexpected property",
		} {
			saysNo(t, params[:min(len(params), 60)], app.Call(t.Context(), wire.MethodTalkSpeak, json.RawMessage(params), nil),
				want)
		}
		if n := len(m.asked); n != 1 {
			t.Errorf("the service was asked %d times, want once", n)
		}
	})
	t.Run("live audio is not offered, and the error says what to do", func(t *testing.T) {
		t.Parallel()
		g := talkGateway(t, &mouth{}, "", nil)
		c := g.Client()
		for _, method := range []string{"talk.session.create", "talk.client.create", "talk.voice.set",
			"talk.session.appendAudio"} {
			saysNo(t, method, c.Call(t.Context(), method, nil, nil), "unknown method: "+method+": there is no live audio here")
			if slices.Contains(c.Hello().Features.Methods, method) {
				t.Errorf("%s is advertised", method)
			}
		}
	})
	t.Run("what is said to a node is a message if its device is an operator", func(t *testing.T) {
		t.Parallel()
		g := talkGateway(t, &mouth{}, "", nil)
		watch := g.Client()
		said := func(c *Client, payload any) (wire.NodeEventResult, error) {
			var out wire.NodeEventResult
			err := c.Call(context.Background(), wire.MethodNodeEvent,
				map[string]any{"event": wire.NodeEventVoice, "payloadJSON": payload}, &out)
			return out, err
		}
		alone := dialApp(t, g, wire.RoleNode, newKey(t))
		_, err := said(alone, `{"text": "delete everything"}`)
		saysNo(t, "a device that is only a node", err, "this device is only a node")
		key := newKey(t)
		dialApp(t, g, "", key, wire.ScopeRead, wire.ScopeWrite)
		if _, err := client.Dial(t.Context(), appOptions(g, wire.RoleNode, key)); err == nil {
			t.Fatal("another role needs no approval")
		}
		var pairs wire.DevicePairs
		watch.must("device.pair.list", nil, &pairs)
		for _, q := range pairs.Pending {
			watch.must("device.pair.approve", wire.DeviceRequestID{ID: q.ID}, nil)
		}
		node := dialApp(t, g, wire.RoleNode, key)
		for range 2 { // the second one is the same event
			out, err := said(node, `{"text": " what time is it ", "eventId": "e1"}`)
			if err != nil || !out.Handled {
				t.Fatalf("%+v, %v", out, err)
			}
		}
		waittest.Until(t, "the answer is in the session", func() bool {
			var h wire.History
			watch.must("chat.history", wire.ChatHistory{SessionKey: "main"}, &h)
			return len(h.Messages) == 2 && h.Messages[0].Text() == "what time is it" && h.Messages[1].Text() == "it is noon"
		})
		if next := watch.Ask("main", "and now"); next.Text != "it is one" {
			t.Errorf("the same event is another message: the next answer is %q", next.Text)
		}
		for payload, want := range map[string]string{
			`{"text": ""}`: "payload/text",
			`[]`:           "must be an object",
			`{"text": "x", "sessionKey": "agent:none:main"}`: "none",
		} {
			_, err := said(node, payload)
			saysNo(t, payload, err, want)
		}
		var out wire.NodeEventResult
		if node.must(wire.MethodNodeEvent, wire.NodeEvent{Event: "exec.finished"}, &out); out.Handled || out.Reason == "" {
			t.Errorf("another event: %+v", out)
		}
	})
}
