package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/web"
)

// fetched calls web_fetch as it is configured.
func fetched(t *testing.T, c conf, env map[string]string, url string) (string, error) {
	t.Helper()
	opts, err := readOptions(c)
	if err != nil {
		t.Fatal(err)
	}
	f := opts.fetch(Options{Log: slog.New(slog.DiscardHandler), Env: func(name string) string { return env[name] }})
	defer f.HTTP.CloseIdleConnections()
	args, err := json.Marshal(map[string]string{"url": url})
	if err != nil {
		t.Fatal(err)
	}
	r, err := web.NewFetch(*f).Run(t.Context(), tool.Call{Args: args, Update: func(string) {}})
	if err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

func TestWebFetch(t *testing.T) {
	var got []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(bytes.Repeat([]byte("x"), 40_000))
	}))
	defer s.Close()
	tests := []struct {
		name, config, path string
		want               string // of the result or the error
		requests           int
	}{
		{"WF-03 this machine is refused", `{}`, "/", "not allowed", 0},
		{"WF-05 a host that is allowed is not", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}`, "/", "Characters 0 to 20000 of 40000", 1},
		{"private networks, when that is wanted", `{"ssrfPolicy": {"dangerouslyAllowPrivateNetwork": true}, "maxChars": 500}`, "/", "Characters 0 to 500 of 40000", 1},
		{"a bound below the least is the least", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}, "maxResponseBytes": 5}`, "/", "only the first 32000 bytes", 1},
		{"redirects are followed", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}`, "/from", "/to (200 OK", 2},
		{"or not", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}, "maxRedirects": 0}`, "/from", "/from (302 Found", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got = nil
			text, err := fetched(t, conf{"tools": `{"web": {"fetch": ` + tt.config + `}}`}, nil, s.URL+tt.path)
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tt.want) || len(got) != tt.requests {
				t.Errorf("%.200s after %d requests, want %q after %d", text, len(got), tt.want, tt.requests)
			}
		})
	}
	t.Run("headers and the agent's name", func(t *testing.T) {
		got = nil
		config := `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}, "userAgent": "me", "headers": {"X-Key": "env:KEY", "X-Lost": "env:NONE"}}`
		if _, err := fetched(t, conf{"tools": `{"web": {"fetch": ` + config + `}}`}, map[string]string{"KEY": "k"}, s.URL); err != nil {
			t.Fatal(err)
		}
		if h := got[0].Header; h.Get("X-Key") != "k" || h.Get("User-Agent") != "me" || h.Get("X-Lost") != "" {
			t.Errorf("%v", h)
		}
	})
	t.Run("the proxy of the environment", func(t *testing.T) {
		got = nil
		env := map[string]string{"HTTP_PROXY": s.URL}
		config := conf{"tools": `{"web": {"fetch": {"useTrustedEnvProxy": true}}}`}
		if _, err := fetched(t, config, env, "http://name.invalid/"); err != nil || len(got) != 1 || got[0].RequestURI != "http://name.invalid/" {
			t.Errorf("%v, %d requests", err, len(got))
		}
		if _, err := fetched(t, config, env, "http://169.254.169.254/"); err == nil || len(got) != 1 {
			t.Errorf("%v, %d requests", err, len(got))
		}
	})
	t.Run("off", func(t *testing.T) {
		opts, err := readOptions(conf{"tools": `{"web": {"fetch": {"enabled": false}, "search": {"enabled": false}}}`})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := opts.search(Options{}); opts.fetch(Options{}) != nil || s != nil || err != nil {
			t.Errorf("there is one: %v", err)
		}
	})
}

func TestWebSearch(t *testing.T) {
	type service struct{ Key, URL string }
	tests := []struct {
		name   string
		config conf
		env    map[string]string
		want   map[string]service
	}{
		{"from the environment", conf{}, map[string]string{"BRAVE_API_KEY": "b", "TAVILY_API_KEY": "t", "SEARXNG_BASE_URL": "http://localhost:8888"},
			map[string]service{"brave": {Key: "b"}, "tavily": {Key: "t"}, "searxng": {URL: "http://localhost:8888"}}},
		{"one key for Brave", conf{"tools": `{"web": {"search": {"apiKey": "k"}}}`}, map[string]string{"BRAVE_API_KEY": "b"}, map[string]service{"brave": {Key: "k"}}},
		{"or for the one that is named", conf{"tools": `{"web": {"search": {"apiKey": "k", "provider": "tavily"}}}`}, nil, map[string]service{"tavily": {Key: "k"}}},
		{"its own goes first", conf{
			"tools":   `{"web": {"search": {"apiKey": "k"}}}`,
			"plugins": `{"entries": {"brave": {"enabled": true, "config": {"webSearch": {"apiKey": "env:OWN", "baseUrl": "https://b.example"}}}, "other": {"config": {"x": 1}}}}`,
		}, map[string]string{"OWN": "own"}, map[string]service{"brave": {Key: "own", URL: "https://b.example"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, err := readOptions(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			o, err := opts.search(Options{Env: func(name string) string { return tt.env[name] }})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]service{}
			for name, s := range o.Services {
				if s := (service{s.Key.Reveal(), s.BaseURL}); s != (service{}) {
					got[name] = s
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a key that cannot be found is an error that says where", func(t *testing.T) {
		opts, err := readOptions(conf{"tools": `{"web": {"search": {"apiKey": "env:NONE"}}}`})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opts.search(Options{Env: func(string) string { return "" }}); err == nil || !strings.Contains(err.Error(), "tools.web.search.apiKey: ") {
			t.Error(err)
		}
	})
	t.Run("how long is kept", func(t *testing.T) {
		half, none := 0.5, 0.0
		for want, minutes := range map[time.Duration]*float64{0: nil, -1: &none, 30 * time.Second: &half} {
			if got := ttl(minutes); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
	t.Run("a search service of one's own is reached", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"results": [{"title": "a", "url": "https://a.example"}]}`))
		}))
		defer s.Close()
		opts, err := readOptions(conf{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := opts.search(Options{Env: func(name string) string { return map[string]string{"SEARXNG_BASE_URL": s.URL}[name] }})
		if err != nil {
			t.Fatal(err)
		}
		defer o.HTTP.CloseIdleConnections()
		tl, err := web.NewSearch(*o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tl.Run(t.Context(), tool.Call{Args: []byte(`{"query": "x"}`)})
		if err != nil || !strings.Contains(r.Content[0].Text, "1. a") {
			t.Errorf("%v %v", r, err)
		}
	})
}

func TestModelClient(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for config, reached := range map[string]bool{
		`{}`: false, `{"providers": {"mine": {"baseUrl": "` + s.URL + `/v1"}}}`: true, `{"providers": {"mine": {"baseUrl": "http://127.0.0.1:1/v1"}}}`: false,
	} {
		opts, err := readOptions(conf{"models": config})
		if err != nil {
			t.Fatal(err)
		}
		c := opts.modelClient(func(string) string { return "" })
		resp, err := c.Get(s.URL)
		if (err == nil) != reached {
			t.Errorf("%s: %v", config, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		c.CloseIdleConnections()
	}
}
