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
	"github.com/chela-ai/chela/internal/cert"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/spelling"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) gateway() *cobra.Command {
	cmd := c.gatewayRun()
	cmd.Use, cmd.Short = "gateway", "Run the gateway in the foreground, or ask the one that runs"
	cmd.Args = console.NoCommand
	cmd.AddCommand(c.gatewayRun(), c.gatewayStatus(), c.gatewayProbe(), c.gatewayCall())
	return cmd
}

func (c *commands) gatewayRun() *cobra.Command {
	var l Listen
	cmd := &cobra.Command{
		Use: "run", Short: "Run the gateway in the foreground", Args: console.Exactly(0),
		Long: fmt.Sprintf("The gateway serves programs on this machine at 127.0.0.1:%d until it is told to stop\n"+
			"(Ctrl-C, or SIGTERM). What is in progress then is gone on with at the next start.", wire.DefaultPort),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("port") && l.Port == 0 {
				l.Port = -1
			}
			return c.serve(cmd.Context(), l)
		},
	}
	f := cmd.Flags()
	f.IntVar(&l.Port, "port", 0, "listen on port `N` instead of gateway.port; 0: any that is free")
	f.StringVar(&l.Bind, "bind", "", "listen on `WHERE` instead of gateway.bind: loopback, lan, tailnet, auto or custom")
	f.BoolVar(&l.Force, "force", false, "end another chela of yours that has the port or the state directory")
	f.BoolVar(&c.verbose, "verbose", false, "show debug lines of the log, too")
	f.BoolVar(&l.Insecure, "allow-insecure", false, "serve other machines without encryption")
	return cmd
}

// serve runs a gateway until it is told to stop; told to restart, it begins
// anew with the configuration as it is then. A second signal ends it at once.
func (c *commands) serve(ctx context.Context, l Listen) error {
	ctx, done := signal.NotifyContext(ctx, os.Interrupt)
	defer done()
	context.AfterFunc(ctx, done)
	again := make(chan os.Signal, 1)
	onRestart(again)
	defer signal.Stop(again)
	c.aloud = true
	s, err := c.start()
	if err != nil {
		return err
	}
	for {
		g, err := c.app.Serve(ctx, s, l)
		if err != nil {
			return err
		}
		c.announce(g)
		select {
		case <-ctx.Done():
			s.Log.Info("gateway stops")
			return stop(ctx, g)
		case <-again:
		case <-g.Again():
		}
		s.Log.Info("gateway restarts")
		if err := within(ctx, g.Renew); err != nil {
			return err
		}
	}
}

// announce says where the gateway is. In JSON the log says that.
func (c *commands) announce(g Gateway) {
	t := g.NewToken()
	if c.log.ConsoleStyle == "json" {
		if t != "" {
			b, _ := json.Marshal(map[string]string{"msg": "token made, shown once", "token": t}) // of texts
			fmt.Fprintln(c.Out, string(b))
		}
		return
	}
	fmt.Fprintln(c.Out, "chela "+c.app.Version+" listens on "+g.URL())
	if t != "" {
		fmt.Fprintln(c.Out, "token (shown once, kept in the state directory): "+t)
	}
}

// attached connects to the gateway that runs and calls f.
func (c *commands) attached(ctx context.Context, f func(*client.Client) error) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	e, err := c.app.Attach(ctx, s)
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

// gatewayState is what `gateway status` says.
type gatewayState struct {
	Running bool   `json:"running"`
	Version string `json:"version,omitempty"`
	Uptime  int64  `json:"uptimeMs,omitempty"`
	Clients int    `json:"clients"`
	State   string `json:"stateDir"`
	Config  string `json:"configPath"`
	URL     string `json:"url"`
	Port    string `json:"port"` // open, closed; none: an engine of a conversation, without a port
}

func (c *commands) gatewayStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "status", Short: "Say whether a gateway runs, and where", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		st, err := c.gatewayState(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			err = c.JSON(st)
		} else {
			c.printGateway(st)
		}
		if err != nil || st.Running {
			return err
		}
		if !asJSON {
			c.Suggest(c.Command("gateway run"))
		}
		return console.ErrReported
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) gatewayState(ctx context.Context) (gatewayState, error) {
	s, err := c.start()
	if err != nil {
		return gatewayState{}, err
	}
	st := gatewayState{State: s.State, Config: s.Config}
	local, err := c.app.Local(s)
	if err != nil {
		return st, err
	}
	st.URL = local.URL
	if e, err := c.app.Attach(ctx, s); err == nil { // otherwise none runs: that is the answer
		if err := c.now(ctx, e, &st); err != nil {
			return st, err
		}
	}
	st.Port = reachable(ctx, st.URL)
	return st, nil
}

// now asks the gateway that runs.
func (c *commands) now(ctx context.Context, e Engine, st *gatewayState) error {
	l, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer l.Close()
	var now wire.Status
	if err := l.Call(ctx, wire.MethodStatus, wire.None{}, &now); err != nil {
		return err
	}
	st.Running, st.Version, st.Uptime, st.Clients = true, now.Version, now.UptimeMs, len(l.Hello().Snapshot.Presence)-1
	st.URL = now.URL
	return nil
}

// port returns where the gateway's port is: of the one that runs, or where the
// configuration says.
func (c *commands) port(ctx context.Context, s Start) (Port, error) {
	p, err := c.app.Local(s)
	if err != nil {
		return p, err
	}
	if e, err := c.app.Attach(ctx, s); err == nil {
		var st gatewayState
		if err := c.now(ctx, e, &st); err == nil && st.URL != "" { // otherwise who probes sees why
			p.URL = reached(st.URL)
		}
	}
	return p, nil
}

// reached returns the URL by which this machine reaches what listens on all of
// its addresses.
func reached(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String()
}

// reachable says whether something listens at a URL.
func reachable(ctx context.Context, address string) string {
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
	p := c.Palette(c.Out)
	row := func(name, text string) {
		fmt.Fprintf(c.Out, "%s %s\n", p.Dim.Paint(fmt.Sprintf("%-10s", name)), ansi.Line(text))
	}
	if st.Running {
		row("gateway", fmt.Sprintf("runs, version %s, up %s, %d clients", st.Version, figure.Span(time.Duration(st.Uptime)*time.Millisecond), st.Clients))
	} else {
		row("gateway", "does not run")
	}
	row("port", st.URL+" ("+st.Port+")")
	row("state", st.State)
	row("config", st.Config)
}

// remote is a gateway that is reached over its port.
type remote struct{ url, token, password, pin string }

func (r *remote) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.url, "url", "", "ask the gateway at `URL` (ws://host:port) instead of the one that runs here")
	f.StringVar(&r.token, "token", "", "its `TOKEN`")
	f.StringVar(&r.password, "password", "", "its `PASSWORD`")
	f.StringVar(&r.pin, "tls-fingerprint", "", "trust the certificate with the `SHA-256` fingerprint, whoever signed it")
}

func (r *remote) port() Port {
	return Port{URL: r.url, Auth: wire.Auth{Token: r.token, Password: r.password}, Fingerprint: r.pin}
}

// dialURL connects to the gateway at a URL.
func (c *commands) dialURL(ctx context.Context, p Port) (*client.Client, error) {
	address := p.URL
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, console.Usage(console.Hint(fmt.Errorf("--url %s: not an address", address), fmt.Sprintf("--url ws://127.0.0.1:%d", wire.DefaultPort)))
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http", "https":
		u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http") // as a browser shows it
	default:
		return nil, console.Usage(console.Hint(fmt.Errorf("--url %s: want ws:// or wss://", address), "--url ws://"+u.Host))
	}
	o := client.Options{
		URL: u.String(), Name: "chela", Version: c.app.Version, Mode: wire.ModeCLI, Auth: &p.Auth,
		Scopes: []string{wire.ScopeAdmin}, Once: true,
	}
	if u.Scheme == "wss" && p.Fingerprint != "" {
		host := u.Host
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), "443")
		}
		u.Scheme = "ws" // what is dialled is encrypted
		o.URL = u.String()
		o.Dial = func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: cert.Pinned(p.Fingerprint)}).DialContext(ctx, "tcp", host)
		}
	}
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	cl, err := client.Dial(limited, o)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, c.Hint(fmt.Errorf("%s does not answer: something else may listen there", address), "gateway status")
	}
	if errors.Is(err, client.ErrInsecure) {
		return nil, console.Hint(fmt.Errorf("--url %s: %w", address, err), "--url wss://"+u.Host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return nil, console.Hint(err, "--tls-fingerprint SHA256, which that gateway's log has as its certificate")
	}
	return cl, err
}

func (c *commands) gatewayProbe() *cobra.Command {
	var r remote
	var asJSON bool
	cmd := &cobra.Command{Use: "probe", Short: "Connect to the gateway's port as other programs do", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		s, err := c.start()
		if err != nil {
			return err
		}
		at := r.port()
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
			return console.Hint(err, cmp.Or(c.hint(err), c.Command("gateway status")))
		}
		defer cl.Close()
		h, took := cl.Hello(), time.Since(begin)
		if asJSON {
			return c.JSON(map[string]any{
				"url": at.URL, "latencyMs": float64(took.Microseconds()) / 1000, "version": h.Server.Version, "protocol": h.Protocol,
				"methods": len(h.Features.Methods), "authMethod": h.Auth.Method, "role": h.Auth.Role, "scopes": h.Auth.Scopes,
			})
		}
		fmt.Fprintf(c.Out, "%s answers in %s: version %s, protocol %d, %d methods, let in by %s as %s with %v\n", at.URL,
			took.Round(100*time.Microsecond), h.Server.Version, h.Protocol, len(h.Features.Methods), h.Auth.Method, h.Auth.Role, h.Auth.Scopes)
		return nil
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	r.flags(cmd)
	return cmd
}

func (c *commands) gatewayCall() *cobra.Command {
	var r remote
	var params string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "call METHOD", Short: "Call a method of the gateway that runs and print its result", Args: console.Exactly(1),
		Example: "  chela gateway call sessions.list --params '{\"limit\": 5}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !json.Valid([]byte(params)) {
				return console.Usage(console.Hint(errors.New("--params: not JSON"), `--params '{"key": "value"}'`))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			call := func(cl *client.Client) error {
				var out json.RawMessage
				if err := cl.Call(ctx, args[0], json.RawMessage(params), &out); err != nil {
					return c.meant(err, args[0], cl.Hello().Features.Methods)
				}
				return c.JSON(out)
			}
			if r.url == "" {
				return c.attached(ctx, call)
			}
			cl, err := c.dialURL(ctx, r.port())
			if err != nil {
				return err
			}
			defer cl.Close()
			return call(cl)
		},
	}
	cmd.Flags().StringVar(&params, "params", "{}", "its parameters as `JSON`")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "wait at most `DURATION`")
	r.flags(cmd)
	return cmd
}

// meant names the method that was meant by one that is not there.
func (c *commands) meant(err error, name string, methods []string) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || !strings.HasPrefix(e.Message, "unknown method") {
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
	return c.Hint(err, "gateway call "+best)
}

func (c *commands) health() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "health", Short: "Ask the gateway that runs how it is", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		err := c.attached(cmd.Context(), func(l *client.Client) error {
			var h wire.Health
			if err := l.Call(cmd.Context(), wire.MethodHealth, wire.None{}, &h); err != nil {
				return err
			}
			if asJSON {
				if err := c.JSON(h); err != nil || h.OK {
					return err
				}
				return console.ErrReported
			}
			word := "ok"
			if !h.OK {
				word = "not well"
			}
			fmt.Fprintf(c.Out, "%s: %s, %s, answered in %d ms\n", word, figure.Many(h.Sessions.Count, "session"), figure.Many(len(h.Channels), "channel"), h.DurationMs)
			if !h.OK {
				return console.ErrReported
			}
			return nil
		})
		if err != nil && asJSON && !errors.Is(err, console.ErrReported) {
			return cmp.Or(c.JSON(map[string]any{"ok": false, "error": console.Said(err)}), console.ErrReported)
		}
		return err
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
