package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of what servers say.
const (
	maxAnswer    = 256 << 10 // bytes
	maxRedirects = 3         // within a host
	maxText      = 300       // bytes of an error of a server
	maxScopes    = 100
)

// Server is an authorization server, as it describes itself.
type Server struct {
	Issuer    string   `json:"issuer"`
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	Register  string   `json:"registration_endpoint,omitempty"` // "": programs cannot register
	Revoke    string   `json:"revocation_endpoint,omitempty"`   // "": tokens cannot be revoked
	Scopes    []string `json:"scopes_supported,omitempty"`
	PKCE      []string `json:"code_challenge_methods_supported,omitempty"`
	Methods   []string `json:"token_endpoint_auth_methods_supported,omitempty"`
	// the id of a client can be the address of its description
	Documents bool `json:"client_id_metadata_document_supported,omitempty"`
	// redirects say which server sends them
	Names bool `json:"authorization_response_iss_parameter_supported,omitempty"`
}

// Found is where one logs in for an MCP server.
type Found struct {
	Resource string   // what the tokens are for
	Scopes   []string // rights that the MCP server asks for; none: it does not say
	Server   Server
}

// ErrUnknown is the error about an MCP server that does not say where one logs in.
var ErrUnknown = errors.New("the server does not say where one logs in: it has neither a description (/.well-known/oauth-protected-resource) nor one of an authorization server")

// Discover finds out where one logs in for the MCP server at an address, which answered
// a request without a token with the headers WWW-Authenticate (none: it did not).
func Discover(ctx context.Context, client *http.Client, address string, authenticate []string) (Found, error) {
	if err := CheckURL("the address of the server", address); err != nil {
		return Found{}, err
	}
	client = strict(client)
	said, scopes := challenge(authenticate)
	r, ok, err := describe(ctx, client, address, said)
	if err != nil {
		return Found{}, err
	}
	f := Found{Resource: r.Resource, Scopes: scopes}
	if len(f.Scopes) == 0 {
		f.Scopes = r.Scopes
	}
	f.Scopes = f.Scopes[:min(len(f.Scopes), maxScopes)]
	issuer := origin(address) // that of the revision 2025-03-26
	switch {
	case ok && len(r.Servers) == 0:
		return Found{}, errors.New("the server does not say where one logs in: its description has no authorization_servers")
	case ok:
		issuer = r.Servers[0]
	default:
		f.Resource = address
	}
	f.Server, err = authorizationServer(ctx, client, issuer)
	if errors.Is(err, errNotFound) && !ok {
		err = ErrUnknown
	}
	return f, err
}

// challenge returns the address of the description and the rights of a header.
func challenge(authenticate []string) (address string, scopes []string) {
	all, err := oauthex.ParseWWWAuthenticate(authenticate)
	if err != nil { // the well-known addresses are tried
		return "", nil
	}
	for _, c := range all {
		if c.Scheme == "bearer" {
			address = cmp.Or(address, c.Params["resource_metadata"])
			if len(scopes) == 0 {
				scopes = strings.Fields(c.Params["scope"])
			}
		}
	}
	return address, scopes
}

// Wanted returns the rights that a server says a token lacks, and whether it says that.
func Wanted(authenticate []string) (scopes []string, lacks bool) {
	all, err := oauthex.ParseWWWAuthenticate(authenticate)
	if err != nil {
		return nil, false
	}
	for _, c := range all {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			scopes = strings.Fields(c.Params["scope"])
			return scopes[:min(len(scopes), maxScopes)], true
		}
	}
	return nil, false
}

// description is the description of an MCP server.
type description struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// describe returns the description of an MCP server, if it has one: at the address that
// it said, else at the well-known ones.
func describe(ctx context.Context, client *http.Client, address, said string) (d description, ok bool, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return d, false, err
	}
	const name = "/.well-known/oauth-protected-resource"
	at := []string{said}
	if said == "" {
		at = []string{origin(address) + name}
		if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" {
			at = []string{origin(address) + name + path, origin(address) + name}
		}
	}
	for _, from := range at {
		err := fetch(ctx, client, "the description of the server", from, &d)
		switch {
		case err != nil && said != "":
			return d, false, err
		case errors.Is(err, errNotFound):
			continue
		case err != nil:
			return d, false, err
		case !covers(d.Resource, u):
			return d, false, fmt.Errorf("the description at %s is about %q, not about %s", from, clean(d.Resource), address)
		}
		return d, true, nil
	}
	return description{}, false, nil
}

// covers reports whether a description of a resource is about an address: it has the
// same origin, and the path of the resource is the path of the address or above it.
func covers(resource string, u *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || origin(resource) == "" || origin(resource) != origin(u.String()) ||
		r.User != nil || r.Fragment != "" {
		return false
	}
	above, path := strings.TrimRight(r.Path, "/"), strings.TrimRight(u.Path, "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// authorizationServer returns the authorization server with the name issuer.
func authorizationServer(ctx context.Context, client *http.Client, issuer string) (s Server, err error) {
	if err := CheckURL("the authorization server", issuer); err != nil {
		return s, err
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return s, err
	}
	base, path := origin(issuer), strings.TrimRight(u.EscapedPath(), "/")
	at := []string{base + "/.well-known/oauth-authorization-server" + path,
		base + "/.well-known/openid-configuration" + path}
	if path != "" {
		at = append(at, base+path+"/.well-known/openid-configuration")
	}
	for _, from := range at {
		s = Server{}
		err = fetch(ctx, client, "the description of the authorization server", from, &s)
		switch {
		case errors.Is(err, errNotFound):
			continue
		case err != nil:
			return s, err
		}
		return s, s.check(issuer, from)
	}
	return s, err
}

// check returns why a server cannot be used that was asked for by the name issuer.
func (s Server) check(issuer, from string) error {
	if strings.TrimSuffix(s.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return fmt.Errorf("the description at %s is of another authorization server: it says %q, want %s", from,
			clean(s.Issuer), issuer)
	}
	if !slices.Contains(s.PKCE, "S256") {
		return fmt.Errorf("the authorization server %s does not support PKCE with S256, which protects logins", issuer)
	}
	for _, e := range []struct {
		name, url string
		optional  bool
	}{
		{"authorization_endpoint", s.Authorize, false}, {"token_endpoint", s.Token, false},
		{"registration_endpoint", s.Register, true}, {"revocation_endpoint", s.Revoke, true},
	} {
		if e.url == "" && e.optional {
			continue
		}
		if err := CheckURL("the "+e.name+" of "+issuer, e.url); err != nil {
			return err
		}
	}
	return nil
}

// CheckURL returns why logins cannot be sent to an address.
func CheckURL(what, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil || u.Fragment != "":
		return fmt.Errorf("%s, %q, is not an address like https://HOST/PATH", what, clean(address))
	case u.Scheme == "http" && !Loopback(u.Hostname()):
		return fmt.Errorf("%s, %s, is not encrypted: logins go over https only, or to this machine", what, clean(address))
	}
	return nil
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}

// origin returns the scheme, host and port of an address; "": it has none.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return u.Scheme + "://" + host
}

// strict returns a client that follows redirects within a host only, and only of
// requests that change nothing.
func strict(c *http.Client) *http.Client {
	out := *c
	out.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case r.Method != http.MethodGet || origin(r.URL.String()) != origin(via[0].URL.String()):
			return fmt.Errorf("it redirects to %s, which is refused", clean(origin(r.URL.String())))
		}
		return nil
	}
	return &out
}

// errNotFound is the error about a description that a server does not have.
var errNotFound = errors.New("not found")

// fetch gets a JSON object.
func fetch(ctx context.Context, client *http.Client, what, from string, into any) error {
	if err := CheckURL(what, from); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	res, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case res.StatusCode/100 == 4:
		return fmt.Errorf("%s: %s: %w", what, from, errNotFound)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s answered %s", what, from, clean(res.Status))
	case len(b) > maxAnswer:
		return fmt.Errorf("%s: %s: more than %s", what, from, humanize.Bytes(maxAnswer))
	case json.Unmarshal(b, into) != nil: // a page for people, as some hosts have for all addresses
		return fmt.Errorf("%s: %s is not JSON: %w", what, from, errNotFound)
	}
	return nil
}

// clean returns a text of a server as one short line.
func clean(s string) string {
	return humanize.TruncateBytes(humanize.OneLine(strings.ToValidUTF8(s, "?")), maxText)
}
