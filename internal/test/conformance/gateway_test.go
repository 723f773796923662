//go:build conformance

package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// chela is the program under test.
var chela string

func TestMain(m *testing.M) {
	if code, ok := sandboxtest.Act(); ok {
		os.Exit(code)
	}
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build builds the program and runs the tests with it.
func build(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "chela-conformance-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	chela = filepath.Join(dir, "chela")
	cmd := exec.Command("go", "build", "-o", chela, "github.com/chela-ai/chela/cmd/chela")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}
	code := m.Run()
	inVain.print(os.Stdout)
	return code, nil
}

// token is the token of the gateway.
const token = "a token for conformance"

// gateway is a gateway for one test: the program, with a state directory, a
// port and a model that follows the script.
type gateway struct {
	t     testing.TB
	State string // state directory
	Work  string // workspace of the agent
	Port  int
	Model *llmtest.Server

	vars []string // further environment variables
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	log  output
}

// section returns a part of the configuration by its path of keys.
type section map[string]any

// newGateway starts a gateway that is stopped at the end of the test. conf is
// merged into its configuration; it may be nil. vars are further environment
// variables of the program, such as NAME=value.
func newGateway(t testing.TB, conf section, vars ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	s := &gateway{
		t:     t,
		State: filepath.Join(dir, "state"),
		Work:  filepath.Join(dir, "work"),
		Port:  freePort(t),
		vars:  vars,
	}
	for _, d := range []string{s.State, s.Work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Model = llmtest.ServerFunc(t, llmtest.OpenAI, script)
	url, _ := s.Model.Listen()
	s.configure(merge(section{
		"agents": section{"defaults": section{"model": "mock/m", "skipBootstrap": true, "workspace": s.Work}},
		"models": section{"providers": section{"mock": section{
			"baseUrl": url + "/v1", "api": "openai-completions", "apiKey": "none",
			"models": []section{{"id": "m", "name": "Mock", "input": []string{"text", "image"}}},
		}}},
		"tools":   section{"exec": section{"mode": "full"}},
		"budget":  section{"usdPerDay": 100, "unpriced": "allow"},
		"gateway": section{"port": s.Port, "auth": section{"mode": "token", "token": token}},
	}, conf))
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("log of the gateway:\n%s", s.log.String())
		}
	})
	s.Start()
	return s
}

// merge returns a with the members of b, which take precedence.
func merge(a, b section) section {
	out := maps.Clone(a)
	for k, v := range b {
		if in, ok := v.(section); ok {
			if have, ok := out[k].(section); ok {
				v = merge(have, in)
			}
		}
		out[k] = v
	}
	return out
}

func (s *gateway) configure(conf section) {
	s.t.Helper()
	b, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.State, "chela.json"), b, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// URL returns the address for clients; HTTP the address for browsers.
func (s *gateway) URL() string  { return fmt.Sprintf("ws://127.0.0.1:%d", s.Port) }
func (s *gateway) HTTP() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// File writes a file to the workspace.
func (s *gateway) File(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.Work, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Chela runs a chela command on the gateway's state directory and returns its
// output.
func (s *gateway) Chela(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), chela, args...)
	cmd.Env = s.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("chela %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *gateway) env() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(s.State), "CHELA_STATE_DIR=" + s.State,
		"NO_COLOR=1"}, s.vars...)
}

// Start starts the gateway and waits until it listens.
func (s *gateway) Start() {
	s.t.Helper()
	cmd := exec.Command(chela, "gateway", "run")
	cmd.Env, cmd.Dir, cmd.Stderr = s.env(), s.Work, &s.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd, s.done = cmd, make(chan struct{})
	up := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "listens on") {
				up <- true
			}
		}
		_ = cmd.Wait() // the log contains the error
		close(s.done)
		up <- false
	}()
	if !waittest.For(s.t, "the start of the gateway", up) {
		s.t.Fatalf("the gateway did not start:\n%s", s.log.String())
	}
}

// Stop stops the gateway as a service manager does. It may be called more than
// once, and Start may be called afterwards.
func (s *gateway) Stop() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	if err := stop(s.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("stop: %v", err)
	}
	select {
	case <-s.done:
	case <-time.After(waittest.Limit):
		s.t.Error("the gateway did not stop in time")
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	s.cmd = nil
}

func stop(p *os.Process) error {
	if runtime.GOOS == "windows" {
		return p.Kill()
	}
	return p.Signal(syscall.SIGTERM)
}

// freePort returns a free port.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// output collects the output of a process. It is safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String returns the output so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Await waits until the output contains the text.
func (o *output) Await(ctx context.Context, text string) error {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if strings.Contains(o.String(), text) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no %q in\n%s", text, o.String())
		case <-tick.C:
		}
	}
}
