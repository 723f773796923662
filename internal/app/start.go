package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/cert"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/cli"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/endpoint"
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/statedir"
)

// Commands is the application as the command line needs it.
func Commands() cli.App {
	return cli.App{Version: Version, Start: Start, Attach: Attach, Serve: Serve, Local: Local, Providers: model.Known(), SaveKey: saveKey, Check: check, Audit: auditInstallation, Store: maintenance{}}
}

// startLimit bounds how long Start waits for a process that owns the state
// directory and does not answer yet.
const startLimit = 5 * time.Second

// Start returns an engine for the state directory: one in this process, or a
// way to the one of the process that owns it.
func Start(ctx context.Context, s cli.Start) (cli.Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		e, err := begin(ctx, s, nil)
		if !errors.Is(err, statedir.ErrOwned) {
			if err != nil {
				return nil, err
			}
			return e, nil
		}
		a, err := attach(ctx, s.State)
		if err == nil {
			return a, nil
		}
		select { // its owner is starting, or ending
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, &chela.Error{
				Code: chela.CodeUnavailable, Message: fmt.Sprintf("%s owns %s and does not answer", statedir.Owner(s.State), s.State),
				Hint: "chela doctor", Err: err,
			}
		}
	}
}

// Attach returns a way to the engine of the process that owns the state
// directory.
func Attach(ctx context.Context, s cli.Start) (cli.Engine, error) {
	a, err := attach(ctx, s.State)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		err = nil // nobody listens: there is no more to say
	case err == nil:
		return a, nil
	}
	return nil, &chela.Error{Code: chela.CodeUnavailable, Message: "no gateway is running", Hint: "chela gateway run", Err: err}
}

// Serve starts an engine that also serves its port. With l.Force it ends
// another chela of this user that is in the way.
func Serve(ctx context.Context, s cli.Start, l cli.Listen) (cli.Gateway, error) {
	listen := &endpoint.Listen{Port: l.Port, Bind: l.Bind, Insecure: l.Insecure}
	const most = 2 // one may own the directory, and another one the port
	for ended := 0; ; ended++ {
		e, err := soleOwner(ctx, s, listen)
		if err == nil {
			return e, nil
		}
		o, ok := errors.AsType[*endpoint.Taken](err)
		switch {
		case !ok, !l.Force, ended == most:
			return nil, err
		case !o.Who.Ours():
			o.Err.Message += ", which --force does not end: it is not a chela of yours"
			return nil, err
		}
		s.Log.Warn("end what is in the way", "process", o.Who.String())
		if err := o.Who.End(ctx); err != nil {
			return nil, err
		}
	}
}

// soleOwner starts an engine on a state directory that no other process owns.
// It waits for one that does not answer any more: that is about to end.
func soleOwner(ctx context.Context, s cli.Start, l *endpoint.Listen) (*Engine, error) {
	for limit := time.Now().Add(startLimit); ; {
		e, err := begin(ctx, s, l)
		if !errors.Is(err, statedir.ErrOwned) {
			return e, err
		}
		if _, aerr := attach(ctx, s.State); aerr == nil || time.Now().After(limit) {
			who := statedir.Owner(s.State)
			return nil, &endpoint.Taken{Who: who, Err: &chela.Error{
				Code: chela.CodeConflict, Message: fmt.Sprintf("%s serves %s already", who, s.State), Hint: "chela gateway status",
			}}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Local returns where the configuration puts the gateway's port, and the
// credential for it.
func Local(s cli.Start) (cli.Port, error) {
	var p cli.Port
	tree, err := (config.Options{LastGood: s.LastGood}).Load(s.Config)
	if err != nil {
		return p, err
	}
	place := endpoint.Place{State: s.State, Env: settings.Environ(tree)}
	g, err := endpoint.Read(tree.Section("gateway"), endpoint.Listen{})
	if err != nil {
		return p, err
	}
	host, err := g.Host()
	if err != nil {
		return p, err
	}
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	p.URL = "ws://" + net.JoinHostPort(host.String(), strconv.Itoa(*g.Port))
	if g.TLS.Enabled {
		p.URL = "wss" + p.URL[2:]
		if c, err := cert.Load(g.Pair(s.State)); err == nil { // otherwise it is not known, and the port says why
			p.Fingerprint = cert.Fingerprint(c.Leaf.Raw)
		}
	}
	switch g.Auth.Mode {
	case access.ModeToken:
		v, err := g.Known(place)
		if err == nil && !v.IsZero() {
			p.Auth.Token = v.Reveal()
		}
	case access.ModePassword:
		if v, err := g.Auth.Password.Resolve(place.Env); err == nil && !v.IsZero() {
			p.Auth.Password = v.Reveal()
		}
	}
	return p, nil
}

// begin starts an engine in this process, with a port unless l is nil.
func begin(ctx context.Context, s cli.Start, l *endpoint.Listen) (*Engine, error) {
	o := config.Options{LastGood: s.LastGood}
	tree, err := o.Load(s.Config)
	if err != nil {
		return nil, err
	}
	if err := tree.Broken(); err != nil {
		s.Log.Warn("configuration is broken; going on with the last good one", "err", err)
	}
	for _, w := range tree.Warnings() {
		s.Log.Warn("configuration", "file", s.Config, "problem", w.String())
	}
	if keys := unguarded(tree); len(keys) > 0 {
		s.Log.Warn("these keys protect nothing in this version", "file", s.Config, "keys", strings.Join(keys, ", "), "hint", "chela doctor")
	}
	e, err := New(ctx, Options{
		Log: s.Log, State: s.State, Config: tree, ConfigPath: s.Config, Env: settings.Environ(tree), EnvOf: settings.Environ, Environ: os.Environ(),
		Listen: l, Secrets: s.Secrets, Sole: true,
	})
	if err != nil {
		return nil, err
	}
	if tree.Broken() == nil {
		if err := tree.Keep(); err != nil {
			s.Log.Warn("keep the configuration as the last good one", "err", err)
		}
	}
	return e, nil
}

// unguarded is the keys that are set to protect somebody and do not.
func unguarded(t *config.Tree) []string {
	var keys []string
	for _, p := range t.Unguarded() {
		keys = append(keys, p.Path)
	}
	return keys
}

// attached is the engine of another process.
type attached struct{ path string }

// attach finds the engine of the process that owns the state directory.
func attach(ctx context.Context, dir string) (*attached, error) {
	path, err := statedir.Socket(dir)
	if err != nil {
		return nil, err
	}
	a := &attached{path}
	conn, err := a.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return a, conn.Close()
}

// Dial connects to the other process.
func (a *attached) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", a.path)
}

// Close does nothing: the engine is not ours.
func (a *attached) Close(context.Context) error { return nil }

// saveKey keeps a key of a provider in the state directory.
func saveKey(s cli.Start, provider, name, key string) error {
	if err := statedir.Make(s.State); err != nil {
		return err
	}
	return model.SaveKey(keyDir(s.State), provider, name, key)
}

// keyDir is where keys are kept.
func keyDir(state string) string { return filepath.Join(state, "credentials") }
