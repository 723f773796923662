package web_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/web"
)

// config is tools.web.
type config struct {
	Fetch  web.FetchConfig
	Search web.SearchConfig
}

// read decodes tools.web and plugins.
func read(t *testing.T, tools, plugins string) (c config, p web.Plugins) {
	t.Helper()
	for _, part := range []struct {
		text string
		into any
	}{{tools, &c}, {plugins, &p}} {
		if part.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			t.Fatal(err)
		}
	}
	return c, p
}

// variables is an environment.
func variables(m map[string]string) func(string) string {
	return func(name string) string { return m[name] }
}

// fetched calls web_fetch with a configuration.
func fetched(t *testing.T, config string, env map[string]string, url string) (string, error) {
	t.Helper()
	c, _ := read(t, config, "")
	f := c.Fetch.Options(slog.New(slog.DiscardHandler), variables(env))
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

func TestFetchPolicy(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing is connected to
	for policy, allowed := range map[string]string{
		`{}`:                                      "",
		`{"allowRfc2544BenchmarkRange":true}`:     "198.18.0.1:80 198.19.255.255:80",
		`{"allowIpv6UniqueLocalRange":true}`:      "[fd00::1]:80",
		`{"dangerouslyAllowPrivateNetwork":true}`: "[fd00::1]:80 10.0.0.1:80 10.0.0.1:81",
		`{"allowedHostnames":["10.0.0.0/8"]}`:     "10.0.0.1:80 10.0.0.1:81",
		`{"allowedHostnames":["10.0.0.1:81"]}`:    "10.0.0.1:81",
	} {
		c, _ := read(t, `{"fetch":{"ssrfPolicy":`+policy+`}}`, "")
		tr := c.Fetch.Options(slog.New(slog.DiscardHandler), variables(nil)).HTTP.Transport.(*egress.Transport)
		for _, addr := range []string{"198.18.0.1:80", "198.19.255.255:80", "[fd00::1]:80", "10.0.0.1:80", "10.0.0.1:81",
			"169.254.169.254:80"} {
			_, err := tr.Dial(ended, "tcp", addr)
			_, refused := errors.AsType[*egress.Refused](err)
			if want := slices.Contains(strings.Fields(allowed), addr); refused == want {
				t.Errorf("%s: %s: %v, want it allowed: %v", policy, addr, err, want)
			}
		}
	}
}

func TestFetchConfig(t *testing.T) {
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
		want               string // part of the result or the error
		requests           int
	}{
		{"WF-03 loopback is refused", `{}`, "/", "not allowed", 0},
		{"WF-05 an allowed host", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}`, "/",
			"Characters 0 to 20000 of 40000", 1},
		{"an allowed network", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.0/31"]}}`, "/",
			"Characters 0 to 20000 of 40000", 1},
		{"another network", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.2/31"]}}`, "/", "not allowed", 0},
		{"private networks allowed", `{"ssrfPolicy": {"dangerouslyAllowPrivateNetwork": true}, "maxChars": 500}`, "/",
			"Characters 0 to 500 of 40000", 1},
		{"limit below the minimum", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}, "maxResponseBytes": 5}`, "/",
			"only the first 32000 bytes", 1},
		{"redirect", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}`, "/from", "/to (200 OK", 2},
		{"redirects disabled", `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}, "maxRedirects": 0}`, "/from",
			"/from (302 Found", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got = nil
			text, err := fetched(t, `{"fetch": `+tt.config+`}`, nil, s.URL+tt.path)
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tt.want) || len(got) != tt.requests {
				t.Errorf("%.200s after %d requests, want %q after %d", text, len(got), tt.want, tt.requests)
			}
		})
	}
	t.Run("headers and user agent", func(t *testing.T) {
		got = nil
		config := `{"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}, "userAgent": "me", "headers": {"X-Key": "env:KEY", "X-Lost": "env:NONE"}}`
		if _, err := fetched(t, `{"fetch": `+config+`}`, map[string]string{"KEY": "k"}, s.URL); err != nil {
			t.Fatal(err)
		}
		if h := got[0].Header; h.Get("X-Key") != "k" || h.Get("User-Agent") != "me" || h.Get("X-Lost") != "" {
			t.Errorf("%v", h)
		}
	})
	t.Run("proxy of the environment", func(t *testing.T) {
		got = nil
		env := map[string]string{"HTTP_PROXY": s.URL}
		config := `{"fetch": {"useTrustedEnvProxy": true}}`
		if _, err := fetched(t, config, env, "http://name.invalid/"); err != nil || len(got) != 1 ||
			got[0].RequestURI != "http://name.invalid/" {
			t.Errorf("%v, %d requests", err, len(got))
		}
		if _, err := fetched(t, config, env, "http://169.254.169.254/"); err == nil || len(got) != 1 {
			t.Errorf("%v, %d requests", err, len(got))
		}
	})
	t.Run("off", func(t *testing.T) {
		c, p := read(t, `{"fetch": {"enabled": false}, "search": {"enabled": false}}`, "")
		if c.Search.Options(p, variables(nil)) != nil || c.Fetch.Options(nil, variables(nil)) != nil {
			t.Error("Options returned options for a disabled tool")
		}
	})
}

func TestSearchConfig(t *testing.T) {
	type service struct{ Key, URL string }
	tests := []struct {
		name   string
		config string
		plugin string
		env    map[string]string
		want   map[string]service
	}{
		{"from the environment", "", "",
			map[string]string{"BRAVE_API_KEY": "b", "TAVILY_API_KEY": "t", "SEARXNG_BASE_URL": "http://localhost:8888"},
			map[string]service{"brave": {Key: "b"}, "tavily": {Key: "t"}, "searxng": {URL: "http://localhost:8888"}}},
		{"one key for Brave", `{"search": {"apiKey": "k"}}`, "", map[string]string{"BRAVE_API_KEY": "b"},
			map[string]service{"brave": {Key: "k"}}},
		{"one key for the named provider", `{"search": {"apiKey": "k", "provider": "tavily"}}`, "", nil,
			map[string]service{"tavily": {Key: "k"}}},
		{"the service's own key takes precedence", `{"search": {"apiKey": "k"}}`,
			`{"entries": {"brave": {"enabled": true, "config": {"webSearch": {"apiKey": "env:OWN", "baseUrl": "https://b.example"}}}, "other": {"config": {"x": 1}}}}`,
			map[string]string{"OWN": "own"}, map[string]service{"brave": {Key: "own", URL: "https://b.example"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, p := read(t, tt.config, tt.plugin)
			o := c.Search.Options(p, variables(tt.env))
			got := map[string]service{}
			for name, s := range o.Services {
				if s := (service{s.Key.Reveal(), s.BaseURL}); s != (service{}) {
					got[name] = s
				}
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("calls report a missing key", func(t *testing.T) {
		c, p := read(t, `{"search": {"apiKey": "env:NONE"}}`, "")
		tl, err := web.NewSearch(*c.Search.Options(p, variables(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := search(t, tl, map[string]any{"query": "x"}); err == nil ||
			!strings.Contains(err.Error(), "tools.web.search.apiKey: ") {
			t.Error(err)
		}
	})
	t.Run("calls report an invalid entry, and ignore other entries", func(t *testing.T) {
		c, p := read(t, "", `{"entries": {"other": [1], "brave": {"config": {"webSearch": {"apiKey": {"source": "exec"}}}}}}`)
		tl, err := web.NewSearch(*c.Search.Options(p, variables(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := search(t, tl, map[string]any{"query": "x"}); err == nil ||
			!strings.Contains(err.Error(), "plugins.entries.brave: ") {
			t.Error(err)
		}
	})
	t.Run("cache time", func(t *testing.T) {
		for config, want := range map[string]time.Duration{
			"":                         0,
			`{"cacheTtlMinutes": 0}`:   -1,
			`{"cacheTtlMinutes": 0.5}`: 30 * time.Second,
		} {
			c, _ := read(t, `{"fetch": `+cmp.Or(config, "{}")+`}`, "")
			if got := c.Fetch.Options(nil, variables(nil)).CacheTTL; got != want {
				t.Errorf("%s: got %v, want %v", config, got, want)
			}
		}
	})
	t.Run("a search service in a private network", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"results": [{"title": "a", "url": "https://a.example"}]}`))
		}))
		defer s.Close()
		c, p := read(t, "", "")
		o := c.Search.Options(p, variables(map[string]string{"SEARXNG_BASE_URL": s.URL}))
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
