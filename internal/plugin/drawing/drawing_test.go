package drawing

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"iter"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/drawing"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// handler answers requests without a network.
type handler http.HandlerFunc

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, r)
	return w.Result(), r.Context().Err()
}

func pixel(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// open returns a painter whose services are answered by f, and the usage that was paid.
func open(t *testing.T, config string, f http.HandlerFunc) (drawing.Painter, *[]llm.Usage) {
	t.Helper()
	p, paid, _ := openBudget(t, config, f)
	return p, paid
}

// openBudget also returns the tokens for which money was reserved.
func openBudget(t *testing.T, config string, f http.HandlerFunc) (drawing.Painter, *[]llm.Usage, *[]int) {
	t.Helper()
	c, err := drawing.Parse([]byte(config), nil)
	if err != nil {
		t.Fatal(err)
	}
	paid, wanted := new([]llm.Usage), new([]int)
	return New(Options{
		Log: slog.New(slog.DiscardHandler), Config: c,
		Programs: sandbox.Programs{Broker: host.New(""), Environ: []string{"PATH=/usr/bin:/bin"},
			Dir: filepath.Join(t.TempDir(), "work")},
		Endpoint: func(id string) (dialect.Options, bool, error) {
			o := dialect.Options{Name: id, Key: secret.New("sk-" + id), HTTP: &http.Client{Transport: handler(f)}}
			switch id {
			case "local":
				o.BaseURL, o.Key = "http://127.0.0.1:7860/v1/", secret.Value{}
			case "google":
				o.BaseURL = "https://generativelanguage.googleapis.com/v1beta/openai"
			case "openai":
			default:
				return o, false, errors.New("there is no key for " + id)
			}
			return o, id == "google", nil
		},
		Pay: func(_ drawing.Buyer, m llm.Model, p llm.Provider) (llm.Provider, error) {
			if m.ID == "dear" {
				return nil, errors.New("the budget is used up")
			}
			return payer{p, paid, wanted}, nil
		},
	}), paid, wanted
}

func TestReserved(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString(pixel(t))
	p, _, wanted := openBudget(t, `{"primary": "openai/gpt-image-1"}`, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data": [{"b64_json": %q}]}`, data)
	})
	for _, n := range []int{0, 1, 3} {
		if _, err := p.Draw(t.Context(), drawing.Buyer{}, drawing.Request{Prompt: "a cat", Count: n}); err != nil {
			t.Fatal(err)
		}
	}
	if got := *wanted; len(got) != 3 || got[0] != 8192 || got[1] != 8192 || got[2] != 3*8192 {
		t.Errorf("money was reserved for %d tokens, want 8192 for each picture", got)
	}
}

// payer notes what was used.
type payer struct {
	llm.Provider
	paid   *[]llm.Usage
	wanted *[]int
}

func (m payer) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	*m.wanted = append(*m.wanted, r.MaxTokens)
	return func(yield func(llm.Event, error) bool) {
		for e, err := range m.Provider.Stream(ctx, r) {
			if err == nil && e.Kind == llm.Done {
				*m.paid = append(*m.paid, e.Usage)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString(pixel(t))
	var asked []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		text := string(body)
		if kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
			text = ""
			form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"model", "n", "prompt", "size"} {
				text += fmt.Sprint(name, form.Value[name])
			}
			for _, f := range form.File["image[]"] {
				text += f.Filename + " " + f.Header.Get("Content-Type")
			}
		}
		asked = append(asked, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Authorization") +
			r.Header.Get("X-Goog-Api-Key"), text}, " "))
		if strings.Contains(r.URL.Path, "generateContent") {
			fmt.Fprintf(w, `{"candidates":[{"content":{"parts":[{"text":"here"},{"inlineData":{"mimeType":"image/png","data":%q}}]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1290}}`, data)
			return
		}
		var in struct{ N int }
		_ = json.Unmarshal(body, &in) // a form has one
		one := fmt.Sprintf(`{"b64_json":%q}`, data)
		fmt.Fprintf(w, `{"data":[%s],"usage":{"input_tokens":5,"output_tokens":1056}}`,
			strings.Join(slicesRepeat(one, max(in.N, 1)), ","))
	}
	for _, tt := range []struct {
		name, config string
		r            drawing.Request
		want         []string
		n            int
		ignored      string
		used         llm.Usage
	}{
		{
			"OpenAI", `"openai/gpt-image-1"`, drawing.Request{Prompt: "a cat", Count: 2, Aspect: "16:9", Quality: "low",
				Format: "png", Background: "opaque", Resolution: "2K"},
			[]string{`POST https://api.openai.com/v1/images/generations Bearer sk-openai {"background":"opaque","model":"gpt-image-1","n":2,"output_format":"png","prompt":"a cat","quality":"low","size":"1536x1024"}`},
			2, "resolution", llm.Usage{Input: 5, Output: 1056},
		},
		{
			"a local server of its format, without a key", `{"primary":"local/flux"}`,
			drawing.Request{Prompt: "a cat", Size: "512x512", Background: "opaque", Aspect: "1:1"},
			[]string{`POST http://127.0.0.1:7860/v1/images/generations  {"model":"flux","n":1,"prompt":"a cat","response_format":"b64_json","size":"512x512"}`},
			1, "aspectRatio,background", llm.Usage{Input: 5, Output: 1056},
		},
		{
			"an edit", `{"primary":"openai/gpt-image-1"}`, drawing.Request{Prompt: "in blue", Size: "1024x1024",
				Sources: []drawing.Source{{Data: []byte("x"), Type: "image/png"}, {Data: []byte("y"), Type: "image/jpeg"}}},
			[]string{`POST https://api.openai.com/v1/images/edits Bearer sk-openai model[gpt-image-1]n[1]prompt[in blue]size[1024x1024]picture1.png image/pngpicture2.jpeg image/jpeg`},
			1, "", llm.Usage{Input: 5, Output: 1056},
		},
		{
			"Gemini, once for each picture", `"google/gemini-3.1-flash-image"`, drawing.Request{Prompt: "a cat", Count: 2,
				Aspect: "16:9", Resolution: "2K", Quality: "high",
				Sources: []drawing.Source{{Data: []byte("x"), Type: "image/png"}}},
			slicesRepeat(`POST https://generativelanguage.googleapis.com/v1beta/models/gemini-3.1-flash-image:generateContent sk-google {"contents":[{"parts":[{"text":"a cat"},{"inlineData":{"data":"eA==","mimeType":"image/png"}}],"role":"user"}],"generationConfig":{"imageConfig":{"aspectRatio":"16:9","imageSize":"2K"},"responseModalities":["TEXT","IMAGE"]}}`, 2),
			2, "quality", llm.Usage{Input: 6, Output: 2580},
		},
		{"one model for one picture", `{"primary":"openai/gpt-image-1","fallbacks":["local/flux"]}`, drawing.Request{Prompt: "a cat", Model: "local/flux"}, []string{`POST http://127.0.0.1:7860/v1/images/generations  {"model":"flux","n":1,"prompt":"a cat","response_format":"b64_json"}`}, 1, "", llm.Usage{Input: 5, Output: 1056}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			p, paid := open(t, tt.config, answer)
			res, err := p.Draw(t.Context(), drawing.Buyer{}, tt.r)
			if err != nil || len(res.Pictures) != tt.n || strings.Join(asked, "\n") != strings.Join(tt.want, "\n") ||
				strings.Join(res.Ignored, ",") != tt.ignored {
				t.Errorf("%v, %d pictures, ignored %v\ngot  %s\nwant %s", err, len(res.Pictures), res.Ignored,
					strings.Join(asked, "\n"), strings.Join(tt.want, "\n"))
			}
			if len(*paid) != 1 || (*paid)[0] != tt.used {
				t.Errorf("paid %v, want %v", *paid, tt.used)
			}
		})
	}
}

func slicesRepeat(s string, n int) (out []string) {
	for range n {
		out = append(out, s)
	}
	return out
}

func TestFailures(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString(pixel(t))
	for _, tt := range []struct{ name, config, answer, want string }{
		{"nothing is configured", `{}`, "", "nothing that draws is configured"},
		{"no key", `"other/x"`, "", "other/x: there is no key for other"},
		{"the budget", `"openai/dear"`, "", "the budget is used up"},
		{"a refusal", `"openai/a"`, `400 {"error":{"message":"blocked: sk-openai"}}`, "status 400: blocked: [redacted]"},
		{"another format", `"openai/a"`, `200 <html>`, "is the base URL right?"},
		{"a link", `"openai/a"`, `200 {"data":[{"url":"http://x/y.png"}]}`, "links are not followed"},
		{"nothing", `"openai/a"`, `200 {"data":[]}`, "the answer has no picture"},
		{"no picture", `"openai/a"`, `200 {"data":[{"b64_json":"aGVsbG8="}]}`, "the answer is no picture"},
		{"not Base64", `"openai/a"`, `200 {"data":[{"b64_json":"!"}]}`, "illegal base64"},
		{"Gemini blocks", `"google/g"`, `200 {"promptFeedback":{"blockReason":"SAFETY"}}`,
			"there is no picture in the answer: SAFETY"},
		{"Gemini answers with a text", `"google/g"`,
			`200 {"candidates":[{"content":{"parts":[{"text":"I cannot draw that."}]}}]}`, "I cannot draw that."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, paid := open(t, tt.config, func(w http.ResponseWriter, _ *http.Request) {
				var status int
				_, rest, _ := strings.Cut(tt.answer, " ")
				_, _ = fmt.Sscan(tt.answer, &status)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, rest)
			})
			_, err := p.Draw(t.Context(), drawing.Buyer{}, drawing.Request{Prompt: "x"})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "sk-openai") {
				t.Errorf("%v, want %q; paid %v", err, tt.want, *paid)
			}
		})
	}
	t.Run("the next one is asked", func(t *testing.T) {
		t.Parallel()
		p, _ := open(t, `{"primary":"openai/a","fallbacks":["local/b"]}`, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Host == "api.openai.com" {
				w.WriteHeader(500)
				return
			}
			fmt.Fprintf(w, `{"data":[{"b64_json":%q}]}`, data)
		})
		if res, err := p.Draw(t.Context(), drawing.Buyer{}, drawing.Request{Prompt: "x"}); err != nil || res.By != "local/b" {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("a service that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := open(t, `{"primary":"openai/a","timeoutMs":5000}`,
				func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			start := time.Now()
			if _, err := p.Draw(t.Context(), drawing.Buyer{}, drawing.Request{Prompt: "x"}); err == nil ||
				!strings.Contains(err.Error(), "no answer within 5s") || time.Since(start) != 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
}

func TestProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "one.png")
	if err := os.WriteFile(file, pixel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	draw := func(config string, r drawing.Request) (drawing.Result, error) {
		p, _ := open(t, config, func(http.ResponseWriter, *http.Request) { t.Error("a service is asked") })
		return p.Draw(t.Context(), drawing.Buyer{}, r)
	}
	for name, config := range map[string]string{
		"a file":         fmt.Sprintf(`{"command":"cp","args":[%q,"{{OutputPath}}"]}`, file),
		"what it prints": fmt.Sprintf(`{"command":"cat","args":[%q]}`, file),
	} {
		if res, err := draw(config, drawing.Request{Prompt: "x", Count: 2, Size: "1x1"}); err != nil ||
			len(res.Pictures) != 2 || res.By != drawing.Program || strings.Join(res.Ignored, ",") != "size" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	for config, want := range map[string]string{
		`{"command":"false"}`: "exit status 1", `{"command":"true"}`: "the program: ",
		`{"command":"no-such-program"}`: "was not found", `{"command":"echo"}`: "no picture",
	} {
		if _, err := draw(config, drawing.Request{Prompt: "x"}); err == nil ||
			want != "the program: " && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}
