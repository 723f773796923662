package chelatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// vectorServer is an embedding service of OpenAI's format, over memory. It knows a few
// concepts: the words of a concept have the same direction. Other words have none.
type vectorServer struct {
	t *testing.T

	mu     sync.Mutex
	status int      // of all answers; 0: 200
	inputs []string // texts that were embedded
	hosts  []string // with the key of each request
}

var directions = map[string]int{
	"router":  0,
	"network": 0,
	"box":     0,
	"nas":     1,
	"machine": 1,
	"hosts":   1,
	"runs":    1,
	"cat":     2,
	"food":    3,
}

func (s *vectorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var in struct {
		Model  string
		Input  []string
		Format string `json:"encoding_format"`
	}
	if err == nil {
		err = json.Unmarshal(b, &in)
	}
	if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/embeddings") || in.Model == "" ||
		in.Format != "float" || len(in.Input) == 0 || slices.Contains(in.Input, "") {
		s.t.Errorf("%s %s: %s: %v", r.Method, r.URL, b, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, r.Host+" "+r.Header.Get("Authorization"))
	if s.status != 0 {
		w.WriteHeader(s.status)
		fmt.Fprint(w, `{"error": {"message": "the service is down"}}`)
		return
	}
	s.inputs = append(s.inputs, in.Input...)
	type datum struct {
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	}
	var out struct {
		Data []datum `json:"data"`
	}
	for i, text := range in.Input {
		d := datum{i, []float64{0, 0, 0, 0, 0.01}}
		for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
			if at, ok := directions[word]; ok {
				d.Embedding[at]++
			}
		}
		out.Data = append(out.Data, d)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.t.Error(err)
	}
}

func (s *vectorServer) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// seen returns the texts and the hosts of the requests so far, and forgets them.
func (s *vectorServer) seen() (inputs, hosts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inputs, hosts = s.inputs, s.hosts
	s.inputs, s.hosts = nil, nil
	return inputs, hosts
}

// plainly sends requests without TLS.
type plainly struct{ http.RoundTripper }

func (p plainly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return p.RoundTripper.RoundTrip(r)
}

func (p plainly) CloseIdleConnections() {
	(&http.Client{Transport: p.RoundTripper}).CloseIdleConnections()
}

// vectorGateway is a gateway with notes and an embedding service.
type vectorGateway struct {
	*Gateway
	server *vectorServer
	client *Client
}

func newVectorGateway(t *testing.T, env map[string]string, memorySearch string, more Config) *vectorGateway {
	s := &vectorServer{t: t}
	l := llmtest.Pipe()
	hs := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(l) // until Close
	}()
	hc := &http.Client{Transport: plainly{l.Client().Transport}}
	t.Cleanup(func() {
		hc.CloseIdleConnections()
		_ = hs.Close()
		<-done
	})
	conf := Config{"agents.defaults": json.RawMessage(`{"memorySearch": ` + memorySearch + `}`)}
	for k, v := range more {
		conf[k] = v
	}
	g := Start(t, Options{Model: uses(), Config: conf, HTTP: hc, Env: env})
	g.writeIn("workspace/memory/network.md", "The router runs on the NAS.\n")
	g.writeIn("workspace/memory/cat.md", "The cat gets its food at seven.\n")
	return &vectorGateway{g, s, g.Client()}
}

func (v *vectorGateway) search(query string) string {
	return v.client.Ask("main", fmt.Sprintf(`memory_search {"query":%q}`, query)).Text
}

func (v *vectorGateway) end() {
	v.client.Close()
	v.Stop()
}

// TestMemoryVectors is about notes that are found by their meaning.
func TestMemoryVectors(t *testing.T) {
	t.Parallel()
	bubble := func(name string, f func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, f)
		})
	}
	const question = "machine that hosts my network box"
	key := map[string]string{"OPENAI_API_KEY": "sk-own-key-of-openai"}
	bubble("MEM-01 other words, with a provider", func(t *testing.T) {
		v := newVectorGateway(t, key, `{"provider": "openai"}`, nil)
		if got := v.search(question); !strings.Contains(got, "runs on the NAS") || strings.Contains(got, "cat") {
			t.Errorf("%q", got)
		}
		inputs, hosts := v.server.seen()
		if all := strings.Join(inputs, "|"); !strings.Contains(all, "The router runs") || !strings.Contains(all, question) {
			t.Errorf("it embedded %q", all)
		}
		for _, h := range hosts {
			if h != "api.openai.com Bearer sk-own-key-of-openai" {
				t.Errorf("request to %s", h)
			}
		}
		v.end()
	})
	bubble("MEM-01 the words, without a provider, and no service gets a note", func(t *testing.T) {
		for _, conf := range []string{`{}`, `{"provider": "none"}`, `{"provider": "auto", "enabled": true}`} {
			env := key
			if strings.Contains(conf, "auto") {
				env = nil
			}
			v := newVectorGateway(t, env, conf, nil)
			if got := v.search("router"); !strings.Contains(got, "runs on the NAS") {
				t.Errorf("%s: %q", conf, got)
			}
			if got := v.search(question); !strings.Contains(got, "No note answers") {
				t.Errorf("%s: %q", conf, got)
			}
			if inputs, hosts := v.server.seen(); len(inputs)+len(hosts) > 0 {
				t.Errorf("%s: %v got %q", conf, hosts, inputs)
			}
			v.end()
		}
	})
	bubble("MEM-05 a provider that is named and fails", func(t *testing.T) {
		v := newVectorGateway(t, key, `{"provider": "openai"}`, nil)
		v.server.fail(http.StatusInternalServerError)
		if got := v.search("router"); !strings.Contains(got, "memory search is unavailable") ||
			!strings.Contains(got, "the service is down") || strings.Contains(got, "NAS") {
			t.Errorf("%q", got)
		}
		v.server.fail(0)
		time.Sleep(time.Minute)
		if got := v.search("router"); !strings.Contains(got, "runs on the NAS") {
			t.Errorf("it works again: %q", got)
		}
		v.end()
	})
	bubble("a provider that is named and has no key", func(t *testing.T) {
		v := newVectorGateway(t, nil, `{"provider": "voyage"}`, nil)
		if got := v.search("router"); !strings.Contains(got, "memory search is unavailable: there is no key for voyage") {
			t.Errorf("%q", got)
		}
		v.end()
	})
	bubble("the automatic provider fails", func(t *testing.T) {
		v := newVectorGateway(t, key, `{}`, Config{"compat": json.RawMessage(`"openclaw"`)})
		v.server.fail(http.StatusInternalServerError)
		if got := v.search("router"); !strings.Contains(got, "runs on the NAS") {
			t.Errorf("by words: %q", got)
		}
		v.server.fail(0)
		time.Sleep(time.Minute)
		if got := v.search(question); !strings.Contains(got, "runs on the NAS") {
			t.Errorf("it works again: %q", got)
		}
		v.end()
	})
	bubble("a server of one's own gets no key of another service", func(t *testing.T) {
		v := newVectorGateway(t, key, `{"provider": "openai", "model": "m", "remote": {"baseUrl": "http://127.0.0.1:1234/v1", "headers": {"X-Team": "red"}}}`, nil)
		if got := v.search(question); !strings.Contains(got, "runs on the NAS") {
			t.Errorf("%q", got)
		}
		_, hosts := v.server.seen()
		if len(hosts) == 0 || slices.ContainsFunc(hosts, func(h string) bool { return h != "127.0.0.1:1234 " }) {
			t.Errorf("requests to %q", hosts)
		}
		v.end()
	})
}
