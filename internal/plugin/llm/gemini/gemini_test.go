package gemini_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/gemini"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func open(url string, hc *http.Client) llm.Provider {
	return gemini.New(gemini.Options{Name: "golden", BaseURL: url, HTTP: hc})
}

func TestSuite(t *testing.T) { llmtest.Suite(t, llmtest.Gemini, open) }

func TestGolden(t *testing.T) {
	t.Run("PROV-04 requests are valid and unchanged", func(t *testing.T) {
		llmtest.Golden(t, llmtest.Gemini, open, "testdata/requests.txtar", *update)
	})
}

// ask sends r to a provider of o and returns the request that was sent, and the answer.
func ask(t *testing.T, o gemini.Options, r *llm.Request,
	step llmtest.Step) (llmtest.ReceivedRequest, *llmtest.Collected) {
	t.Helper()
	srv := llmtest.NewServer(t, llmtest.Gemini, step)
	url, hc := srv.Pipe()
	o.HTTP = llmtest.RerouteClient(url, hc)
	c, err := llmtest.Collect(t.Context(), gemini.New(o), r)
	if err != nil {
		t.Fatal(err)
	}
	return srv.Requests()[0], c
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, model, want string }{
		{"", "gemini-3-pro", "/v1beta/models/gemini-3-pro:streamGenerateContent"},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "models/gemini-3-pro",
			"/v1beta/models/gemini-3-pro:streamGenerateContent"},
		{"http://proxy/google/v1/", "a b", "/google/v1/models/a b:streamGenerateContent"},
	} {
		r := llmtest.Ask("Hi")
		r.Model = tt.model
		got, c := ask(t, gemini.Options{BaseURL: tt.base, Key: secret.New("k1")}, r, llmtest.Say("ok"))
		if c.Err != nil || got.Path != tt.want || got.Header.Get("X-Goog-Api-Key") != "k1" ||
			got.Header.Get("Authorization") != "" {
			t.Errorf("%s: %v, %s %v", tt.base, c.Err, got.Path, got.Header)
		}
	}
}

func TestThinking(t *testing.T) {
	t.Parallel()
	flash := []llm.Level{llm.Minimal, llm.Low, llm.Medium, llm.High}
	for _, tt := range []struct {
		model  string
		levels []llm.Level
		level  llm.Level
		want   string
	}{
		{"gemini-3-pro-preview", nil, llm.High, `{"includeThoughts":true,"thinkingLevel":"high"}`},
		{"gemini-3-pro-preview", nil, llm.Minimal, `{"includeThoughts":true,"thinkingLevel":"low"}`},
		{"gemini-3-flash", flash, llm.Medium, `{"includeThoughts":true,"thinkingLevel":"medium"}`},
		{"gemini-3-flash", llm.Levels[:], llm.Max, `{"includeThoughts":true,"thinkingLevel":"high"}`},
		{"gemini-3-pro-preview", nil, llm.Off, ``},
		{"gemini-2.5-flash", nil, llm.Off, `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", nil, llm.Max, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-2.5-pro", nil, llm.Off, ``},
		{"gemini-2.5-pro", nil, llm.Max, `{"includeThoughts":true,"thinkingBudget":32768}`},
		{"gemini-2.5-pro", nil, llm.Adaptive, `{"includeThoughts":true,"thinkingBudget":-1}`},
		{"gemma-4", []llm.Level{}, llm.High, ``},
	} {
		o := gemini.Options{Model: func(id string) llm.Model {
			if tt.levels == nil {
				return llm.Model{}
			}
			return llm.Model{ID: id, Levels: tt.levels}
		}}
		r := llmtest.Ask("Hi")
		r.Model, r.Thinking, r.MaxTokens = tt.model, tt.level, 50
		got, c := ask(t, o, r, llmtest.Say("ok"))
		var body struct {
			Settings struct {
				Thinking json.RawMessage `json:"thinkingConfig"`
			} `json:"generationConfig"`
		}
		if err := json.Unmarshal(got.Body, &body); err != nil || c.Err != nil || string(body.Settings.Thinking) != tt.want {
			t.Errorf("%s, %s: %s, want %s (%v, %v)", tt.model, tt.level, body.Settings.Thinking, tt.want, err, c.Err)
		}
	}
}

// TestSignatures checks that a call is sent back with its signature, to the same model, and
// that a call of another model has the one that stands for none, where one is required.
func TestSignatures(t *testing.T) {
	t.Parallel()
	r := llmtest.Ask("Hi")
	r.Model = "gemini-3-pro"
	_, c := ask(t, gemini.Options{}, r, llmtest.Think("Hm.", "c2ln", llmtest.Calls(llmtest.ToolCall("a", "look", `{}`),
		llmtest.ToolCall("b", "look", `{}`))))
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	r.Messages = append(r.Messages, c.Message, llmtest.Result("a", "1"), llmtest.Result("b", "2"))
	for model, want := range map[string]string{
		"gemini-3-pro":   "c2ln",
		"gemini-3-flash": "skip_thought_signature_validator",
		"gemini-2.5-pro": "",
	} {
		r.Model = model
		got, c := ask(t, gemini.Options{}, r, llmtest.Say("ok"))
		if c.Err != nil {
			t.Fatalf("%s: %v", model, c.Err)
		}
		want := map[bool]string{
			true:  `"name":"look"},"thoughtSignature":"` + want + `"}`,
			false: `"name":"look"}}`,
		}[want != ""]
		if !bytes.Contains(got.Body, []byte(want)) || bytes.Count(got.Body, []byte("thoughtSignature")) > 1 {
			t.Errorf("%s: %s, want %s", model, got.Body, want)
		}
	}
}

// TestEnds checks answers that end in other ways than a model's own.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		event string
		stop  llm.StopReason
		class llm.Class
	}{
		{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`,
			llm.StopRefusal, ""},
		{`{"candidates":[{"content":{"parts":[{"text":"I"}]},"finishReason":"RECITATION"}]}`, llm.StopRefusal, ""},
		{`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(look("}]}`, "", llm.ClassNetwork},
		{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look"}}]},"finishReason":"STOP"}]}`,
			llm.StopTools, ""},
		{`{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}`, "", llm.ClassRate},
	} {
		step := llmtest.Say("x")
		step.Fault.Body = func([]byte) []byte { return []byte("data: " + tt.event + "\r\n\r\n") }
		_, c := ask(t, gemini.Options{}, llmtest.Ask("Hi"), step)
		if c.Err != nil || tt.class != "" {
			if llm.ClassOf(c.Err) != tt.class {
				t.Errorf("%s: %v", tt.event, c.Err)
			}
			continue
		}
		if c.Message.Stop != tt.stop {
			t.Errorf("%s: stop %q", tt.event, c.Message.Stop)
		}
	}
	_, c := ask(t, gemini.Options{}, llmtest.Ask("Hi"),
		llmtest.Status(400, "API key not valid. Please pass a valid API key."))
	if llm.ClassOf(c.Err) != llm.ClassAuth {
		t.Errorf("a wrong key: %v", c.Err)
	}
}

// TestWithoutThinking checks that a model that refuses to think is asked without.
func TestWithoutThinking(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, llmtest.Gemini, llmtest.Status(400, "Thinking is not enabled for models/gemma"),
		llmtest.Say("one"), llmtest.Say("two"))
	url, hc := srv.Pipe()
	p := gemini.New(gemini.Options{BaseURL: url, HTTP: hc})
	r := llmtest.Ask("Hi")
	r.Thinking = llm.Low
	for range 2 {
		if c, err := llmtest.Collect(t.Context(), p, r); err != nil || c.Err != nil {
			t.Fatal(err, c.Err)
		}
	}
	var asked []string
	for _, got := range srv.Requests() {
		asked = append(asked,
			map[bool]string{true: "thinks", false: "does not"}[bytes.Contains(got.Body, []byte("thinkingConfig"))])
	}
	if got := strings.Join(asked, ", "); got != "thinks, does not, does not" {
		t.Error(got)
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	t.Run("PROV-16 a message of the user precedes a history that begins with the assistant", func(t *testing.T) {
		t.Parallel()
		for _, first := range []*llm.Message{
			{Role: llm.RoleAssistant, Parts: []llm.Part{{Kind: llm.PartText, Text: "Good morning."}}},
			llm.User("Hello."),
		} {
			r := llmtest.Ask("Hi")
			r.Messages = append([]*llm.Message{first}, r.Messages...)
			got, c := ask(t, gemini.Options{Key: secret.New("k1")}, r, llmtest.Say("ok"))
			var body struct {
				Contents []struct {
					Role  string
					Parts []struct{ Text string }
				}
			}
			if err := json.Unmarshal(got.Body, &body); err != nil || c.Err != nil {
				t.Fatal(err, c.Err)
			}
			var roles, texts []string
			for _, content := range body.Contents {
				roles = append(roles, content.Role)
				for _, p := range content.Parts {
					texts = append(texts, p.Text)
				}
			}
			want, wantTexts := "user model user", "(The conversation begins.)|Good morning.|Hi"
			if first.Role == llm.RoleUser {
				want, wantTexts = "user", "Hello.|Hi"
			}
			if got := strings.Join(roles, " "); got != want || strings.Join(texts, "|") != wantTexts {
				t.Errorf("%s %q, want %s %q", got, texts, want, wantTexts)
			}
		}
	})
}
