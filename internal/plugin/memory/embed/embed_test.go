package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/memory/embed"
)

// server is a service in this process.
type server http.HandlerFunc

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s(w, r)
	return w.Result(), nil
}

func open(t *testing.T, o embed.Options, h http.HandlerFunc) memory.Embedder {
	t.Helper()
	o.HTTP = &http.Client{Transport: server(h)}
	if o.Key.IsZero() {
		o.Key = secret.New("sk-test-key-123456")
	}
	e, err := embed.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestFormats checks what services get, and that their answers are understood.
func TestFormats(t *testing.T) {
	t.Parallel()
	const key = "sk-test-key-123456"
	list := `{"object":"list","data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[1,0]}],"usage":{}}`
	for _, c := range []struct {
		name         string
		o            embed.Options
		purpose      memory.Purpose
		model        string
		url          string
		header       [2]string
		body, answer string
	}{
		{
			"openai", embed.Options{Provider: "openai"}, memory.Document, "openai/text-embedding-3-small",
			"https://api.openai.com/v1/embeddings",
			[2]string{"Authorization", "Bearer " + key},
			`{"model":"text-embedding-3-small","input":["one","two"],"encoding_format":"float"}`, list,
		},
		{
			"a server of OpenAI's format", embed.Options{Provider: "lmstudio", Model: "text-embedding-nomic-embed-text-v1.5",
				BaseURL: "http://127.0.0.1:1234/v1/"}, memory.Question,
			"lmstudio/text-embedding-nomic-embed-text-v1.5 at 127.0.0.1:1234", "http://127.0.0.1:1234/v1/embeddings",
			[2]string{"Authorization", "Bearer " + key},
			`{"model":"text-embedding-nomic-embed-text-v1.5","input":["search_query: one","search_query: two"],"encoding_format":"float"}`, list,
		},
		{
			"gemini", embed.Options{Provider: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai"},
			memory.Question, "gemini/gemini-embedding-001",
			"https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents",
			[2]string{"X-Goog-Api-Key", key},
			`{"requests":[
				{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"one"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":768},
				{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"two"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":768}]}`,
			`{"embeddings":[{"values":[1,0]},{"values":[0,2]}]}`,
		},
		{
			"voyage", embed.Options{Provider: "voyage", Model: "voyage-4"}, memory.Document, "voyage/voyage-4",
			"https://api.voyageai.com/v1/embeddings",
			[2]string{"Authorization", "Bearer " + key}, `{"model":"voyage-4","input":["one","two"],"input_type":"document"}`,
			list,
		},
		{
			"mistral", embed.Options{Provider: "mistral"}, memory.Question, "mistral/mistral-embed",
			"https://api.mistral.ai/v1/embeddings",
			[2]string{"Authorization", "Bearer " + key}, `{"model":"mistral-embed","input":["one","two"]}`, list,
		},
		{
			"ollama", embed.Options{Provider: "ollama", BaseURL: "http://127.0.0.1:11434/v1"}, memory.Document,
			"ollama/nomic-embed-text", "http://127.0.0.1:11434/api/embed",
			[2]string{"Authorization", "Bearer " + key},
			`{"model":"nomic-embed-text","input":["search_document: one","search_document: two"],"truncate":true}`,
			`{"model":"nomic-embed-text","embeddings":[[1,0],[0,2]]}`,
		},
		{
			"headers", embed.Options{Provider: "openai", Model: "m", BaseURL: "https://user:pass@proxy.example/base",
				Header: http.Header{"X-Own": {"v"}, "authorization": {"Basic x"}}}, memory.Document,
			"openai/m at proxy.example", "https://proxy.example/base/embeddings", [2]string{"Authorization", "Basic x"},
			`{"model":"m","input":["one","two"],"encoding_format":"float"}`, list,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := open(t, c.o, func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if r.Method != http.MethodPost || r.URL.String() != c.url || r.Header.Get("Content-Type") != "application/json" ||
					r.Header.Get(c.header[0]) != c.header[1] {
					t.Errorf("%s %s, header %v", r.Method, r.URL, r.Header)
				}
				var got, want any
				if err := errors.Join(json.Unmarshal(b, &got), json.Unmarshal([]byte(c.body), &want)); err != nil ||
					!reflect.DeepEqual(got, want) {
					t.Errorf("body %s, want %s: %v", b, c.body, err)
				}
				fmt.Fprint(w, c.answer)
			})
			got, err := e.Embed(t.Context(), c.purpose, []string{"one", "two"})
			if err != nil || !reflect.DeepEqual(got, [][]float32{{1, 0}, {0, 2}}) {
				t.Errorf("%v, %v", got, err)
			}
			if e.Model() != c.model {
				t.Errorf("model %q, want %q", e.Model(), c.model)
			}
		})
	}
	for _, o := range []embed.Options{{Provider: "other", BaseURL: "http://h/v1"}, {Provider: "other", Model: "m"},
		{Provider: "openai", BaseURL: "ftp://h"}} {
		if _, err := embed.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// echo answers with a vector for each text.
func echo(w http.ResponseWriter, r *http.Request) []string {
	var in struct{ Input []string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	type data struct {
		Embedding []float32 `json:"embedding"`
	}
	var out struct {
		Data []data `json:"data"`
	}
	for _, t := range in.Input {
		out.Data = append(out.Data, data{[]float32{float32(len(t)), 1}})
	}
	_ = json.NewEncoder(w).Encode(out)
	return in.Input
}

func TestBatches(t *testing.T) {
	t.Parallel()
	var sizes []int
	e := open(t, embed.Options{Provider: "openai"}, func(w http.ResponseWriter, r *http.Request) {
		size := 0
		in := echo(w, r)
		for _, s := range in {
			size += len(s)
			if s == "" || strings.ContainsRune(s, 0) || strings.ToValidUTF8(s, "") != s || len(s) > 8000 {
				t.Errorf("text %.20q of %d bytes", s, len(s))
			}
		}
		if len(in) > 32 || size > 32<<10 && len(in) > 1 {
			t.Errorf("%d texts of %d bytes at once", len(in), size)
		}
		sizes = append(sizes, len(in))
	})
	texts := []string{"", "  ", "a\x00b", "\xff", strings.Repeat("空", 5000)}
	for i := range 60 {
		texts = append(texts, strings.Repeat("x", 100*i))
	}
	got, err := e.Embed(t.Context(), memory.Document, texts)
	if err != nil || len(got) != len(texts) || len(sizes) < 3 {
		t.Fatalf("%d vectors for %d texts in %v: %v", len(got), len(texts), sizes, err)
	}
	for i := 6; i < len(texts); i++ {
		if int(got[i][0]) != len(texts[i]) {
			t.Errorf("text %d has the vector of another one", i)
		}
	}
	if got, err := e.Embed(t.Context(), memory.Document, nil); err != nil || len(got) != 0 {
		t.Errorf("no texts: %v, %v", got, err)
	}
}

// TestFailures: what may pass is tried again, other failures are reported at once.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		status   int
		header   string
		body     string
		limit    time.Duration // 0: none
		requests int
		took     time.Duration // at least; 0: no time
		want     string
	}{
		{name: "busy", status: 429, header: "7", body: `{"error":{"message":"slow down"}}`, requests: 4,
			took: 21 * time.Second, want: "slow down"},
		{name: "out of order", status: 500, body: `oops`, requests: 4, took: time.Second, want: "oops"},
		{name: "unavailable for long", status: 503, header: "600", requests: 1, want: "503"},
		{name: "no time for another attempt", status: 500, limit: 100 * time.Millisecond, requests: 1, want: "500"},
		{name: "a wrong key", status: 401, body: `{"error":{"message":"Incorrect API key sk-test-key-123456"}}`, requests: 1,
			want: "Incorrect API key [redacted]"},
		{name: "no money", status: 429,
			body:     `{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}`,
			requests: 1, want: "quota"},
		{name: "a text with too many tokens", status: 500,
			body:     `{"error":{"message":"input (700 tokens) is too large to process. increase the physical batch size"}}`,
			requests: 1, want: "too large"},
		{name: "an unknown model", status: 404, body: `{"error":"model \"m\" not found"}`, requests: 1, want: "not found"},
		{name: "a redirect", status: 302, requests: 1, want: "redirects"},
		{name: "a page", status: 200, body: "<html>", requests: 1, want: "no vectors"},
		{name: "no vectors", status: 200, body: `{"data":[]}`, requests: 1, want: "no vectors"},
		{name: "too few", status: 200, body: `{"data":[{"embedding":[1]}]}`, requests: 1, want: "1 vectors for 2 texts"},
		{name: "an index twice", status: 200, body: `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
			requests: 1, want: "no vectors"},
		{name: "an index outside", status: 200, body: `{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`,
			requests: 1, want: "no vectors"},
		{name: "different lengths", status: 200, body: `{"data":[{"embedding":[1]},{"embedding":[1,2]}]}`, requests: 1,
			want: "different lengths"},
		{name: "no direction", status: 200, body: `{"data":[{"embedding":[1,1]},{"embedding":[0,0]}]}`,
			requests: 1, want: "no direction"},
		{name: "too long", status: 200, body: strings.Repeat(" ", 33<<20), requests: 1, want: "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				e := open(t, embed.Options{Provider: "openai"}, func(w http.ResponseWriter, _ *http.Request) {
					requests++
					if c.header != "" {
						w.Header().Set("Retry-After", c.header)
					}
					w.WriteHeader(c.status)
					fmt.Fprint(w, c.body)
				})
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				begun := time.Now()
				_, err := e.Embed(ctx, memory.Document, []string{"a", "b"})
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "openai") ||
					strings.Contains(err.Error(), "sk-test") || len(err.Error()) > 500 {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if took := time.Since(begun); requests != c.requests || took < c.took || c.took == 0 && took > 0 {
					t.Errorf("%d requests in %v, want %d", requests, took, c.requests)
				}
			})
		})
	}
	t.Run("it recovers", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			e := open(t, embed.Options{Provider: "mistral"}, func(w http.ResponseWriter, r *http.Request) {
				if requests++; requests < 3 {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				echo(w, r)
			})
			if got, err := e.Embed(t.Context(), memory.Document, []string{"a"}); err != nil || len(got) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	})
	t.Run("without a server", func(t *testing.T) {
		t.Parallel()
		e, err := embed.New(embed.Options{Provider: "openai"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Embed(t.Context(), memory.Question, []string{"a"}); llm.ClassOf(err) != llm.ClassFormat {
			t.Errorf("%v", err)
		}
	})
}

// FuzzDecode gives any answer to all formats: there are as many vectors as texts, or
// there is an error.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[1,0]}]}`,
		`{"embeddings":[{"values":[1,0]},{"values":[0,2]}]}`, `{"embeddings":[[1,0],[0,2]]}`,
		`{"data":[{"index":-1,"embedding":null}]}`, `{"data":[{"embedding":[1e39]},{"embedding":[1]}]}`, `[]`,
		`{"embeddings":[[],[]]}`, "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, provider := range []string{"openai", "gemini", "voyage", "mistral", "ollama"} {
			e := open(t, embed.Options{Provider: provider}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
			got, err := e.Embed(t.Context(), memory.Document, []string{"a", "b"})
			if err == nil && (len(got) != 2 || len(got[0]) == 0 || len(got[0]) != len(got[1])) {
				t.Errorf("%s: %v", provider, got)
			}
		}
	})
}
