//go:build unix

package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
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
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	core "github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp"
)

// newPool returns a Pool that is closed at the end of the test.
func newPool(t testing.TB, o mcp.Options) *mcp.Pool {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	if o.Broker == nil {
		o.Broker = host.Broker{}
	}
	if o.State == "" {
		o.State = t.TempDir()
	}
	if o.Environ == nil {
		o.Environ = []string{"PATH=/usr/bin:/bin", "LANG=C", "OPENAI_API_KEY=s3cret"}
	}
	o.Label = untrusted.New()
	p := mcp.New(o)
	p.Discover()
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return p
}

// program returns the description of this test binary as a server.
func program(t testing.TB, mode string) core.Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return core.Server{Command: exe, Env: map[string]string{variable: mode}, ConnectMS: patientMS, RequestMS: patientMS}
}

// start returns a Pool with one server in force, and its tools.
func start(t testing.TB, s core.Server) (*mcp.Pool, map[string]tool.Tool) {
	t.Helper()
	changed, notify := signal()
	p := newPool(t, mcp.Options{Changed: notify})
	return p, inForce(t, p, map[string]core.Server{"srv": s}, changed, 1)
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestProgram(t *testing.T) {
	t.Parallel()
	s := program(t, "good")
	s.Env["TOKEN"], s.Env["LD_PRELOAD"] = "t0ken", "/x.so"
	s.Args = []string{"-x"}
	p, tools := start(t, s)

	t.Run("MCP-01 PL-09 the tools of a program are callable", func(t *testing.T) {
		names := []string{"srv__admin-fail", "srv__crash", "srv__echo", "srv__env", "srv__huge", "srv__pid", "srv__read",
			"srv__rich", "srv__sleep", "srv__structured", "srv__wait"}
		var got []string
		for _, x := range p.Tools(map[string]core.Server{"srv": s}) {
			got = append(got, x.Spec().Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("%q, want %q", got, names)
		}
		text, err := call(t, tools["srv__echo"], "hello")
		if err != nil || !strings.Contains(text, "\nhello\n") || !strings.HasPrefix(text, "<untrusted-content ") ||
			!strings.Contains(text, `source="MCP server srv"`) {
			t.Errorf("%s, %v", text, err)
		}
	})
	t.Run("MCP-01 PL-09 the filter selects tools", func(t *testing.T) {
		s := s
		s.Filter = core.ToolFilter{Include: []string{"e*", "admin.*"}, Exclude: []string{"env"}}
		var got []string
		for _, x := range p.Tools(map[string]core.Server{"srv": s}) {
			got = append(got, x.Spec().Name)
		}
		if want := []string{"srv__admin-fail", "srv__echo"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("specs", func(t *testing.T) {
		spec, acts := tools["srv__echo"].Spec(), tools["srv__env"].Spec()
		if spec.Label != "Say it again" || spec.Effect != tool.Reads || acts.Effect != tool.Acts || spec.Parallel ||
			spec.Plugin != mcp.Bundle || spec.Optional || spec.Description != "Returns the text." {
			t.Errorf("%+v", spec)
		}
	})
	t.Run("the environment has no secrets of Chela", func(t *testing.T) {
		text, err := call(t, tools["srv__env"], "")
		if err != nil || strings.Contains(text, "s3cret") || !strings.Contains(text, "TOKEN=t0ken") ||
			!strings.Contains(text, "LANG=C") || !strings.Contains(text, " -x") {
			t.Errorf("%s, %v", text, err)
		}
	})
	t.Run("MCP-04 a variable that loads code is not set, and said", func(t *testing.T) {
		text, err := call(t, tools["srv__env"], "")
		if st := p.Status()[0]; err != nil || strings.Contains(text, "LD_PRELOAD") ||
			!strings.Contains(strings.Join(st.Diagnostics, "\n"), "LD_PRELOAD") {
			t.Errorf("%s, %v, %+v", text, err, st)
		}
	})
	t.Run("all kinds of content", func(t *testing.T) {
		r, err := run(t.Context(), tools["srv__rich"], "")
		if err != nil {
			t.Fatal(err)
		}
		text := content(r)
		for _, want := range []string{"look: [mark removed]", "[image, image/svg+xml, 6 bytes: not shown",
			"[audio, audio/wav, 3 bytes", "[resource file:///a.txt]\ninside", "[resource https://example.com/x] x"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
		images := 0
		for _, p := range r.Content {
			if p.Kind == llm.PartImage && p.MIME == "image/png" {
				images++
			}
		}
		if images != 2 || !strings.Contains(string(r.Details), `"structuredContent":{"n":3}`) {
			t.Errorf("%d images, details %s", images, r.Details)
		}
	})
	t.Run("only structured content", func(t *testing.T) {
		if text, err := call(t, tools["srv__structured"], ""); err != nil || !strings.Contains(text, `{"sum":7}`) {
			t.Errorf("%s, %v", text, err)
		}
	})
	t.Run("a long text is cut", func(t *testing.T) {
		r, err := run(t.Context(), tools["srv__huge"], "")
		if n := len([]rune(content(r))); err != nil || n < 40_000 || n > 40_500 ||
			!strings.HasPrefix(content(r), "The result is too long") ||
			!strings.Contains(string(r.Details), `"truncated":true`) {
			t.Errorf("%d characters, %s, %v", n, r.Details, err)
		}
	})
	t.Run("an error of the tool", func(t *testing.T) {
		r, err := run(t.Context(), tools["srv__admin-fail"], "")
		if err != nil || !r.IsError || !strings.Contains(content(r), "no such record") {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("cancel in the middle", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "cancelled")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var said []string
		args, _ := json.Marshal(echoArgs{file})
		_, err := tools["srv__wait"].Run(ctx,
			tool.Call{Args: args, Update: func(s string) { said = append(said, s); cancel() }})
		if !errors.Is(err, context.Canceled) || !slices.Equal(said, []string{"step 1"}) {
			t.Errorf("%v, %q", err, said)
		}
		waittest.Until(t, "the program was told", func() bool { return exists(file) })
	})
	t.Run("two callers share a program", func(t *testing.T) {
		var wg sync.WaitGroup
		var pids [8]string
		for i := range pids {
			wg.Go(func() { pids[i], _ = call(t, tools["srv__pid"], "") })
		}
		wg.Wait()
		st := p.Status()[0]
		for _, pid := range pids {
			if !strings.Contains(pid, fmt.Sprintf("\n%d\n", st.PID)) {
				t.Errorf("%s, want process %d", pid, st.PID)
			}
		}
		if st.State != mcp.Running || len(st.Tools) != 11 || st.Plugin != mcp.Bundle || st.Used.IsZero() {
			t.Errorf("%+v", st)
		}
	})
	t.Run("MCP-02 PL-06 a crash fails the call, and the next one starts the program anew", func(t *testing.T) {
		_, err := call(t, tools["srv__crash"], "")
		if err == nil ||
			err.Error() != `MCP server srv: the program ended with exit status 3. It printed last: "panic: the disk is full"` {
			t.Errorf("error %v", err)
		}
		if text, err := call(t, tools["srv__echo"], "again"); err != nil || !strings.Contains(text, "again") {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// A server that misbehaves fails the call only.
func TestBadPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode      string
		want      string // error of a call; "": it succeeds
		connectMS int
		requestMS int
	}{
		{mode: "banner"},
		{mode: "chatty"},
		{mode: "notifies"},
		{mode: "exit",
			want: `MCP server srv: the program ended with exit status 4. It printed last: "Error: cannot find module 'left-pad'"`},
		{mode: "mute", want: "MCP server srv: it did not answer within 300ms", connectMS: 300},
		{mode: "deaf", want: "MCP server srv: it did not answer within 300ms", connectMS: 300},
		{mode: "wrong-id", want: "MCP server srv: it did not answer within 300ms", connectMS: 300},
		{mode: "words", want: `MCP server srv: it did not answer within 300ms. It printed last: "syntax error near line 1"`,
			connectMS: 300},
		{mode: "nonsense", want: "invalid character"},
		{mode: "nonsense-in-call", want: "invalid character"},
		{mode: "long-line", want: "maximum line length"},
		{mode: "wrong-result", want: "MCP server srv: "},
		{mode: "rpc-error", want: `MCP server srv: "text: is missing"`},
		{mode: "closes", want: "MCP server srv: echo did not answer within 200ms", requestMS: 200},
		{mode: "hangs", want: "MCP server srv: echo did not answer within 200ms", requestMS: 200},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			s := program(t, tt.mode)
			state := t.TempDir()
			cacheTools(t, state, s)
			s.RequestMS = cmp.Or(tt.requestMS, s.RequestMS)
			var text, want string
			var err error
			for ms := cmp.Or(tt.connectMS, patientMS); ; ms = min(4*ms, patientMS) {
				s.ConnectMS = ms
				want = strings.Replace(tt.want, "300ms", (time.Duration(ms) * time.Millisecond).String(), 1)
				p := newPool(t, mcp.Options{State: state})
				tools := inForce(t, p, map[string]core.Server{"srv": s}, nil, 1)
				text, err = call(t, tools["srv__echo"], "hello")
				if tt.mode != "words" || strings.Contains(fmt.Sprint(err), "printed") || ms == patientMS {
					break
				} // a busy machine can take longer until it prints something
			}
			switch {
			case tt.want == "" && (err != nil || !strings.Contains(text, "hello")):
				t.Errorf("%s, %v", text, err)
			case tt.want != "" &&
				(err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "MCP server srv: ")):
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// cacheTools stores the list of a server's tools, so that it need not be asked.
func cacheTools(t *testing.T, state string, s core.Server) {
	t.Helper()
	changed, notify := signal()
	p := newPool(t, mcp.Options{State: state, Changed: notify, Broker: swap{}})
	inForce(t, p, map[string]core.Server{"srv": s}, changed, 1)
}

// swap is a broker that starts the good server in place of others.
type swap struct{ host.Broker }

func (b swap) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	p.Env = append(p.Env, variable+"=good")
	return b.Broker.Start(ctx, p, out)
}

// TestChildrenAreEnded is the check MCP-07.
func TestChildrenAreEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := program(t, "good")
	s.Args, s.Command = []string{"-c", `sleep 1000 & echo $! > child; exec "$0"`, s.Command}, "sh"
	s.Dir = dir
	p, tools := start(t, s)
	text, err := call(t, tools["srv__pid"], "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	pid := p.Status()[0].PID
	if !strings.Contains(text, strconv.Itoa(pid)) || !alive(pid) || !alive(child) {
		t.Fatalf("%s: process %d, child %d", text, pid, child)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if alive(pid) || alive(child) {
		t.Error("a process is left")
	}
	if _, err := call(t, tools["srv__echo"], ""); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("a call after Close: %v", err)
	}
}

func TestCloseDuringCall(t *testing.T) {
	t.Parallel()
	p, tools := start(t, program(t, "good"))
	result := make(chan error, 1)
	_, err := tools["srv__wait"].Run(t.Context(), tool.Call{Args: []byte(`{"text":""}`), Update: func(string) {
		go func() { result <- p.Close(context.Background()) }()
	}})
	if err == nil || !strings.Contains(err.Error(), "MCP server srv: it was stopped") {
		t.Errorf("error %v", err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestUseDuringCall(t *testing.T) {
	t.Parallel()
	changed, notify := signal()
	p := newPool(t, mcp.Options{Changed: notify})
	old, other := program(t, "good"), program(t, "good")
	other.Args = []string{"-other"}
	servers := map[string]core.Server{"a": old, "b": old}
	tools := inForce(t, p, servers, changed, 22)
	if _, err := call(t, tools["b__echo"], "x"); err != nil {
		t.Fatal(err)
	}
	before := p.Status()
	done := make(chan error, 1)
	go func() {
		_, err := call(t, tools["a__sleep"], "700ms")
		done <- err
	}()
	time.Sleep(200 * time.Millisecond)
	p.Use(map[string]core.Server{"a": other, "b": old}, 0)
	text, err := call(t, tools["a__env"], "")
	if err != nil || !strings.Contains(text, "-other") {
		t.Errorf("the new program: %s, %v", text, err)
	}
	if err := <-done; err != nil {
		t.Errorf("the call of the old one: %v", err)
	}
	after := p.Status()
	if before[1].PID != after[1].PID || before[0].PID == after[0].PID {
		t.Errorf("processes %+v, then %+v", before, after)
	}
	waittest.Until(t, "the old program has ended", func() bool { return !alive(before[0].PID) })
	p.Use(nil, 0)
	if _, err := call(t, tools["a__echo"], ""); err == nil || !strings.Contains(err.Error(), "not configured any more") {
		t.Errorf("a removed server: %v", err)
	}
}

func BenchmarkCall(b *testing.B) {
	_, tools := start(b, program(b, "good"))
	x := tools["srv__echo"]
	if _, err := call(b, x, "hello"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := call(b, x, "hello"); err != nil {
			b.Fatal(err)
		}
	}
}

// The cost of a start, with the list of the tools.
func BenchmarkProbe(b *testing.B) {
	p := newPool(b, mcp.Options{})
	for b.Loop() {
		if _, err := p.Probe(b.Context(), "srv", program(b, "good")); err != nil {
			b.Fatal(err)
		}
	}
}

func TestErrorsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	p := newPool(t, mcp.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "left-pad", "[redacted]") }})
	_, err := p.Probe(t.Context(), "srv", program(t, "exit"))
	if err == nil || !strings.HasSuffix(err.Error(), `It printed last: "Error: cannot find module '[redacted]'"`) {
		t.Errorf("error %v", err)
	}
}
