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

	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tool"
)

// SearchOptions are what web_search may do. HTTP must be set.
type SearchOptions struct {
	HTTP *http.Client // where addresses are checked

	Provider   string             // "": the first that has what it needs
	Services   map[string]Service // by provider
	MaxResults int                // of a call that names no number; 0: 5
	Timeout    time.Duration      // of a call; 0: 30 s
	CacheTTL   time.Duration      // 0: 15 min; negative: nothing is kept
	Problem    error              // why nothing can be searched, which every call says
}

// Service is what a search service needs.
type Service struct {
	Key     secret.Value
	BaseURL string // "": the service's own
}

// Providers are the search services, in the order in which they are tried when
// none is named. The last one needs nothing and is used only when it is named.
func Providers() []string {
	var names []string
	for _, e := range engines() {
		names = append(names, e.name)
	}
	return names
}

// BaseURL returns where a search service is, or "".
func (o SearchOptions) BaseURL(provider string) string {
	for _, e := range engines() {
		if e.name == provider {
			return cmp.Or(o.Services[provider].BaseURL, e.base)
		}
	}
	return ""
}

const (
	mostResults = 10
	maxAnswer   = 4 << 20 // bytes of a service's answer
)

//go:embed search.md
var searchText string

// engine is how a search service is asked.
type engine struct {
	name   string
	base   string // where it is; "": wherever the person says
	keyed  bool   // it takes a key
	opt    bool   // only when it is named
	ranges bool   // it knows dates
	ask    func(ctx context.Context, base, key string, q query) (*http.Request, error)
	parse  func(body []byte) ([]hit, error)
}

func engines() []engine {
	return []engine{
		{name: "brave", base: "https://api.search.brave.com", keyed: true, ranges: true, ask: askBrave, parse: parseBrave},
		{name: "tavily", base: "https://api.tavily.com", keyed: true, ranges: true, ask: askTavily, parse: parseTavily},
		{name: "searxng", ask: askSearXNG, parse: parseSearXNG},
		{name: "duckduckgo", base: "https://html.duckduckgo.com", opt: true, ranges: true, ask: askDuckDuckGo, parse: parseDuckDuckGo},
	}
}

// query is what is looked for.
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

// language is of the results.
func (q query) language() string { return cmp.Or(q.Search, q.Language) }

// hit is one result.
type hit struct {
	Title     string `json:"title"`
	URL       string `json:"url"`
	Snippet   string `json:"snippet,omitempty"`
	Published string `json:"published,omitempty"`
	Site      string `json:"siteName,omitempty"`
}

// NewSearch returns the tool web_search. The error says that there is no such
// provider.
func NewSearch(o SearchOptions) (tool.Tool, error) {
	o.MaxResults = min(cmp.Or(max(o.MaxResults, 0), 5), mostResults)
	o.Timeout = cmp.Or(o.Timeout, defaultTime)
	o.CacheTTL = cmp.Or(o.CacheTTL, defaultTTL)
	s := &searcher{SearchOptions: o, label: newLabeler(), cache: newCache[[]hit](o.CacheTTL, cacheBytes/4)}
	for _, e := range engines() {
		has := o.Services[e.name]
		ready := !e.opt && (e.keyed && !has.Key.IsZero() || e.base == "" && has.BaseURL != "")
		if e.name != o.Provider && (o.Provider != "" || !ready) {
			continue
		}
		base := cmp.Or(has.BaseURL, e.base)
		if err := checkBase(base); base != "" && err != nil && s.Problem == nil {
			s.Problem = fmt.Errorf("the search service %s: %w", e.name, err)
		}
		s.engine, s.base, s.key = e, strings.TrimRight(base, "/"), has.Key
		return s, nil
	}
	if o.Provider != "" {
		return nil, fmt.Errorf("web_search: there is no provider %q: want one of %s", o.Provider, strings.Join(Providers(), ", "))
	}
	return s, nil
}

// checkBase says whether requests may be sent to a base URL: what is not
// encrypted stays in the person's own network.
func checkBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("base URL: want http(s)://host[:port][/path]")
	case u.User != nil || u.RawQuery != "":
		return errors.New("base URL: want no user name and no query in it")
	case u.Scheme == "http" && !own(u.Hostname()):
		return errors.New("base URL: want https, since the host is not in a network of one's own")
	}
	return nil
}

// own reports whether a host is in a network of one's own, by its name.
func own(host string) bool {
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
	engine engine // without a name: none is configured
	base   string
	key    secret.Value
	label  labeler
	cache  *cache[[]hit]
}

func (s *searcher) Spec() tool.Spec {
	return tool.Spec{
		Name:        "web_search",
		Label:       "Search the web",
		Description: searchText,
		Effect:      tool.Reads,
		Parallel:    true,
		Aliases:     map[string]string{"q": "query", "search": "query", "limit": "count", "max_results": "count", "lang": "language"},
		Volatile:    []string{"tookMs", "cached"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"query":{"type":"string","minLength":1,"maxLength":400,"description":"what to look for"},
			"count":{"type":"integer","description":"results, 1 to 10 (default 5)"},
			"country":{"type":"string","pattern":"^[A-Za-z]{2}$","description":"country of the results, such as DE"},
			"language":{"type":"string","pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$","description":"language of the results, such as de"},
			"search_lang":{"type":"string","pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$","description":"same as language"},
			"ui_lang":{"type":"string","pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$","description":"language of what is said about results"},
			"freshness":{"type":"string","enum":["day","week","month","year"],"description":"only what is that new"},
			"date_after":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$","description":"only what is newer, YYYY-MM-DD"},
			"date_before":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$","description":"only what is older, YYYY-MM-DD"}},
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
	var q query
	if err := json.Unmarshal(c.Args, &q); err != nil {
		return tool.Result{}, fmt.Errorf("arguments: %w", err)
	}
	if err := s.ready(); err != nil {
		return tool.Result{}, err
	}
	if q.Count <= 0 {
		q.Count = s.MaxResults
	}
	q.Count = min(q.Count, mostResults)
	q.Query = strings.Join(strings.Fields(q.Query), " ")
	for _, day := range []string{q.After, q.Before} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return tool.Result{}, fmt.Errorf("%q is no date: want YYYY-MM-DD", day)
		}
	}
	began := time.Now()
	raw, _ := json.Marshal(q) // plain values
	key := s.engine.name + " " + s.base + " " + string(raw)
	hits, cached := s.cache.get(key)
	if !cached {
		var err error
		if hits, err = s.search(ctx, q); err != nil {
			return s.failed(ctx, q, err)
		}
		s.cache.put(key, hits, sizeOf(hits)+len(key))
	}
	return s.result(q, hits, cached, time.Since(began)), nil
}

// ready says what is missing.
func (s *searcher) ready() error {
	switch e := s.engine; {
	case s.Problem != nil:
		return s.Problem
	case e.name == "":
		return errors.New("no search service is configured. The person can give Brave's key (https://brave.com/search/api): " +
			"chela config set tools.web.search.apiKey -; or take DuckDuckGo, which needs none: chela config set tools.web.search.provider duckduckgo")
	case e.keyed && s.key.IsZero():
		return fmt.Errorf("the search service %s has no key. The person can give it: chela config set plugins.entries.%[1]s.config.webSearch.apiKey -", e.name)
	case s.base == "":
		return fmt.Errorf("the search service %s has no address. The person can give it: chela config set plugins.entries.%[1]s.config.webSearch.baseUrl URL", e.name)
	}
	return nil
}

// providerError is what a service said instead of results.
type providerError struct {
	status int
	text   string
}

func (e *providerError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// search asks the service.
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
		return nil, &providerError{resp.StatusCode, cmp.Or(saying(body), http.StatusText(resp.StatusCode))}
	}
	hits, err := s.engine.parse(body)
	if err != nil {
		return nil, err
	}
	return cleaned(hits, q.Count), nil
}

// saying returns what an answer that is an error says, in a line.
func saying(body []byte) string {
	var e struct {
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil {
		text = cmp.Or(e.Message, string(e.Detail), string(e.Error), text)
	} else {
		text = unmarked(text)
	}
	return line(text, 300)
}

// cleaned returns at most n results that lead somewhere, as plain text.
func cleaned(hits []hit, n int) []hit {
	out := []hit{}
	for _, h := range hits {
		u, err := url.Parse(strings.TrimSpace(h.URL))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(out) == n {
			continue
		}
		h.URL = u.String()
		h.Title, h.Snippet, h.Site, h.Published = line(h.Title, 200), line(h.Snippet, 600), line(h.Site, 100), line(h.Published, 40)
		out = append(out, h)
	}
	return out
}

// line returns text in a line of at most n characters.
func line(s string, n int) string {
	s, _ = part(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "), 0, n)
	return s
}

// unmarked returns the text of a piece of HTML.
func unmarked(s string) string {
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

// failed is the result of a call that the service did not answer.
func (s *searcher) failed(ctx context.Context, q query, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the URL may hold a key
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		err = fmt.Errorf("no answer within %v", s.Timeout)
	}
	message := err.Error()
	if key := s.key.Reveal(); key != "" {
		message = strings.ReplaceAll(message, key, secret.Redacted)
	}
	r := tool.Text(fmt.Sprintf("The search service %s failed.\n%s", s.engine.name, s.label.wrap("web_search", message)))
	r.IsError = true
	r.Details, _ = json.Marshal(searchDetails{
		Kind: "error", Provider: s.engine.name, Query: q.Query, Results: []hit{}, Error: "provider_error", Message: message,
		External: external{Untrusted: true, Source: "web_search", Wrapped: true, Provider: s.engine.name},
	})
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
		head += ", which does not know dates"
	}
	if len(hits) > 0 {
		head += "\n" + s.label.wrap("web_search", strings.TrimSuffix(b.String(), "\n"))
	}
	r := tool.Text(head)
	r.Details, _ = json.Marshal(searchDetails{
		Kind: "results", Provider: s.engine.name, Query: q.Query, Count: len(hits), TookMS: took.Milliseconds(), Results: hits, Cached: cached,
		External: external{Untrusted: true, Source: "web_search", Wrapped: true, Provider: s.engine.name},
	})
	return r
}
