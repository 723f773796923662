//go:build linux || darwin

package native

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// maxProfile limits a profile, which is an argument. macOS allows a megabyte for
// all arguments and variables.
const maxProfile = 512 << 10

// seatbelt is a sandbox.Broker that confines programs by sandbox-exec.
type seatbelt struct {
	o       Options
	program string // sandbox-exec
	trial
}

func newSeatbelt(o Options, program string) *seatbelt {
	s := &seatbelt{o: o, program: program}
	s.trial.run = s.tryOut
	return s
}

// Name returns "native".
func (*seatbelt) Name() string { return "native" }

// Close does nothing: nothing is kept.
func (*seatbelt) Close() {}

// Recreate makes Level try again. Nothing is kept.
func (s *seatbelt) Recreate(context.Context, func(string) bool) (sandbox.Removal, error) {
	s.Reset()
	return sandbox.Removal{}, nil
}

// Start starts a plan that has Rights.
func (s *seatbelt) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Rights == nil {
		return nil, errors.New("the sandbox runs plans with rights only")
	}
	never := slices.Concat(s.o.never(), p.Rights.Hide)
	found, err := findPrivate(ctx, p.Rights.Workspace, s.o.Home, never, false)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := found.unsearched(*p.Rights); err != nil {
		return nil, err
	}
	for _, path := range slices.Concat(p.Rights.Read, p.Rights.Change) {
		if n := pathpolicy.Exposed(path, p.Rights.Workspace, never); n != "" {
			return nil, fmt.Errorf("the sandbox never shows %s", n)
		}
	}
	c := &confined{}
	if p.Rights.Write {
		c.before = found.before()
	}
	if err := c.prepare(s.o, p.Rights); err != nil {
		c.clean()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	temps := []string{c.tmp}
	if c.caches != "" {
		temps = append(temps, c.caches)
	}
	addr := c.ln.Addr().(*net.TCPAddr)
	text := profile(macLayout(s.o.Home, *p.Rights, searchPath(p.Env), &found, temps...), addr.Port)
	if len(text) > maxProfile {
		c.clean()
		return nil, errors.New("sandbox: the workspace has too many private files")
	}
	inner := p
	inner.Rights = nil
	inner.Path, inner.Argv = s.program, append([]string{"sandbox-exec", "-p", text, p.Path}, p.Argv[1:]...)
	inner.Env = withVars(p.Env, append(c.env(), proxyEnv(c.proxy.password, addr.String())...))
	if c.Process, err = s.o.Host.Start(ctx, inner, out); err != nil {
		c.clean()
		return nil, err
	}
	go c.serve()
	return stdio.Wrap(c, c.Process), nil
}

// confined is a program that sandbox-exec confines.
type confined struct {
	sandbox.Process
	before before // of a program that can change the workspace
	proxy  *proxy
	ln     *net.TCPListener
	tmp    string // its own folder for temporary files
	caches string // kept for the programs of a workspace; "": none
}

// prepare makes the folders of the program and opens its proxy.
func (c *confined) prepare(o Options, r *sandbox.Rights) (err error) {
	if c.tmp, err = os.MkdirTemp("", "chela-"); err != nil {
		return err
	}
	if c.tmp, err = filepath.EvalSymlinks(c.tmp); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.tmp, "gitconfig"), []byte(gitConfig(o.Home)), 0o600); err != nil {
		return err
	}
	if o.Layers != "" {
		sum := sha256.Sum256([]byte(r.Workspace))
		dir := filepath.Join(o.Layers, hex.EncodeToString(sum[:8]))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if c.caches, err = filepath.EvalSymlinks(dir); err != nil {
			return err
		}
	}
	c.proxy = newProxy(r.Hosts, rand.Text(), o.Dial)
	c.ln, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	return err
}

// env returns the variables of the program. Its home folder cannot be changed,
// so what keeps a cache there gets another folder.
func (c *confined) env() []string {
	vars := []string{"TMPDIR=" + c.tmp, "TMPPREFIX=" + filepath.Join(c.tmp, "zsh"), "GIT_CONFIG_GLOBAL=" + filepath.Join(c.tmp, "gitconfig")}
	if c.caches != "" {
		for name, dir := range map[string]string{"XDG_CACHE_HOME": "cache", "GOCACHE": "go-build", "npm_config_cache": "npm", "PIP_CACHE_DIR": "pip"} {
			vars = append(vars, name+"="+filepath.Join(c.caches, dir))
		}
	}
	return vars
}

// serve accepts the connections to the proxy until the listener is closed.
func (c *confined) serve() {
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return
		}
		go c.proxy.serve(conn)
	}
}

// Wait waits for the end of the program.
func (c *confined) Wait() (sandbox.Exit, error) {
	exit, err := c.Process.Wait()
	if c.before.Workspace != "" {
		if now, err := findPrivate(context.Background(), c.before.Workspace, c.before.Home, nil, false); err == nil {
			exit.Blocked, exit.Later = c.before.undo(&now), c.before.later(&now)
		}
	}
	c.proxy.report(&exit)
	c.clean()
	return exit, err
}

// clean removes what prepare made.
func (c *confined) clean() {
	if c.ln != nil {
		_ = c.ln.Close() // nothing was written
	}
	if c.proxy != nil {
		c.proxy.close()
	}
	if c.tmp != "" {
		_ = os.RemoveAll(c.tmp) // the system empties the folder that it is in
	}
}

// macProbe is a script that tries what a confined program must not be able to
// do. Its arguments are a file outside, a private file of the workspace, the id
// of a process and a port of this machine.
const macProbe = `
try() { if [ "$2" = 0 ]; then echo "open $1"; else echo "held $1"; fi; }
[ -e "$1" ]; try "see files outside" $?
(: >> "$1") 2>/dev/null; try "change files outside" $?
(: < "$2") 2>/dev/null; try "read private files of the workspace" $?
(: > probe) 2>/dev/null; try "change the workspace" $?
kill -0 "$3" 2>/dev/null; try "signal other processes" $?
(: > "/dev/tcp/127.0.0.1/$4") 2>/dev/null; try "connect to other programs of this machine" $?
`

// macEffects is the number of effects that macProbe tries.
const macEffects = 6

// unverified is added to every level of macOS.
const unverified = "the trial on this machine succeeded, but the project has not been able to verify its sandbox for macOS"

// tryOut runs macProbe without the sandbox, where it must be able to do
// everything, and with it.
func (s *seatbelt) tryOut(ctx context.Context) (sandbox.Level, []sandbox.Effect) {
	effects, err := s.probe(ctx)
	switch {
	case err != nil:
		return sandbox.Level{Name: "none", Reason: err.Error()}, effects
	case sandbox.Open(effects) != "":
		return sandbox.Level{Name: "none", Reason: sandbox.Open(effects)}, effects
	}
	return sandbox.Level{Name: "seatbelt", Complete: true, Reason: unverified}, effects
}

func (s *seatbelt) probe(ctx context.Context) ([]sandbox.Effect, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := os.Stat(s.program); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.o.Layers, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.o.Layers, "probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	workspace, outside := filepath.Join(dir, "workspace"), filepath.Join(dir, "outside")
	private := filepath.Join(workspace, ".env")
	if err := errors.Join(os.Mkdir(workspace, 0o700), os.WriteFile(outside, nil, 0o600), os.WriteFile(private, nil, 0o600)); err != nil {
		return nil, err
	}
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	p := sandbox.Plan{
		Path: "/bin/bash", Argv: []string{"bash", "-c", macProbe, "bash", outside, private, strconv.Itoa(os.Getpid()), strconv.Itoa(port)},
		Dir: workspace, Env: []string{"PATH=/usr/bin:/bin"},
	}
	free, err := try(ctx, s.o.Host, p)
	if err != nil {
		return nil, err
	}
	if len(free) != macEffects || slices.ContainsFunc(free, func(e sandbox.Effect) bool { return e.Held }) {
		return nil, fmt.Errorf("the trial shows nothing: without the sandbox it says %v", free)
	}
	p.Rights = &sandbox.Rights{Workspace: workspace}
	effects, err := try(ctx, s, p)
	if err == nil && len(effects) != macEffects {
		err = fmt.Errorf("the trial in the sandbox ended early: it says %v", effects)
	}
	return effects, err
}

// try runs a probe.
func try(ctx context.Context, b sandbox.Broker, p sandbox.Plan) ([]sandbox.Effect, error) {
	var out bytes.Buffer
	pr, err := b.Start(ctx, p, &out)
	if err != nil {
		return nil, err
	}
	exit, err := pr.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the trial ended with %d %s: %.200s", exit.Code, exit.Signal, out.String())
	}
	return sandbox.Effects(out.String()), err
}
