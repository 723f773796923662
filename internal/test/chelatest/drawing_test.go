package chelatest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// brush is a service that draws, with the strictness of OpenAI's.
type brush struct {
	t    testing.TB
	hold chan struct{} // nil: it answers at once

	mu     sync.Mutex
	status int // 0: 200
	asked  []string
}

func (b *brush) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in struct {
		Model, Prompt string
		N             int
	}
	if err != nil || json.Unmarshal(body, &in) != nil || r.Method != http.MethodPost ||
		r.URL.Path != "/v1/images/generations" || r.Header.Get("Authorization") != "Bearer secret" ||
		r.Header.Get("Content-Type") != "application/json" || in.Prompt == "" || in.N != 1 {
		b.t.Errorf("%s %s %v: %s, %v", r.Method, r.URL, r.Header, body, err)
	}
	b.mu.Lock()
	b.asked = append(b.asked, in.Model+": "+in.Prompt)
	status := b.status
	b.mu.Unlock()
	if b.hold != nil {
		select {
		case <-b.hold:
		case <-r.Context().Done():
			return
		}
	}
	if status != 0 {
		http.Error(w, `{"error":{"message":"your prompt was refused"}}`, status)
		return
	}
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		b.t.Error(err)
	}
	fmt.Fprintf(w, `{"data":[{"b64_json":%q}],"usage":{"input_tokens":10,"output_tokens":1000}}`,
		base64.StdEncoding.EncodeToString(data.Bytes()))
}

// atelier is a gateway with a chat and a service that draws.
type atelier struct {
	*hearing
	brush *brush
}

const drawn = `{"model": {"primary": "mock/m"}, "imageGenerationModel": {"primary": "brush/b1"}}`

func newAtelier(t *testing.T, b *brush, defaults, dir string) atelier {
	t.Helper()
	h := atelier{&hearing{t: t, fake: &channeltest.Fake{},
		model: llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			text := last.PlainText()
			switch {
			case last.Role == llm.RoleTool:
				return llmtest.Say("tool: " + text)
			case strings.HasPrefix(text, "draw "):
				return llmtest.Call("call_draw", "image_generate", fmt.Sprintf(`{"prompt":%q}`, strings.TrimPrefix(text, "draw ")))
			}
			return llmtest.Say("told: " + text)
		})}, b}
	both := http.NewServeMux()
	both.Handle("/v1/images/", b)
	h.Gateway = Start(t, Options{
		Model:    h.model,
		Channels: map[string]channel.Channel{"fake": h.fake},
		HTTP:     overMemory(t, both),
		Dir:      dir,
		Config: Config{
			"channels":        json.RawMessage(`{"fake": {"dmPolicy": "allowlist", "allowFrom": ["boss"]}}`),
			"agents.defaults": json.RawMessage(defaults),
			"models":          json.RawMessage(`{"providers": {"brush": {"baseUrl": "http://brush.invalid/v1", "apiKey": "secret", "models": [{"id": "b1", "cost": {"input": 5, "output": 40}}]}}}`),
		},
	})
	return h
}

// shown returns what the chat shows.
func (h atelier) shown() (out []string) {
	for _, m := range h.fake.Messages(directVoice) {
		if m.Text != "" {
			out = append(out, m.Text)
		}
		for _, a := range m.Media {
			out = append(out, a.Type+" "+a.Name)
		}
	}
	return out
}

func TestDrawing(t *testing.T) {
	t.Parallel()
	t.Run("MD-01 there is a task at once, and the picture comes later", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := &brush{t: t, hold: make(chan struct{})}
			h := newAtelier(t, b, drawn, "")
			h.say(directVoice, "draw a cat")
			got := h.shown()
			if len(got) != 1 || !strings.HasPrefix(got[0], "tool: Task ") {
				t.Fatalf("before the picture: %q", got)
			}
			close(b.hold)
			synctest.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
			got = h.shown()[1:]
			if len(got) != 2 || got[0] != "image/png picture.png" || !strings.HasPrefix(got[1], "told: ") ||
				!strings.Contains(got[1], "The picture was drawn by brush/b1.\n\n[task ") {
				t.Errorf("after the picture: %q", got)
			}
			if !slices.Equal(b.asked, []string{"b1: a cat"}) {
				t.Errorf("asked %v", b.asked)
			}
			var u wire.UsageReport
			h.Client().must(wire.MethodUsageCost, nil, &u)
			i := slices.IndexFunc(u.Models, func(m wire.ModelUsage) bool { return m.Provider == "brush" && m.Model == "b1" })
			if i < 0 || u.Models[i].Calls != 1 || u.Models[i].Output != 1000 || u.Models[i].Cost != (10*5.0+1000*40)/1e6 {
				t.Errorf("the usage is %+v", u.Models)
			}
			h.Stop()
		})
	})
	t.Run("the web page shows the picture, also a day later, and no model gets it twice", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newAtelier(t, &brush{t: t}, drawn, "")
			c := h.Client()
			c.Ask("main", "draw a cat")
			time.Sleep(25 * time.Hour)
			synctest.Wait()
			var shown []wire.Content
			for _, m := range c.history("main") {
				for _, p := range m.Content {
					if p.Type == wire.ContentImage {
						shown = append(shown, p)
					}
				}
			}
			if len(shown) != 1 || shown[0].MIME != "image/png" || !bytes.HasPrefix(shown[0].Data, []byte("\x89PNG")) {
				t.Errorf("the page shows %+v", shown)
			}
			c.Ask("main", "hello")
			for _, r := range h.model.Requests() {
				for _, m := range r.Messages {
					if m.Role == "" || slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.Kind == llm.PartImage }) {
						t.Errorf("sent to the model: %+v", m)
					}
				}
			}
			h.Stop()
		})
	})
	t.Run("a failure is told", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newAtelier(t, &brush{t: t, status: 400}, drawn, "")
			h.say(directVoice, "draw a cat")
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := h.shown(); len(got) != 2 ||
				!strings.Contains(got[1], "could not be drawn: brush/b1: status 400: your prompt was refused") {
				t.Errorf("the chat shows %q", got)
			}
			h.Stop()
		})
	})
	t.Run("a picture that was being drawn when the gateway stopped is not forgotten", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			h := newAtelier(t, &brush{t: t, hold: make(chan struct{})}, drawn, dir)
			h.say(directVoice, "draw a cat")
			h.Stop()
			h = newAtelier(t, &brush{t: t}, drawn, dir)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := h.shown(); len(got) != 1 || !strings.Contains(got[0], "Chela stopped while a picture was being drawn") {
				t.Errorf("the chat shows %q", got)
			}
			h.Stop()
		})
	})
	t.Run("MD-02 without a model that draws there is no tool", func(t *testing.T) {
		t.Parallel()
		for defaults, want := range map[string]bool{
			`{}`: false, `{"imageGenerationModel":"brush/b1"}`: true, `{"mediaModels":{"image":{"primary":"brush/b1"}}}`: true,
			`{"mediaModels":{"image":{"command":"true"}}}`: true,
		} {
			synctest.Test(t, func(t *testing.T) {
				h := newAtelier(t, &brush{t: t}, strings.Replace(defaults, "{", `{"model":{"primary":"mock/m"}`+
					map[bool]string{true: ",", false: ""}[want], 1), "")
				h.say(directVoice, "hello")
				for _, r := range h.model.Requests() {
					if has := slices.ContainsFunc(r.Tools, func(s llm.ToolSpec) bool { return s.Name == "image_generate" }); has !=
						want {
						t.Errorf("%s: offered: %v", defaults, has)
					}
				}
				h.Stop()
			})
		}
	})
}
