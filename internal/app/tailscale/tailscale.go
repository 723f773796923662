// Package tailscale has the program of Tailscale on this machine forward its network, or the
// internet, to the gateway's port, which goes on listening for this machine only.
package tailscale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/process"
)

// Modes.
const (
	Off    = "off"
	Serve  = "serve"  // from the Tailscale network
	Funnel = "funnel" // from the internet
)

// Options says what is forwarded. All fields but Reset and TLS are required.
type Options struct {
	// Run runs a program to its end and returns what it wrote; fs.ErrNotExist: there is none.
	Run   func(ctx context.Context, name string, args ...string) (string, error)
	Mode  string // Serve or Funnel
	Port  int    // of the gateway
	TLS   bool   // the port speaks TLS, with a certificate of its own
	Reset bool   // Close ends the forwarding
}

const (
	program = "tailscale"
	// runTime limits a call of the program, which may wait for a person to switch on HTTPS.
	runTime = 20 * time.Second
	// knownTime is how long it is remembered whose machine an address is, and maxKnown the
	// number of addresses.
	knownTime, maxKnown = time.Minute, 256
	// port is the one of the forwarding at this machine's name.
	port = "443"
)

// Forwarding is what the program was told to forward.
type Forwarding struct {
	o    Options
	name string
	old  bool // the program is older than 1.52

	mu    sync.Mutex
	known map[netip.Addr]owner
}

// owner is whose machine an address is.
type owner struct {
	login string
	until time.Time
}

// Start tells the program what to forward. It changes nothing else of what it serves.
func Start(ctx context.Context, o Options) (*Forwarding, error) {
	f := &Forwarding{o: o, known: map[netip.Addr]owner{}}
	var err error
	if f.name, err = f.machine(ctx); err != nil {
		return nil, err
	}
	target := strconv.Itoa(o.Port)
	if o.TLS {
		target = "https+insecure://127.0.0.1:" + target // it is this machine's own certificate
	}
	_, err = f.run(ctx, o.Mode, "--bg", "--yes", target)
	if err != nil && strings.Contains(err.Error(), "flag provided but not defined") {
		f.old = true
		err = f.startOld(ctx, target)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// startOld is for programs before 1.52.
func (f *Forwarding) startOld(ctx context.Context, target string) error {
	if !f.o.TLS {
		target = "http://127.0.0.1:" + target
	}
	_, err := f.run(ctx, Serve, "https", "/", target)
	if err == nil && f.o.Mode == Funnel {
		_, err = f.run(ctx, Funnel, port, "on")
	}
	return err
}

// Close ends the forwarding, if it was so configured. What else the program serves stays.
func (f *Forwarding) Close(ctx context.Context) error {
	if !f.o.Reset {
		return nil
	}
	if !f.old {
		_, err := f.run(ctx, f.o.Mode, "--https="+port, "off")
		return err
	}
	var err error
	if f.o.Mode == Funnel {
		_, err = f.run(ctx, Funnel, port, "off")
	}
	_, serr := f.run(ctx, Serve, "https", "/", "off")
	return errors.Join(err, serr)
}

// Name returns the DNS name of this machine in the network.
func (f *Forwarding) Name() string { return f.name }

// URL returns the address at which others reach the gateway.
func (f *Forwarding) URL() string { return "https://" + f.name }

// machine returns the name of this machine.
func (f *Forwarding) machine(ctx context.Context) (string, error) {
	out, err := f.run(ctx, "status", "--json")
	if err != nil {
		return "", err
	}
	var s struct {
		BackendState string
		Self         struct{ DNSName string }
	}
	if err := decode(out, &s); err != nil {
		return "", fmt.Errorf("tailscale status: %w", err)
	}
	name := strings.ToLower(strings.TrimSuffix(s.Self.DNSName, "."))
	if s.BackendState != "" && s.BackendState != "Running" || name == "" {
		return "", &chela.Error{Code: chela.CodeUnavailable,
			Message: fmt.Sprintf("gateway.tailscale.mode is %s, but this machine is not connected to a Tailscale network",
				f.o.Mode), Hint: "tailscale up"}
	}
	return name, nil
}

// WhoIs returns the login name of the user whose machine has an address in the network; "":
// the machine is nobody's.
func (f *Forwarding) WhoIs(ctx context.Context, a netip.Addr) (string, error) {
	now := time.Now()
	f.mu.Lock()
	known, ok := f.known[a]
	f.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.login, nil
	}
	out, err := f.run(ctx, "whois", "--json", a.String())
	if err != nil {
		return "", err
	}
	var w struct {
		Node        struct{ Tags []string }
		UserProfile struct{ LoginName string }
	}
	if err := decode(out, &w); err != nil {
		return "", fmt.Errorf("tailscale whois: %w", err)
	}
	login := w.UserProfile.LoginName
	if len(w.Node.Tags) > 0 {
		login = "" // a machine with tags stands for all who may use it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxKnown {
		clear(f.known)
	}
	f.known[a] = owner{login, now.Add(knownTime)}
	return login, nil
}

// From reports whether a connection is one of the program that forwards, which root runs, or
// the user of this process.
func (f *Forwarding) From(peer, own netip.AddrPort) (ok, known bool) {
	uid, known := process.PeerUser(peer, own)
	return known && (uid == 0 || uid == os.Getuid()), known
}

// run runs the program.
func (f *Forwarding) run(ctx context.Context, args ...string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	out, err := f.o.Run(limited, program, args...)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", &chela.Error{
			Code:    chela.CodeUnavailable,
			Message: fmt.Sprintf("gateway.tailscale.mode is %s, but the program tailscale is not installed", f.o.Mode),
			Hint:    "install it, or chela config set gateway.tailscale.mode off",
		}
	}
	line := "tailscale " + strings.Join(args, " ")
	why := strings.Join(strings.Fields(out), " ")
	if limited.Err() != nil {
		err = errors.New("it did not end in time; it may wait for HTTPS or Funnel to be allowed for the network")
	}
	e := &chela.Error{Code: chela.CodeUnavailable, Message: line, Err: err, Hint: line +
		", to see more; without Tailscale: chela config set gateway.tailscale.mode off"}
	if why != "" {
		e.Err = fmt.Errorf("%w: %s", err, truncate(why))
	}
	if strings.Contains(why, "Access denied") {
		e.Hint = "sudo tailscale set --operator=$USER"
	}
	return "", e
}

// truncate returns the beginning of a text for a message.
func truncate(s string) string {
	const most = 400
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// decode decodes the JSON object in the output of the program, which may have warnings around
// it.
func decode(out string, v any) error {
	i, j := strings.Index(out, "{"), strings.LastIndex(out, "}")
	if i < 0 || j < i {
		return errors.New("the answer is not JSON")
	}
	return json.Unmarshal([]byte(out[i:j+1]), v)
}
