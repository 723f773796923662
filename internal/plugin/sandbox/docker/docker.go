// Package docker keeps a container for each sandbox, by the command line of
// Docker or Podman. A container is created by the first command, kept until its
// settings change or it was not used for long, and found again by its name.
package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// limit is the time that a call of the program may take.
const limit = 2 * time.Minute

// marker is the variable that marks the processes of a command in a container.
const marker = "CHELA_COMMAND"

// Options configure a Broker. Host and Getenv are required.
type Options struct {
	Log     *slog.Logger
	Program string                   // docker or podman
	Host    sandbox.Broker           // runs the program
	Getenv  func(name string) string // the program's environment
	State   string                   // folder for the list of containers
	// Never returns the files and folders that no container gets, such as the state of
	// the gateway. A workspace in one of them is shared. nil: there are none.
	Never func() []string
}

// Broker runs commands in containers.
type Broker struct {
	o Options

	turns lane.Lanes // one call at a time makes or removes a container

	mu    sync.Mutex      // guards the following and the list of containers
	used  map[string]int  // running commands, by container
	known map[string]bool // containers that this process has looked at
	level *sandbox.Level  // once the program has answered
}

var (
	_ sandbox.Backend = (*Broker)(nil)
	_ sandbox.Checker = (*Broker)(nil)
)

// New returns a Broker.
func New(o Options) *Broker {
	return &Broker{o: o, used: map[string]int{}, known: map[string]bool{}}
}

// Name returns the name of the program.
func (b *Broker) Name() string { return b.o.Program }

// Close does nothing: containers are kept.
func (*Broker) Close() {}

// Level reports whether the program answers.
func (b *Broker) Level(ctx context.Context) sandbox.Level {
	b.mu.Lock()
	found := b.level
	b.mu.Unlock()
	if found != nil {
		return *found
	}
	if _, err := b.call(ctx, "version"); err != nil {
		return sandbox.Level{Name: "none", Reason: err.Error(), Hint: b.o.Program + " version"}
	}
	found = &sandbox.Level{Name: "container", Complete: true}
	b.mu.Lock()
	b.level = found
	b.mu.Unlock()
	return *found
}

// program returns the path of the program.
func (b *Broker) program() (string, error) {
	for _, dir := range filepath.SplitList(b.o.Getenv("PATH")) {
		path := filepath.Join(dir, b.o.Program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() &&
			info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", b.o.Program)
}

// plan returns the plan that runs the program.
func (b *Broker) plan(args ...string) (sandbox.Plan, error) {
	path, err := b.program()
	if err != nil {
		return sandbox.Plan{}, err
	}
	p := sandbox.Plan{Path: path, Argv: append([]string{b.o.Program}, args...), Dir: "/"}
	for _, name := range [...]string{"PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
		"DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST"} {
		if v := b.o.Getenv(name); v != "" {
			p.Env = append(p.Env, name+"="+v)
		}
	}
	return p, nil
}

// call runs the program and returns its output. The error has what it printed.
func (b *Broker) call(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := b.plan(args...)
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	p.Stderr = &errs
	pr, err := b.o.Host.Start(ctx, p, &out)
	if err != nil {
		return "", err
	}
	exit, err := pr.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s %s: exit code %d: %s", b.o.Program, args[0], exit.Code, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), err
}

// Start runs a command in the container of its session.
func (b *Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Rights == nil || p.Session == nil {
		return nil, errors.New("containers run the commands of sandboxed sessions only")
	}
	name := p.Session.Container
	if err := b.ensure(ctx, p.Session); err != nil {
		return nil, err
	}
	release := func() { b.use(name, -1) }
	id := rand.Text()
	args := []string{"exec", "-i", "-w", p.Dir, "-e", marker + "=" + id}
	if p.Terminal != nil {
		args = slices.Insert(args, 1, "-t")
	}
	for _, v := range p.Env {
		args = append(args, "-e", v)
	}
	c, err := b.plan(append(append(args, name, p.Path), p.Argv[1:]...)...)
	if err != nil {
		release()
		return nil, err
	}
	c.Stdin, c.Stderr, c.Terminal, c.Grace = p.Stdin, p.Stderr, p.Terminal, p.Grace
	pr, err := b.o.Host.Start(ctx, c, out)
	if err != nil {
		release()
		return nil, err
	}
	inside := &process{Process: pr, end: func() { b.endInside(name, id) }, release: release}
	inside.unwatch = context.AfterFunc(ctx, inside.end)
	return stdio.Wrap(inside, pr), nil
}

// endScript ends the processes of a container with a variable.
const endScript = `for p in /proc/[0-9]*; do tr '\0' '\n' < $p/environ 2>/dev/null | grep -q "^$1" && kill -KILL ${p#/proc/} 2>/dev/null; done; :`

// endInside ends the processes of a command: ending the program that started it
// leaves them.
func (b *Broker) endInside(container, id string) {
	if _, err := b.call(context.Background(), "exec", container, "sh", "-c", endScript, "sh", marker+"="+id); err != nil &&
		b.o.Log != nil {
		b.o.Log.Warn("end a command in a container", "container", container, "err", err)
	}
}

// process is a command in a container.
type process struct {
	sandbox.Process
	end     func()
	release func()
	unwatch func() bool
}

// Kill ends the command and what it started.
func (p *process) Kill() {
	p.end()
	p.Process.Kill()
}

// Wait waits for the end of the command and ends what it left.
func (p *process) Wait() (sandbox.Exit, error) {
	defer p.release()
	exit, err := p.Process.Wait()
	p.unwatch()
	p.end()
	return exit, err
}

// use counts the running commands of a container.
func (b *Broker) use(container string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used[container] += n; b.used[container] == 0 {
		delete(b.used, container)
	}
}

func (b *Broker) inUse(container string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used[container] > 0
}

// ensure makes the session's container, unless it runs with the same settings,
// and counts it as used.
func (b *Broker) ensure(ctx context.Context, s *sandbox.Session) error {
	set, err := b.parse(s)
	if err != nil {
		return err
	}
	if err := b.check(set, s); err != nil {
		return err
	}
	return b.turns.Do(ctx, s.Container, "", func(ctx context.Context) error {
		hash, err := b.prepare(ctx, s, set)
		if err != nil {
			return err
		}
		b.use(s.Container, 1)
		if err := b.record(s, set, hash); err != nil {
			b.use(s.Container, -1)
			return err
		}
		return nil
	})
}

// prepare makes the container and returns the hash of its settings. The caller
// has the container's turn.
func (b *Broker) prepare(ctx context.Context, s *sandbox.Session, set settings) (hash string, err error) {
	hash = set.hash(s)
	state, err := b.call(ctx, "inspect", "-f", `{{.State.Running}} {{index .Config.Labels "chela.configHash"}}`,
		s.Container)
	running, old, _ := strings.Cut(state, " ")
	if err == nil && old != hash {
		if b.inUse(s.Container) {
			if b.o.Log != nil {
				b.o.Log.Warn("the settings of a container have changed; it is created again when no command runs in it",
					"container", s.Container)
			}
			return old, nil
		}
		if err := b.removeContainer(ctx, s.Container); err != nil {
			return "", err
		}
	}
	b.mu.Lock()
	known := b.known[s.Container]
	b.mu.Unlock()
	switch {
	case err != nil || old != hash:
		err = b.create(ctx, s, set, hash)
	case running != "true":
		_, err = b.call(ctx, "start", s.Container)
	case !known: // a killed process may have left commands
		_, err = b.call(ctx, "exec", s.Container, "sh", "-c", endScript, "sh", marker+"=")
	}
	if err == nil {
		b.mu.Lock()
		b.known[s.Container] = true
		b.mu.Unlock()
	}
	return hash, err
}

// removeContainer removes a container. It is not an error if there is none.
func (b *Broker) removeContainer(ctx context.Context, name string) error {
	_, err := b.call(ctx, "rm", "-f", name)
	if err != nil {
		if text := strings.ToLower(err.Error()); strings.Contains(text, "no such container") ||
			strings.Contains(text, "no container with") {
			return nil
		}
	}
	return err
}

// create creates and starts a container.
func (b *Broker) create(ctx context.Context, s *sandbox.Session, set settings, hash string) error {
	if _, err := b.call(ctx, "image", "inspect", set.Image); err != nil {
		if _, err := b.call(ctx, "version"); err != nil {
			return err // it does not answer
		}
		return fmt.Errorf("the image %s is missing; to get it: %s (%w)", set.Image, set.recipe(b.o.Program), err)
	}
	if _, err := b.call(ctx, set.create(s, hash, strconv.FormatInt(time.Now().UnixMilli(), 10))...); err != nil {
		return err
	}
	_, err := b.call(ctx, "start", s.Container)
	if err == nil && set.Setup != "" {
		_, err = b.call(ctx, "exec", "-i", s.Container, "sh", "-lc", set.Setup)
	}
	if err != nil {
		return errors.Join(err, b.removeContainer(context.WithoutCancel(ctx), s.Container))
	}
	return nil
}

// Try runs the probe in the container of a session.
func (b *Broker) Try(ctx context.Context, s *sandbox.Session) (sandbox.Level, []sandbox.Effect) {
	l := b.Level(ctx)
	if !l.Complete || s.Container == "" {
		return l, nil
	}
	access := "rw"
	if !s.Writable() {
		access = "ro"
	}
	var out bytes.Buffer
	pr, err := b.Start(ctx, sandbox.Plan{
		Path:    "/bin/sh",
		Argv:    []string{"sh", "-c", sandbox.Probe, "sh", b.o.State, access},
		Dir:     s.Workdir,
		Session: s,
		Rights:  &sandbox.Rights{},
	}, &out)
	if err == nil {
		_, err = pr.Wait()
	}
	if err != nil {
		return sandbox.Level{Name: "none", Reason: err.Error()}, nil
	}
	effects := sandbox.Effects(out.String())
	if text := sandbox.Open(effects); text != "" {
		l = sandbox.Level{Name: "none", Reason: text}
	}
	return l, effects
}
