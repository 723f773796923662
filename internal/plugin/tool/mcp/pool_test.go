package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	core "github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp"
)

// memory is a broker whose programs are servers in this process.
type memory struct {
	server func(sandbox.Plan) (*sdk.Server, error) // returns the server of a program

	mu      sync.Mutex
	plans   []sandbox.Plan // that were started
	running atomic.Int32
	hangs   atomic.Bool // the servers read nothing
}

var _ sandbox.Broker = (*memory)(nil)

func (*memory) Name() string { return "memory" }

func (m *memory) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	m.mu.Lock()
	m.plans = append(m.plans, p)
	n := len(m.plans)
	m.mu.Unlock()
	s, err := m.server(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	pr := &inMemory{pid: n, cancel: cancel, ended: make(chan struct{})}
	m.running.Add(1)
	go func() {
		defer cancel()
		defer close(pr.ended)
		defer m.running.Add(-1)
		if s == nil { // it never answers
			<-ctx.Done()
			return
		}
		_ = s.Run(ctx, &sdk.IOTransport{Reader: hanging{p.Stdin, ctx, &m.hangs}, Writer: unclosed{out}})
	}()
	return pr, nil
}

func (m *memory) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.plans)
}

// hanging is the input of a server that can hang.
type hanging struct {
	io.Reader
	ctx   context.Context
	hangs *atomic.Bool
}

func (h hanging) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if h.hangs.Load() {
		<-h.ctx.Done()
		return 0, io.EOF
	}
	return n, err
}

func (hanging) Close() error { return nil }

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

type inMemory struct {
	pid    int
	cancel func()
	ended  chan struct{}
}

func (p *inMemory) Wait() (sandbox.Exit, error) { <-p.ended; return sandbox.Exit{}, nil }
func (p *inMemory) Kill()                       { p.cancel() }
func (p *inMemory) PID() int                    { return p.pid }

// always returns the good server.
func always(sandbox.Plan) (*sdk.Server, error) { return good(), nil }

// memoryPool returns a Pool over servers in this process.
func memoryPool(t *testing.T, m *memory, o mcp.Options) *mcp.Pool {
	t.Helper()
	if m.server == nil {
		m.server = always
	}
	o.Log, o.Broker, o.Label = slog.New(slog.DiscardHandler), m, untrusted.New()
	if o.State == "" {
		o.State = t.TempDir()
	}
	p := mcp.New(o)
	p.Discover()
	return p
}

var one = core.Server{Command: "/srv"}

// find returns a tool of servers.
func find(t *testing.T, p *mcp.Pool, servers map[string]core.Server, name string) tool.Tool {
	t.Helper()
	for _, x := range p.Tools(servers) {
		if x.Spec().Name == name {
			return x
		}
	}
	t.Fatalf("there is no tool %s: %+v", name, p.Status())
	return nil
}

// known returns a Pool whose servers have listed their tools and were stopped since.
func known(t *testing.T, m *memory, o mcp.Options, servers map[string]core.Server) *mcp.Pool {
	t.Helper()
	if m.server == nil {
		m.server = always
	}
	if o.State == "" {
		o.State = t.TempDir()
	}
	listing := &memory{server: always}
	working := memoryPool(t, listing, mcp.Options{State: o.State, Cage: listing})
	working.Use(servers, 0)
	time.Sleep(time.Minute)
	if err := working.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := memoryPool(t, m, o)
	p.Use(servers, 0)
	return p
}

func closePool(t *testing.T, p *mcp.Pool) {
	t.Helper()
	if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		servers := map[string]core.Server{"srv": one}
		p := known(t, m, mcp.Options{}, servers)
		defer closePool(t, p)
		if m.starts() != 0 {
			t.Error("a server with a known list was started")
		}
		p.Use(servers, time.Minute)
		x := find(t, p, servers, "srv__echo")
		for i, wait := range []time.Duration{0, 50 * time.Second, 50 * time.Second, 61 * time.Second} {
			time.Sleep(wait)
			if text, err := call(t, x, "hi"); err != nil || !strings.Contains(text, "hi") {
				t.Errorf("call %d: %s, %v", i, text, err)
			}
		}
		if m.starts() != 2 {
			t.Errorf("%d starts, want 2: one more after the idle time", m.starts())
		}
		// A call that takes longer than the idle time keeps the server.
		if _, err := call(t, find(t, p, servers, "srv__sleep"), "59s"); err != nil {
			t.Error(err)
		}
		time.Sleep(59 * time.Second)
		if st := p.Status()[0]; st.State != mcp.Running || m.running.Load() != 1 {
			t.Errorf("%+v", st)
		}
		time.Sleep(2 * time.Second)
		if st := p.Status()[0]; st.State != mcp.Stopped || m.running.Load() != 0 || st.Error != "" {
			t.Errorf("%+v", st)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := true
		m := &memory{server: func(sandbox.Plan) (*sdk.Server, error) {
			if broken {
				return nil, errors.New("no such file")
			}
			return good(), nil
		}}
		servers := map[string]core.Server{"srv": one}
		p := known(t, m, mcp.Options{}, servers)
		defer closePool(t, p)
		x := find(t, p, servers, "srv__echo")
		began := time.Now()
		var waits []time.Duration
		for range 3 {
			if _, err := call(t, x, ""); err == nil || err.Error() != "MCP server srv: no such file" {
				t.Errorf("error %v", err)
			}
			waits = append(waits, time.Since(began).Round(time.Second))
		}
		if waits[0] != 0 || waits[1] > time.Second || waits[2] < time.Second || waits[2] > 3*time.Second {
			t.Errorf("waited %v", waits)
		}
		_, err := call(t, x, "")
		if err == nil ||
			err.Error() !=
				"MCP server srv is paused for 1m0s, because it failed 3 times in a row. MCP server srv: no such file" {
			t.Errorf("error %v", err)
		}
		if st := p.Status()[0]; st.State != mcp.Paused || st.Error == "" || m.starts() != 3 {
			t.Errorf("%d starts, %+v", m.starts(), st)
		}
		broken = false
		time.Sleep(time.Minute)
		if _, err := call(t, x, ""); err != nil {
			t.Error(err)
		}
		if st := p.Status()[0]; st.State != mcp.Running || st.Error != "" {
			t.Errorf("%+v", st)
		}
	})
}

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{server: func(sandbox.Plan) (*sdk.Server, error) { return nil, nil }}
			servers := map[string]core.Server{"srv": one}
			p := known(t, m, mcp.Options{}, servers)
			defer closePool(t, p)
			began := time.Now()
			_, err := call(t, find(t, p, servers, "srv__echo"), "")
			if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "did not answer within 30s") ||
				took < 30*time.Second || took > 32*time.Second {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
	t.Run("a server that ignores the question of newer protocols", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{server: func(sandbox.Plan) (*sdk.Server, error) {
				s := good()
				s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
					return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
						if method == "server/discover" {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return next(ctx, method, r)
					}
				})
				return s, nil
			}}
			servers := map[string]core.Server{"srv": one}
			p := known(t, m, mcp.Options{}, servers)
			defer closePool(t, p)
			began := time.Now()
			if text, err := call(t, find(t, p, servers, "srv__echo"), "hello"); err != nil || !strings.Contains(text, "hello") ||
				time.Since(began) > 11*time.Second {
				t.Errorf("%s, %v after %v", text, err, time.Since(began))
			}
		})
	})
	t.Run("call", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			servers := map[string]core.Server{"srv": one}
			p := known(t, m, mcp.Options{}, servers)
			defer closePool(t, p)
			began := time.Now()
			_, err := call(t, find(t, p, servers, "srv__sleep"), "5m")
			if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "sleep did not answer within 1m0s") ||
				took != time.Minute {
				t.Errorf("%v after %v", err, took)
			}
			time.Sleep(10 * time.Second)
			if _, err := call(t, find(t, p, servers, "srv__echo"), ""); err != nil || m.starts() != 1 {
				t.Errorf("%v: %d starts; a server that answers a ping is kept", err, m.starts())
			}
		})
	})
	t.Run("a server that hangs is started anew", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := &memory{}
			servers := map[string]core.Server{"srv": one}
			p := known(t, m, mcp.Options{}, servers)
			defer closePool(t, p)
			x := find(t, p, servers, "srv__echo")
			if _, err := call(t, x, ""); err != nil {
				t.Fatal(err)
			}
			m.hangs.Store(true)
			if _, err := call(t, x, ""); err == nil || !strings.Contains(err.Error(), "echo did not answer within 1m0s") {
				t.Errorf("error %v", err)
			}
			time.Sleep(10 * time.Second)
			m.hangs.Store(false)
			if st := p.Status()[0]; st.State != mcp.Failed || !strings.Contains(st.Error, "it does not answer") {
				t.Errorf("%+v", st)
			}
			if _, err := call(t, x, ""); err != nil || m.starts() != 2 {
				t.Errorf("%v, %d starts", err, m.starts())
			}
		})
	})
}

func TestListChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var server *sdk.Server
		m := &memory{server: func(sandbox.Plan) (*sdk.Server, error) { server = good(); return server, nil }}
		var changes atomic.Int32
		p := memoryPool(t, m, mcp.Options{Changed: func() { changes.Add(1) }})
		defer closePool(t, p)
		servers := map[string]core.Server{"srv": one}
		p.Use(servers, time.Hour)
		time.Sleep(time.Second)
		if n := len(p.Tools(servers)); n != 11 || changes.Load() != 1 {
			t.Errorf("%d tools, %d changes", n, changes.Load())
		}
		for i := range 20 { // a burst is one list
			server.AddTool(&sdk.Tool{Name: fmt.Sprintf("new%02d", i), InputSchema: map[string]any{"type": "object"}}, nil)
		}
		time.Sleep(5 * time.Second)
		if n := len(p.Tools(servers)); n != 31 || changes.Load() < 2 || changes.Load() > 3 {
			t.Errorf("%d tools, %d changes", n, changes.Load())
		}
		server.RemoveTools("echo")
		time.Sleep(5 * time.Second)
		for _, x := range p.Tools(servers) {
			if x.Spec().Name == "srv__echo" {
				t.Error("a removed tool is offered")
			}
		}
	})
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var most, now atomic.Int32
		var broken atomic.Bool
		broken.Store(true)
		m := &memory{server: func(p sandbox.Plan) (*sdk.Server, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			if p.Path == "/bad" && broken.Load() {
				return nil, errors.New("no such file")
			}
			return good(), nil
		}}
		p := memoryPool(t, m, mcp.Options{})
		defer closePool(t, p)
		off := false
		servers := map[string]core.Server{"bad": {Command: "/bad"}, "off": {Command: "/off", Enabled: &off}}
		for i := range 6 {
			servers[fmt.Sprintf("s%d", i)] = one
		}
		p.Use(servers, 0)
		if len(p.Tools(servers)) != 0 {
			t.Error("tools are known")
		}
		time.Sleep(10 * time.Second)
		if n := len(p.Tools(servers)); n != 66 || most.Load() != 2 {
			t.Errorf("%d tools, %d servers at a time", n, most.Load())
		}
		st := p.Status()
		if len(st) != 7 || st[0].Name != "bad" || st[0].State != mcp.Failed || st[0].Known || st[0].Error == "" {
			t.Errorf("%+v", st)
		}
		starts := m.starts()
		time.Sleep(4 * time.Minute)
		if m.starts() != starts {
			t.Errorf("%d more starts", m.starts()-starts)
		}
		broken.Store(false)
		time.Sleep(2 * time.Minute)
		if n := len(p.Tools(servers)); n != 77 || m.starts() != starts+1 {
			t.Errorf("%d tools, %d more starts", n, m.starts()-starts)
		}
	})
}

func TestManyServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		servers := map[string]core.Server{}
		for i := range 34 {
			servers[fmt.Sprintf("s%02d", i)] = one
		}
		p := known(t, m, mcp.Options{}, servers)
		defer closePool(t, p)
		for i := range 33 {
			if _, err := call(t, find(t, p, servers, fmt.Sprintf("s%02d__echo", i)), ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		st := p.Status()
		if m.running.Load() != 32 || st[0].State != mcp.Stopped || st[1].State != mcp.Running || st[32].State != mcp.Running {
			t.Errorf("%d run, %s, %s, %s", m.running.Load(), st[0].State, st[1].State, st[32].State)
		}
		var calls sync.WaitGroup
		for i := range 32 {
			calls.Go(func() { call(t, find(t, p, servers, fmt.Sprintf("s%02d__sleep", i+1)), "10s") })
		}
		time.Sleep(time.Second)
		if _, err := call(t, find(t, p, servers, "s00__echo"), ""); err == nil ||
			!strings.Contains(err.Error(), "all are busy") {
			t.Errorf("error %v", err)
		}
		calls.Wait()
		if _, err := call(t, find(t, p, servers, "s00__echo"), ""); err != nil {
			t.Error(err)
		}
	})
}

func TestRemovedServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		servers := map[string]core.Server{"srv": one}
		p := known(t, m, mcp.Options{}, servers)
		defer closePool(t, p)
		x := find(t, p, servers, "srv__sleep")
		var calls sync.WaitGroup
		began := time.Now()
		var errs [2]error
		var took [2]time.Duration
		for i, d := range []string{"20s", "50s"} {
			calls.Go(func() {
				_, errs[i] = call(t, x, d)
				took[i] = time.Since(began)
			})
		}
		synctest.Wait()
		p.Use(nil, 0)
		if len(p.Status()) != 0 {
			t.Errorf("%+v", p.Status())
		}
		calls.Wait()
		if errs[0] != nil || took[0] != 20*time.Second {
			t.Errorf("the short call: %v after %v", errs[0], took[0])
		}
		if errs[1] == nil || took[1] < 30*time.Second || took[1] > 33*time.Second {
			t.Errorf("the long call: %v after %v", errs[1], took[1])
		}
		time.Sleep(5 * time.Second)
		if m.running.Load() != 0 {
			t.Error("the server runs")
		}
	})
}

func TestGuards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free, cage := &memory{}, &memory{server: always}
		refuse := errors.New("its files were changed")
		var check error
		rights := &sandbox.Rights{Workspace: "/w", Hosts: []string{"example.com"}}
		servers := map[string]core.Server{
			"checked":  {Command: "/srv", Plugin: "p1", Check: func() error { return check }},
			"confined": {Command: "/srv", Plugin: "p2", Rights: rights},
		}
		state := t.TempDir()
		known(t, free, mcp.Options{State: state, Cage: cage}, servers).Close(t.Context())
		p := memoryPool(t, free, mcp.Options{State: state})
		defer closePool(t, p)
		p.Use(servers, 0)

		check = refuse
		for range 5 { // it is no failure of the server
			if _, err := call(t, find(t, p, servers, "checked__echo"), ""); !errors.Is(err, refuse) || free.starts() != 0 {
				t.Errorf("%v, %d starts", err, free.starts())
			}
		}
		check = nil
		if _, err := call(t, find(t, p, servers, "checked__echo"), ""); err != nil || free.plans[0].Rights != nil {
			t.Errorf("%v", err)
		}
		if _, err := p.Probe(t.Context(), "confined", servers["confined"]); err == nil ||
			!strings.HasSuffix(err.Error(), "chela config set plugins.entries.p2.sandbox false") {
			t.Errorf("without a cage: %v", err)
		}

		q := memoryPool(t, free, mcp.Options{State: state, Cage: cage})
		defer closePool(t, q)
		q.Use(servers, 0)
		if _, err := call(t, find(t, q, servers, "confined__echo"), ""); err != nil {
			t.Error(err)
		}
		if r := cage.plans[len(cage.plans)-1].Rights; r == nil || r == rights || !slices.Equal(r.Hosts, rights.Hosts) ||
			free.starts() != 1 {
			t.Errorf("rights %+v", r)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	t.Run("PL-12 tools of plug-ins have their own names, others that of their server",
		func(t *testing.T) { synctest.Test(t, names) })
}

func names(t *testing.T) {
	m := &memory{}
	own := core.Server{Command: "/srv", Plugin: "voice",
		Own: []core.Declared{{Name: "echo"}, {Name: "wait", Optional: true}, {Name: "gone"}}}
	servers := map[string]core.Server{"a": one, "b": one, "x y": one, "x-y": one, "own": own}
	p := known(t, m, mcp.Options{}, servers)
	defer closePool(t, p)
	echo, wait := find(t, p, servers, "echo").Spec(), find(t, p, servers, "wait").Spec()
	if echo.Plugin != "voice" || echo.Optional || !wait.Optional {
		t.Errorf("%+v, %+v", echo, wait)
	}
	if _, err := call(t, find(t, p, servers, "echo"), ""); err != nil {
		t.Error(err)
	}
	tools := p.Tools(servers)
	if n := len(tools); n != 35 ||
		!slices.IsSortedFunc(tools, func(a, b tool.Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) }) {
		t.Errorf("%d tools", n)
	}
	for name, want := range map[string]string{"a__echo": "a", "b__echo": "b", "x-y__echo": "x y"} {
		if text, err := call(t, find(t, p, servers, name), "hi"); err != nil ||
			!strings.Contains(text, `source="MCP server `+want+`"`) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	set := tool.NewSet(tools...)
	if notes := set.Notes(); len(notes) != 0 || len(set.Names()) != 35 {
		t.Errorf("%q", notes)
	}
	for _, st := range p.Status() {
		switch d := strings.Join(st.Diagnostics, "\n"); st.Name {
		case "own":
			if len(st.Tools) != 2 || st.Plugin != "voice" || len(st.Diagnostics) != 10 ||
				!strings.Contains(d, "tool env: the plug-in does not declare it") ||
				!strings.Contains(d, "tool gone: the plug-in declares it") {
				t.Errorf("%+v", st)
			}
		case "x-y":
			if len(st.Tools) != 0 || !strings.Contains(d, "tool echo: server x y has a tool with the same name, x-y__echo") {
				t.Errorf("%+v", st)
			}
		default:
			if len(st.Tools) != 11 || d != "" {
				t.Errorf("%+v", st)
			}
		}
	}
}

func TestCallersShareAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := errors.New("no such file")
		var broken atomic.Bool
		m := &memory{server: func(sandbox.Plan) (*sdk.Server, error) {
			time.Sleep(time.Second)
			if broken.Load() {
				return nil, fails
			}
			return good(), nil
		}}
		servers := map[string]core.Server{"srv": one}
		p := known(t, m, mcp.Options{}, servers)
		defer closePool(t, p)
		x := find(t, p, servers, "srv__echo")
		all := func() (failed int) {
			var calls sync.WaitGroup
			var errs [10]error
			for i := range errs {
				calls.Go(func() { _, errs[i] = call(t, x, "") })
			}
			calls.Wait()
			for _, err := range errs {
				if err != nil {
					failed++
				}
			}
			return failed
		}
		broken.Store(true)
		if failed := all(); failed != 10 || m.starts() != 1 {
			t.Errorf("%d calls failed, %d starts", failed, m.starts())
		}
		broken.Store(false)
		if failed := all(); failed != 0 || m.starts() != 2 {
			t.Errorf("%d calls failed, %d starts", failed, m.starts())
		}
		// A caller that leaves does not end the start for others.
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := run(ctx, x, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if _, err := call(t, x, ""); err != nil || m.starts() != 3 {
			t.Errorf("%v, %d starts", err, m.starts())
		}
	})
}
