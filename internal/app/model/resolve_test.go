package model

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
)

// backend is services behind an HTTP client: the status of responses by key (0: an
// answer).
type backend struct {
	mu    sync.Mutex
	by    map[string]int
	asked []string
	body  string // of the last request
}

func (d *backend) RoundTrip(r *http.Request) (*http.Response, error) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r.URL.Host+" "+key)
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	d.body = string(sent)
	status, body := d.by[key], `{"error":{"message":"no"}}`
	if status == 0 {
		status = http.StatusOK
		body = fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", "from "+key)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (d *backend) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.body
}

func (d *backend) since() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.asked
	d.asked = nil
	return out
}

// turn sends a request to the model of a session. It returns the text and the model
// that answered instead.
func turn(t *testing.T, m *Set, ref string) (string, *llm.Model, error) {
	t.Helper()
	info, p, err := m.Resolve(ref)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for e, err := range p.Stream(t.Context(), &llm.Request{Model: info.ID, Messages: []*llm.Message{llm.User("hi")}}) {
		switch {
		case err != nil:
			return text, nil, err
		case e.Kind == llm.TextDelta:
			text += e.Text
		case e.Kind == llm.Restart:
			text = ""
		case e.Kind == llm.Done:
			return text, e.By, nil
		}
	}
	return text, nil, io.ErrUnexpectedEOF
}

const two = `{"providers": {
	"one": {"baseUrl": "http://one/v1", "apiKey": "k1", "models": [{"id": "m1"}]},
	"two": {"baseUrl": "http://two/v1", "apiKey": "k2", "models": [{"id": "m2"}]}}}`

func TestResolve(t *testing.T) {
	t.Parallel()
	with := func(t *testing.T, d *backend, c conf, env map[string]string) (*Set, Options) {
		o := on(t, env, nil)
		o.HTTP, o.Cooldowns = &http.Client{Transport: d}, filepath.Join(o.Keys, "cooldowns.json")
		m, err := begin(t, c, o)
		if err != nil {
			t.Fatal(err)
		}
		return m, o
	}
	fallbacks := conf{"models": two,
		"agents.defaults": `{"model": {"primary": "one/m1", "fallbacks": ["quick", "one/m1"]}, "models": {"two/m2": {"alias": "quick"}}}`}

	t.Run("PROV-07 after a 429 the next of several keys in a variable is used in the same turn", func(t *testing.T) {
		t.Parallel()
		d := &backend{by: map[string]int{"a": 429}}
		m, _ := with(t, d, nil, map[string]string{"GROQ_API_KEYS": "a; b", "GROQ_API_KEY": "b"})
		text, by, err := turn(t, m, "")
		if text != "from b" || by != nil || err != nil {
			t.Errorf("%q by %v, %v", text, by, err)
		}
		if diff := cmp.Diff([]string{"api.groq.com a", "api.groq.com b"}, d.since()); diff != "" {
			t.Error(diff)
		}
		if got := m.Provider("groq").Keys; !slices.Equal(got, []string{"groq:GROQ_API_KEYS/1", "groq:GROQ_API_KEYS/2"}) {
			t.Errorf("keys %v", got)
		}
	})
	t.Run("several saved keys", func(t *testing.T) {
		t.Parallel()
		d := &backend{by: map[string]int{"a": 401}}
		m, o := with(t, d, nil, nil)
		write(t, filepath.Join(o.Keys, "groq.key"), "a")
		write(t, filepath.Join(o.Keys, "groq.work.key"), "b\n")
		if text, _, err := turn(t, m, "groq/x"); text != "from b" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if diff := cmp.Diff([]string{"groq:default", "groq:work"}, m.Provider("groq").Keys); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("MODEL-03 the default model has fallbacks without duplicates, also by alias", func(t *testing.T) {
		t.Parallel()
		d := &backend{by: map[string]int{"k1": 429}}
		m, _ := with(t, d, fallbacks, nil)
		if got := m.Fallbacks(); len(got) != 1 || got[0].String() != "two/m2" {
			t.Errorf("fallbacks %v", got)
		}
		text, by, err := turn(t, m, "")
		if text != "from k2" || by == nil || by.Ref() != "two/m2" || err != nil {
			t.Errorf("%q by %v, %v", text, by, err)
		}
	})
	t.Run("MODEL-02 a model that somebody chose is not replaced", func(t *testing.T) {
		t.Parallel()
		d := &backend{by: map[string]int{"k1": 500}}
		m, _ := with(t, d, fallbacks, nil)
		text, _, err := turn(t, m, "one/m1")
		if text != "" || llm.ClassOf(err) != llm.ClassNetwork {
			t.Errorf("%q, %v", text, err)
		}
		if diff := cmp.Diff([]string{"one k1"}, d.since()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("FAIL-10 a cooldown survives a restart", func(t *testing.T) {
		t.Parallel()
		d := &backend{by: map[string]int{"k1": 402}}
		m, o := with(t, d, fallbacks, nil)
		if _, _, err := turn(t, m, ""); err != nil {
			t.Fatal(err)
		}
		d.since()
		again, err := begin(t, fallbacks, o)
		if err != nil {
			t.Fatal(err)
		}
		if r := again.Cooldowns()[failover.Target{Key: "one:config"}]; r.Reason != llm.ClassBilling {
			t.Errorf("cooldowns %v", again.Cooldowns())
		}
		if _, by, err := turn(t, again, ""); err != nil || by == nil {
			t.Errorf("by %v, %v", by, err)
		}
		if diff := cmp.Diff([]string{"two k2"}, d.since()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a default model without a key, and a fallback with one", func(t *testing.T) {
		t.Parallel()
		d := &backend{}
		m, _ := with(t, d,
			conf{"models": two, "agents.defaults": `{"model": {"primary": "groq/x", "fallbacks": ["two/m2"]}}`}, nil)
		if text, by, err := turn(t, m, ""); text != "from k2" || by == nil || err != nil {
			t.Errorf("%q by %v, %v", text, by, err)
		}
	})
	t.Run("an unknown fallback is refused at the start", func(t *testing.T) {
		t.Parallel()
		_, err := begin(t, conf{"agents.defaults": `{"model": {"primary": "one/m1", "fallbacks": ["nonsense"]}}`},
			on(t, nil, nil))
		if err == nil || !strings.Contains(err.Error(), `agents.defaults.model.fallbacks[0]: model "nonsense"`) {
			t.Error(err)
		}
	})
	t.Run("PROV-09 with mode replace only the configured models are listed", func(t *testing.T) {
		t.Parallel()
		m, _ := with(t, &backend{}, conf{"models": `{"mode": "replace", ` + two[1:]}, nil)
		var got []string
		for _, x := range m.Catalog().Models {
			got = append(got, x.Ref())
		}
		if diff := cmp.Diff([]string{"one/m1", "two/m2", Offline.String()}, got); diff != "" {
			t.Error(diff)
		}
	})
}
