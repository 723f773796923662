package web

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/chela-ai/chela/internal/egress"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tool"
)

// FetchOptions are what web_fetch may do. HTTP must be set.
type FetchOptions struct {
	HTTP *http.Client // where addresses are checked and redirects bounded
	Log  *slog.Logger // nil: slog.Default()

	MaxChars  int           // characters of a call that names no number; 0: 20,000
	MaxCap    int           // characters that a call may ask for; 0: 20,000
	MaxBytes  int64         // of an answer that are read; 0: 750,000
	Timeout   time.Duration // of a call; 0: 30 s
	CacheTTL  time.Duration // 0: 15 min; negative: nothing is kept
	Whole     bool          // take whole pages instead of their main part
	UserAgent string
	Header    map[string]secret.Value // sent beside our own, to the first origin only
}

const (
	defaultChars = 20_000
	defaultBytes = 750_000
	defaultTime  = 30 * time.Second
	defaultTTL   = 15 * time.Minute
	cacheBytes   = 2 << 20
	maxErrorText = 2000            // characters of an answer that is an error
	patience     = 5 * time.Second // before somebody is told that it takes a while
	userAgent    = "Mozilla/5.0 (compatible; Chela/0.1; +https://github.com/chela-ai/chela)"
	accept       = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, */*;q=0.5"
	language     = "en-US,en;q=0.9"
)

//go:embed fetch.md
var fetchText string

// NewFetch returns the tool web_fetch.
func NewFetch(o FetchOptions) tool.Tool {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.MaxCap = cmp.Or(o.MaxCap, defaultChars)
	o.MaxChars = min(cmp.Or(o.MaxChars, defaultChars), o.MaxCap)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultBytes)
	o.Timeout = cmp.Or(o.Timeout, defaultTime)
	o.CacheTTL = cmp.Or(o.CacheTTL, defaultTTL)
	o.UserAgent = cmp.Or(o.UserAgent, userAgent)
	f := &fetcher{FetchOptions: o, label: newLabeler(), cache: newCache[*page](o.CacheTTL, cacheBytes)}
	f.header = f.headers()
	return f
}

type fetcher struct {
	FetchOptions
	header http.Header
	label  labeler
	cache  *cache[*page]
}

// headers returns the header of each request. What is configured and cannot be
// sent is left out and named in the log.
func (f *fetcher) headers() http.Header {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		value := f.Header[name].Reveal()
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			f.Log.Warn("web_fetch: header left out: no name of a header", "name", name)
		case !httpguts.ValidHeaderFieldValue(value):
			f.Log.Warn("web_fetch: header left out: its value cannot be sent", "name", name)
		case reserved(http.CanonicalHeaderKey(name)):
			f.Log.Warn("web_fetch: header left out: it is not for configuration", "name", name)
		default:
			h.Set(name, value)
		}
	}
	h.Set("Accept", accept)
	h.Set("Accept-Language", language)
	h.Set("User-Agent", f.UserAgent)
	return h
}

// reserved reports whether a header is ours, or belongs to the connection.
func reserved(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Host", "Content-Length", "Connection", "Keep-Alive", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "Range", "Expect", "Referer":
		return true
	}
	return strings.HasPrefix(name, "Proxy-")
}

func (f *fetcher) Spec() tool.Spec {
	return tool.Spec{
		Name:        "web_fetch",
		Label:       "Fetch page",
		Description: fetchText,
		Effect:      tool.Reads,
		Parallel:    true,
		Aliases:     map[string]string{"mode": "extractMode"},
		Volatile:    []string{"fetchedAt", "tookMs", "cached"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"url":{"type":"string","minLength":1,"description":"address: http or https"},
			"extractMode":{"type":"string","enum":["markdown","text"],"description":"form of a page (default markdown)"},
			"maxChars":{"type":"integer","minimum":100,"description":"most characters to return"},
			"offset":{"type":"integer","minimum":0,"description":"characters to pass over, to continue what was cut"}},
			"required":["url"],"additionalProperties":false}`),
	}
}

type fetchArgs struct {
	URL      string `json:"url"`
	Mode     string `json:"extractMode"`
	MaxChars int    `json:"maxChars"`
	Offset   int    `json:"offset"`
}

// page is what was fetched, as text.
type page struct {
	final     string // URL after redirects
	status    int
	kind      string // media type
	title     string
	text      string
	by        string // what made the text
	warning   string
	image     []byte
	fetchedAt time.Time
}

// external says where text comes from.
type external struct {
	Untrusted bool   `json:"untrusted"`
	Source    string `json:"source"`
	Wrapped   bool   `json:"wrapped"`
	Provider  string `json:"provider,omitempty"`
}

type fetchDetails struct {
	URL         string   `json:"url"`
	FinalURL    string   `json:"finalUrl"`
	Status      int      `json:"status"`
	Mode        string   `json:"extractMode"`
	Extractor   string   `json:"extractor"`
	ContentType string   `json:"contentType,omitempty"`
	Title       string   `json:"title,omitempty"`
	Warning     string   `json:"warning,omitempty"`
	External    external `json:"externalContent"`
	Truncated   bool     `json:"truncated"`
	Length      int      `json:"length"`    // characters that are given
	RawLength   int      `json:"rawLength"` // characters that there are
	Offset      int      `json:"offset,omitempty"`
	FetchedAt   string   `json:"fetchedAt"`
	TookMS      int64    `json:"tookMs"`
	Cached      bool     `json:"cached,omitempty"`
}

func (f *fetcher) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	var a fetchArgs
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Result{}, fmt.Errorf("arguments: %w", err)
	}
	a.Mode = cmp.Or(a.Mode, "markdown")
	if a.MaxChars <= 0 {
		a.MaxChars = f.MaxChars
	}
	a.MaxChars = min(a.MaxChars, f.MaxCap)
	u, err := parseURL(a.URL)
	if err != nil {
		return tool.Result{}, err
	}
	began := time.Now()
	key := a.Mode + " " + u.String()
	p, cached := f.cache.get(key)
	if !cached {
		stop := waiting(c.Update)
		p, err = f.fetch(ctx, u, a.Mode == "markdown")
		stop()
		if err != nil {
			return tool.Result{}, outcome(ctx, u, err)
		}
		if p.status < 400 {
			f.cache.put(key, p, len(p.text)+len(p.image)+len(key)+200)
		}
	}
	return f.result(a, p, cached, time.Since(began)), nil
}

// waiting tells somebody that it takes a while, if it does.
func waiting(update func(string)) (stop func()) {
	done := make(chan struct{})
	t := time.AfterFunc(patience, func() {
		defer close(done)
		update("Fetching page content…")
	})
	return func() {
		if !t.Stop() {
			<-done
		}
	}
}

// parseURL reads the address of a page.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no address: want http://… or https://…", s)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q: want http://… or https://…", s)
	case u.User != nil:
		return nil, errors.New("the address holds a name or a password, which is not sent: leave it out")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// outcome returns the error of a call in words that help.
func outcome(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r, ok := errors.AsType[*egress.Refused](err); ok {
		return fmt.Errorf("%w. If it should be, the person can allow the host: chela config set tools.web.fetch.ssrfPolicy.allowedHostnames '[%q]'", r, r.Host)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("fetch %s: %w", u.Host, err)
}

// result says what was fetched.
func (f *fetcher) result(a fetchArgs, p *page, cached bool, took time.Duration) tool.Result {
	text, total := part(p.text, a.Offset, a.MaxChars)
	length := len([]rune(text))
	d := fetchDetails{
		URL: a.URL, FinalURL: p.final, Status: p.status, Mode: a.Mode, Extractor: p.by, ContentType: p.kind, Title: p.title, Warning: p.warning,
		External:  external{Untrusted: true, Source: "web_fetch", Wrapped: true},
		Truncated: length < total, Length: length, RawLength: total, Offset: a.Offset,
		FetchedAt: p.fetchedAt.UTC().Format(time.RFC3339), TookMS: took.Milliseconds(), Cached: cached,
	}
	head := fmt.Sprintf("%s (%d %s, %s)", p.final, p.status, http.StatusText(p.status), cmp.Or(p.kind, "of no said type"))
	if d.Truncated {
		head += fmt.Sprintf("\nCharacters %d to %d of %d", min(a.Offset, total), min(a.Offset, total)+length, total)
		if rest := total - a.Offset - length; rest > 0 {
			head += fmt.Sprintf("; %d more: offset %d", rest, a.Offset+length)
		}
	}
	if p.warning != "" {
		head += "\nNote: " + p.warning
	}
	if p.title != "" && a.Offset == 0 {
		text = "Title: " + p.title + "\n\n" + text
	}
	r := tool.Text(head)
	if text = strings.TrimSpace(text); text != "" {
		r = tool.Text(head + "\n" + f.label.wrap("web_fetch", text))
	}
	if p.image != nil {
		r.Content = append(r.Content, llm.Image(p.kind, p.image))
	}
	r.IsError = p.status >= 400
	r.Details, _ = json.Marshal(d) // plain values
	return r
}

// part returns at most n characters of s from the one with number offset, and
// how many s has.
func part(s string, offset, n int) (string, int) {
	total, from, to := 0, len(s), len(s)
	for i := range s {
		if total == offset {
			from = i
		}
		if total == offset+n {
			to = i
		}
		total++
	}
	return s[min(from, to):to], total
}
