package web

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// SearchOptions configure web_search. HTTP is required.
type SearchOptions struct {
	HTTP *http.Client // must check addresses

	Provider   string             // "": the first that is configured
	Services   map[string]Service // by provider
	MaxResults int                // default number of results; 0: 5
	Timeout    time.Duration      // of a request; 0: 30 s
	CacheTTL   time.Duration      // 0: 15 min; negative: no caching
	Problem    error              // configuration error that every call returns
}

// Service is the configuration of a search service.
type Service struct {
	Key     secret.Value
	BaseURL string // "": the default of the service
}

// Providers returns the search services in the order in which they are tried
// if none is configured. The last one needs no configuration and is used only
// if it is named.
func Providers() []string {
	var names []string
	for _, e := range engines() {
		names = append(names, e.name)
	}
	return names
}

const (
	maxResults = 10
	maxAnswer  = 4 << 20 // bytes of a response
)

//go:embed search.md
var searchText string

// engine describes how to query a search service.
type engine struct {
	name   string
	base   string // default base URL; "": must be configured
	keyed  bool   // it requires a key
	opt    bool   // used only if it is named
	ranges bool   // it supports date ranges
	ask    func(ctx context.Context, base, key string, q query) (*http.Request, error)
	parse  func(body []byte) ([]hit, error)
}

func engines() []engine {
	return []engine{
		{name: "brave", base: "https://api.search.brave.com", keyed: true, ranges: true, ask: askBrave, parse: parseBrave},
		{name: "tavily", base: "https://api.tavily.com", keyed: true, ranges: true, ask: askTavily, parse: parseResults},
		{name: "searxng", ask: askSearXNG, parse: parseSearXNG},
		{name: "duckduckgo", base: "https://html.duckduckgo.com", opt: true, ranges: true, ask: askDuckDuckGo,
			parse: parseDuckDuckGo},
	}
}

// query is the arguments of a call.
type query struct {
	Query     string `json:"query"`
	Count     int    `json:"count"`
	Country   string `json:"country"`
	Language  string `json:"language"`
	Search    string `json:"search_lang"`
	UI        string `json:"ui_lang"`
	Freshness string `json:"freshness"` // day, week, month, year
	After     string `json:"date_after"`
	Before    string `json:"date_before"`
}

// language returns the language of the results.
func (q query) language() string { return cmp.Or(q.Search, q.Language) }

// hit is one result.
type hit struct {
	Title     string `json:"title"`
	URL       string `json:"url"`
	Snippet   string `json:"snippet,omitempty"`
	Published string `json:"published,omitempty"`
	Site      string `json:"siteName,omitempty"`
}

// NewSearch returns the tool web_search. It returns an error if the provider
// is unknown.
func NewSearch(o SearchOptions) (tool.Tool, error) {
	o.MaxResults = min(cmp.Or(max(o.MaxResults, 0), 5), maxResults)
	o.Timeout = cmp.Or(o.Timeout, defaultTime)
	o.CacheTTL = cmp.Or(o.CacheTTL, defaultTTL)
	s := &searcher{SearchOptions: o, label: untrusted.New(), cache: newCache[[]hit](o.CacheTTL, cacheBytes/4)}
	for _, e := range engines() {
		service := o.Services[e.name]
		ready := !e.opt && (e.keyed && !service.Key.IsZero() || e.base == "" && service.BaseURL != "")
		if e.name != o.Provider && (o.Provider != "" || !ready) {
			continue
		}
		base := cmp.Or(service.BaseURL, e.base)
		if err := checkBase(base); base != "" && err != nil && s.Problem == nil {
			s.Problem = fmt.Errorf("the search service %s: %w", e.name, err)
		}
		s.engine, s.base, s.key = e, strings.TrimRight(base, "/"), service.Key
		return s, nil
	}
	if o.Provider != "" {
		return nil, fmt.Errorf("web_search: unknown provider %q, want one of %s", o.Provider, strings.Join(Providers(), ", "))
	}
	return s, nil
}

// checkBase returns an error if requests must not be sent to a base URL.
// Unencrypted requests are allowed in private networks only.
func checkBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("base URL: want http(s)://host[:port][/path]")
	case u.User != nil || u.RawQuery != "":
		return errors.New("base URL: must not contain a user name or a query")
	case u.Scheme == "http" && !privateHost(u.Hostname()):
		return errors.New("base URL: want https, because the host is not in a private network")
	}
	return nil
}

// privateHost reports whether a host is in a private network, judging by its
// name.
func privateHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback() || a.IsPrivate()
	}
	_, last, dotted := strings.Cut(host, ".")
	for _, suffix := range []string{"localhost", "local", "lan", "internal", "home.arpa"} {
		if last == suffix || strings.HasSuffix(last, "."+suffix) {
			return true
		}
	}
	return !dotted
}

type searcher struct {
	SearchOptions
	engine engine // the zero value: none is configured
	base   string
	key    secret.Value
	label  untrusted.Labeler
	cache  *cache[[]hit]
}

func (s *searcher) Spec() tool.Spec {
	return tool.Spec{
		Name:        "web_search",
		Label:       "Search the web",
		Description: searchText,
		Effect:      tool.Reads,
		Groups:      []string{"group:web", tool.Reading},
		Parallel:    true,
		Aliases: map[string]string{
			"q":           "query",
			"search":      "query",
			"limit":       "count",
			"max_results": "count",
			"lang":        "language",
		},
		Volatile: []string{"tookMs", "cached"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"query":{"type":"string","minLength":1,"maxLength":400},
			"count":{"type":"integer","description":"1 to 10 (default 5)"},
			"country":{"type":"string","pattern":"^[A-Za-z]{2}$","description":"such as DE"},
			"language":{"type":"string","pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$","description":"such as de"},
			"search_lang":{"type":"string","pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$","deprecated":true,"description":"same as language"},
			"ui_lang":{"type":"string","pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$","deprecated":true,"description":"language of the user interface"},
			"freshness":{"type":"string","enum":["day","week","month","year"]},
			"date_after":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$","description":"YYYY-MM-DD"},
			"date_before":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$","description":"YYYY-MM-DD"}},
			"required":["query"],"additionalProperties":false}`),
	}
}

type searchDetails struct {
	Kind     string   `json:"kind"` // results or error
	Provider string   `json:"provider"`
	Query    string   `json:"query"`
	Count    int      `json:"count"`
	TookMS   int64    `json:"tookMs"`
	Results  []hit    `json:"results"`
	External external `json:"externalContent"`
	Error    string   `json:"error,omitempty"`
	Message  string   `json:"message,omitempty"`
	Cached   bool     `json:"cached,omitempty"`
}

func (s *searcher) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	q, err := tool.Decode[query](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	if err := s.check(); err != nil {
		return tool.Result{}, err
	}
	if q.Count <= 0 {
		q.Count = s.MaxResults
	}
	q.Count = min(q.Count, maxResults)
	q.Query = strings.Join(strings.Fields(q.Query), " ")
	for _, day := range []string{q.After, q.Before} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return tool.Result{}, fmt.Errorf("%q is not a date: want YYYY-MM-DD", day)
		}
	}
	began := time.Now()
	raw, _ := json.Marshal(q) // plain values
	key := s.engine.name + " " + s.base + " " + string(raw)
	hits, cached := s.cache.get(key)
	if !cached {
		var err error
		if hits, err = s.search(ctx, q); err != nil {
			return s.errorResult(ctx, q, err)
		}
		s.cache.put(key, hits, sizeOf(hits)+len(key))
	}
	return s.result(q, hits, cached, time.Since(began)), nil
}

// check returns an error if the configuration is incomplete.
func (s *searcher) check() error {
	switch e := s.engine; {
	case s.Problem != nil:
		return s.Problem
	case e.name == "":
		return errors.New(
			"no search service is configured. The person can set a key for Brave (https://brave.com/search/api): " +
				"chela config set tools.web.search.apiKey -; or use DuckDuckGo, which needs no key: chela config set tools.web.search.provider duckduckgo")
	case e.keyed && s.key.IsZero():
		return fmt.Errorf("the search service %s has no key. The person can set it: chela config set plugins.entries.%[1]s.config.webSearch.apiKey -", e.name)
	case s.base == "":
		return fmt.Errorf("the search service %s has no base URL. The person can set it: chela config set plugins.entries.%[1]s.config.webSearch.baseUrl URL", e.name)
	}
	return nil
}

// providerError is an error response of a service.
type providerError struct {
	status int
	text   string
}

func (e *providerError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// search queries the service.
func (s *searcher) search(ctx context.Context, q query) ([]hit, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r, err := s.engine.ask(ctx, s.base, s.key.Reveal(), q)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", userAgent)
	}
	resp, err := s.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &providerError{resp.StatusCode, cmp.Or(errorText(body), http.StatusText(resp.StatusCode))}
	}
	hits, err := s.engine.parse(body)
	if err != nil {
		return nil, err
	}
	return cleaned(hits, q.Count), nil
}

// errorText returns the message of an error response on one line.
func errorText(body []byte) string {
	var e struct {
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil {
		text = cmp.Or(e.Message, string(e.Detail), string(e.Error), text)
	} else {
		text = stripTags(text)
	}
	return line(text, 300)
}

// cleaned returns at most n results with valid URLs, as plain text.
func cleaned(hits []hit, n int) []hit {
	out := []hit{}
	for _, h := range hits {
		u, err := url.Parse(strings.TrimSpace(h.URL))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(out) == n {
			continue
		}
		h.URL = u.String()
		h.Title, h.Snippet, h.Site, h.Published = line(h.Title, 200), line(h.Snippet, 600),
			line(h.Site, 100), line(h.Published, 40)
		out = append(out, h)
	}
	return out
}

// line returns the text as one line of at most n characters.
func line(s string, n int) string {
	s, _ = substring(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "), 0, n)
	return s
}

// stripTags returns the text of an HTML fragment.
func stripTags(s string) string {
	_, s = skim(strings.NewReader(s), &url.URL{}, false)
	return s
}

func sizeOf(hits []hit) int {
	n := 0
	for _, h := range hits {
		n += 100 + len(h.Title) + len(h.URL) + len(h.Snippet) + len(h.Site)
	}
	return n
}

// errorResult returns the result of a failed request.
func (s *searcher) errorResult(ctx context.Context, q query, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL may hold a key
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		err = fmt.Errorf("no response within %v", s.Timeout)
	}
	message := err.Error()
	if key := s.key.Reveal(); key != "" {
		message = strings.ReplaceAll(message, key, secret.Redacted)
	}
	r := tool.Detailed(fmt.Sprintf("The search service %s failed.\n%s", s.engine.name, s.label.Wrap("web_search", webNote,
		message)), searchDetails{
		Kind: "error", Provider: s.engine.name, Query: q.Query, Results: []hit{}, Error: "provider_error", Message: message,
		External: external{Untrusted: true, Source: "web_search", Wrapped: true, Provider: s.engine.name},
	})
	r.IsError = true
	return r, nil
}

// result lists the results.
func (s *searcher) result(q query, hits []hit, cached bool, took time.Duration) tool.Result {
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, cmp.Or(h.Title, h.URL), h.URL)
		if h.Snippet != "" {
			fmt.Fprintf(&b, "   %s\n", h.Snippet)
		}
		if h.Published != "" {
			fmt.Fprintf(&b, "   (%s)\n", h.Published)
		}
	}
	head := fmt.Sprintf("%d results from %s", len(hits), s.engine.name)
	if !s.engine.ranges && (q.After != "" || q.Before != "") {
		head += ", which does not support dates"
	}
	if len(hits) > 0 {
		head += "\n" + s.label.Wrap("web_search", webNote, strings.TrimSuffix(b.String(), "\n"))
	}
	return tool.Detailed(head, searchDetails{
		Kind:     "results",
		Provider: s.engine.name,
		Query:    q.Query,
		Count:    len(hits),
		TookMS:   took.Milliseconds(),
		Results:  hits,
		Cached:   cached,
		External: external{Untrusted: true, Source: "web_search", Wrapped: true, Provider: s.engine.name},
	})
}
