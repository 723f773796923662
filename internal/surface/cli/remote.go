package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/cert"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/identity"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Remote is the gateway on another machine that the commands use (gateway.mode remote).
type Remote struct {
	Port
	SSH *SSH // how it is reached; nil: directly
}

// SSH is a port of another machine that is reached through SSH.
type SSH struct {
	Target   string // USER@HOST, HOST or either with :PORT
	Identity string // file of the key; "": what ssh uses
	Port     int    // of the gateway, at the loopback address of that machine
}

// Typed returns the target as it is typed after ssh.
func (t SSH) Typed() string {
	if h, p, err := net.SplitHostPort(t.Target); err == nil {
		return "-p " + p + " " + shell.Quote(h)
	}
	return shell.Quote(t.Target)
}

// awayTimeout is how long a gateway on another machine may take to accept a connection.
const awayTimeout = 25 * time.Second

// identityFile is the file in a state directory with the key by which gateways on other
// machines know the commands of this one.
const identityFile = "credentials/device.json"

// remote returns the gateway on another machine that the commands use; nil: that of this
// machine. A configuration that was loaded and does not say so needs no look at keys and files.
func (c *commands) remote(s Start) (*Remote, error) {
	if c.loaded != nil {
		var mode string
		if raw := c.loaded.Section("gateway.mode"); raw == nil || json.Unmarshal(raw, &mode) != nil || mode != "remote" {
			return nil, nil
		}
	}
	if c.app.Remote == nil {
		return nil, nil
	}
	return c.app.Remote(s)
}

// attach finds the gateway of a command: that on another machine, or the running one.
func (c *commands) attach(ctx context.Context, s Start) (Engine, error) {
	switch r, err := c.remote(s); {
	case err != nil:
		return nil, err
	case r != nil:
		return c.reach(s, r)
	}
	return c.app.Attach(ctx, s)
}

// away is the engine of a gateway on another machine.
type away struct {
	c  *commands
	r  *Remote
	id *identity.State

	trial bool // its place is in flags, not yet in the configuration

	mu   sync.Mutex
	last net.Conn // the last connection through SSH, which knows why it ended
}

// reach returns the engine of a gateway on another machine. It connects to nothing.
func (c *commands) reach(s Start, r *Remote) (*away, error) {
	if r.SSH == nil && !client.IsSecure(r.URL) {
		return nil, c.insecure(r.URL)
	}
	id, err := identity.Open(filepath.Join(s.State, filepath.FromSlash(identityFile)))
	if err != nil {
		return nil, err
	}
	return &away{c: c, r: r, id: id}, nil
}

// insecure returns the error about a URL by which others could read the credential.
func (c *commands) insecure(address string) error {
	u, err := url.Parse(address)
	host := "HOST"
	if err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return withHint(fmt.Errorf("gateway.remote.url %s: %w", address, client.ErrInsecure),
		c.commandLine("onboard --mode remote --remote-url wss://"+host+":18789")+", or through SSH: "+
			c.commandLine("onboard --mode remote --remote-ssh USER@"+host))
}

// errNotPaired says that a person has to approve this machine.
var errNotPaired = errors.New("does not know this machine yet; it has to be approved there, once")

// name returns the gateway for people.
func (a *away) name() string {
	if a.r.SSH != nil {
		return fmt.Sprintf("%s, port %d", a.r.SSH.Target, a.r.SSH.Port)
	}
	return a.r.URL
}

// key is the name by which the machine remembers the gateway.
func (a *away) key() string {
	if a.r.SSH != nil {
		return fmt.Sprintf("ssh://%s/%d", a.r.SSH.Target, a.r.SSH.Port)
	}
	return a.r.URL
}

// Close does nothing: the connections end with their clients, and the gateway keeps running.
func (a *away) Close(context.Context) error { return nil }

// Dial opens a connection to the gateway, through SSH if it is so configured. It checks a
// pinned certificate.
func (a *away) Dial(ctx context.Context) (net.Conn, error) {
	u, err := url.Parse(a.r.URL)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	if a.r.SSH != nil {
		conn, err = a.c.app.Tunnel(ctx, *a.r.SSH)
		a.mu.Lock()
		a.last = conn
		a.mu.Unlock()
	} else {
		port := map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	}
	if err != nil || u.Scheme != "wss" || a.r.Fingerprint == "" {
		return conn, err
	}
	secure := tls.Client(conn, cert.Pinned(a.r.Fingerprint))
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// address returns the URL that a client dials: without TLS if Dial encrypts.
func (a *away) address() string {
	if a.r.Fingerprint != "" {
		return "ws" + strings.TrimPrefix(a.r.URL, "wss")
	}
	return a.r.URL
}

// connect connects to the gateway with the options of a command, whose Dial leads to a.Dial.
// The token of the device comes first, because it can be revoked; if it was, the credential of
// the configuration is used.
func (a *away) connect(ctx context.Context, o client.Options) (*client.Client, error) {
	limited, cancel := context.WithTimeout(ctx, awayTimeout)
	defer cancel()
	host, _ := os.Hostname() // may be empty
	o.URL, o.Key, o.Delay = a.address(), a.id.Key(), nil
	o.Name = strings.TrimSuffix("chela on "+host, " on ")
	o.Scopes = []string{wire.ScopeAdmin}
	token := a.id.Token(a.key())
	auth := a.r.Auth
	if token != "" {
		auth = wire.Auth{DeviceToken: token}
	}
	o.Auth = &auth
	cl, err := client.Dial(limited, o)
	if e, ok := errors.AsType[*wire.Error](err); ok && token != "" &&
		(e.Detail() == pairing.CodeTokenMismatch || e.Detail() == pairing.CodeScopeMismatch) {
		if err := a.id.SetToken(a.key(), ""); err != nil {
			return nil, err
		}
		if a.r.Auth != (wire.Auth{}) {
			o.Auth = &a.r.Auth
			cl, err = client.Dial(limited, o)
		}
	}
	if err != nil {
		return nil, a.explain(ctx, err)
	}
	if t := cl.Hello().Auth.DeviceToken; t != "" && t != a.id.Token(a.key()) {
		if err := a.id.SetToken(a.key(), t); err != nil {
			cl.Close()
			return nil, err
		}
	}
	return cl, nil
}

// explain adds to an error what to do about it.
func (a *away) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	if f, ok := last.(interface{ Failure() error }); ok {
		if why := f.Failure(); why != nil {
			return why
		}
	}
	if e, ok := errors.AsType[*chela.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return a.explainRefusal(e)
	}
	pin := a.option("tlsFingerprint", "SHA256", "tls-fingerprint") + ", which that gateway logs as certificate"
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return withHint(fmt.Errorf("%s: nobody that this machine trusts signed the certificate", a.name()), pin)
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return withHint(fmt.Errorf("%s: %w", a.name(), e.Err), pin)
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it does not answer")
	}
	return withHint(fmt.Errorf("the gateway at %s cannot be reached: %w", a.name(), err),
		"on that machine: chela gateway status")
}

// option returns how to set a key below gateway.remote.
func (a *away) option(name, value, flag string) string {
	if a.trial {
		return "--remote-" + flag + " " + strings.Replace(value, "-", strings.ToUpper(flag), 1)
	}
	return a.c.commandLine("config set gateway.remote." + name + " " + value)
}

// explainRefusal adds to a refusal of the gateway what to do about it.
func (a *away) explainRefusal(e *wire.Error) error {
	switch d := e.Detail(); {
	case e.Code == wire.NotPaired:
		var p struct {
			ID string `json:"requestId"`
		}
		_ = json.Unmarshal(e.Details, &p) // without an id, the list shows it
		if p.ID == "" {
			break
		}
		return withHint(fmt.Errorf("the gateway at %s %w", a.name(), errNotPaired), "on that machine: chela devices approve "+
			p.ID+", and then the same command here again")
	case d == "AUTH_TOKEN_MISSING", d == "AUTH_TOKEN_MISMATCH", d == "DEVICE_IDENTITY_REQUIRED",
		strings.HasPrefix(d, "AUTH_DEVICE_TOKEN_"):
		return withHint(fmt.Errorf("%s: %w", a.name(), e), a.option("token", "-", "token")+
			", with the content of credentials/gateway.token in the state directory of that gateway")
	case strings.HasPrefix(d, "AUTH_PASSWORD_"):
		return withHint(fmt.Errorf("%s: %w", a.name(), e), a.option("password", "-", "password")+
			", with gateway.auth.password of that gateway")
	}
	return fmt.Errorf("%s: %w", a.name(), e)
}

// here marks a command, with those below it, that works with the files of this machine's
// gateway: with a gateway on another machine it would show or change what nobody uses.
func here(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[hereMark] = "yes"
	return cmd
}

// hereMark is the annotation of commands that [here] marked.
const hereMark = "here"

// checkHere refuses a marked command if the gateway is on another machine.
func (c *commands) checkHere(cmd *cobra.Command, args []string) error {
	marked := false
	for at := cmd; at != nil; at = at.Parent() {
		marked = marked || at.Annotations[hereMark] != ""
	}
	if !marked || !cmd.Runnable() {
		return nil
	}
	s, err := c.start()
	if err != nil {
		return nil // the command reports it
	}
	r, err := c.remote(s)
	if err != nil {
		return err
	}
	if r == nil {
		return nil
	}
	return c.elsewhere(cmd, r, args)
}

// elsewhere says that a command must be given on the machine of the gateway.
func (c *commands) elsewhere(cmd *cobra.Command, r *Remote, args []string) error {
	line := cmd.CommandPath()
	for _, a := range args {
		line += " " + shell.Quote(a)
	}
	where := (&away{r: r}).name()
	hint := "on that machine: " + line
	if r.SSH != nil {
		hint = "ssh " + r.SSH.Typed() + " " + line
	}
	return withHint(fmt.Errorf("%s works with files of the gateway, which is on another machine (%s)",
		cmd.CommandPath(), where), hint)
}

// isAway reports whether the gateway is on another machine.
func (c *commands) isAway() (bool, error) {
	s, err := c.start()
	if err != nil {
		return false, err
	}
	r, err := c.remote(s)
	return r != nil, err
}

// gatewayPath returns a path that was typed, as the gateway finds it. If that is on another
// machine, only a complete path has a meaning there.
func (c *commands) gatewayPath(path string) (string, error) {
	s, err := c.start()
	if err != nil {
		return "", err
	}
	r, err := c.remote(s)
	switch {
	case err != nil:
		return "", err
	case r == nil:
		return filepath.Abs(path)
	case strings.HasPrefix(path, "/") || filepath.IsAbs(path):
		return path, nil
	}
	return "", usage(withHint(fmt.Errorf("%s: the gateway is on another machine (%s) and cannot see this folder", path,
		(&away{r: r}).name()), "give the complete path there, such as /home/me/"+filepath.Base(path)))
}

// printOwn says that this machine has a configuration of its own.
func (c *commands) printOwn(r *Remote) {
	if !c.json {
		c.printHint("this is the configuration of this machine; the gateway at " + (&away{r: r}).name() + " has its own")
	}
}

// onlyLocal returns an error if the gateway is on another machine.
func (c *commands) onlyLocal(s Start) error {
	r, err := c.remote(s)
	if err != nil || r == nil {
		return err
	}
	return withHint(fmt.Errorf("gateway.mode is remote: this machine uses the gateway at %s", (&away{r: r}).name()),
		c.commandLine("config set gateway.mode local")+" to have one here, or once: "+
			c.commandLine("gateway run --allow-unconfigured"))
}

// remoteState adds to a state what the gateway on another machine says.
func (c *commands) remoteState(ctx context.Context, s Start, r *Remote, st gatewayState) gatewayState {
	if r == nil {
		return st
	}
	st.Remote, st.URL, st.Port = true, r.URL, "none"
	if r.SSH != nil {
		st.Via = "ssh " + r.SSH.Target
	}
	e, err := c.reach(s, r)
	if err == nil {
		err = c.queryState(ctx, e, &st)
	}
	st.URL, st.Port = r.URL, "open" // of the way that was configured
	if err != nil {
		st.Port, st.Problem, st.hint = "closed", errorText(err), c.hintFor(err)
	}
	return st
}

// checkRemote returns what doctor says about the gateway on another machine, if that is used.
func (c *commands) checkRemote(ctx context.Context, s Start) []Finding {
	f := Finding{Name: "remote gateway", Status: StatusFail}
	r, err := c.remote(s)
	switch {
	case err != nil:
		f.Text, f.Hint = errorText(err), c.hintFor(err)
		return []Finding{f}
	case r == nil:
		return nil
	}
	st := c.remoteState(ctx, s, r, gatewayState{})
	if f.Text, f.Hint = st.Problem, st.hint; st.Running {
		f.Status, f.Text = StatusOK, "version "+st.Version+" at "+(&away{r: r}).name()+
			", which the commands use; the checks above are about this machine"
	}
	return []Finding{f}
}

// printRemote prints the state of a gateway on another machine.
func (c *commands) printRemote(st gatewayState) {
	if st.Running {
		c.printRow("gateway", fmt.Sprintf("running on another machine, version %s, up %s, %d clients", st.Version,
			humanize.Span(time.Duration(st.Uptime)*time.Millisecond), st.Clients))
	} else {
		c.printRow("gateway", "on another machine; not connected: "+ansi.Line(st.Problem))
	}
	c.printRow("url", st.URL)
	if st.Via != "" {
		c.printRow("via", ansi.Line(st.Via))
	}
	c.printRow("config", st.Config)
}

// probeRemote connects to the gateway on another machine.
func (c *commands) probeRemote(ctx context.Context, s Start, r *Remote, auth wire.Auth) error {
	if auth != (wire.Auth{}) {
		r.Auth = auth
	}
	e, err := c.reach(s, r)
	if err != nil {
		return err
	}
	begin := time.Now()
	cl, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer cl.Close()
	return c.printProbe(e.name(), cl.Hello(), time.Since(begin))
}

// maxPages is the number of connections that a browser may have to a web page through SSH.
const maxPages = 32

// page returns the address at which a browser on this machine finds the web page of the
// gateway; "": the gateway knows it. Through SSH, the page is there while serve runs.
func (c *commands) page(ctx context.Context,
	chosen string) (address string, serve func(context.Context) error, err error) {
	s, err := c.start()
	if err != nil {
		return "", nil, err
	}
	r, err := c.remote(s)
	if err != nil || r == nil || chosen != "" {
		return chosen, nil, err
	}
	scheme := "http" + strings.TrimPrefix(strings.SplitN(r.URL, ":", 2)[0], "ws")
	if r.SSH == nil {
		return scheme + strings.TrimPrefix(strings.TrimPrefix(r.URL, "wss"), "ws"), nil, nil
	}
	l, err := c.app.LocalPort(ctx, "")
	if err != nil {
		return "", nil, err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	return scheme + "://" + l.Addr().String(), func(ctx context.Context) error { return c.forward(ctx, l, *r.SSH) }, nil
}

// forward passes connections on through SSH until ctx ends.
func (c *commands) forward(ctx context.Context, l net.Listener, t SSH) error {
	defer l.Close()
	fmt.Fprintln(c.stderr, "The page can be used while this command runs; Ctrl-C ends it.")
	var open sync.WaitGroup
	defer open.Wait()
	free := make(chan struct{}, maxPages)
	for {
		near, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case free <- struct{}{}:
		default:
			near.Close() // the browser tries again
			continue
		}
		open.Go(func() {
			defer func() { <-free }()
			defer near.Close()
			far, err := c.app.Tunnel(ctx, t)
			if err != nil {
				c.report(err, c.hintFor(err))
				return
			}
			defer far.Close()
			defer context.AfterFunc(ctx, func() { near.Close() })()
			go func() {
				_, _ = io.Copy(far, near) // the browser is gone, or ctx has ended
				far.Close()
			}()
			if _, err := io.Copy(near, far); err != nil && ctx.Err() == nil {
				if e, ok := errors.AsType[*chela.Error](err); ok {
					c.report(e, c.hintFor(e))
				}
			}
		})
	}
}
