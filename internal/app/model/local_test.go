package model

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// machine is the servers of a machine: responses by method, URL and body.
type machine struct {
	mu    sync.Mutex
	by    map[string]string
	asked int
}

func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	what := r.Method + " " + r.URL.String()
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		what = strings.TrimSpace(what + " " + string(b))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	body, ok := m.by[what]
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		Request: r}, nil
}

const (
	ollamaModels = "GET http://127.0.0.1:11434/v1/models"
	ollamaShow   = "POST http://127.0.0.1:11434/api/show "
)

func TestProbe(t *testing.T) {
	t.Parallel()
	on := func(t *testing.T, c conf, by map[string]string) (*Set, *machine) {
		t.Helper()
		net := &machine{by: by}
		o := on(t, nil, nil)
		o.HTTP = &http.Client{Transport: net}
		m, err := begin(t, c, o)
		if err != nil {
			t.Fatal(err)
		}
		return m, net
	}
	t.Run("PROV-11 an Ollama model without tools is not the default", func(t *testing.T) {
		t.Parallel()
		m, _ := on(t, nil, map[string]string{
			ollamaModels:                     `{"data":[{"id":"plain"},{"id":"small"},{"id":"nomic-embed-text"},{"id":"able"}]}`,
			ollamaShow + `{"model":"plain"}`: `{"capabilities":["completion"],"model_info":{"llama.context_length":131072}}`,
			ollamaShow + `{"model":"small"}`: `{"capabilities":["completion","tools"],"model_info":{"x.context_length":8192}}`,
			ollamaShow + `{"model":"able"}`:  `{"capabilities":["completion","tools","thinking","vision"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`,
		})
		if got := m.choice.String(); got != "ollama/able" {
			t.Errorf("chose %s", got)
		}
		no, yes := false, true
		free := &llm.Price{}
		want := []llm.Model{
			{Provider: "ollama", ID: "plain", Name: "plain", Context: 32768, Price: free,
				Compat: llm.Compat{SupportsTools: &no}},
			{Provider: "ollama", ID: "small", Name: "small", Context: 8192, Price: free,
				Compat: llm.Compat{SupportsTools: &yes}},
			{Provider: "ollama", ID: "able", Name: "able", Context: 32768, Images: true,
				Levels: []llm.Level{llm.Low, llm.Medium, llm.High}, Price: free, Compat: llm.Compat{SupportsTools: &yes}},
		}
		all := m.Catalog().Models
		if d := cmp.Diff(want, all[len(all)-3:]); d != "" {
			t.Error(d)
		}
	})
	t.Run("servers of each kind and the abilities of their models", func(t *testing.T) {
		t.Parallel()
		m, net := on(t, conf{"agents.defaults": `{"model": "openai/gpt-5"}`}, map[string]string{
			"GET http://127.0.0.1:8000/v1/models":     `{"data":[{"id":"Qwen/Qwen3-8B","max_model_len":32768}]}`,
			"GET http://127.0.0.1:8080/v1/models":     `{"data":[{"id":"gemma","meta":{"n_ctx":16384,"n_ctx_train":131072}}]}`,
			"GET http://127.0.0.1:1234/v1/models":     `{"data":[{"id":"gpt-oss"},{"id":"see"},{"id":"vectors"}]}`,
			"GET http://127.0.0.1:1234/api/v0/models": `{"data":[{"id":"gpt-oss","type":"llm","max_context_length":131072,"loaded_context_length":20000,"capabilities":["tool_use"]},{"id":"see","type":"vlm","max_context_length":4096},{"id":"vectors","type":"embeddings"}]}`,
		})
		if net.asked != 0 {
			t.Errorf("%d requests, though a model is configured", net.asked)
		}
		const qwen = "vllm/Qwen/Qwen3-8B"
		if info, _, err := m.Resolve(qwen); err != nil || info.Context != 0 {
			t.Errorf("before the servers are asked: %+v, %v", info, err)
		}
		m.Probe(t.Context())
		n := net.asked
		if m.Probe(t.Context()); net.asked != n {
			t.Error("a recent result was requested again")
		}
		var got []string
		for _, x := range m.Catalog().Models {
			if slices.ContainsFunc(locals[:], func(l service) bool { return l.id == x.Provider }) {
				got = append(got, x.Ref(), describe(x))
			}
		}
		want := []string{"lmstudio/gpt-oss", "20000", "lmstudio/see", "4096 images", "llamacpp/gemma", "16384",
			"vllm/Qwen/Qwen3-8B", "32768"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		var ready []string
		for _, s := range m.Providers() {
			if s.Err == nil {
				ready = append(ready, s.ID)
			}
		}
		if d := cmp.Diff([]string{"lmstudio", "llamacpp", "vllm", "offline"}, ready); d != "" {
			t.Error(d)
		}
		if info, _, err := m.Resolve(qwen); err != nil || info.Context != 32768 {
			t.Errorf("%+v, %v", info, err)
		}
	})
	t.Run("a server at the configured address", func(t *testing.T) {
		t.Parallel()
		m, _ := on(t,
			conf{"models": `{"providers": {"vllm": {"baseUrl": "http://box:9000/v1/", "compat": {"supportsTools": true}}}}`},
			map[string]string{
				"GET http://box:9000/v1/models": `{"data":[{"id":"far"}]}`,
			})
		if got := m.choice.String(); got != "vllm/far" {
			t.Errorf("chose %s", got)
		}
	})
}

func describe(m llm.Model) string {
	s := strconv.Itoa(m.Context)
	if m.Images {
		s += " images"
	}
	return s
}

func TestParams(t *testing.T) {
	t.Parallel()
	with := func(t *testing.T, d *backend, agent, defaults, more string) *Set {
		t.Helper()
		o := on(t, nil, nil)
		o.HTTP = &http.Client{Transport: d}
		o.AgentParams, o.Params = []byte(agent), []byte(defaults)
		m, err := begin(t, conf{
			"models":          `{"providers": {"one": {"baseUrl": "http://one/v1", "apiKey": "k1", "params": {"a": 1, "z": 9}, "models": [{"id": "m1", "maxTokens": 4000}, {"id": "m2"}]}}}`,
			"agents.defaults": `{"model": "one/m1", "models": {"one/m1": {"params": ` + more + `}}}`,
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	t.Run("PROV-13 the most specific section wins for each field of params", func(t *testing.T) {
		t.Parallel()
		d := &backend{}
		m := with(t, d, `{"c": 4}`, `{"a": 2, "b": 2, "temperature": 0.1}`,
			`{"b": 3, "c": 3, "temperature": 0.7, "maxTokens": 77, "extra_body": {"seed": 5}, "transport": "sse"}`)
		if _, _, err := turn(t, m, ""); err != nil {
			t.Fatal(err)
		}
		want := `"max_tokens":77,"temperature":0.7,"a":2,"b":3,"c":4,"seed":5,"z":9,"messages"`
		if body := d.last(); !strings.Contains(body, want) || strings.Contains(body, "transport") {
			t.Errorf("%s, want %s", body, want)
		}
		if _, _, err := turn(t, m, "one/m2"); err != nil {
			t.Fatal(err)
		}
		if body := d.last(); !strings.Contains(body, `"temperature":0.1,"a":2,"b":2,"c":4,"z":9,"messages"`) {
			t.Errorf("another model: %s", body)
		}
	})
	t.Run("thinking is the default level of the model, and anything but a level is sent unchanged", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			params string
			level  llm.Level
			body   string
		}{
			{`{"thinking": "high"}`, llm.High, ""},
			{`{"thinking": "off", "top_p": 1}`, llm.Off, `{"top_p":1}`},
			{`{"thinking": {"type": "on"}}`, "", `{"thinking":{"type":"on"}}`},
			{`{"thinking": "enabled"}`, "", `{"thinking":"enabled"}`},
		} {
			script := llmtest.NewScript(llmtest.Say("ok"))
			m := open(t, Options{
				Made: map[string]llm.Provider{"one": script},
				Defaults: Defaults{Model: Choice{Primary: "one/m"},
					Models: map[string]Settings{"one/m": {Params: []byte(tt.params)}}},
			})
			if _, _, err := turn(t, m, ""); err != nil {
				t.Fatal(err)
			}
			if got := m.Think(llm.Model{Provider: "one", ID: "m"}); got != tt.level {
				t.Errorf("%s: the level %q, want %q", tt.params, got, tt.level)
			}
			if got := m.Think(llm.Model{Provider: "one", ID: "n"}); got != "" {
				t.Errorf("%s: another model has the level %q", tt.params, got)
			}
			if got := string(script.Requests()[0].Params); got != tt.body {
				t.Errorf("%s: sent %s, want %s", tt.params, got, tt.body)
			}
		}
	})
	t.Run("invalid params are an error of the request", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []string{`[1]`, `{"temperature": "hot"}`, `{"extra_body": 1}`,
			`{"thinking": "x", "maxTokens": "y"}`} {
			if _, _, err := with(t, &backend{}, ``, ``, bad).Resolve(""); err == nil ||
				!strings.Contains(err.Error(), "params") {
				t.Errorf("%s: %v", bad, err)
			}
		}
	})
}

func TestCompatOfModels(t *testing.T) {
	t.Parallel()
	d := &backend{}
	o := on(t, nil, nil)
	o.HTTP = &http.Client{Transport: d}
	m, err := begin(t, conf{"models": `{"providers": {"one": {"baseUrl": "http://one/v1", "apiKey": "k", "maxTokens": 500,
		"compat": {"maxTokensField": "max_completion_tokens", "supportsTemperature": false},
		"models": [{"id": "m1"}, {"id": "m2", "contextWindow": 9000, "contextTokens": 8000, "compat": {"supportsTemperature": true}}]}}}`}, o)
	if err != nil {
		t.Fatal(err)
	}
	for model, warm := range map[string]bool{"m1": false, "m2": true, "unlisted": false} {
		info := m.info("one", model)
		if c := info.Compat; c.MaxTokensField != "max_completion_tokens" || c.SupportsTemperature == nil ||
			*c.SupportsTemperature != warm || info.MaxOutput != 500 {
			t.Errorf("%s: %+v, puts out %d", model, c, info.MaxOutput)
		}
	}
	if n := m.info("one", "m2").Context; n != 8000 {
		t.Errorf("window %d", n)
	}
	if _, err := begin(t,
		conf{"models": `{"providers": {"one": {"models": [{"id": "m", "compat": {"supportsTools": "no"}}]}}}`},
		on(t, nil, nil)); err == nil || !strings.Contains(err.Error(), "compat of m") {
		t.Errorf("an invalid compat: %v", err)
	}
}

func TestNumberedKeys(t *testing.T) {
	t.Parallel()
	m, err := begin(t, nil, on(t, map[string]string{"GROQ_API_KEY": "a", "GROQ_API_KEY_2": "b", "VLLM_API_KEY": "v"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"groq:GROQ_API_KEY", "groq:GROQ_API_KEY_2"}, m.Provider("groq").Keys); d != "" {
		t.Error(d)
	}
	if got := m.first("vllm").value.Reveal(); got != "v" {
		t.Errorf("vllm has the key %q", got)
	}
}
