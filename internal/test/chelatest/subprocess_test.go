//go:build unix

package chelatest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/acp/acptest"
)

// An engine in a separate process, which can be killed at any time and kills itself
// before a named step.
const (
	childDir      = "CHELA_TEST_CHILD"     // state directory; if set, the process is the engine
	childStep     = "CHELA_TEST_KILL_STEP" // name:count of the step before which it dies
	childPlatform = "CHELA_TEST_PLATFORM"  // URL of a platform of the channel "platform"
	childListen   = "CHELA_TEST_LISTEN"    // not empty: the engine opens a port, whose URL it writes to url.txt
	childConfined = "CHELA_TEST_CONFINED"  // JSON of confinedOptions; if set, the process is this engine
)

// TestMain makes the test binary the engine that is killed.
func TestMain(m *testing.M) {
	if status, is := acptest.Main(); is {
		os.Exit(status)
	}
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(childConfined); text != "" {
		if err := confinedChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if names := os.Getenv(childTools); names != "" {
		if err := serveTools(names); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	debug.SetGCPercent(400) // hundreds of engines start here, each with little memory
	os.Exit(m.Run())
}

// confinedOptions are those of an engine whose model executes what it is told,
// and whose commands are confined.
type confinedOptions struct {
	Dir, Home, File, Grant string
	Config                 Config
	Environ                []string
}

func confinedChild(text string) error {
	var c confinedOptions
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	o := Options{
		Dir:     c.Dir,
		Home:    c.Home,
		File:    c.File,
		Grant:   c.Grant,
		Config:  c.Config,
		Environ: c.Environ,
		Model:   executes(),
		Dial:    noHosts,
	}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ao, err := o.app()
	if err != nil {
		return err
	}
	ao.NoSocket = false
	return serve(ao, new(killSwitch))
}

// child is the engine, until it is killed.
func child(dir string) error {
	var s killSwitch
	s.arm(os.Getenv(childStep))
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	o := app.Options{Log: log, State: dir, Config: fileConfig(dir), Env: func(string) string { return "" }, Step: s.step,
		Registry: standard.New()}
	if os.Getenv(childListen) != "" {
		o.Listen = &endpoint.Listen{Port: -1}
	}
	o.Registry.Channel(Account("file", fileChannel{dir, s.step}, channel.Limits{}))
	if url := os.Getenv(childPlatform); url != "" {
		o.Registry.Channel(Account("platform", platformChannel{url, s.step}, channel.Limits{}))
	}
	return serve(o, &s)
}

// serve runs an engine until its input ends.
func serve(o app.Options, s *killSwitch) error {
	e, err := app.New(context.Background(), o)
	for end := time.Now().Add(waittest.Limit); errors.Is(err, statedir.ErrOwned) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		e, err = app.New(context.Background(), o)
	}
	if err != nil {
		return err
	}
	if o.Listen != nil {
		if err := os.WriteFile(filepath.Join(o.State, "url.txt"), []byte(e.URL()), 0o600); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); { // the driver closes it to stop the engine gracefully
		s.arm(in.Text())
		fmt.Println("armed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	return e.Close(ctx)
}

// killSwitch kills its process before a step.
type killSwitch struct {
	mu   sync.Mutex
	name string
	left int
}

// arm sets the step, as name:count.
func (s *killSwitch) arm(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, count, _ := strings.Cut(step, ":")
	s.name = name
	s.left, _ = strconv.Atoi(count)
}

func (s *killSwitch) step(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != s.name {
		return
	}
	if s.left--; s.left == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// fileConfig reads the configuration that the driver wrote.
func fileConfig(dir string) Config {
	b, err := os.ReadFile(filepath.Join(dir, "test.json"))
	if err != nil {
		panic(err)
	}
	var c Config
	if err := json.Unmarshal(b, &c); err != nil {
		panic(err)
	}
	return c
}

// writeConfig writes the configuration of the engines of a state directory.
func writeConfig(t testing.TB, dir string, c Config) {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// subprocess is a running engine.
type subprocess struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// spawn starts an engine and waits until it is ready, or dead.
func spawn(t testing.TB, dir, step string, env ...string) *subprocess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childDir+"="+dir, childStep+"="+step, "GORACE=halt_on_error=1"), env...)
	return start(t, cmd, step)
}

// start starts the command of an engine.
func start(t testing.TB, cmd *exec.Cmd, step string) *subprocess {
	t.Helper()
	p := &subprocess{Cmd: cmd}
	p.Stderr = os.Stderr
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err = p.out.ReadString('\n'); err != nil && step == "" { // a step may kill it before that
		t.Fatalf("the engine did not start: %v", p.Wait())
	}
	return p
}

// arm has a running engine die before a step.
func (p *subprocess) arm(t testing.TB, step string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, step); err != nil {
		t.Fatal(err)
	}
	if _, err := p.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// stop stops the engine gracefully.
func (p *subprocess) stop(t testing.TB) {
	t.Helper()
	p.in.Close()
	if err := p.Wait(); err != nil {
		t.Errorf("the engine did not stop gracefully: %v", err)
	}
}

// kill kills the engine.
func (p *subprocess) kill() {
	p.Process.Kill()
	p.Wait()
	p.in.Close()
}

// noHosts is the network of a cage without hosts.
func noHosts(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no network")
}

func dial(dir string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return statedir.Dial(ctx, dir)
	}
}
