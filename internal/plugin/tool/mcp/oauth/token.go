package oauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// The ways in which a client identifies itself.
const (
	methodNone  = "none"
	methodPost  = "client_secret_post"
	methodBasic = "client_secret_basic"
)

// Client is what an authorization server knows this program by.
type Client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Method string `json:"method"`
}

// Known returns a client that was registered by hand.
func (s Server) Known(id, secret string) Client {
	c := Client{ID: id, Secret: secret, Method: methodNone}
	if secret != "" {
		c.Method = methodBasic
		if slices.Contains(s.Methods, methodPost) && !slices.Contains(s.Methods, methodBasic) {
			c.Method = methodPost
		}
	}
	return c
}

// Register registers this program at a server.
func Register(ctx context.Context, client *http.Client, s Server, redirect string, scopes []string) (Client, error) {
	method := methodNone
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, methodNone) {
		if method = methodBasic; !slices.Contains(s.Methods, methodBasic) {
			method = methodPost
		}
	}
	b, err := json.Marshal(map[string]any{
		"client_name":                "Chela",
		"redirect_uris":              []string{redirect},
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": method,
		"application_type":           "native",

		"scope": strings.Join(scopes, " "),
	})
	if err != nil {
		return Client{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Register, bytes.NewReader(b))
	if err != nil {
		return Client{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	var out struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if err := send(client, r, &out); err != nil {
		return Client{}, fmt.Errorf("register at %s: %w", s.Issuer, err)
	}
	if out.ID == "" {
		return Client{}, fmt.Errorf("register at %s: the answer has no client_id", s.Issuer)
	}
	c := Client{ID: out.ID, Secret: out.Secret, Method: cmp.Or(out.Method, method)}
	switch {
	case c.Secret == "":
		c.Method = methodNone
	case out.Method == "" && method == methodNone:
		c.Method = methodBasic // RFC 7591
	}
	return c, nil
}

// Pending is a login that a person has not agreed to yet.
type Pending struct {
	Server   Server    `json:"server"`
	Resource string    `json:"resource"`
	Client   Client    `json:"client"`
	Scopes   []string  `json:"scopes,omitempty"`
	Redirect string    `json:"redirect"`
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Until    time.Time `json:"until"`
}

// Begin begins a login. The person agrees at the address.
func Begin(f Found, c Client, scopes []string, redirect string, until time.Time) (Pending, string, error) {
	p := Pending{
		Server:   f.Server,
		Resource: f.Resource,
		Client:   c,
		Scopes:   scopes,
		Redirect: redirect,
		State:    rand.Text(),
		Verifier: rand.Text() + rand.Text(),
		Until:    until,
	}
	u, err := url.Parse(f.Server.Authorize)
	if err != nil {
		return Pending{}, "", err
	}
	sum := sha256.Sum256([]byte(p.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type":         "code",
		"client_id":             c.ID,
		"redirect_uri":          redirect,
		"state":                 p.State,
		"resource":              p.Resource,
		"code_challenge":        base64.RawURLEncoding.EncodeToString(sum[:]),
		"code_challenge_method": "S256",
		"scope":                 strings.Join(scopes, " "),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return p, u.String(), nil
}

// Code returns the code in the address to which a server redirected the person. A code
// alone will do, unless the server says in the address who it is.
func (p Pending) Code(answer string) (string, error) {
	answer = strings.TrimSpace(answer)
	query, isURL := answer, false
	if u, err := url.Parse(answer); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		query, isURL = u.RawQuery, true
	} else if strings.HasPrefix(answer, "?") || strings.Contains(answer, "code=") || strings.HasPrefix(answer, "error=") {
		query, isURL = strings.TrimPrefix(answer, "?"), true
	}
	if !isURL {
		switch {
		case answer == "" || strings.ContainsAny(answer, " \t\n"):
			return "", errors.New("want the address that the browser shows after you agreed, or the code in it")
		case p.Server.Names:
			return "", errors.New(
				"want the whole address that the browser shows after you agreed, not the code alone: it says which server sent it")
		}
		return answer, nil
	}
	q, err := url.ParseQuery(query)
	switch state := q["state"]; {
	case err != nil:
		return "", errors.New("the address cannot be read; copy it as the browser shows it")
	case len(state) != 1 || !secret.New(state[0]).Equal(secret.New(p.State)):
		return "", errors.New("the address belongs to another login (its state differs); begin again")
	case q.Has("iss") && q.Get("iss") != p.Server.Issuer, p.Server.Names && !q.Has("iss"):
		return "", fmt.Errorf("the address was sent by another server: it says %q, want %s; begin again", clean(q.Get("iss")),
			p.Server.Issuer)
	case q.Has("error"):
		return "", &Refused{Issuer: p.Server.Issuer, Code: clean(q.Get("error")), Text: clean(q.Get("error_description"))}
	case len(q["code"]) != 1 || q.Get("code") == "":
		return "", errors.New("the address has no code; copy it as the browser shows it")
	}
	return q.Get("code"), nil
}

// Token is what a login gives.
type Token struct {
	Access  string    // sent to the MCP server
	Refresh string    // renews the login; "": it cannot be renewed
	Scopes  []string  // rights that it has
	Expires time.Time // of Access; zero: unknown
}

// Refused is the error of a server that refuses a login or its renewal.
type Refused struct {
	Issuer string
	Code   string // of OAuth, such as invalid_grant
	Text   string // of the server
}

// Error returns what the server said.
func (r *Refused) Error() string {
	if r.Text == "" {
		return fmt.Sprintf("%s refuses it: %s", r.Issuer, r.Code)
	}
	return fmt.Sprintf("%s refuses it: %s (%s)", r.Issuer, r.Code, r.Text)
}

// Final reports whether a renewal cannot succeed later either.
func (r *Refused) Final() bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type",
		"invalid_target"}, r.Code)
}

// Exchange gets the token of a login with the code.
func Exchange(ctx context.Context, client *http.Client, p Pending, code string) (Token, error) {
	t, err := ask(ctx, client, p.Server, p.Client, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {p.Redirect},
		"code_verifier": {p.Verifier},
		"resource":      {p.Resource},
	})
	if err == nil && t.Scopes == nil {
		t.Scopes = p.Scopes
	}
	return t, err
}

// Renew gets a new token. Refresh is the old one if the server gives no other.
func Renew(ctx context.Context, client *http.Client, s Server, c Client, resource, refresh string) (Token, error) {
	t, err := ask(ctx, client, s, c,
		url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "resource": {resource}})
	if err == nil {
		t.Refresh = cmp.Or(t.Refresh, refresh)
	}
	return t, err
}

// Revoke makes a token invalid. kind is access_token or refresh_token.
func Revoke(ctx context.Context, client *http.Client, s Server, c Client, kind, token string) error {
	r, err := form(ctx, s.Revoke, c, url.Values{"token": {token}, "token_type_hint": {kind}})
	if err != nil {
		return err
	}
	return send(client, r, nil)
}

// ask asks for a token.
func ask(ctx context.Context, client *http.Client, s Server, c Client, values url.Values) (Token, error) {
	r, err := form(ctx, s.Token, c, values)
	if err != nil {
		return Token{}, err
	}
	var out struct {
		Access  string `json:"access_token"`
		Type    string `json:"token_type"`
		Refresh string `json:"refresh_token"`
		Expires any    `json:"expires_in"` // some servers send a text
		Scope   string `json:"scope"`
		refusal
	}
	asked := time.Now()
	if err := send(client, r, &out); err != nil {
		if refused, ok := errors.AsType[*Refused](err); ok {
			refused.Issuer = s.Issuer
		}
		return Token{}, err
	}
	switch {
	case out.Error != "": // some servers answer 200
		return Token{}, &Refused{Issuer: s.Issuer, Code: clean(out.Error), Text: clean(out.Description)}
	case out.Access == "" || strings.ContainsFunc(out.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Token{}, fmt.Errorf("%s gave no usable access_token", s.Issuer)
	case out.Type != "" && !strings.EqualFold(out.Type, "bearer"):
		return Token{}, fmt.Errorf("%s gave a token of the type %q, want Bearer", s.Issuer, clean(out.Type))
	}
	t := Token{Access: out.Access, Refresh: out.Refresh}
	if out.Scope != "" {
		t.Scopes = strings.Fields(out.Scope)
		t.Scopes = t.Scopes[:min(len(t.Scopes), maxScopes)]
	}
	if seconds, err := strconv.ParseFloat(fmt.Sprint(out.Expires), 64); err == nil && seconds > 0 && seconds < 1e9 {
		t.Expires = asked.Add(time.Duration(seconds * float64(time.Second)))
	}
	return t, nil
}

// form returns a request of a client.
func form(ctx context.Context, to string, c Client, values url.Values) (*http.Request, error) {
	if c.Method != methodBasic {
		values.Set("client_id", c.ID)
		if c.Method == methodPost {
			values.Set("client_secret", c.Secret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.Method == methodBasic {
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	return r, nil
}

// refusal is the answer of a server that refuses.
type refusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// send sends a request and decodes the answer. The error never has the answer's text,
// except what a [Refused] has.
func send(client *http.Client, r *http.Request, into any) error {
	r.Header.Set("Accept", "application/json")
	res, err := strict(client).Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	host := res.Request.URL.Host
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", host, err)
	case len(b) > maxAnswer:
		return fmt.Errorf("%s answered more than %s", host, humanize.Bytes(maxAnswer))
	case res.StatusCode/100 == 2 && into == nil:
		return nil
	case res.StatusCode/100 == 2:
		if json.Unmarshal(b, into) != nil {
			return fmt.Errorf("%s did not answer JSON", host)
		}
		return nil
	}
	var no refusal
	if json.Unmarshal(b, &no) == nil && no.Error != "" && res.StatusCode/100 == 4 {
		return &Refused{Issuer: host, Code: clean(no.Error), Text: clean(no.Description)}
	}
	return fmt.Errorf("%s answered %s", host, clean(res.Status))
}
