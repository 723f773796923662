package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/daemon"
	"github.com/chela-ai/chela/internal/kit/cert"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/spelling"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) gateway() *cobra.Command {
	cmd := c.gatewayRun()
	cmd.Use, cmd.Short = "gateway", "Run the gateway, or query a running one"
	cmd.Args = noArgs
	cmd.AddCommand(c.gatewayRun(), c.gatewayStatus(), c.gatewayProbe(), c.gatewayDiscover(), c.gatewayCall(),
		c.gatewayDiagnostics(), here(c.gatewayInstall()), c.gatewayUninstall(),
		here(c.gatewayService("start", "Start the service", daemon.Manager.Start, true)),
		c.gatewayService("stop", "Stop the service until it is started, or you log in again", daemon.Manager.Stop, false),
		here(c.gatewayService("restart", "Restart the service; unfinished work resumes", daemon.Manager.Restart, true)))
	return cmd
}

func (c *commands) gatewayRun() *cobra.Command {
	var l Listen
	cmd := &cobra.Command{
		Use: "run", Short: "Run the gateway in the foreground", Args: exactly(0),
		Long: fmt.Sprintf("The gateway accepts clients on this machine at 127.0.0.1:%d until it is stopped with\n"+
			"Ctrl-C or SIGTERM. Unfinished work resumes at the next start.", wire.DefaultPort),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("port") && l.Port == 0 {
				l.Port = -1
			}
			return c.serve(cmd.Context(), l)
		},
	}
	f := cmd.Flags()
	f.IntVar(&l.Port, "port", 0, "listen on port `N` instead of gateway.port; 0: any free port")
	f.StringVar(&l.Bind, "bind", "",
		"listen on the `INTERFACE` instead of gateway.bind: loopback, lan, tailnet, auto or custom")
	f.BoolVar(&l.Force, "force", false, "stop another chela process of yours that uses the port or the state directory")
	f.BoolVar(&c.verbose, "verbose", false, "also show debug messages")
	f.BoolVar(&l.Insecure, "allow-insecure", false, "accept other machines without encryption")
	f.StringVar(&l.Tailscale, "tailscale", "",
		"have Tailscale forward to it, instead of gateway.tailscale.mode: `MODE` off, serve or funnel")
	f.BoolVar(&l.Unconfigured, "allow-unconfigured", false, "run it even if gateway.mode is remote")
	return cmd
}

// serve runs a gateway until ctx ends or an interrupt arrives. On a restart
// signal, or if the configuration requires it, the gateway restarts with the
// current configuration. A second interrupt ends the process at once.
func (c *commands) serve(ctx context.Context, l Listen) error {
	ctx, done := signal.NotifyContext(ctx, os.Interrupt)
	defer done()
	context.AfterFunc(ctx, done) // from the first interrupt on, another one has its usual effect
	restart := make(chan os.Signal, 1)
	notifyRestart(restart)
	defer signal.Stop(restart)
	c.logToConsole = true
	s, err := c.start()
	if err != nil {
		return err
	}
	if !l.Unconfigured {
		if err := c.onlyLocal(s); err != nil {
			return err
		}
	}
	var found []string
	if isNew(s) && c.log.ConsoleStyle != "json" {
		found = c.openClaw(s)
	}
	for {
		g, err := c.app.Serve(ctx, s, l)
		if err != nil {
			return err
		}
		c.printListening(g)
		for _, line := range found {
			fmt.Fprintln(c.stdout, line)
		}
		found = nil
		select {
		case <-ctx.Done():
			s.Log.Info("gateway stops")
			return stop(ctx, g)
		case <-restart:
		case <-g.RestartRequested():
		}
		s.Log.Info("gateway restarts")
		if err := withStopTimeout(ctx, g.CloseForRestart); err != nil {
			return err
		}
		l.Restart = true // whatever is in the file now, the gateway comes back
	}
}

// printListening prints the address of the gateway and a new token. If the
// console style is JSON, the address is in the log only.
func (c *commands) printListening(g Gateway) {
	t := g.NewToken()
	if c.log.ConsoleStyle == "json" {
		if t != "" {
			b, _ := json.Marshal(map[string]string{"msg": "token generated, shown once", "token": t}) // strings only
			fmt.Fprintln(c.stdout, string(b))
		}
		return
	}
	fmt.Fprintln(c.stdout, "chela "+c.app.Version+" listens on "+g.URL())
	if t != "" {
		fmt.Fprintln(c.stdout, "token (shown once, stored in the state directory): "+t)
	}
}

// withGateway connects to the running gateway, calls f and disconnects.
func (c *commands) withGateway(ctx context.Context, f func(*client.Client) error) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	e, err := c.attach(ctx, s)
	if err != nil {
		return err
	}
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	return f(l)
}

// gatewayState is the result of `gateway status`.
type gatewayState struct {
	Running bool   `json:"running"`
	Standby string `json:"standby,omitempty"` // the gateway that serves instead of this one
	Version string `json:"version,omitempty"`
	Uptime  int64  `json:"uptimeMs,omitempty"`
	Clients int    `json:"clients"`
	State   string `json:"stateDir"`
	Config  string `json:"configPath"`
	URL     string `json:"url"`
	Port    string `json:"port"`              // open, closed, or none: an engine without a port
	Remote  bool   `json:"remote,omitempty"`  // it is on another machine
	Via     string `json:"via,omitempty"`     // how it is reached, if not directly
	Problem string `json:"problem,omitempty"` // why it cannot be reached

	Service *daemon.State `json:"service,omitempty"` // nil: there is no service manager

	hint string // what to type about Problem
}

func (c *commands) gatewayStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show whether a gateway is running, and its address",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := c.gatewayState(cmd.Context())
			if err != nil {
				return err
			}
			err = c.print(st, func() { c.printGateway(st) })
			if err != nil || st.Running || st.Standby != "" {
				return err
			}
			switch {
			case c.json:
			case !st.Remote:
				c.printHint(c.commandLine("gateway run"))
			case st.hint != "":
				c.printHint(st.hint)
			}
			return errReported
		}})
}

func (c *commands) gatewayState(ctx context.Context) (gatewayState, error) {
	s, err := c.start()
	if err != nil {
		return gatewayState{}, err
	}
	st := gatewayState{State: s.State, Config: s.Config}
	r, err := c.remote(s)
	if err != nil || r != nil {
		return c.remoteState(ctx, s, r, st), err
	}
	local, err := c.app.Local(s)
	if err != nil {
		return st, err
	}
	st.URL = local.URL
	if e, err := c.app.Attach(ctx, s); err == nil { // otherwise no gateway is running
		err := c.queryState(ctx, e, &st)
		if st.Standby = standbyFor(err); err != nil && st.Standby == "" {
			return st, err
		}
	}
	st.Port = portState(ctx, st.URL)
	if m, name, err := c.services(s); err == nil { // otherwise there can be no service
		if service, err := m.State(ctx, name); err == nil {
			st.Service = &service
		}
	}
	return st, nil
}

// standbyFor returns the gateway that serves, if err is the answer of its standby; "": it is
// not.
func standbyFor(err error) string {
	we, ok := errors.AsType[*wire.Error](err)
	var d struct{ Reason, Owner string }
	if !ok || json.Unmarshal(we.Details, &d) != nil || d.Reason != wire.ReasonStandby {
		return ""
	}
	return d.Owner
}

// queryState asks the running gateway for its state.
func (c *commands) queryState(ctx context.Context, e Engine, st *gatewayState) error {
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	var status wire.Status
	if err := l.Call(ctx, wire.MethodStatus, wire.None{}, &status); err != nil {
		return err
	}
	st.Running, st.Version, st.Uptime, st.Clients = true, status.Version, status.UptimeMs,
		len(l.Hello().Snapshot.Presence)-1
	st.URL = status.URL
	return nil
}

// port returns the port of the running gateway, or the configured one if none
// is running.
func (c *commands) port(ctx context.Context, s Start) (Port, error) {
	p, err := c.app.Local(s)
	if err != nil {
		return p, err
	}
	if e, err := c.app.Attach(ctx, s); err == nil {
		var st gatewayState
		if err := c.queryState(ctx, e, &st); err == nil && st.URL != "" { // otherwise the probe fails with the reason
			p.URL = loopbackURL(st.URL)
		}
	}
	return p, nil
}

// loopbackURL returns the address of a local listener. An unspecified host,
// such as 0.0.0.0, is replaced by the loopback address.
func loopbackURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String()
}

// portState reports whether a URL accepts connections: open, closed or none.
func portState(ctx context.Context, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "none"
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return "closed"
	}
	conn.Close()
	return "open"
}

func (c *commands) printGateway(st gatewayState) {
	if st.Remote {
		c.printRemote(st)
		return
	}
	switch {
	case st.Running:
		c.printRow("gateway", fmt.Sprintf("running, version %s, up %s, %d clients", st.Version,
			humanize.Span(time.Duration(st.Uptime)*time.Millisecond), st.Clients))
	case st.Standby != "":
		c.printRow("gateway", "standby: "+ansi.Line(st.Standby)+" serves")
	default:
		c.printRow("gateway", "not running")
	}
	c.printRow("port", st.URL+" ("+st.Port+")")
	c.printRow("state", st.State)
	c.printRow("config", st.Config)
	switch v := st.Service; {
	case v == nil:
	case !v.Installed:
		c.printRow("service", "none; "+c.commandLine("gateway install")+" makes one")
	case v.PID > 0:
		c.printRow("service", fmt.Sprintf("%s, %s, process %d, %s", v.Manager, v.Detail, v.PID, v.File))
	default:
		c.printRow("service", fmt.Sprintf("%s, %s, %s", v.Manager, v.Detail, v.File))
	}
}

// remote holds the flags that select a gateway by its URL.
type remote struct{ url, token, password, pin string }

func (r *remote) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.url, "url", "", "connect to the gateway at `URL` (ws://host:port) instead of the local one")
	f.StringVar(&r.token, "token", "", "gateway `TOKEN`")
	f.StringVar(&r.password, "password", "", "gateway `PASSWORD`")
	f.StringVar(&r.pin, "tls-fingerprint", "", "trust only the certificate with this `SHA-256` fingerprint")
}

func (r *remote) port() Port {
	return Port{URL: r.url, Auth: wire.Auth{Token: r.token, Password: r.password}, Fingerprint: r.pin}
}

// pinned returns a URL and a function that opens connections to it, which trust only the
// certificate with a fingerprint; "", or a URL without TLS: the usual ones.
func pinned(u *url.URL, fingerprint string) (string, func(context.Context) (net.Conn, error)) {
	if u.Scheme != "wss" || fingerprint == "" {
		return u.String(), nil
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "443")
	}
	plain := *u
	plain.Scheme = "ws" // the function encrypts
	return plain.String(), func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: cert.Pinned(fingerprint)}).DialContext(ctx, "tcp", host)
	}
}

// dialURL connects to the gateway at a URL.
func (c *commands) dialURL(ctx context.Context, p Port) (*client.Client, error) {
	address := p.URL
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, usage(withHint(fmt.Errorf("--url %s: not a URL", address), fmt.Sprintf("--url ws://127.0.0.1:%d",
			wire.DefaultPort)))
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http", "https":
		u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http") // accepts the address of the web interface
	default:
		return nil, usage(withHint(fmt.Errorf("--url %s: the scheme must be ws or wss", address), "--url ws://"+u.Host))
	}
	o := client.Options{
		Name:    "chela",
		Version: c.app.Version,
		Mode:    wire.ModeCLI,
		Auth:    &p.Auth,
		Scopes:  []string{wire.ScopeAdmin},
		Once:    true,
	}
	o.URL, o.Dial = pinned(u, p.Fingerprint)
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	cl, err := client.Dial(limited, o)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, c.suggest(fmt.Errorf("%s does not respond; another program may be listening there", address),
			"gateway status")
	}
	if errors.Is(err, client.ErrInsecure) {
		return nil, withHint(fmt.Errorf("--url %s: %w", address, err), "--url wss://"+u.Host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return nil, withHint(err, "--tls-fingerprint SHA256, logged by that gateway as certificate")
	}
	return cl, err
}

func (c *commands) gatewayProbe() *cobra.Command {
	var r remote
	cmd := &cobra.Command{Use: "probe", Short: "Connect to the gateway's port like any other client", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			at := r.port()
			away, err := c.remote(s)
			switch {
			case err != nil && at.URL == "":
				return err
			case at.URL == "" && away != nil:
				return c.probeRemote(cmd.Context(), s, away, at.Auth)
			}
			if at.URL == "" {
				local, err := c.port(cmd.Context(), s)
				if err != nil {
					return err
				}
				if at.Auth != (wire.Auth{}) {
					local.Auth = at.Auth
				}
				at = local
			}
			begin := time.Now()
			cl, err := c.dialURL(cmd.Context(), at)
			if err != nil {
				return withHint(err, cmp.Or(c.hintFor(err), c.commandLine("gateway status")))
			}
			defer cl.Close()
			return c.printProbe(at.URL, cl.Hello(), time.Since(begin))
		}}
	r.flags(cmd)
	return c.withJSON(cmd)
}

// printProbe prints the answer of a gateway.
func (c *commands) printProbe(at string, h wire.Hello, took time.Duration) error {
	return c.print(map[string]any{
		"url": at, "latencyMs": float64(took.Microseconds()) / 1000, "version": h.Server.Version, "protocol": h.Protocol,
		"methods": len(h.Features.Methods), "authMethod": h.Auth.Method, "role": h.Auth.Role, "scopes": h.Auth.Scopes,
	}, func() {
		fmt.Fprintf(c.stdout, "%s answered in %s: version %s, protocol %d, %d methods, authenticated by %s as %s with %v\n",
			at,
			took.Round(100*time.Microsecond), h.Server.Version, h.Protocol, len(h.Features.Methods), h.Auth.Method,
			h.Auth.Role, h.Auth.Scopes)
	})
}

func (c *commands) gatewayCall() *cobra.Command {
	var r remote
	var params string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "call METHOD", Short: "Call a gateway method and print its result", Args: exactly(1),
		Example: "  chela gateway call sessions.list --params '{\"limit\": 5}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !json.Valid([]byte(params)) {
				return usage(withHint(errors.New("--params: not JSON"), `--params '{"key": "value"}'`))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			call := func(cl *client.Client) error {
				var out json.RawMessage
				if err := cl.Call(ctx, args[0], json.RawMessage(params), &out); err != nil {
					return c.suggestMethod(err, args[0], cl.Hello().Features.Methods)
				}
				return c.printJSON(out)
			}
			if r.url == "" {
				return c.withGateway(ctx, call)
			}
			cl, err := c.dialURL(ctx, r.port())
			if err != nil {
				return err
			}
			defer cl.Close()
			return call(cl)
		},
	}
	cmd.Flags().StringVar(&params, "params", "{}", "method parameters as `JSON`")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "wait at most `DURATION`")
	r.flags(cmd)
	return cmd
}

// suggestMethod adds the most similar method name to an "unknown method" error without a reason.
func (c *commands) suggestMethod(err error, name string, methods []string) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || !strings.HasPrefix(e.Message, "unknown method") || strings.Contains(e.Message, name+": ") {
		return err
	}
	best, least := "", 1+len(name)/3
	for _, m := range methods {
		if d := spelling.Distance(name, m); d < least {
			best, least = m, d
		}
	}
	if best == "" {
		return err
	}
	return c.suggest(err, "gateway call "+best)
}

func (c *commands) health() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "health", Short: "Check gateway health", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.withGateway(cmd.Context(), func(l *client.Client) error {
				var h wire.Health
				if err := l.Call(cmd.Context(), wire.MethodHealth, wire.None{}, &h); err != nil {
					return err
				}
				state := "ok"
				if !h.OK {
					state = "unhealthy"
				}
				err := c.print(h, func() {
					fmt.Fprintf(c.stdout, "%s: %s, %s, answered in %d ms\n", state, humanize.Many(h.Sessions.Count, "session"),
						humanize.Many(len(h.Channels), "channel"), h.DurationMs)
				})
				if err == nil && !h.OK {
					err = errReported
				}
				return err
			})
			if err != nil && c.json && !errors.Is(err, errReported) {
				return cmp.Or(c.printJSON(map[string]any{"ok": false, "error": errorText(err)}), errReported)
			}
			return err
		}})
}
