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

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// FetchOptions configure web_fetch. HTTP is required.
type FetchOptions struct {
	HTTP *http.Client // must check addresses and limit redirects
	Log  *slog.Logger // nil: slog.Default()

	MaxChars  int           // default number of characters in a result; 0: 20,000
	MaxCap    int           // maximum number of characters in a result; 0: 20,000
	MaxBytes  int64         // maximum number of bytes read of a response; 0: 750,000
	Timeout   time.Duration // of a request; 0: 30 s
	CacheTTL  time.Duration // 0: 15 min; negative: no caching
	Whole     bool          // return whole pages instead of their main part
	UserAgent string
	Header    map[string]secret.Value // additional headers, sent to the first origin only
}

const (
	defaultChars = 20_000
	defaultBytes = 750_000
	defaultTime  = 30 * time.Second
	defaultTTL   = 15 * time.Minute
	cacheBytes   = 2 << 20
	maxErrorText = 2000            // characters of an error response
	slowAfter    = 5 * time.Second // time after which a progress message is sent
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
	f := &fetcher{FetchOptions: o, label: untrusted.New(), cache: newCache[*page](o.CacheTTL, cacheBytes)}
	f.header = f.headers()
	return f
}

// webNote is what a model is told about text from the web.
const webNote = "Text from the web: " + untrusted.Data

type fetcher struct {
	FetchOptions
	header http.Header
	label  untrusted.Labeler
	cache  *cache[*page]
}

// headers returns the headers of each request. Configured headers that cannot
// be sent are skipped and logged.
func (f *fetcher) headers() http.Header {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		value := f.Header[name].Reveal()
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			f.Log.Warn("web_fetch: header skipped: invalid name", "name", name)
		case !httpguts.ValidHeaderFieldValue(value):
			f.Log.Warn("web_fetch: header skipped: invalid value", "name", name)
		case reserved(http.CanonicalHeaderKey(name)):
			f.Log.Warn("web_fetch: header skipped: cannot be configured", "name", name)
		default:
			h.Set(name, value)
		}
	}
	h.Set("Accept", accept)
	h.Set("Accept-Language", language)
	h.Set("User-Agent", f.UserAgent)
	return h
}

// reserved reports whether a header is set by the tool or belongs to the
// connection.
func reserved(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Host", "Content-Length",
		"Connection", "Keep-Alive", "Te",
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
		Groups:      []string{"group:web", tool.Reading},
		Parallel:    true,
		Aliases:     map[string]string{"mode": "extractMode"},
		Volatile:    []string{"fetchedAt", "tookMs", "cached"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"url":{"type":"string","minLength":1},
			"extractMode":{"type":"string","enum":["markdown","text"]},
			"maxChars":{"type":"integer","minimum":100},
			"offset":{"type":"integer","minimum":0,"description":"characters to skip"}},
			"required":["url"],"additionalProperties":false}`),
	}
}

type fetchArgs struct {
	URL      string `json:"url"`
	Mode     string `json:"extractMode"`
	MaxChars int    `json:"maxChars"`
	Offset   int    `json:"offset"`
}

// page is a fetched page as text.
type page struct {
	final     string // URL after redirects
	status    int
	kind      string // media type
	title     string
	text      string
	extractor string // extractor that produced the text
	warning   string
	image     []byte
	fetchedAt time.Time
}

// external describes the origin of text.
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
	Length      int      `json:"length"`    // characters in the result
	RawLength   int      `json:"rawLength"` // characters in total
	Offset      int      `json:"offset,omitempty"`
	FetchedAt   string   `json:"fetchedAt"`
	TookMS      int64    `json:"tookMs"`
	Cached      bool     `json:"cached,omitempty"`
}

func (f *fetcher) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	a, err := tool.Decode[fetchArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
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
		stop := notifySlow(c.Update)
		p, err = f.fetch(ctx, u, a.Mode == "markdown")
		stop()
		if err != nil {
			return tool.Result{}, fetchError(ctx, u, err)
		}
		if p.status < 400 {
			f.cache.put(key, p, len(p.text)+len(p.image)+len(key)+200)
		}
	}
	return f.result(a, p, cached, time.Since(began)), nil
}

// notifySlow sends a progress message if the call takes long.
func notifySlow(update func(string)) (stop func()) {
	done := make(chan struct{})
	t := time.AfterFunc(slowAfter, func() {
		defer close(done)
		update("Fetching page content…")
	})
	return func() {
		if !t.Stop() {
			<-done
		}
	}
}

// parseURL parses the URL of a page.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL: want http://… or https://…", s)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q: want http://… or https://…", s)
	case u.User != nil:
		return nil, errors.New("URLs with a user name or password are not allowed")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// fetchError returns the error of a call, with a hint if the host was
// refused.
func fetchError(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r, ok := errors.AsType[*egress.Refused](err); ok {
		return fmt.Errorf(
			"%w. To allow the host, the person can run: chela config set tools.web.fetch.ssrfPolicy.allowedHostnames '[%q]'", r,
			r.Host)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("fetch %s: %w", u.Host, err)
}

// result returns the result for a page.
func (f *fetcher) result(a fetchArgs, p *page, cached bool, took time.Duration) tool.Result {
	text, total := substring(p.text, a.Offset, a.MaxChars)
	length := len([]rune(text))
	d := fetchDetails{
		URL:         a.URL,
		FinalURL:    p.final,
		Status:      p.status,
		Mode:        a.Mode,
		Extractor:   p.extractor,
		ContentType: p.kind,
		Title:       p.title,
		Warning:     p.warning,
		External:    external{Untrusted: true, Source: "web_fetch", Wrapped: true},
		Truncated:   length < total,
		Length:      length,
		RawLength:   total,
		Offset:      a.Offset,
		FetchedAt:   p.fetchedAt.UTC().Format(time.RFC3339),
		TookMS:      took.Milliseconds(),
		Cached:      cached,
	}
	head := fmt.Sprintf("%s (%d %s, %s)", p.final, p.status, http.StatusText(p.status), cmp.Or(p.kind, "unknown type"))
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
	if text = strings.TrimSpace(text); text != "" {
		head += "\n" + f.label.Wrap("web_fetch", webNote, text)
	}
	r := tool.Detailed(head, d)
	if p.image != nil {
		r.Content = append(r.Content, llm.Image(p.kind, p.image))
	}
	r.IsError = p.status >= 400
	return r
}

// substring returns at most n characters of s starting at the character
// offset, and the number of characters of s.
func substring(s string, offset, n int) (string, int) {
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
