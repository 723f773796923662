package signal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/signal/signaltest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// starter is a sandbox.Broker that starts no process: the daemon of the test answers while
// a program of it runs.
type starter struct {
	next  http.RoundTripper
	boots time.Duration // how long a program runs before it answers

	mu    sync.Mutex
	plans []sandbox.Plan
	last  *started
	err   error // of the next start
}

type started struct {
	out   io.Writer
	at    time.Time
	ctx   context.Context
	exit  chan sandbox.Exit
	ended bool
}

func (s *starter) Name() string { return "test" }

func (s *starter) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err; err != nil {
		s.err = nil
		return nil, err
	}
	s.plans = append(s.plans, p)
	s.last = &started{out: out, at: time.Now(), ctx: ctx, exit: make(chan sandbox.Exit, 1)}
	return process{s, s.last}, nil
}

func (s *starter) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	up := s.last != nil && !s.last.ended && time.Since(s.last.at) >= s.boots
	s.mu.Unlock()
	if !up {
		return nil, errors.New("connection refused")
	}
	return s.next.RoundTrip(r)
}

func (s *starter) starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.plans)
}

// end ends the program after it wrote something.
func (s *starter) end(out string, e sandbox.Exit) {
	s.mu.Lock()
	p := s.last
	s.mu.Unlock()
	_, _ = io.WriteString(p.out, out)
	p.exit <- e
}

type process struct {
	s *starter
	p *started
}

func (p process) Wait() (sandbox.Exit, error) {
	var e sandbox.Exit
	select {
	case e = <-p.p.exit:
	case <-p.p.ctx.Done():
		e = sandbox.Exit{Code: -1, Signal: "SIGTERM"}
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.p.ended = true
	return e, nil
}

func (p process) Kill()    {}
func (p process) PID() int { return 4711 }

// managed makes a rig whose account starts the daemon. The program is in a folder of PATH.
func managed(t *testing.T) (*rig, *starter) {
	r := newRig(t)
	s := &starter{next: r.client.Transport, boots: 10 * time.Second}
	r.client.Transport = s
	bin := filepath.Join(r.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	name := "signal-cli"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.WriteFile(filepath.Join(bin, name), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	r.vars = map[string]string{"PATH": bin, "HOME": r.dir, "JAVA_HOME": "/java", "OPENAI_API_KEY": "secret"}
	r.programs = func(_ context.Context, _ *slog.Logger, dir string) (sandbox.Broker, error) {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("the directory of the account: %v", err)
		}
		return s, nil
	}
	return r, s
}

const own = `"account": "+491700000000"`

func TestDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := managed(t)
		box := channeltest.NewInbox()
		c := r.open(own + `, "configPath": "/data", "ignoreAttachments": true, "ignoreStories": true`)
		stop := channeltest.Run(r.t.Context(), c, box.Sink)
		r.server.Say(ann, "", "one", nil)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if texts(box.Take()) != "one" || r.connected() != 1 || strings.Contains(r.logged(), "reconnecting") {
			t.Errorf("%d times connected\n%s", r.connected(), r.logged())
		}
		p := s.plans[0]
		want := "--config /data -a +491700000000 daemon --http 127.0.0.1:8080 --no-receive-stdout --receive-mode=on-connection --ignore-attachments --ignore-stories"
		if got := strings.Join(p.Argv[1:], " "); got != want || p.Argv[0] != p.Path ||
			filepath.Dir(p.Path) != r.vars["PATH"] || p.Dir != filepath.Join(r.dir, "account") {
			t.Errorf("started %+v", p)
		}
		if env := strings.Join(p.Env, "\n"); !strings.Contains(env, "JAVA_HOME=/java") || strings.Contains(env, "secret") {
			t.Errorf("variables %q", env)
		}
		if err := c.(channel.Prober).Probe(t.Context()); err != nil {
			t.Errorf("probe: %v", err)
		}
		r.server.Cut() // the daemon runs on
		time.Sleep(time.Minute)
		if s.starts() != 1 || r.connected() != 2 {
			t.Errorf("%d starts, %d times connected", s.starts(), r.connected())
		}
		if err := stop(); !errors.Is(err, context.Canceled) || !s.last.ended {
			t.Errorf("Run: %v; the program has ended: %v", err, s.last.ended)
		}
	})
}

// TestDaemonEnds checks that a program that ends is started again.
func TestDaemonEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := managed(t)
		box := channeltest.NewInbox()
		stop := channeltest.Run(r.t.Context(), r.open(own), box.Sink)
		time.Sleep(time.Minute)
		s.end("WARN  x - one\nERROR y - out of memory\r\n"+strings.Repeat("z", 9000)+"\n\n", sandbox.Exit{Code: 3})
		r.server.Cut()
		synctest.Wait()
		if err := r.reported(); err == nil || !strings.Contains(err.Error(), "exit status 3: zzz") || len(err.Error()) > 500 {
			t.Errorf("report %v", err)
		}
		r.server.Say(ann, "", "two", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if texts(box.Take()) != "two" || s.starts() != 2 || r.reported() != nil {
			t.Errorf("%d starts, report %v", s.starts(), r.reported())
		}
		s.end("", sandbox.Exit{Code: -1, Signal: "SIGKILL"})
		r.server.Cut()
		synctest.Wait()
		if err := r.reported(); err == nil || !strings.Contains(err.Error(), "SIGKILL") {
			t.Errorf("report %v", err)
		}
		_ = stop()
		for _, want := range []string{`level=WARN msg=signal-cli line="ERROR y - out of memory"`, "pid=4711"} {
			if !strings.Contains(r.logged(), want) {
				t.Errorf("the log does not contain %q:\n%s", want, r.logged())
			}
		}
	})
}

func TestDaemonDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		keys  string
		set   func(r *rig, s *starter)
		final bool
		want  string
	}{
		{"not installed", "", func(r *rig, _ *starter) { r.vars["PATH"] = r.dir }, true, "install signal-cli"},
		{"wrong path", `, "cliPath": "~/signal/cli"`, nil, true, "signal.cliPath"},
		{"account is not registered", "", func(_ *rig, s *starter) {
			time.AfterFunc(3*time.Second, func() {
				s.end("User +491700000000 is not registered.\n", sandbox.Exit{Code: 1})
			})
		}, true, "signal-cli link"},
		{"ends at once", "", func(_ *rig, s *starter) {
			time.AfterFunc(3*time.Second, func() { s.end("Exception: x", sandbox.Exit{Code: 1}) })
		}, false, "exit status 1: Exception: x"},
		{"does not answer", `, "startupTimeoutMs": 5000`, func(_ *rig, s *starter) { s.boots = time.Hour },
			false, "within 5s"},
		{"cannot be started", "", func(_ *rig, s *starter) { s.err = errors.New("permission denied") },
			false, "permission denied"},
		{"nothing is started here", "", func(r *rig, _ *starter) {
			r.programs = func(context.Context, *slog.Logger, string) (sandbox.Broker, error) {
				return nil, errors.New("no programs")
			}
		}, false, "no programs"},
		{"another program listens", "", func(r *rig, s *starter) { r.client.Transport = s.next }, false,
			"httpUrl http://127.0.0.1:8080"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, s := managed(t)
				if tt.set != nil {
					tt.set(r, s)
				}
				c := r.open(own + tt.keys)
				ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
				defer cancel()
				err := c.Run(ctx, channeltest.NewInbox().Sink)
				if permanent(err) != tt.final {
					t.Errorf("Run: %v", err)
				}
				if r.reported() == nil || !strings.Contains(r.reported().Error(), tt.want) {
					t.Errorf("report %v, want %q", r.reported(), tt.want)
				}
			})
		})
	}
}

// TestDaemonOutput checks that a program that writes much does not fill the log.
func TestDaemonOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := managed(t)
		stop := channeltest.Run(r.t.Context(), r.open(own), channeltest.NewInbox().Sink)
		time.Sleep(time.Minute)
		before := len(r.logged())
		for i := range 10_000 {
			_, _ = fmt.Fprintln(s.last.out, "WARN", i, strings.Repeat("\x1b[31m", 100))
		}
		if n := len(r.logged()) - before; n > 60_000 || strings.Contains(r.logged(), "\x1b") {
			t.Errorf("%d bytes were logged", n)
		}
		time.Sleep(2 * time.Minute)
		_, _ = fmt.Fprintln(s.last.out, "WARN last")
		if !strings.Contains(r.logged(), "lines=9940") || !strings.Contains(r.logged(), "WARN last") {
			t.Errorf("the log says nothing about what was left out")
		}
		_ = stop()
	})
}

// TestProcess starts this program as signal-cli.
func TestProcess(t *testing.T) {
	if os.Getenv("XDG_RUNTIME_DIR") == "test of chela" {
		serveAsProgram()
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	r := &rig{t: t, client: &http.Client{Transport: &http.Transport{}}, dir: t.TempDir(),
		vars: map[string]string{"PATH": os.Getenv("PATH"), "XDG_RUNTIME_DIR": "test of chela"}}
	r.programs = func(context.Context, *slog.Logger, string) (sandbox.Broker, error) {
		return argv{host.New("")}, nil
	}
	box := make(chan chela.Inbound, 1)
	c := r.open(own + fmt.Sprintf(`, "cliPath": %q, "httpPort": %s`, self, port))
	stop := channeltest.Run(r.t.Context(), c, func(_ context.Context, in chela.Inbound) error { box <- in; return nil })
	defer func() {
		if t.Failed() {
			t.Log(r.logged())
		}
	}()
	if in := waittest.For(t, "a message", box); in.Text != "--receive-mode=on-connection" {
		t.Errorf("got %q", in.Text)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if err := c.(channel.Prober).Probe(t.Context()); err == nil {
		t.Error("the program runs on")
	}
}

// argv starts the test with the arguments of signal-cli after its own.
type argv struct{ sandbox.Broker }

func (a argv) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	p.Argv = append([]string{p.Argv[0], "-test.run=^TestProcess$", "--"}, p.Argv[1:]...)
	return a.Broker.Start(ctx, p, out)
}

// serveAsProgram is signal-cli.
func serveAsProgram() {
	i := slices.Index(os.Args, "--http")
	s := signaltest.New()
	s.Add(signaltest.Person{UUID: ann, Name: "Ann"})
	s.Say(ann, "", os.Args[len(os.Args)-1], nil)
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	l, err := net.Listen("tcp", os.Args[i+1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { <-c; _ = server.Close() }()
	_ = server.Serve(l)
}
