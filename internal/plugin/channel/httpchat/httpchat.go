package httpchat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Name is the name of the channel.
const Name = "httpchat"

const (
	maxText   = 20_000 // characters of a message
	minSecret = 16     // bytes
)

// Factory returns the factory of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name: Name, Limits: channel.Limits{Text: maxText}, Can: (*account)(nil),
		Setup: []channel.Setting{
			{Key: "url", Title: "address that gets the answers, such as https://example.org/chela", Required: true},
			{Key: "secret", Title: "secret that signs the requests in both directions, for example of: openssl rand -hex 32",
				Secret: true, Required: true},
		},
		Identity: func(raw json.RawMessage) string {
			var s section
			_ = json.Unmarshal(raw, &s) // New reports the error
			return s.Path
		},
		New: func(env channel.Env, id string, raw json.RawMessage) (channel.Channel, error) {
			return open(env, id, raw)
		},
	}
}

// section is the section of an account.
type section struct {
	Secret secret.Ref `json:"secret"`
	URL    string     `json:"url"` // gets the answers
	// receives the messages; empty: /httpchat, and /httpchat/ID for accounts other than default
	Path      string   `json:"path"`
	Abilities []string `json:"abilities"`
}

// optional are the operations that a receiver may support besides send.
var optional = [...]string{"edit", "delete", "react", "typing"}

// account is an account.
type account struct {
	env    channel.Env
	id     chela.AccountID
	secret secret.Value
	url    string
	path   string
	client *http.Client
	can    []string // of optional

	bodies chan struct{} // slots for bodies that are being read

	mu   sync.Mutex
	sink channel.Sink // nil: Run does not run
	seen seen

	order chan struct{} // the right to pass a message to the sink
}

var (
	_ channel.Channel = (*account)(nil)
	_ channel.Poster  = (*account)(nil)
	_ channel.Fetcher = (*account)(nil)
	_ channel.Finder  = (*account)(nil)
	_ channel.Varied  = (*account)(nil)
)

func open(env channel.Env, id string, raw json.RawMessage) (*account, error) {
	var s section
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
	}
	at := "channels." + Name // of a section that has what is required
	if id != "default" {
		at += ".accounts." + id
	}
	key, err := env.Secret(id, s.Secret, "HTTPCHAT_SECRET")
	switch {
	case err != nil:
		return nil, fmt.Errorf("secret: %w", err)
	case key.IsZero():
		return nil, fmt.Errorf(
			"no secret (type: chela config set %s '{\"secret\": \"SECRET\", \"url\": \"https://example.org/answers\"}')", at)
	case len(key.Reveal()) < minSecret:
		return nil, fmt.Errorf("secret: want at least %d bytes, for example of: openssl rand -hex 32", minSecret)
	}
	if s.URL == "" {
		return nil, fmt.Errorf("no url for the answers (type: chela config set %s '{\"secret\": \"SECRET\", \"url\": \"https://example.org/answers\"}')", at)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, errors.New("url: want a URL such as https://example.org/answers") // it may contain a token
	}
	own := "/" + Name
	if id != "default" {
		own += "/" + id
	}
	own = cmp.Or(s.Path, own)
	if own == "/" || !strings.HasPrefix(own, "/") || path.Clean(own) != own || strings.ContainsAny(own, "?#%\\ ") {
		return nil, fmt.Errorf("path is %.100q: want a path such as /%s", own, Name)
	}
	for _, name := range s.Abilities {
		if !slices.Contains(optional[:], name) {
			return nil, fmt.Errorf("abilities: %.50q is not one of %s", name, strings.Join(optional[:], ", "))
		}
	}
	client := *env.Trusted(u.Host)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &account{
		env: env, id: chela.AccountID(id), secret: key, url: s.URL, path: own, client: &client, can: s.Abilities,
		bodies: make(chan struct{}, maxBodies), order: make(chan struct{}, 1), seen: seen{at: map[string]time.Time{}},
	}, nil
}

// Run implements channel.Channel. Posts are received while it runs.
func (a *account) Run(ctx context.Context, sink channel.Sink) error {
	a.use(sink)
	defer a.use(nil)
	a.env.Report(nil)
	<-ctx.Done()
	a.client.CloseIdleConnections()
	return ctx.Err()
}

func (a *account) use(sink channel.Sink) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sink = sink
}

// As implements channel.Varied.
func (a *account) As(target any) bool {
	w := hook{a}
	switch t := target.(type) {
	case *channel.Poster:
		*t = a
	case *channel.Fetcher:
		*t = a
	case *channel.Finder:
		*t = a
	case *channel.Editor:
		*t = w
		return a.has("edit")
	case *channel.Deleter:
		*t = w
		return a.has("delete")
	case *channel.Reactor:
		*t = w
		return a.has("react")
	case *channel.Typer:
		*t = w
		return a.has("typing")
	default:
		return false
	}
	return true
}

// has reports whether the receiver of the account supports an operation. That of an account
// that does not exist may.
func (a *account) has(name string) bool { return a == nil || slices.Contains(a.can, name) }
