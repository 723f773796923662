package app

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/chela-ai/chela/internal/egress"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tool/web"
)

// webOptions is tools.web.
type webOptions struct {
	Fetch  fetchOptions  `json:"fetch"`
	Search searchOptions `json:"search"`
}

// fetchOptions is tools.web.fetch.
type fetchOptions struct {
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
		Hosts     []string `json:"allowedHostnames"`
		Benchmark bool     `json:"allowRfc2544BenchmarkRange"`
		Unique    bool     `json:"allowIpv6UniqueLocalRange"`
	} `json:"ssrfPolicy"`
}

// searchOptions is tools.web.search.
type searchOptions struct {
	Enabled      *bool      `json:"enabled"` // nil: true
	Provider     string     `json:"provider"`
	Key          secret.Ref `json:"apiKey"`
	MaxResults   int        `json:"maxResults"`
	Timeout      float64    `json:"timeoutSeconds"`
	CacheMinutes *float64   `json:"cacheTtlMinutes"` // nil: 15
}

// pluginOptions is plugins.
type pluginOptions struct {
	Entries map[string]struct {
		Config struct {
			Search struct {
				Key     secret.Ref `json:"apiKey"`
				BaseURL string     `json:"baseUrl"`
			} `json:"webSearch"`
		} `json:"config"`
	} `json:"entries"`
}

// fetch is what web_fetch may do; nil: nothing.
func (o *options) fetch(a Options) *web.FetchOptions {
	f := o.Tools.Web.Fetch
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
	header := map[string]secret.Value{}
	for name, ref := range f.Headers {
		v, err := ref.Resolve(a.Env)
		if err != nil {
			a.Log.Warn("web_fetch: header left out", "name", name, "err", err)
			continue
		}
		header[name] = v
	}
	return &web.FetchOptions{
		HTTP: egress.Client(egress.Options{
			Policy: f.policy(), Proxy: egress.Proxies(a.Env), ProxyResolves: f.ProxyResolves, Redirects: redirects,
		}),
		Log: a.Log, MaxChars: f.MaxChars, MaxCap: f.MaxCap, MaxBytes: f.MaxBytes, Timeout: seconds(f.Timeout), CacheTTL: ttl(f.CacheMinutes),
		Whole: !isOn(f.Readability), UserAgent: f.UserAgent, Header: header,
	}
}

// policy is what web_fetch may reach.
func (f *fetchOptions) policy() egress.Policy {
	p := egress.Policy{Hosts: f.Policy.Hosts, Private: f.Policy.Private}
	if f.Policy.Benchmark {
		p.Networks = append(p.Networks, netip.MustParsePrefix("198.18.0.0/15"))
	}
	if f.Policy.Unique {
		p.Networks = append(p.Networks, netip.MustParsePrefix("fc00::/7"))
	}
	return p
}

// search is what web_search may do; nil: nothing. The error names the key that
// cannot be used.
func (o *options) search(a Options) (*web.SearchOptions, error) {
	s := o.Tools.Web.Search
	if !isOn(s.Enabled) {
		return nil, nil
	}
	out := &web.SearchOptions{
		Provider: s.Provider, Services: map[string]web.Service{}, MaxResults: s.MaxResults, Timeout: seconds(s.Timeout), CacheTTL: ttl(s.CacheMinutes),
	}
	env := map[string]web.Service{
		"brave": {Key: secret.New(a.Env("BRAVE_API_KEY"))}, "tavily": {Key: secret.New(a.Env("TAVILY_API_KEY"))},
		"searxng": {BaseURL: a.Env("SEARXNG_BASE_URL")},
	}
	var hosts []string
	for _, name := range web.Providers() {
		own := o.Plugins.Entries[name].Config.Search
		ref, path := own.Key, "plugins.entries."+name+".config.webSearch.apiKey"
		if ref.IsZero() && name == cmp.Or(s.Provider, "brave") {
			ref, path = s.Key, "tools.web.search.apiKey"
		}
		key, err := ref.Resolve(a.Env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if key.IsZero() {
			key = env[name].Key
		}
		out.Services[name] = web.Service{Key: key, BaseURL: cmp.Or(own.BaseURL, env[name].BaseURL)}
		if u, err := url.Parse(out.Services[name].BaseURL); err == nil && u.Host != "" {
			hosts = append(hosts, u.Host)
		}
	}
	out.HTTP = egress.Client(egress.Options{Policy: egress.Policy{Hosts: hosts}, Proxy: egress.Proxies(a.Env), ProxyResolves: true})
	return out, nil
}

// isOn reports whether what is on by default is.
func isOn(b *bool) bool { return b == nil || *b }

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// ttl is how long something is kept; 0: the default, negative: not at all.
func ttl(minutes *float64) time.Duration {
	switch {
	case minutes == nil:
		return 0
	case *minutes <= 0:
		return -1
	}
	return time.Duration(*minutes * float64(time.Minute))
}
