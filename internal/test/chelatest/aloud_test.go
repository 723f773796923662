package chelatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// mouth is a fake service that speaks. A recording contains what it says, see recording.
type mouth struct {
	mu     sync.Mutex
	asked  []string // "model voice format: text" of each request
	status int      // 0: it answers
	hold   bool     // it does not answer
}

func (m *mouth) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *mouth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model, Voice, Input string
		Format              string `json:"response_format"`
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	m.mu.Lock()
	hold := m.hold
	m.mu.Unlock()
	if hold {
		<-r.Context().Done()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, fmt.Sprintf("%s %s %s: %s", in.Model, in.Voice, in.Format, in.Input))
	switch {
	case err != nil || r.URL.Path != "/v1/audio/speech" || r.Header.Get("Authorization") != "Bearer secret":
		http.Error(w, `{"error": {"message": "bad request"}}`, http.StatusBadRequest)
	case m.status != 0:
		http.Error(w, `{"error": {"message": "no capacity"}}`, m.status)
	default:
		_, _ = w.Write(recording(in.Input).Data)
	}
}

// aloud is a gateway with a fake channel and a service that speaks.
type aloud struct {
	*hearing
	mouth *mouth
}

// speaks starts a gateway with a section tts. The model answers with the message.
func speaks(t *testing.T, tts string, f func(t *testing.T, h aloud)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newAloud(t, &mouth{}, tts, "")
		f(t, h)
		h.Stop()
	})
}

// newAloud starts a gateway with a state directory; "": a new one.
func newAloud(t *testing.T, m *mouth, tts, dir string) aloud {
	t.Helper()
	h := aloud{&hearing{t: t, fake: &channeltest.Fake{},
		model: llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if text := last.PlainText(); last.Role == llm.RoleTool {
				return llmtest.Say("done: " + text)
			} else if say, ok := strings.CutPrefix(text, "call "); ok {
				return llmtest.Call("c1", "tts", `{"text": "`+say+`"}`)
			} else {
				_, text, _ = strings.Cut("\n"+text, "buy") // of a transcript
				return llmtest.Say("buy" + text)
			}
		})}, m}
	conf := Config{
		"channels": json.RawMessage(`{"fake": {"dmPolicy": "allowlist", "allowFrom": ["boss"]}}`),
		"tools":    json.RawMessage(`{"media": ` + speechModels + `}`),
		"models":   json.RawMessage(`{"providers": {"stt": {"baseUrl": "http://ears.invalid/v1", "apiKey": "secret"}}}`),
		"commands": json.RawMessage(`{"ownerAllowFrom": ["fake:boss"]}`),
		"tts":      json.RawMessage(tts),
	}
	h.ears = &ears{}
	both := http.NewServeMux()
	both.Handle("/v1/audio/speech", m)
	both.Handle("/", h.ears)
	h.Gateway = Start(t, Options{
		Model:    h.model,
		Channels: map[string]channel.Channel{"fake": h.fake},
		HTTP:     overMemory(t, both),
		Config:   conf,
		Dir:      dir,
	})
	return h
}

// last returns what the chat shows after a message: texts, and what recordings say.
func (h aloud) last(text string, list ...chela.Media) []string {
	h.t.Helper()
	before := len(h.fake.Messages(directVoice))
	h.say(directVoice, text, list...)
	var out []string
	for _, m := range h.fake.Messages(directVoice)[before:] {
		if m.Text != "" {
			out = append(out, m.Text)
		}
		for _, a := range m.Media {
			_, said, _ := strings.Cut(string(a.Data), spokenMark)
			out = append(out, a.Type+" "+a.Name+" "+strings.TrimSuffix(said, "\n"))
		}
	}
	return out
}

const mouthed = `{"auto": %q, "providers": {"mouth": {"baseUrl": "http://mouth.invalid/v1", "apiKey": "secret", "model": "t", "speakerVoice": "v"}}}`

func TestAloud(t *testing.T) {
	t.Parallel()
	t.Run("MD-03 an answer is said after its text", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "always"), func(t *testing.T, h aloud) {
			got := fmt.Sprint(h.last("buy **milk** and [bread](https://shop.example)"))
			if want := "[buy **milk** and [bread](https://shop.example) audio/ogg voice.ogg buy milk and bread]"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := fmt.Sprint(h.mouth.asked); got != "[t v opus: buy milk and bread]" {
				t.Errorf("asked %s", got)
			}
			if got := h.last("buy it"); len(got) != 1 {
				t.Errorf("a short answer: %q", got)
			}
			if got := h.last("buy\n```\nx := 1; y := 2; z := 3; fmt.Println(x, y, z)\n```"); len(got) != 1 {
				t.Errorf("code: %q", got)
			}
		})
	})
	t.Run("MD-04 what is said is cut after a sentence", func(t *testing.T) {
		t.Parallel()
		speaks(t, strings.Replace(fmt.Sprintf(mouthed, "always"), "{", `{"maxTextLength": 60, `, 1),
			func(t *testing.T, h aloud) {
				got := h.last("buy" + strings.Repeat(" One more sentence follows.", 300))
				if n := len(got); n < 2 ||
					!strings.HasSuffix(got[n-1], "voice.ogg buy One more sentence follows. One more sentence follows.") {
					t.Errorf("%q", got[len(got)-1])
				}
			})
	})
	t.Run("MD-06 the text is there when the service fails", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "always"), func(t *testing.T, h aloud) {
			h.mouth.set(func() { h.mouth.status = http.StatusServiceUnavailable })
			if got := fmt.Sprint(h.last("buy milk and bread")); got != "[buy milk and bread]" {
				t.Errorf("%s", got)
			}
			if got := fmt.Sprint(h.last("buy [[tts:text]]only for the ear[[/tts:text]]")); got != "[buy]" {
				t.Errorf("%s", got)
			}
			h.mouth.set(func() { h.mouth.status = 0 })
			if got := fmt.Sprint(h.last("buy [[tts:text]]only for the ear[[/tts:text]]")); got !=
				"[buy audio/ogg voice.ogg only for the ear]" {
				t.Errorf("%s", got)
			}
		})
	})
	t.Run("only answers to voice notes", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "inbound"), func(t *testing.T, h aloud) {
			if got := h.last("buy milk and bread"); len(got) != 1 {
				t.Errorf("to a text: %q", got)
			}
			if got := fmt.Sprint(h.last("", recording("buy milk and bread"))); got !=
				"[buy milk and bread audio/ogg voice.ogg buy milk and bread]" {
				t.Errorf("to a voice note: %s", got)
			}
		})
	})
	t.Run("only marked answers", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "tagged"), func(t *testing.T, h aloud) {
			if got := h.last("buy milk and bread"); len(got) != 1 {
				t.Errorf("unmarked: %q", got)
			}
			if got := fmt.Sprint(h.last("buy milk [[tts]]")); got != "[buy milk audio/ogg voice.ogg buy milk]" {
				t.Errorf("marked: %s", got)
			}
		})
	})
	t.Run("the tool sends a voice message, and the answer is not said again", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "always"), func(t *testing.T, h aloud) {
			got := h.last("call good night")
			if len(got) != 2 || got[0] != "audio/ogg voice.ogg good night" ||
				!strings.HasPrefix(got[1], "done: Sent as a voice message") {
				t.Errorf("%q", got)
			}
		})
	})
	t.Run("/tts says a text and switches", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "off"), func(t *testing.T, h aloud) {
			if got := fmt.Sprint(h.last("/tts audio good *night*")); got != "[audio/ogg voice.ogg good night]" {
				t.Errorf("audio: %s", got)
			}
			if got := fmt.Sprint(h.last("/tts")); got != "[Voice: mouth, said aloud: off]" {
				t.Errorf("status: %s", got)
			}
			if got := h.last("/tts provider nobody"); len(got) != 1 ||
				!strings.Contains(got[0], `there is no provider "nobody" that speaks`) {
				t.Errorf("an unknown provider: %q", got)
			}
			if got := h.last("/tts loud"); len(got) != 1 || !strings.HasPrefix(got[0], "Usage: /tts") {
				t.Errorf("an unknown word: %q", got)
			}
		})
	})
	t.Run("methods of clients", func(t *testing.T) {
		t.Parallel()
		speaks(t, fmt.Sprintf(mouthed, "inbound"), func(t *testing.T, h aloud) {
			c := h.Client()
			var s wire.TTSStatus
			c.must(wire.MethodTTSStatus, wire.None{}, &s)
			if !s.Enabled || s.Auto != "inbound" || s.Provider != "mouth" || len(s.States) < 3 {
				t.Errorf("%+v", s)
			}
			var p wire.TTSProviders
			c.must(wire.MethodTTSProviders, wire.None{}, &p)
			if p.Active != "mouth" || p.Providers[0].ID != "mouth" {
				t.Errorf("%+v", p)
			}
			var out wire.TTSConverted
			c.must(wire.MethodTTSConvert, wire.TTSConvert{Text: "hello", Voice: "w"}, &out)
			if out.Provider != "mouth" || out.Format != "opus" || !out.Voice { // the content says what it is
				t.Errorf("%+v", out)
			}
			if got := fmt.Sprint(h.mouth.asked); got != "[t w mp3: hello]" {
				t.Errorf("asked %s", got)
			}
			if err := c.Call(t.Context(), wire.MethodTTSConvert, wire.TTSConvert{Text: strings.Repeat("x", 4001)}, nil); err ==
				nil || !strings.Contains(err.Error(), "tts.maxTextLength") {
				t.Errorf("a long text: %v", err)
			}
			if err := c.Call(t.Context(), wire.MethodTTSConvert, wire.TTSConvert{Text: "x", Provider: "nobody"},
				nil); err == nil {
				t.Error("an unknown provider is accepted")
			}
		})
	})
	t.Run("MD-02 the tool is not offered when no voice is chosen", func(t *testing.T) {
		t.Parallel()
		for conf, want := range map[string]bool{`{}`: false, fmt.Sprintf(mouthed, "off"): true} {
			speaks(t, conf, func(t *testing.T, h aloud) {
				h.last("buy")
				for _, r := range h.model.Requests() {
					has := false
					for _, s := range r.Tools {
						has = has || s.Name == "tts"
					}
					if has != want {
						t.Errorf("%s: offered: %v", conf, has)
					}
				}
			})
		}
	})
	t.Run("a recording that was being made is made by the next start, and sent once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m, dir := &mouth{hold: true}, t.TempDir()
			h := newAloud(t, m, fmt.Sprintf(mouthed, "always"), dir)
			if got := fmt.Sprint(h.last("buy milk and bread")); got != "[buy milk and bread]" {
				t.Errorf("before the recording: %s", got)
			}
			h.Stop()
			m.set(func() { m.hold = false })
			after := newAloud(t, m, fmt.Sprintf(mouthed, "always"), dir)
			time.Sleep(time.Minute)
			if got := after.fake.Messages(directVoice); len(got) != 1 || len(got[0].Media) != 1 {
				t.Errorf("after the start: %+v", got)
			}
			after.Stop()
		})
	})
}
