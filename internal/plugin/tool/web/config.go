package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// FetchConfig is tools.web.fetch.
type FetchConfig struct {
	Enabled       *bool                 `json:"enabled"` // nil: true
	MaxChars      int                   `json:"maxChars"`
	MaxCap        int                   `json:"maxCharsCap"`
	MaxBytes      int64                 `json:"maxResponseBytes"`
	Timeout       float64               `json:"timeoutSeconds"`
	CacheMinutes  *float64              `json:"cacheTtlMinutes"` // nil: 15
	Redirects     *int                  `json:"maxRedirects"`    // nil: 3
	Readability   *bool                 `json:"readability"`     // nil: true
	UserAgent     string                `json:"userAgent"`
	Headers       map[string]secret.Ref `json:"headers"`
	ProxyResolves bool                  `json:"useTrustedEnvProxy"`
	Policy        struct {
		Private   bool     `json:"dangerouslyAllowPrivateNetwork"`
		Hosts     []string `json:"allowedHostnames"` // host names or networks
		Benchmark bool     `json:"allowRfc2544BenchmarkRange"`
		Unique    bool     `json:"allowIpv6UniqueLocalRange"`
	} `json:"ssrfPolicy"`
}

// SearchConfig is tools.web.search.
type SearchConfig struct {
	Enabled      *bool      `json:"enabled"` // nil: true
	Provider     string     `json:"provider"`
	Key          secret.Ref `json:"apiKey"`
	MaxResults   int        `json:"maxResults"`
	Timeout      float64    `json:"timeoutSeconds"`
	CacheMinutes *float64   `json:"cacheTtlMinutes"` // nil: 15
}

// Plugins is the section plugins of the configuration, which holds the
// entries of search services.
type Plugins struct {
	Entries map[string]json.RawMessage `json:"entries"`
}

// plugin is plugins.entries.<service>.
type plugin struct {
	Config struct {
		Search struct {
			Key     secret.Ref `json:"apiKey"`
			BaseURL string     `json:"baseUrl"`
		} `json:"webSearch"`
	} `json:"config"`
}

// plugin returns the entry of a service.
func (p Plugins) plugin(name string) (out plugin, err error) {
	if raw := p.Entries[name]; raw != nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// Options returns the options for web_fetch, or nil if it is disabled. env
// looks up environment variables.
func (f FetchConfig) Options(log *slog.Logger, env func(string) string) *FetchOptions {
	if !isOn(f.Enabled) {
		return nil
	}
	redirects := 3
	if f.Redirects != nil {
		redirects = min(max(*f.Redirects, 0), 20)
	}
	if f.MaxBytes != 0 {
		f.MaxBytes = min(max(f.MaxBytes, 32_000), 10_000_000)
	}
	if f.Policy.Private {
		log.Warn("web_fetch may reach this machine and private networks",
			"key", "tools.web.fetch.ssrfPolicy.dangerouslyAllowPrivateNetwork")
	}
	header := map[string]secret.Value{}
	for name, ref := range f.Headers {
		v, err := ref.Resolve(env)
		if err != nil {
			log.Warn("web_fetch: header skipped", "name", name, "err", err)
			continue
		}
		header[name] = v
	}
	return &FetchOptions{
		HTTP: egress.Client(egress.Options{
			Policy: f.policy(), Proxy: egress.Proxies(env), ProxyResolves: f.ProxyResolves, MaxRedirects: redirects,
		}),
		Log:       log,
		MaxChars:  f.MaxChars,
		MaxCap:    f.MaxCap,
		MaxBytes:  f.MaxBytes,
		Timeout:   seconds(f.Timeout),
		CacheTTL:  ttl(f.CacheMinutes),
		Whole:     !isOn(f.Readability),
		UserAgent: f.UserAgent,
		Header:    header,
	}
}

// policy returns the addresses that web_fetch may connect to.
func (f *FetchConfig) policy() egress.Policy {
	p := egress.Policy{Private: f.Policy.Private}
	for _, h := range f.Policy.Hosts {
		if network, err := netip.ParsePrefix(h); err == nil {
			p.Networks = append(p.Networks, network)
		} else {
			p.Hosts = append(p.Hosts, h)
		}
	}
	if f.Policy.Benchmark {
		p.Networks = append(p.Networks, netip.MustParsePrefix("198.18.0.0/15"))
	}
	if f.Policy.Unique {
		p.Networks = append(p.Networks, netip.MustParsePrefix("fc00::/7"))
	}
	return p
}

// Options returns the options for web_search, or nil if it is disabled. A key
// that cannot be resolved is reported in Problem.
func (s SearchConfig) Options(p Plugins, env func(string) string) *SearchOptions {
	if !isOn(s.Enabled) {
		return nil
	}
	out := &SearchOptions{
		Provider:   s.Provider,
		Services:   map[string]Service{},
		MaxResults: s.MaxResults,
		Timeout:    seconds(s.Timeout),
		CacheTTL:   ttl(s.CacheMinutes),
	}
	fromEnv := map[string]Service{
		"brave": {Key: secret.New(env("BRAVE_API_KEY"))}, "tavily": {Key: secret.New(env("TAVILY_API_KEY"))},
		"searxng": {BaseURL: env("SEARXNG_BASE_URL")},
	}
	var hosts []string
	for _, name := range Providers() {
		entry, err := p.plugin(name)
		if err != nil {
			out.Problem = fmt.Errorf("plugins.entries.%s: %w", name, err)
		}
		settings := entry.Config.Search
		ref, path := settings.Key, "plugins.entries."+name+".config.webSearch.apiKey"
		if ref.IsZero() && name == cmp.Or(s.Provider, "brave") {
			ref, path = s.Key, "tools.web.search.apiKey"
		}
		key, err := ref.Resolve(env)
		if err != nil {
			out.Problem = fmt.Errorf("%s: %w", path, err)
		}
		if key.IsZero() {
			key = fromEnv[name].Key
		}
		out.Services[name] = Service{Key: key, BaseURL: cmp.Or(settings.BaseURL, fromEnv[name].BaseURL)}
		if u, err := url.Parse(out.Services[name].BaseURL); err == nil && u.Host != "" {
			hosts = append(hosts, u.Host)
		}
	}
	out.HTTP = egress.Client(egress.Options{Policy: egress.Policy{Hosts: hosts}, Proxy: egress.Proxies(env),
		ProxyResolves: true})
	return out
}

// isOn reports whether a setting that is on by default is on.
func isOn(b *bool) bool { return b == nil || *b }

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// ttl returns how long results are cached; 0: the default, negative: not at
// all.
func ttl(minutes *float64) time.Duration {
	switch {
	case minutes == nil:
		return 0
	case *minutes <= 0:
		return -1
	}
	return time.Duration(*minutes * float64(time.Minute))
}

// ConfiguredFetch returns web_fetch for a section of the configuration (nil:
// the defaults), which is off if it is disabled.
func ConfiguredFetch(raw json.RawMessage, log *slog.Logger, getenv func(string) string) ([]tool.Tool, error) {
	var c FetchConfig
	if raw != nil {
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
	}
	o := c.Options(log, getenv)
	if o == nil {
		return tool.Off(NewFetch(FetchOptions{Log: log})), nil
	}
	return []tool.Tool{NewFetch(*o)}, nil
}

// ConfiguredSearch returns web_search for a section of the configuration
// (nil: the defaults), which is off if it is disabled. plugins is the section
// with the entries of search services.
func ConfiguredSearch(raw, plugins json.RawMessage, getenv func(string) string) ([]tool.Tool, error) {
	var c SearchConfig
	if raw != nil {
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
	}
	var p Plugins
	if plugins != nil {
		if err := json.Unmarshal(plugins, &p); err != nil {
			return nil, fmt.Errorf("plugins: %w", err)
		}
	}
	o := c.Options(p, getenv)
	if o == nil {
		return tool.Off(&searcher{}), nil
	}
	search, err := NewSearch(*o)
	if err != nil {
		return nil, err
	}
	return []tool.Tool{search}, nil
}
