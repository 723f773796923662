package app

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/app/beacon"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/metrics"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/app/tailscale"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/canvas"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
	"github.com/chela-ai/chela/internal/surface/modelapi"
	hookapi "github.com/chela-ai/chela/internal/surface/webhook"
	"github.com/chela-ai/chela/internal/surface/webui"
	"github.com/chela-ai/chela/wire"
)

// port is where other programs connect to the gateway.
type port struct {
	listener *gateway.StartupListener
	o        endpoint.Options
	auth     *access.Authenticator // nil until the gateway is up
	token    secret.Value
	made     bool // the token was made at this start
	url      string
	pin      string                // fingerprint of the certificate; "" without TLS
	silence  context.CancelFunc    // ends the announcement; nil: there is none
	tailnet  *tailscale.Forwarding // nil: there is none
}

// listen opens the port. Until open is called, clients get the answer that the
// gateway is starting.
func (e *Engine) listen(ctx context.Context) error {
	if e.o.Listen == nil {
		return nil
	}
	g, err := endpoint.Read(e.o.Config.Section("gateway"), *e.o.Listen)
	if err != nil {
		return err
	}
	host, err := g.Host()
	if err != nil {
		return err
	}
	if err := g.Safe(host, e.o.Listen.Insecure); err != nil {
		return err
	}
	guard, err := g.Guard(e.o.endpointEnv())
	if err != nil {
		return err
	}
	l, pin, err := g.Open(ctx, e.o.endpointEnv(), host)
	if err != nil {
		return err
	}
	p := &port{o: g, listener: gateway.NewStartupListener(l, e.o.Log, e.starting(access.New(guard))), pin: pin,
		url: "ws://" + l.Addr().String()}
	if g.TLS.Enabled {
		p.url = "wss" + p.url[2:]
	}
	e.port = p
	return nil
}

// starting returns what the port answers before the engine is up.
func (e *Engine) starting(auth *access.Authenticator) http.Handler {
	return httpapi.New(httpapi.Options{
		Log: e.o.Log, Auth: auth, Upgrade: gateway.Starting(e.standby.owner), Started: e.started,
		Stage: e.standby.stage,
	})
}

// open serves the gateway on the port.
func (e *Engine) open(ctx context.Context) error {
	if e.port == nil {
		return nil
	}
	p, env := e.port, e.o.endpointEnv()
	var err error
	if env.Tailnet, err = e.forward(ctx, p); err != nil {
		return err
	}
	if p.auth, p.token, p.made, err = p.o.Authenticator(env, e.store, e.gateway.AnnounceAdmission); err != nil {
		return err
	}
	e.o.Secrets.Add(p.token)
	if p.o.Opens(env, endpoint.HooksToken(e.o.Config.Section("hooks"), e.o.Env)) {
		e.o.Log.Warn("hooks.token is the gateway's credential: anybody who may call a hook has full access",
			"hint", "openssl rand -hex 24")
	}
	e.metrics.Watch(e.bus)
	routes, err := e.routes(p)
	if err != nil {
		return err
	}
	e.web = httpapi.Routes(routes)
	e.serve(p.listener.Handover(), httpapi.New(routes))
	attrs := []any{"url", p.url, "auth", p.auth.Mode()}
	if p.pin != "" {
		attrs = append(attrs, "certificate", p.pin)
	}
	e.o.Log.Info("gateway listens", attrs...)
	return e.announce(p)
}

// sshPort is where SSH servers listen, unless a person chose another port.
const sshPort = 22

// announce announces the gateway on the local network until it is closed. A gateway that
// listens for its own machine, or a Tailscale network, only is not announced.
func (e *Engine) announce(p *port) error {
	mode, err := beacon.Mode(e.o.Config.Section("discovery"), e.o.Env)
	if err != nil {
		return err
	}
	a := portInfo{e}.addr()
	if mode == beacon.Off || a == nil || a.IP.IsLoopback() || p.o.Bind == "tailnet" {
		return nil
	}
	host, _ := os.Hostname() // may be empty
	host, _, _ = strings.Cut(host, ".")
	b := cli.Beacon{
		Name:        cmp.Or(host, "chela"),
		Host:        cmp.Or(host, "chela") + ".local",
		Port:        a.Port,
		TLS:         p.o.TLS.Enabled,
		Fingerprint: p.pin,
		Addrs:       beacon.Addresses(),
	}
	if own, ok := netip.AddrFromSlice(a.IP); ok && !a.IP.IsUnspecified() {
		b.Addrs = []netip.Addr{own.Unmap()}
	}
	if a.Port != wire.DefaultPort {
		b.Name += "-" + strconv.Itoa(a.Port) // there may be another one on this machine
	}
	b.SSHPort = sshPort
	b.Program, _ = os.Executable() // may be unknown
	b = beacon.Limit(b, mode)
	var ctx context.Context
	ctx, p.silence = context.WithCancel(context.Background())
	e.serving.Go(func() {
		if err := beacon.Announce(ctx, b); err != nil {
			e.o.Log.Warn("the gateway is not announced", "err", err, "hint", "chela config set discovery.mdns.mode off")
		}
	})
	return nil
}

// forward has Tailscale's program forward to the port, if it is so configured.
func (e *Engine) forward(ctx context.Context, p *port) (*access.Tailnet, error) {
	a := portInfo{e}.addr()
	if !p.o.Forwards() || a == nil {
		return nil, nil
	}
	if b := p.o.Bind; b != "" && b != "loopback" && b != "auto" {
		e.o.Log.Warn("gateway.bind is not used: with gateway.tailscale.mode, the gateway listens for this machine only",
			"bind", b)
	}
	f, err := tailscale.Start(ctx, tailscale.Options{
		Run: e.o.Run, Mode: p.o.Tailscale.Mode, Port: a.Port, TLS: p.o.TLS.Enabled, Reset: p.o.Tailscale.Reset,
	})
	if err != nil {
		return nil, err
	}
	p.tailnet = f
	e.o.Log.Info("Tailscale forwards to the gateway", "url", f.URL(), "mode", p.o.Tailscale.Mode)
	t := &access.Tailnet{Name: f.Name(), Public: p.o.Tailscale.Mode == tailscale.Funnel, From: f.From}
	if p.o.Auth.Tailnet {
		t.WhoIs = f.WhoIs
	}
	return t, nil
}

// routes returns what the port answers.
func (e *Engine) routes(p *port) (httpapi.Options, error) {
	g := &p.o
	o := httpapi.Options{
		Log: e.o.Log, Auth: p.auth, Upgrade: e.gateway.Upgrade(p.auth.Connect), Started: e.started,
		Stage: e.stage, Ready: e.ready, Invoke: e.direct.Do,
		Metrics: func(ctx context.Context) ([]httpapi.Metric, error) { return e.readMetrics(ctx, p) },
	}
	o.Post, o.Canvas = e.channels.Poster, canvas.New(e.canvas)
	e.models = modelapi.New(modelapi.Options{
		Log:     e.o.Log,
		Store:   e.store,
		Bus:     e.bus,
		Gate:    e.inbox,
		Runs:    e.dispatch,
		Agents:  e.current.Agents,
		Started: e.started,
		Default: func() chela.AgentID { return e.now().Settings.DefaultAgent() },
		Enabled: func(key string) bool { return g.HTTP.Endpoints[key].Enabled },
	})
	o.Models = e.models
	if h := e.webhooks.Hooks(); h.Path() != "/"+strings.Trim(g.UI.Base, "/") {
		o.Webhooks = &httpapi.Webhooks{Path: h.Path(),
			Handler: hookapi.New(hookapi.Options{Log: e.o.Log, Hooks: e.webhooks.Hooks, Accept: e.webhooks.Accept})}
	}
	root, err := g.Files()
	if err == nil && root == nil && g.HasUI() {
		o.Page = webui.New(g.UI.Base)
	}
	if err != nil || root == nil {
		return o, err
	}
	e.ui = root
	o.UI = &httpapi.UI{Files: root.FS(), Base: g.UI.Base, Bootstrap: func() httpapi.Bootstrap {
		a := e.gateway.Agents()[0]
		return httpapi.Bootstrap{Name: a.Name, Avatar: a.Emoji, Agent: string(a.ID), Version: Version}
	}}
	return o, nil
}

func (e *Engine) stage() httpapi.Stage {
	if e.draining.Load() {
		return httpapi.Draining
	}
	return httpapi.Started
}

// ready returns the state of the parts: "ok", or the error.
func (e *Engine) ready(ctx context.Context) map[string]string {
	out := map[string]string{"gateway": "ok", "store": "ok"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := e.store.View(ctx, func(r store.Reader) error { _, err := r.Runs().Active(""); return err }); err != nil {
		out["store"] = err.Error()
	} else if err := e.unusable(); err != nil {
		out["store"] = err.Error()
	}
	for name, err := range e.channelErrors() {
		if err != "" {
			out["channel "+name] = err
		}
	}
	for _, s := range [...]interface{ Failed() map[string]error }{e.work, e.outbound} {
		for name, err := range s.Failed() {
			out[name] = err.Error()
		}
	}
	return out
}

// unusable returns why messages cannot be stored.
func (e *Engine) unusable() error {
	if d, ok := e.db.(standard.Checker); ok {
		if err := d.Damage(); err != nil {
			return err
		}
	}
	return statedir.Writable(e.o.State)
}

// readMetrics returns the metrics of the gateway.
func (e *Engine) readMetrics(ctx context.Context, p *port) ([]httpapi.Metric, error) {
	status, err := e.gateway.Status(ctx)
	if err != nil {
		return nil, err
	}
	return e.metrics.Read(metrics.Gauges{
		Version:     Version,
		Up:          time.Since(e.started),
		Clients:     e.gateway.Clients(),
		Sessions:    status.Sessions.Count,
		Runs:        len(status.Runs),
		Queued:      status.Queued,
		Approvals:   status.Approvals,
		Undelivered: status.Undelivered,
		Failures:    p.auth.Failures(),
	}), nil
}

// URL returns the address of the port; "" when there is none.
func (e *Engine) URL() string {
	if e.port == nil {
		return ""
	}
	return e.port.url
}

// NewToken returns the token of the port when it was made at this start, to be
// shown once; "" otherwise.
func (e *Engine) NewToken() string {
	if e.port == nil || !e.port.made {
		return ""
	}
	return e.port.token.Reveal()
}

// portInfo implements methods.Port.
type portInfo struct{ e *Engine }

func (p portInfo) URL() string { return p.e.URL() }

func (p portInfo) Number() int {
	if a := p.addr(); a != nil {
		return a.Port
	}
	return 0
}

// addr returns the TCP address of the port; nil: there is none.
func (p portInfo) addr() *net.TCPAddr {
	if p.e.port == nil {
		return nil
	}
	a, _ := p.e.port.listener.Addr().(*net.TCPAddr)
	return a
}

func (p portInfo) Page() (url string, own bool) {
	a := p.addr()
	if a == nil || !p.e.port.o.HasUI() {
		return "", false
	}
	host := a.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	scheme, _, _ := strings.Cut(p.e.port.url, "://")
	base := strings.Trim(p.e.port.o.UI.Base, "/")
	return strings.TrimSuffix(scheme+"://"+net.JoinHostPort(host.String(), strconv.Itoa(a.Port))+"/"+base, "/"),
		p.e.ui == nil
}

// Pages returns the address at which people can open pages of the gateway; "": there is none.
func (p portInfo) Pages() string {
	_, to := p.Remote()
	if to == "" {
		to = p.URL()
	}
	if to == "" {
		return ""
	}
	return "http" + strings.TrimPrefix(to, "ws")
}

func (p portInfo) Remote() (mode, url string) {
	if p.e.port == nil {
		return "", ""
	}
	mode = p.e.port.auth.Mode()
	if t := p.e.port.tailnet; t != nil {
		return mode, strings.Replace(t.URL(), "https", "wss", 1)
	}
	a := p.addr()
	if a == nil || a.IP.IsLoopback() {
		return mode, ""
	}
	host := a.IP
	if host.IsUnspecified() {
		if host = endpoint.LAN(); host == nil {
			return mode, ""
		}
	}
	scheme, _, _ := strings.Cut(p.e.port.url, "://")
	return mode, scheme + "://" + net.JoinHostPort(host.String(), strconv.Itoa(a.Port))
}
