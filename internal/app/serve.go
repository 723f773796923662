package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/endpoint"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/httpapi"
	"github.com/chela-ai/chela/internal/meter"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// port is where other programs reach the gateway.
type port struct {
	lobby *gateway.Lobby
	o     endpoint.Options
	door  *access.Door // of the gateway; nil until it is up
	token secret.Value
	made  bool // the token was made at this start
	url   string
	pin   string // fingerprint of the certificate; "" without TLS
}

// listen opens the port. Who comes is told that the gateway is starting.
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
	guard, err := g.Guard(e.o.place())
	if err != nil {
		return err
	}
	p := &port{o: g}
	l, pin, err := g.Open(ctx, e.o.place(), host)
	if err != nil {
		return err
	}
	p.lobby, p.pin, p.url = gateway.NewLobby(l, e.o.Log, e.early(access.New(guard))), pin, "ws://"+l.Addr().String()
	if g.TLS.Enabled {
		p.url = "wss" + p.url[2:]
	}
	e.port = p
	return nil
}

// early returns what the port answers before the engine is up.
func (e *Engine) early(door *access.Door) http.Handler {
	return httpapi.New(httpapi.Options{
		Log: e.o.Log, Door: door, Upgrade: gateway.Starting(), Started: e.started,
		Stage: func() httpapi.Stage { return httpapi.Starting },
	})
}

// routes returns what the port answers.
func (e *Engine) routes(p *port, st store.Store) (httpapi.Options, error) {
	g := &p.o
	o := httpapi.Options{
		Log: e.o.Log, Door: p.door, Upgrade: e.gate.Upgrade(p.door.Connect), Started: e.started,
		Stage:   e.stage,
		Ready:   func(ctx context.Context) map[string]string { return e.ready(ctx, st) },
		Metrics: func(ctx context.Context) ([]httpapi.Metric, error) { return e.metrics(ctx, p) },
		Invoke:  e.desk.Do,
	}
	if g.UI.Root == "" || g.UI.Enabled != nil && !*g.UI.Enabled {
		return o, nil
	}
	root, err := os.OpenRoot(g.UI.Root) // links do not lead out of it
	if err != nil {
		return o, fmt.Errorf("gateway.controlUi.root: %w", err)
	}
	e.ui = root
	o.UI = &httpapi.UI{Files: root.FS(), Base: g.UI.Base, Bootstrap: func() httpapi.Bootstrap {
		a := e.agents()[0]
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

// ready returns how the parts are: "ok", or what is wrong.
func (e *Engine) ready(ctx context.Context, st store.Store) map[string]string {
	out := map[string]string{"gateway": "ok", "store": "ok", "model": "ok"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := st.View(ctx, func(r store.Reader) error { _, err := r.Runs().Active(""); return err }); err != nil {
		out["store"] = err.Error()
	}
	if ref, _ := e.now().models.Default(); ref.String() == "" {
		out["model"] = "no model"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, err := range e.ended {
		out[name] = err.Error()
	}
	return out
}

// metrics returns what is counted and measured.
func (e *Engine) metrics(ctx context.Context, p *port) ([]httpapi.Metric, error) {
	status, err := e.state.Status(ctx)
	if err != nil {
		return nil, err
	}
	return e.meter.Read(meter.Now{
		Version: Version, Up: time.Since(e.started), Clients: e.gate.Clients(), Sessions: status.Sessions.Count, Runs: len(status.Runs),
		Queued: status.Queued, Approvals: status.Approvals, Undelivered: status.Undelivered, Failures: p.door.Failures(),
	}), nil
}

// announce tells who may decide about devices.
func (e *Engine) announce(event string, payload any) { e.gate.Tell(chela.ScopePairing, event, payload) }

// asked tells who may decide that a device asks to be paired, and what a node
// asks to be able to do.
func (e *Engine) asked(a pairing.Admission) {
	now := wire.At(time.Now())
	if old := a.Superseded; old != nil {
		e.announce(wire.EventPairResolved, wire.PairResolved{ID: old.ID, Device: old.Device, Decision: wire.PairRejected, Time: now})
	}
	if r := a.Requested; r != nil {
		e.announce(wire.EventPairRequested, shape.PairRequest(*r))
	}
	if old := a.NodeSuperseded; old != nil {
		e.announce(wire.EventNodePairResolved, wire.NodePairResolved{ID: old.ID, Node: a.Pass.Device, Decision: wire.PairRejected, Time: now})
	}
	if r := a.NodeRequested; r != nil {
		e.announce(wire.EventNodePairRequested, shape.NodeRequest(a.Device, *r))
	}
}

// place says how clients prove themselves, and where other machines reach the
// port.
func (e *Engine) place() (mode, url string) {
	if e.port == nil {
		return "", ""
	}
	mode = e.port.door.Mode()
	a, ok := e.port.lobby.Addr().(*net.TCPAddr)
	if !ok || a.IP.IsLoopback() {
		return mode, ""
	}
	host := a.IP
	if host.IsUnspecified() {
		if host = endpoint.LAN(); host == nil {
			return mode, ""
		}
	}
	scheme, _, _ := strings.Cut(e.port.url, "://")
	return mode, scheme + "://" + net.JoinHostPort(host.String(), strconv.Itoa(a.Port))
}

// URL returns where the port is; "" when there is none.
func (e *Engine) URL() string {
	if e.port == nil {
		return ""
	}
	return e.port.url
}

// portNumber returns the number of the port; 0 when there is none.
func (e *Engine) portNumber() int {
	if e.port == nil {
		return 0
	}
	a, ok := e.port.lobby.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return a.Port
}

// NewToken returns the token of the port when it was made at this start, to be
// shown once; "" otherwise.
func (e *Engine) NewToken() string {
	if e.port == nil || !e.port.made {
		return ""
	}
	return e.port.token.Reveal()
}
