package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp/oauth"
)

const (
	agreeTime = 15 * time.Minute // for the person to agree to a login
	loginTime = 30 * time.Second // for the questions to servers before and after that
	renewTime = 10 * time.Second // for a renewal, which goes on when its caller ends
	earlyTime = time.Minute      // before a token expires, when it is renewed; a tenth of its time if that is less
	retryTime = 5 * time.Second  // between renewals of a token that is still valid
	maxRecord = 1 << 20          // bytes of a stored login
)

// record is what is stored about the login of a server, in a file that only the owner of
// the process reads.
type record struct {
	Name     string         `json:"name"`
	URL      string         `json:"url"` // of the MCP server: the tokens are sent nowhere else
	Server   oauth.Server   `json:"server"`
	Resource string         `json:"resource"`
	Client   oauth.Client   `json:"client"` // without the secret that the configuration has
	Access   string         `json:"access,omitempty"`
	Refresh  string         `json:"refresh,omitempty"`
	Scopes   []string       `json:"scopes,omitempty"`
	Expires  time.Time      `json:"expires,omitzero"`
	Due      time.Time      `json:"due,omitzero"`      // when it is renewed, before Expires
	Renewing time.Time      `json:"renewing,omitzero"` // when a renewal began whose end is not stored
	Lost     string         `json:"lost,omitempty"`    // why the login is not valid any more
	Told     bool           `json:"told,omitempty"`    // the person was told so
	Wants    []string       `json:"wants,omitempty"`   // rights that the server missed
	Pending  *oauth.Pending `json:"pending,omitempty"`
}

// in reports whether the record holds a login of a server.
func (r record) in(s mcp.Server) bool { return r.Access != "" && r.URL == s.URL }

// take puts a token into the record.
func (r *record) take(t oauth.Token) {
	r.Access, r.Refresh, r.Expires, r.Due = t.Access, t.Refresh, t.Expires, t.Expires
	if left := time.Until(t.Expires); left > 0 {
		r.Due = t.Expires.Add(-min(earlyTime, left/10))
	}
}

// login is the login of a server.
type login struct {
	name string
	busy chan struct{} // holds an element while the login is made, renewed or removed

	mu      sync.Mutex
	loaded  bool
	unsaved bool      // the file is older than rec
	retry   time.Time // when a renewal that failed is tried again, while the token is valid
	rec     record
}

// Login describes the login of a server.
type Login struct {
	State   string    `json:"state"`            // none, pending, in, or lost
	Issuer  string    `json:"issuer,omitempty"` // where the person logged in
	Scopes  []string  `json:"scopes,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of the token; it is renewed before if Renews
	Renews  bool      `json:"renews,omitempty"`
	Problem string    `json:"problem,omitempty"`
}

// The states of a login.
const (
	LoginNone    = "none"
	LoginPending = "pending" // begun, and the person has not agreed yet
	LoginIn      = "in"
	LoginLost    = "lost" // it has ended, and cannot be renewed
)

// usesLogin reports whether requests to a server have the token of a login if there is
// one, rather than a header of the configuration.
func usesLogin(s mcp.Server) bool {
	if s.URL == "" {
		return false
	}
	for name := range s.Headers {
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
			return s.Auth == mcp.OAuthLogin
		}
	}
	return true
}

// login returns the login of a server.
func (p *Pool) login(name string) *login {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.logins[name]
	if l == nil {
		l = &login{name: name, busy: make(chan struct{}, 1)}
		p.logins[name] = l
	}
	return l
}

// file returns the file of a login.
func (p *Pool) file(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(p.o.State, "credentials", "mcp", hex.EncodeToString(sum[:16])+".json")
}

// get returns the record of a login; an empty one: there is none.
func (p *Pool) get(l *login) (record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded {
		return l.rec, nil
	}
	f, err := os.Open(p.file(l.name))
	if errors.Is(err, os.ErrNotExist) {
		l.loaded = true
		return l.rec, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read the login: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return record{}, fmt.Errorf("read the login: %w", err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil || r.Name != l.name {
		return record{}, fmt.Errorf("read the login: %s is damaged. Log in again: chela mcp logout %s, chela mcp login %s",
			p.file(l.name), l.name, l.name)
	}
	l.rec, l.loaded = r, true
	p.hide(r)
	return r, nil
}

// put stores the record of a login. On an error it remains in memory if it holds what
// cannot be got again.
func (p *Pool) put(l *login, r record, keep bool) error {
	p.hide(r)
	b, err := json.Marshal(r)
	if err == nil {
		file := p.file(l.name)
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = atomicfile.Write(file, b, 0o600)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil || keep {
		l.rec, l.loaded, l.unsaved = r, true, err != nil
	}
	if err != nil {
		return fmt.Errorf("store the login of MCP server %s: %w", l.name, err)
	}
	return nil
}

// hide has the secrets of a record removed from texts.
func (p *Pool) hide(r record) {
	if p.o.Hide == nil {
		return
	}
	all := []string{r.Access, r.Refresh, r.Client.Secret}
	if r.Pending != nil {
		all = append(all, r.Pending.Verifier, r.Pending.Client.Secret)
	}
	for _, s := range all {
		if s != "" {
			p.o.Hide(secret.New(s))
		}
	}
}

// hold waits until nobody else makes, renews or removes a login, and returns how to let
// it go.
func (l *login) hold(ctx context.Context) (release func(), err error) {
	select {
	case l.busy <- struct{}{}:
		return func() { <-l.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// needsLogin is an error that is ErrNeedsAuth.
func needsLogin(name, why string) error {
	if why == "" {
		return fmt.Errorf("MCP server %s: %w: chela mcp login %s", name, ErrNeedsAuth, name)
	}
	return fmt.Errorf("MCP server %s: %w. To log in: chela mcp login %s", name, authError(why), name)
}

// authError is a reason why somebody must log in.
type authError string

func (e authError) Error() string        { return string(e) }
func (e authError) Is(target error) bool { return target == ErrNeedsAuth }

// loginError is an error about a login, as people see it.
type loginError struct{ error }

// Unwrap returns the error.
func (e loginError) Unwrap() error { return e.error }

// token returns the token for requests to a server; "": there is no login. rejected is
// the token that the server has just refused; "": none. Callers at once renew a token
// once.
func (p *Pool) token(ctx context.Context, name string, s mcp.Server, rejected string) (string, error) {
	l := p.login(name)
	for {
		r, err := p.get(l)
		switch {
		case err != nil:
			return "", fmt.Errorf("MCP server %s: %w", name, err)
		case r.Lost != "" && r.URL == s.URL:
			return "", needsLogin(name, r.Lost)
		case !r.in(s) && s.Auth == mcp.OAuthLogin:
			return "", needsLogin(name, "")
		case !r.in(s):
			return "", nil
		case r.Access != rejected && !l.due(r):
			p.save(l)
			return r.Access, nil
		}
		release, err := l.hold(ctx)
		if err != nil {
			return "", err
		}
		if now, err := p.get(l); err != nil || now.Access != r.Access || now.Lost != r.Lost { // another caller renewed it
			release()
			continue
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			release()
			return "", errClosed
		}
		done := make(chan error, 1)
		p.wg.Go(func() { // a renewal that was sent must be stored
			defer release()
			done <- p.renew(l, s, r, r.Access == rejected)
		})
		p.mu.Unlock()
		select {
		case err := <-done:
			if err != nil {
				return "", err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// due reports whether a login has to be renewed before its token is used.
func (l *login) due(r record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	return r.Refresh != "" && !r.Expires.IsZero() && !now.Before(r.Due) && (!now.Before(r.Expires) || !now.Before(l.retry))
}

// save stores a login that is in memory only because storing it failed.
func (p *Pool) save(l *login) {
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	default:
		return
	}
	l.mu.Lock()
	r, unsaved := l.rec, l.unsaved
	l.mu.Unlock()
	if !unsaved {
		return
	}
	if err := p.put(l, r, true); err != nil {
		p.o.Log.Error("a renewed login is in memory only", "server", l.name, "err", err)
	}
}

// renew renews a login. The caller holds it. A failure that a later attempt may not have
// is an error only if the token was rejected or has expired.
func (p *Pool) renew(l *login, s mcp.Server, r record, rejected bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), renewTime)
	defer cancel()
	if r.Refresh == "" {
		return p.lose(l, r, "the login has ended, and the service gave nothing to renew it with")
	}
	before := r.Renewing
	r.Renewing = time.Now()
	if err := p.put(l, r, false); err != nil { // what could not be stored is not asked for
		return err
	}
	t, err := oauth.Renew(ctx, p.o.LoginHTTP(s), r.Server, withSecret(r.Client, s), r.Resource, r.Refresh)
	if err == nil {
		r.take(t)
		r.Renewing = time.Time{}
		if t.Scopes != nil {
			r.Scopes = t.Scopes
		}
		if err := p.put(l, r, true); err != nil {
			p.o.Log.Error("a renewed login is in memory only", "server", l.name, "err", err)
		}
		return nil
	}
	if refused, ok := errors.AsType[*oauth.Refused](err); ok && refused.Final() {
		why := "the login has ended: " + refused.Error()
		if !before.IsZero() {
			why += ", after a renewal was interrupted at " + before.Format(time.DateTime)
		}
		return p.lose(l, r, why)
	}
	r.Renewing = before
	if rejected || time.Now().After(r.Expires) {
		return fmt.Errorf("MCP server %s: renew the login: %w", l.name, p.cleaned(err))
	}
	p.o.Log.Warn("a login is not renewed yet", "server", l.name, "err", p.redacted(err.Error()))
	l.mu.Lock()
	l.retry = time.Now().Add(retryTime)
	l.mu.Unlock()
	return nil
}

// lose notes that a login has ended, and tells the person once.
func (p *Pool) lose(l *login, r record, why string) error {
	r.take(oauth.Token{})
	r.Renewing, r.Lost, r.Told = time.Time{}, clean(why, 2*maxLine), false
	if err := p.put(l, r, true); err != nil {
		p.o.Log.Error("the end of a login is not stored", "server", l.name, "err", err)
	}
	p.tell(l)
	return needsLogin(l.name, r.Lost)
}

// tell tells the person that a login has ended, if they were not told.
func (p *Pool) tell(l *login) {
	r, err := p.get(l)
	if err != nil || r.Lost == "" || r.Told || p.o.Lapsed == nil {
		return
	}
	text := fmt.Sprintf("The tools of the MCP server %s cannot be used: %s. Log in again with: chela mcp login %s",
		l.name, r.Lost, l.name)
	if err := p.o.Lapsed(text); err != nil {
		p.o.Log.Warn("the person is not told about a login", "server", l.name, "err", err)
		return
	}
	r.Told = true
	if err := p.put(l, r, true); err != nil {
		p.o.Log.Warn("a login", "err", err)
	}
}

// remind tells the person about a login that ended before this process could tell them.
func (p *Pool) remind(ctx context.Context, name string) {
	l := p.login(name)
	if release, err := l.hold(ctx); err == nil {
		defer release()
		p.tell(l)
	}
}

// lacks notes that a server missed rights of the login.
func (p *Pool) lacks(ctx context.Context, name string, s mcp.Server, scopes []string) error {
	l := p.login(name)
	if release, err := l.hold(ctx); err == nil {
		defer release()
		if r, err := p.get(l); err == nil && r.in(s) && !slices.Equal(r.Wants, scopes) {
			r.Wants = scopes
			if err := p.put(l, r, true); err != nil {
				p.o.Log.Warn("a login", "err", err)
			}
		}
	}
	what := "more rights than the login has"
	if len(scopes) > 0 {
		what += " (" + clean(strings.Join(scopes, " "), maxLine) + ")"
	}
	return needsLogin(name, "it wants "+what)
}

// withSecret returns a client with its secret.
func withSecret(c oauth.Client, s mcp.Server) oauth.Client {
	if c.ID == s.OAuth.ClientID && c.Secret == "" {
		c.Secret = s.OAuth.ClientSecret
	}
	return c
}

// withoutSecret is the reverse of withSecret: what the configuration has is not stored.
func withoutSecret(c oauth.Client, s mcp.Server) oauth.Client {
	if c.ID == s.OAuth.ClientID {
		c.Secret = ""
	}
	return c
}

// Begun is a login that waits for the person.
type Begun struct {
	URL      string    // where the person agrees
	Redirect string    // where their browser goes then
	Issuer   string    // the service at which they log in
	Scopes   []string  // what they are asked for
	Until    time.Time // when it is too late
}

// BeginLogin begins a login at a server. redirect is an address on the machine of the
// person, which the configuration can replace.
func (p *Pool) BeginLogin(ctx context.Context, name string, s mcp.Server, redirect string) (Begun, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	b, err := p.beginLogin(ctx, name, s, cmp.Or(s.OAuth.RedirectURL, redirect))
	if err != nil {
		return b, fmt.Errorf("MCP server %s: %w", name, p.cleaned(err))
	}
	return b, nil
}

func (p *Pool) beginLogin(ctx context.Context, name string, s mcp.Server, redirect string) (b Begun, err error) {
	switch {
	case s.URL == "":
		return b, errors.New("it is a program on this machine: one logs in at servers with url only")
	case !usesLogin(s):
		return b, fmt.Errorf(
			"its headers have Authorization, which is sent instead of a login: chela config set mcp.servers.%s.auth oauth", name)
	}
	if err := oauth.CheckURL("the address of the server", s.URL); err != nil {
		return b, err
	}
	if err := oauth.CheckURL("the address to return to", redirect); err != nil {
		return b, err
	}
	l := p.login(name)
	release, err := l.hold(ctx)
	if err != nil {
		return b, err
	}
	defer release()
	r, err := p.get(l)
	if err != nil || r.URL != s.URL {
		r = record{}
	}
	client := p.o.LoginHTTP(s)
	said, open, err := p.knock(ctx, client, s)
	if err != nil {
		return b, err
	}
	found, err := oauth.Discover(ctx, client, s.URL, said)
	if err != nil {
		if open {
			return b, errors.New("it does not ask for a login: it answers without one")
		}
		if errors.Is(err, oauth.ErrUnknown) {
			err = fmt.Errorf(
				"%w. If it wants a token: chela mcp add %s --url %s --header 'Authorization=Bearer TOKEN' --replace",
				err, name, s.URL)
		}
		return b, err
	}
	scopes := strings.Fields(s.OAuth.Scope)
	if len(scopes) == 0 {
		scopes = slices.Clone(found.Scopes)
	}
	if len(r.Wants) > 0 {
		scopes = slices.Concat(r.Scopes, r.Wants, scopes)
	}
	if slices.Contains(found.Server.Scopes, "offline_access") {
		scopes = append(scopes, "offline_access") // without it, some give nothing to renew the login with
	}
	scopes = unique(scopes)
	var c oauth.Client
	switch {
	case s.OAuth.ClientID != "":
		c = found.Server.Known(s.OAuth.ClientID, s.OAuth.ClientSecret)
	case s.OAuth.MetadataURL != "" && found.Server.Documents:
		c = found.Server.Known(s.OAuth.MetadataURL, "")
	case found.Server.Register == "":
		return b, fmt.Errorf("%s does not let programs register. Register one there, with the address to return to %s, and type: chela config set mcp.servers.%s.oauth.clientId ID", found.Server.Issuer, redirect, name)
	default:
		if c, err = oauth.Register(ctx, client, found.Server, redirect, scopes); err != nil {
			return b, err
		}
	}
	until := time.Now().Add(agreeTime)
	pending, address, err := oauth.Begin(found, c, scopes, redirect, until)
	if err != nil {
		return b, err
	}
	pending.Client = withoutSecret(pending.Client, s)
	r.Name, r.URL, r.Pending = name, s.URL, &pending
	if err := p.put(l, r, false); err != nil {
		return b, err
	}
	return Begun{URL: address, Redirect: redirect, Issuer: found.Server.Issuer, Scopes: scopes, Until: until}, nil
}

// unique returns the elements of a list, each once.
func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// knock sends a request without a token. It returns what the server says about logins,
// and whether it answers all the same.
func (p *Pool) knock(ctx context.Context, client *http.Client,
	s mcp.Server) (authenticate []string, open bool, err error) {
	method, body := http.MethodGet, []byte(nil)
	if s.Kind() == mcp.HTTP {
		method = http.MethodPost
		body = []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"chela","version":"login"}}}`)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	for name, value := range s.Headers {
		if textproto.CanonicalMIMEHeaderKey(name) != "Authorization" {
			r.Header.Set(name, value)
		}
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := c.Do(r)
	if err != nil {
		return nil, false, err
	}
	defer res.Body.Close()
	return res.Header.Values("WWW-Authenticate"), res.StatusCode/100 == 2, nil
}

// FinishLogin ends a login with the address to which the browser of the person went, or
// with the code in it.
func (p *Pool) FinishLogin(ctx context.Context, name string, s mcp.Server, answer string) (Login, error) {
	out, err := p.finishLogin(ctx, name, s, answer)
	if err != nil {
		return out, fmt.Errorf("MCP server %s: %w", name, p.cleaned(err))
	}
	p.revive(name)
	return out, nil
}

func (p *Pool) finishLogin(ctx context.Context, name string, s mcp.Server, answer string) (Login, error) {
	l := p.login(name)
	release, err := l.hold(ctx)
	if err != nil {
		return Login{}, err
	}
	defer release()
	r, err := p.get(l)
	if err != nil {
		return Login{}, err
	}
	pending := r.Pending
	if pending == nil || r.URL != s.URL || time.Now().After(pending.Until) {
		return Login{}, fmt.Errorf("no login waits for that. Begin one: chela mcp login %s", name)
	}
	code, err := pending.Code(answer)
	if refused, ok := errors.AsType[*oauth.Refused](err); ok { // by the person or the server
		r.Pending = nil
		if err := p.put(l, r, true); err != nil {
			p.o.Log.Warn("a login", "err", err)
		}
		return Login{}, refused
	}
	if err != nil {
		return Login{}, err
	}
	full := *pending
	full.Client = withSecret(full.Client, s)
	until, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginTime) // the code can be used once
	defer cancel()
	t, err := oauth.Exchange(until, p.o.LoginHTTP(s), full, code)
	if err != nil {
		return Login{}, err
	}
	next := record{
		Name:     name,
		URL:      s.URL,
		Server:   pending.Server,
		Resource: pending.Resource,
		Client:   pending.Client,
		Scopes:   t.Scopes,
	}
	next.take(t)
	if err := p.put(l, next, false); err != nil {
		return Login{}, err
	}
	return next.describe(s), nil
}

// Logout removes the login of a server, which need not be configured any more. It
// reports whether there was one, and why the service was not told, if it should have been.
func (p *Pool) Logout(ctx context.Context, name string, s mcp.Server) (removed bool, untold, err error) {
	l := p.login(name)
	release, err := l.hold(ctx)
	if err != nil {
		return false, nil, err
	}
	defer release()
	r, err := p.get(l)
	if err == nil && r.Name == "" {
		return false, nil, nil
	}
	if r.Server.Revoke != "" {
		untold = p.cleaned(p.revoke(ctx, r, s))
	} else if r.Access != "" {
		untold = errors.New("the service has no way to be told; end the login in its settings")
	}
	if err := os.Remove(p.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, untold, fmt.Errorf("remove the login of MCP server %s: %w", name, err)
	}
	_ = atomicfile.SyncDir(filepath.Dir(p.file(name))) // after a power failure the tokens are invalid all the same
	l.mu.Lock()
	l.rec, l.loaded, l.unsaved = record{}, true, false
	l.mu.Unlock()
	p.revive(name)
	return true, untold, nil
}

// revoke makes the tokens of a login invalid.
func (p *Pool) revoke(ctx context.Context, r record, s mcp.Server) error {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	var errs []error
	for _, t := range []struct{ kind, token string }{{"refresh_token", r.Refresh}, {"access_token", r.Access}} {
		if t.token != "" {
			errs = append(errs, oauth.Revoke(ctx, p.o.LoginHTTP(cmpServer(s, r)), r.Server, withSecret(r.Client, s),
				t.kind, t.token))
		}
	}
	return errors.Join(errs...)
}

// cmpServer returns a server, or the one of a record if it is not configured any more.
func cmpServer(s mcp.Server, r record) mcp.Server {
	if s.URL == "" {
		s.URL = r.URL
	}
	return s
}

// revive has the next call of a server connect anew.
func (p *Pool) revive(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[name]
	if s == nil || p.closed {
		return
	}
	s.failures, s.err, s.next = 0, nil, time.Time{}
	if c := p.detachLocked(s); c != nil {
		p.wg.Go(c.stop)
	}
	if p.finding {
		p.wg.Go(func() { p.discover(s) })
	}
}

// describe describes a login.
func (r record) describe(s mcp.Server) Login {
	out := Login{State: LoginNone, Issuer: r.Server.Issuer, Scopes: r.Scopes, Expires: r.Expires, Renews: r.Refresh != ""}
	switch {
	case r.Name != "" && r.URL != s.URL:
		return Login{State: LoginNone, Problem: "the login is for another address of the server, and is not used"}
	case r.in(s):
		out.State = LoginIn
		if len(r.Wants) > 0 {
			out.Problem = "the server wants more rights: " + strings.Join(r.Wants, " ")
		}
	case r.Lost != "":
		out.State, out.Problem = LoginLost, r.Lost
	case r.Pending != nil && time.Now().Before(r.Pending.Until):
		out.State, out.Issuer = LoginPending, r.Pending.Server.Issuer
	}
	return out
}

// LoginOf returns the login of a server.
func (p *Pool) LoginOf(name string, s mcp.Server) Login {
	if s.URL == "" || !usesLogin(s) {
		return Login{State: LoginNone}
	}
	r, err := p.get(p.login(name))
	if err != nil {
		return Login{State: LoginLost, Problem: err.Error()}
	}
	return r.describe(s)
}

func (p *Pool) redacted(s string) string {
	if p.o.Redact != nil {
		s = p.o.Redact(s)
	}
	return clean(s, 3*maxLine)
}

// cleaned returns an error as one line without secrets.
func (p *Pool) cleaned(err error) error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		if parsed, perr := url.Parse(u.URL); perr == nil {
			parsed.RawQuery = ""
			u.URL = parsed.String()
		}
	}
	return cleanError{p.redacted(err.Error()), err}
}

// cleanError is an error with another text.
type cleanError struct {
	text string
	err  error
}

func (e cleanError) Error() string { return e.text }
func (e cleanError) Unwrap() error { return e.err }
