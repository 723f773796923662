package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/identity"
	"github.com/chela-ai/chela/internal/surface/nodehost"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) node() *cobra.Command {
	return group("node", "Make this machine a node of a gateway", c.nodeRun(), c.nodeStatus())
}

// nodeFlags are the flags of node run.
type nodeFlags struct {
	host, pin, name, pair string
	port                  int
	tls                   bool
}

func (c *commands) nodeRun() *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use: "run", Short: "Connect to a gateway and run what its assistant wants", Args: exactly(0),
		Long: "Connect this machine to a gateway, usually on another one, as a node: the assistant there\n" +
			"can run commands here, as far as the rules of this machine allow (tools.exec and\n" +
			"`chela approvals`). Unless they say otherwise, only programs on the allowlist run.\n" +
			"It runs until it is stopped, and reconnects. Without --host and --pair it uses the gateway\n" +
			"of the last time. The credential of the gateway is in CHELA_GATEWAY_TOKEN or\n" +
			"CHELA_GATEWAY_PASSWORD; a machine that is paired needs none.",
		Example: "  chela node run --pair oc-pair://CODE\n  chela node run --host 192.168.1.20 --port 18789 --display-name laptop",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.runNode(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.host, "host", "", "`HOST` of the gateway")
	fl.IntVar(&f.port, "port", wire.DefaultPort, "`PORT` of the gateway")
	fl.BoolVar(&f.tls, "tls", false, "connect with TLS")
	fl.StringVar(&f.pin, "tls-fingerprint", "", "trust only the certificate with this `SHA-256` fingerprint")
	fl.StringVar(&f.name, "display-name", "", "`NAME` of this node (default: that of the machine)")
	fl.StringVar(&f.pair, "pair", "", "setup `CODE` of the gateway (chela devices invite --access node)")
	return cmd
}

// runNode runs a node until ctx ends or an interrupt arrives.
func (c *commands) runNode(cmd *cobra.Command, f nodeFlags) error {
	ctx, done := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer done()
	context.AfterFunc(ctx, done)
	s, err := c.start()
	if err != nil {
		return err
	}
	if f.port < 1 || f.port > 65535 {
		return usage(fmt.Errorf("--port %d: not a port number", f.port))
	}
	tools, release, err := c.app.NodeTools(ctx, s)
	if err != nil {
		return err
	}
	defer release()
	state, err := identity.Open(nodehost.Path(s.State))
	if err != nil {
		return err
	}
	last, name := state.Last()
	g, auth, err := c.nodeGateway(s, f, last, cmd.Flags().Changed("port"))
	if err != nil {
		return err
	}
	machine, _ := os.Hostname() // may be empty
	name = cmp.Or(f.name, name, machine, "node")
	if err := state.SetLast(g, name); err != nil {
		return err
	}
	u, err := url.Parse(g.URL)
	if err != nil {
		return err
	}
	o := nodehost.Options{
		Log: s.Log, Version: c.app.Version, Name: name, Tools: tools, Auth: auth, State: state, Gateway: g.URL,
		Tell: func(line string) { fmt.Fprintln(c.stdout, line) },
	}
	o.URL, o.Dial = pinned(u, g.Pin)
	fmt.Fprintf(c.stdout, "node %s (%s)\n", name, shortID(state.ID()))
	return nodehost.Run(ctx, o)
}

// nodeGateway returns the gateway of a node, and the credential for it besides the token of
// the device.
func (c *commands) nodeGateway(s Start, f nodeFlags, last identity.Gateway,
	port bool) (identity.Gateway, wire.Auth, error) {
	auth := wire.Auth{
		Token:    cmp.Or(c.getenv("CHELA_GATEWAY_TOKEN"), c.getenv("OPENCLAW_GATEWAY_TOKEN")),
		Password: cmp.Or(c.getenv("CHELA_GATEWAY_PASSWORD"), c.getenv("OPENCLAW_GATEWAY_PASSWORD")),
	}
	g := identity.Gateway{Pin: f.pin}
	switch {
	case f.pair != "":
		p, err := setupPayload(f.pair)
		if err != nil {
			return g, auth, usage(withHint(fmt.Errorf("--pair: %w", err), "chela devices invite --access node, on the gateway"))
		}
		g.URL, auth = p.URL, wire.Auth{Bootstrap: p.Token}
		g.Pin = cmp.Or(g.Pin, pinOf(last, p.URL))
	case f.host != "":
		scheme := "ws"
		if f.tls || f.pin != "" {
			scheme = "wss"
		}
		g.URL = scheme + "://" + net.JoinHostPort(strings.Trim(f.host, "[]"), strconv.Itoa(f.port))
		g.Pin = cmp.Or(g.Pin, pinOf(last, g.URL))
	case last.URL != "" && !port && !f.tls:
		g.URL, g.Pin = last.URL, cmp.Or(f.pin, last.Pin)
	default:
		switch r, err := c.remote(s); {
		case err != nil:
			return g, auth, err
		case r != nil && r.SSH != nil:
			return g, auth, usage(withHint(errors.New("gateway.remote uses SSH, which a node does not"),
				"chela node run --host HOST --tls, or --pair CODE"))
		case r != nil:
			g.URL, g.Pin = r.URL, cmp.Or(f.pin, r.Fingerprint)
			if auth == (wire.Auth{}) {
				auth = r.Auth
			}
			return g, auth, nil
		}
		local, err := c.app.Local(s)
		if err != nil {
			return g, auth, err
		}
		g.URL, g.Pin = local.URL, cmp.Or(f.pin, local.Fingerprint)
		if auth == (wire.Auth{}) {
			auth = local.Auth
		}
	}
	u, err := url.Parse(g.URL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return g, auth, usage(fmt.Errorf("%q is not the address of a gateway", g.URL))
	}
	return g, auth, nil
}

// pinOf returns the fingerprint of the certificate of the last gateway, if it has the URL.
func pinOf(last identity.Gateway, url string) string {
	if last.URL == url {
		return last.Pin
	}
	return ""
}

// setupPayload returns the content of a setup code, which may be a URL.
func setupPayload(code string) (wire.SetupPayload, error) {
	var p wire.SetupPayload
	code = strings.TrimSpace(code)
	if i := strings.LastIndex(code, "://"); i >= 0 {
		code = strings.Trim(code[i+3:], "/")
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(code, "="))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || p.URL == "" || p.Token == "" {
		return p, errors.New("this is no setup code")
	}
	return p, nil
}

// nodeState is the result of node status.
type nodeState struct {
	ID      string `json:"nodeId,omitempty"`
	Name    string `json:"displayName,omitempty"`
	URL     string `json:"gateway,omitempty"`
	Paired  bool   `json:"paired"`
	Running bool   `json:"running"`
}

func (c *commands) nodeStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show the node that this machine is", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			var v nodeState
			if nodehost.Exists(s.State) {
				state, err := identity.Open(nodehost.Path(s.State))
				if err != nil {
					return err
				}
				last, name := state.Last()
				v = nodeState{ID: state.ID(), Name: name, URL: last.URL, Paired: state.Paired(last.URL)}
				if v.Running, err = c.app.NodeRuns(s); err != nil {
					return err
				}
			}
			return c.print(v, func() {
				if v.ID == "" {
					fmt.Fprintln(c.stdout, "this machine is no node; to make it one: "+c.commandLine("node run --pair CODE"))
					return
				}
				c.printRow("node", fmt.Sprintf("%s (%s)", v.Name, v.ID))
				c.printRow("gateway", cmp.Or(v.URL, "none"))
				c.printRow("paired", yesNo(v.Paired))
				c.printRow("running", yesNo(v.Running))
			})
		}})
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
