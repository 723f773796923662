// Package endpoint opens the port on which the gateway serves other programs. It
// resolves the bind mode to an address, loads or makes the certificate and the
// credential, and refuses unsafe combinations ([Options.Safe]).
package endpoint

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/cert"
	"github.com/chela-ai/chela/internal/kit/process"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/wire"
)

// Options is the section gateway of the configuration.
type Options struct {
	Port       *int   `json:"port"`
	Bind       string `json:"bind"` // loopback, lan, tailnet, auto, custom
	CustomHost string `json:"customBindHost"`
	Auth       struct {
		Mode     string              `json:"mode"`
		Token    secret.Ref          `json:"token"`
		Password secret.Ref          `json:"password"`
		Proxy    access.ProxyOptions `json:"trustedProxy"`
		Tailnet  bool                `json:"allowTailscale"`
	} `json:"auth"`
	Tailscale struct {
		Mode  string `json:"mode"` // off, serve, funnel
		Reset bool   `json:"resetOnExit"`
	} `json:"tailscale"`
	TLS struct {
		Enabled bool   `json:"enabled"`
		Cert    string `json:"certPath"`
		Key     string `json:"keyPath"`
		Make    bool   `json:"autoGenerate"`
	} `json:"tls"`
	UI struct {
		Enabled *bool    `json:"enabled"`
		Base    string   `json:"basePath"`
		Root    string   `json:"root"`
		Origins []string `json:"allowedOrigins"`
	} `json:"controlUi"`
	Proxies []string `json:"trustedProxies"`
	Nodes   struct {
		Pairing struct {
			Local *bool    `json:"autoApproveLocal"` // nil: true
			Nets  []string `json:"autoApproveCidrs"`
		} `json:"pairing"`
	} `json:"nodes"`
	HTTP struct {
		Endpoints map[string]struct {
			Enabled bool `json:"enabled"`
		} `json:"endpoints"`
	} `json:"http"`

	listener net.Listener // see Listen.Listener
}

// Listen says where the gateway listens. Fields that are empty come from the
// configuration.
type Listen struct {
	Port     int    // 0: gateway.port; -1: any free port
	Bind     string // loopback, lan, tailnet, auto, custom
	Insecure bool   // allows connections from other machines without TLS

	Tailscale string // off, serve, funnel
	// Listener is used instead of a socket; nil: a socket is opened.
	Listener net.Listener
}

// Env is the installation of an endpoint.
type Env struct {
	Log     *slog.Logger
	State   string              // the state directory
	Env     func(string) string // environment variables, to which secrets may refer
	Secrets *secret.Redactor    // collects the password; nil: it is not recorded
	Tailnet *access.Tailnet     // forwards to the port; nil: nothing does
}

// TakenError says that another process has the port or the state directory.
type TakenError struct {
	Process process.Process
	Err     *chela.Error
}

// Error returns the message for people.
func (t *TakenError) Error() string { return t.Err.Error() }

// Unwrap returns the error for people.
func (t *TakenError) Unwrap() error { return t.Err }

// Read decodes the section; nil: it is absent. Fields that are set in l override
// it.
func Read(section json.RawMessage, l Listen) (Options, error) {
	g := Options{listener: l.Listener}
	if section != nil {
		if err := json.Unmarshal(section, &g); err != nil {
			return g, fmt.Errorf("configuration, gateway: %w", err)
		}
	}
	port := wire.DefaultPort
	switch {
	case l.Port < 0:
		port = 0
	case l.Port > 0:
		port = l.Port
	case g.Port != nil:
		port = *g.Port
	}
	if port < 0 || port > 65535 {
		return g, fmt.Errorf("gateway.port: %d is not a valid port number", port)
	}
	g.Port = &port
	if l.Bind != "" {
		g.Bind = l.Bind
	}
	g.Tailscale.Mode = cmp.Or(l.Tailscale, g.Tailscale.Mode, tailscaleOff)
	switch g.Tailscale.Mode {
	case tailscaleOff, tailscaleServe, tailscaleFunnel:
	default:
		return g, fmt.Errorf("gateway.tailscale.mode: want off, serve or funnel, not %q", g.Tailscale.Mode)
	}
	if g.Auth.Mode == "" {
		g.Auth.Mode = access.ModeToken
		if g.Auth.Token.IsZero() && !g.Auth.Password.IsZero() {
			g.Auth.Mode = access.ModePassword
		}
	}
	return g, nil
}

// Host returns the address of the bind mode on this machine.
func (g *Options) Host() (netip.Addr, error) {
	var interfaces []net.Addr
	if g.Bind == "tailnet" {
		var err error
		if interfaces, err = net.InterfaceAddrs(); err != nil {
			return netip.Addr{}, fmt.Errorf("gateway.bind tailnet: %w", err)
		}
	}
	return g.hostOn(interfaces, inContainer())
}

// hostOn returns the address of the bind mode on a machine with the interfaces.
func (g *Options) hostOn(interfaces []net.Addr, container bool) (netip.Addr, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if g.Forwards() { // nobody gets around it
		return loopback, nil
	}
	switch g.Bind {
	case "", "loopback":
		return loopback, nil
	case "lan":
		return netip.IPv4Unspecified(), nil
	case "auto":
		if container {
			return netip.IPv4Unspecified(), nil
		}
		return loopback, nil
	case "custom":
		a, err := netip.ParseAddr(g.CustomHost)
		if err != nil {
			return a, fmt.Errorf("gateway.customBindHost: want an IP address for gateway.bind custom, not %q", g.CustomHost)
		}
		return a, nil
	case "tailnet":
		return tailnet(interfaces)
	}
	return netip.Addr{}, fmt.Errorf("gateway.bind: want loopback, lan, tailnet, auto or custom, not %q", g.Bind)
}

// tailnet returns this machine's address in a Tailscale network.
func tailnet(interfaces []net.Addr) (netip.Addr, error) {
	shared := netip.MustParsePrefix("100.64.0.0/10")
	for _, a := range interfaces {
		if p, err := netip.ParsePrefix(a.String()); err == nil && shared.Contains(p.Addr()) {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("gateway.bind tailnet: this machine has no tailnet address")
}

func inContainer() bool {
	for _, path := range [...]string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// Modes of gateway.tailscale.
const (
	tailscaleOff    = "off"
	tailscaleServe  = "serve"
	tailscaleFunnel = "funnel"
)

// Forwards reports whether Tailscale's program forwards to the port.
func (g *Options) Forwards() bool {
	return g.Tailscale.Mode == tailscaleServe || g.Tailscale.Mode == tailscaleFunnel
}

// Safe returns an error if the gateway would serve other machines without
// authentication, or with a credential that could be read on the network.
func (g *Options) Safe(host netip.Addr, insecure bool) error {
	if g.Tailscale.Mode == tailscaleFunnel && g.Auth.Mode != access.ModePassword {
		return &chela.Error{
			Code: chela.CodeForbidden,
			Message: fmt.Sprintf(
				"gateway.tailscale.mode funnel puts the gateway on the internet, which needs gateway.auth.mode password, not %s",
				g.Auth.Mode),
			Hint: "chela config set gateway.auth.password - && chela config set gateway.auth.mode password",
		}
	}
	if g.Forwards() && g.Auth.Mode == access.ModeNone {
		return &chela.Error{
			Code:    chela.CodeForbidden,
			Message: "refusing to serve the Tailscale network without authentication: everybody in it would control this assistant",
			Hint:    "chela config set gateway.auth.mode token",
		}
	}
	if host.IsLoopback() {
		return nil
	}
	if g.Auth.Mode == access.ModeNone {
		return &chela.Error{
			Code: chela.CodeForbidden,
			Message: fmt.Sprintf(
				"refusing to listen on %s without authentication: anybody on the network would control this assistant", host),
			Hint: "chela config set gateway.auth.mode token",
		}
	}
	if !g.TLS.Enabled && !insecure && g.Auth.Mode != access.ModeProxy {
		return &chela.Error{
			Code:    chela.CodeForbidden,
			Message: fmt.Sprintf("refusing to listen on %s without TLS: the credential could be read on the network", host),
			Hint:    `chela config set gateway.tls '{enabled: true, autoGenerate: true}'`,
		}
	}
	return nil
}

// Pair returns the files of the certificate and its key. Files that are not
// configured are in the state directory.
func (g *Options) Pair(state string) (certPath, keyPath string) {
	dir := filepath.Join(state, "credentials")
	return cmp.Or(g.TLS.Cert, filepath.Join(dir, "gateway-cert.pem")),
		cmp.Or(g.TLS.Key, filepath.Join(dir, "gateway-key.pem"))
}

// certificate returns the certificate of the port. With autoGenerate it is made
// when there is none, and made again when it has expired. A file of a person is never
// replaced.
func (g *Options) certificate(env Env, host netip.Addr) (tls.Certificate, error) {
	certPath, keyPath := g.Pair(env.State)
	c, err := cert.Load(certPath, keyPath)
	if err == nil {
		return c, nil
	}
	if g.TLS.Make && g.makes(certPath, keyPath, err) {
		if err := cert.Make(certPath, keyPath, append(names(), "localhost", "127.0.0.1", "::1", host.String())); err != nil {
			return c, fmt.Errorf("gateway.tls: %w", err)
		}
		if c, err = cert.Load(certPath, keyPath); err == nil {
			return c, nil
		}
	}
	return c, g.noCertificate(err)
}

// noCertificate returns the error about a certificate that could not be loaded because of
// err.
func (g *Options) noCertificate(err error) error {
	hint := "chela config set gateway.tls.autoGenerate true"
	if g.TLS.Make {
		hint = "restore the files; or, for a certificate that chela makes: chela config set gateway.tls '{enabled: true, autoGenerate: true}'"
	}
	return &chela.Error{Code: chela.CodeInvalid, Message: "gateway.tls", Err: err, Hint: hint}
}

// makes reports whether a certificate is made that could not be loaded because of err: if
// nothing is replaced, or only what this program made.
func (g *Options) makes(certPath, keyPath string, err error) bool {
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, os.ErrNotExist)
	}
	switch {
	case !exists(certPath) && !exists(keyPath):
		return true
	case g.TLS.Cert != "" || g.TLS.Key != "":
		return false
	}
	return !exists(certPath) /* making it was interrupted */ || errors.Is(err, cert.ErrExpired)
}

// Open listens on the port. It returns the fingerprint of the certificate; ""
// without TLS.
func (g *Options) Open(ctx context.Context, env Env, host netip.Addr) (l net.Listener, fingerprint string, err error) {
	var secure *tls.Config
	if g.TLS.Enabled {
		c, err := g.certificate(env, host)
		if err != nil {
			return nil, "", err
		}
		fingerprint = cert.Fingerprint(c.Leaf.Raw)
		secure = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"}}
	}
	if g.listener != nil {
		return g.listener, "", nil
	}
	network := "tcp6"
	if host.Is4() {
		network = "tcp4" // so that 0.0.0.0 does not include IPv6
	}
	l, err = new(net.ListenConfig).Listen(ctx, network, net.JoinHostPort(host.String(), strconv.Itoa(*g.Port)))
	if err != nil {
		return nil, "", g.taken(host, err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	return l, fingerprint, nil
}

// taken returns why the port cannot be used, with the process that uses it.
func (g *Options) taken(host netip.Addr, err error) error {
	out := &chela.Error{
		Code: chela.CodeUnavailable, Message: fmt.Sprintf("port %d cannot be used", *g.Port), Err: err,
		Hint: fmt.Sprintf("chela gateway run --port %d", *g.Port%65535+1),
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return out
	}
	who := process.Listener(netip.AddrPortFrom(host, uint16(*g.Port)))
	out.Message, out.Err = fmt.Sprintf("port %d is used by %s", *g.Port, who), nil
	if who.IsOurs() {
		out.Hint += ", or: chela gateway run --force"
	}
	return &TakenError{who, out}
}

// tokenName is the file of the token that the first start makes.
const tokenName = "gateway.token"

func tokenPath(state string) string { return filepath.Join(state, "credentials", tokenName) }

// Guard returns the checks of a connection that need no credential.
func (g *Options) Guard(env Env) (a access.Options, err error) {
	a = access.Options{Log: env.Log, Mode: g.Auth.Mode, Origins: g.UI.Origins, Proxy: g.Auth.Proxy, Hosts: names()}
	a.Tailnet = env.Tailnet
	a.AskLocal = g.Nodes.Pairing.Local != nil && !*g.Nodes.Pairing.Local
	if a.Proxies, err = prefixes("gateway.trustedProxies", g.Proxies); err != nil {
		return a, err
	}
	a.NodeNets, err = prefixes("gateway.nodes.pairing.autoApproveCidrs", g.Nodes.Pairing.Nets)
	return a, err
}

// Check returns the error that keeps a gateway with this configuration from opening its
// port, whatever else there is on this machine. It writes nothing, and leaves out
// [Options.Safe], which the command line can overrule.
func (g *Options) Check(env Env) error {
	if _, err := g.Host(); err != nil {
		return err
	}
	if _, err := g.credentials(env); err != nil {
		return err
	}
	if g.TLS.Enabled {
		certPath, keyPath := g.Pair(env.State)
		if _, err := cert.Load(certPath, keyPath); err != nil && !(g.TLS.Make && g.makes(certPath, keyPath, err)) {
			return g.noCertificate(err)
		}
	}
	root, err := g.Files()
	if err != nil || root == nil {
		return err
	}
	return root.Close()
}

// HasUI reports whether the gateway serves a web page.
func (g *Options) HasUI() bool { return g.UI.Enabled == nil || *g.UI.Enabled }

// Files opens the directory with the files of the Control UI; nil: there is none.
func (g *Options) Files() (*os.Root, error) {
	if g.UI.Root == "" || !g.HasUI() {
		return nil, nil
	}
	root, err := os.OpenRoot(g.UI.Root) // so that links do not lead out of it
	if err != nil {
		return nil, fmt.Errorf("gateway.controlUi.root: %w", err)
	}
	return root, nil
}

// Authenticator returns the authentication of clients. requested is called for
// requests for pairing. made reports whether a token was made.
func (g *Options) Authenticator(env Env, st store.Store, requested func(pairing.Admission)) (_ *access.Authenticator,
	token secret.Value, made bool, _ error) {
	a, err := g.credentials(env)
	if err != nil {
		return nil, token, false, err
	}
	a.Store, a.PairingRequested = st, requested
	if g.Auth.Mode == access.ModeToken {
		if token, made, err = g.token(env); err != nil {
			return nil, token, false, err
		}
		a.Token = token
	}
	if env.Secrets != nil {
		env.Secrets.Add(a.Password)
	}
	return access.New(a), token, made, nil
}

// credentials returns the checks of connections, with the credential except a token that
// must be made.
func (g *Options) credentials(env Env) (access.Options, error) {
	a, err := g.Guard(env)
	if err != nil {
		return a, err
	}
	switch g.Auth.Mode {
	case access.ModeToken:
		if a.Token, err = g.Known(env); err != nil {
			return a, err
		}
	case access.ModePassword:
		if a.Password, err = g.Auth.Password.Resolve(env.Env); err != nil {
			return a, fmt.Errorf("gateway.auth.password: %w", err)
		}
		if a.Password.IsZero() {
			return a, &chela.Error{
				Code: chela.CodeInvalid, Message: "gateway.auth.mode is password, but gateway.auth.password is not set",
				Hint: "chela config set gateway.auth.password -",
			}
		}
	case access.ModeProxy:
		if a.Proxy.UserHeader == "" || len(a.Proxies) == 0 {
			return a, errors.New(
				"gateway.auth.mode is trusted-proxy: set gateway.auth.trustedProxy.userHeader and gateway.trustedProxies")
		}
	}
	return a, nil
}

// Known returns the token of the configuration or of the state directory; the
// zero Value when there is none.
func (g *Options) Known(env Env) (secret.Value, error) {
	if !g.Auth.Token.IsZero() {
		v, err := g.Auth.Token.Resolve(env.Env)
		if err == nil && v.IsZero() {
			err = errors.New("is empty")
		}
		if err != nil {
			return v, fmt.Errorf("gateway.auth.token: %w", err)
		}
		return v, nil
	}
	b, err := os.ReadFile(tokenPath(env.State))
	if text := strings.TrimSpace(string(b)); err == nil && text != "" {
		return secret.New(text), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return secret.Value{}, fmt.Errorf("gateway token: %w", err)
	}
	return secret.Value{}, nil
}

// Opens reports whether v is the gateway's credential.
func (g *Options) Opens(env Env, v secret.Value) bool {
	if g.Auth.Mode == access.ModePassword {
		w, err := g.Auth.Password.Resolve(env.Env)
		return err == nil && w.Equal(v)
	}
	t, err := g.Known(env)
	return err == nil && t.Equal(v)
}

// token returns the token. It makes one when there is none.
func (g *Options) token(env Env) (secret.Value, bool, error) {
	v, err := g.Known(env)
	if err != nil || !v.IsZero() {
		return v, false, err
	}
	path := tokenPath(env.State)
	var raw [24]byte
	rand.Read(raw[:]) // it never fails
	text := hex.EncodeToString(raw[:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return secret.Value{}, false, fmt.Errorf("gateway token: %w", err)
	}
	if err := atomicfile.Write(path, []byte(text+"\n"), 0o600); err != nil {
		return secret.Value{}, false, fmt.Errorf("gateway token: %w", err)
	}
	return secret.New(text), true, nil
}

// names returns the host names of this machine.
func names() []string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return nil
	}
	h = strings.ToLower(h)
	return []string{h, h + ".local"}
}

func prefixes(key string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range texts {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, chela.Errorf(chela.CodeInvalid, "%s: %q is neither an address nor a network like 10.0.0.0/8", key, s)
		}
		out = append(out, p)
	}
	return out, nil
}
