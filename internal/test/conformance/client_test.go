//go:build conformance

package conformance

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// said is an output line of the program around the reference client.
type said struct {
	ID      int             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *wire.Error     `json:"error"`
	Hello   *wire.Hello     `json:"hello"`
	Event   *wire.Event     `json:"event"`
	Closed  int             `json:"closed"`
	Gap     json.RawMessage `json:"gap"`
	Refused string          `json:"refused"`
}

// reference is the reference client in a separate process.
type reference struct {
	t     testing.TB
	in    io.Writer
	asked int

	mu   sync.Mutex
	all  []said
	more chan struct{} // closed and replaced with each line
}

func newReference(t testing.TB, s *gateway) *reference {
	t.Helper()
	module := filepath.Join(packages(t, current()), "@openclaw", "gateway-client", "dist", "index.mjs")
	cmd := exec.Command(node(t), filepath.Join("testdata", "client.mjs"), module, s.URL(), token)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &reference{t: t, in: in, more: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.read(out)
	}()
	t.Cleanup(func() {
		in.Close() // closed when it ends
		limit := time.AfterFunc(waittest.Limit, func() { _ = cmd.Process.Kill() })
		defer limit.Stop()
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("the client: %v", err)
		}
	})
	return r
}

func (r *reference) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var s said
		if err := json.Unmarshal(line, &s); err != nil {
			r.t.Errorf("the client wrote %s", line)
		}
		r.mu.Lock()
		r.all = append(r.all, s)
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
	}
}

// Said returns the output so far.
func (r *reference) Said() []said {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[:len(r.all):len(r.all)]
}

// Await returns the first line, from index n, that f accepts.
func (r *reference) Await(what string, n int, f func(said) bool) said {
	r.t.Helper()
	limit := time.After(waittest.Limit)
	for {
		r.mu.Lock()
		all, more := r.all, r.more
		r.mu.Unlock()
		for ; n < len(all); n++ {
			if f(all[n]) {
				return all[n]
			}
		}
		select {
		case <-more:
		case <-limit:
			r.t.Fatalf("%s did not arrive", what)
		}
	}
}

// Ask has the client make a request, which must succeed.
func (r *reference) Ask(method string, params, out any) {
	r.t.Helper()
	r.asked++
	id := r.asked
	b, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.in.Write(append(b, '\n')); err != nil {
		r.t.Fatal(err)
	}
	s := r.Await("the answer to "+method, 0, func(s said) bool { return s.ID == id })
	if s.Error != nil {
		r.t.Fatalf("%s: %v", method, s.Error)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(s.Result, out); err != nil {
		r.t.Fatalf("%s: %v", method, err)
	}
}

// Chat waits for the end of a run and returns its state and the text of its
// deltas.
func (r *reference) Chat(run string) (end wire.Chat, streamed string) {
	r.t.Helper()
	read := func(s said) (c wire.Chat, ok bool) {
		ok = s.Event != nil && s.Event.Name == wire.EventChat && json.Unmarshal(s.Event.Payload, &c) == nil && c.RunID == run
		return c, ok
	}
	r.Await("the end of "+run, 0, func(s said) bool {
		c, ok := read(s)
		end = c
		return ok && c.State != wire.StateDelta && c.State != "status"
	})
	for _, s := range r.Said() {
		c, ok := read(s)
		switch {
		case !ok || c.State != wire.StateDelta:
		case c.Replace:
			streamed = c.Delta
		default:
			streamed += c.Delta
		}
	}
	return end, streamed
}

// TestReferenceClient has the reference client chat and survive a restart of
// the gateway.
func TestReferenceClient(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	r := newReference(t, s)
	hello := func(n int) wire.Hello {
		return *r.Await("a hello", n, func(s said) bool { return s.Hello != nil || s.Refused != "" }).Hello
	}
	first := hello(0)
	if first.Auth.DeviceToken == "" || first.Protocol != wire.Version {
		t.Errorf("the hello of a new device: %+v", first.Auth)
	}

	r.Ask("chat.send", wire.ChatSend{SessionKey: "main", Message: "count", IdempotencyKey: "counted"}, nil)
	end, streamed := r.Chat("counted")
	if end.State != wire.StateFinal || end.Message.Text() != counted() || streamed != counted() {
		t.Errorf("count ended as %s %q, and %q was streamed", end.State, end.Message.Text(), streamed)
	}

	r.Ask("chat.send", wire.ChatSend{SessionKey: "main", Message: "wait", IdempotencyKey: "stopped"}, nil)
	r.Await("a delta", 0, func(s said) bool {
		return s.Event != nil && s.Event.Name == wire.EventChat &&
			strings.Contains(string(s.Event.Payload), `"runId":"stopped"`)
	})
	var aborted struct {
		OK, Aborted bool
		RunIDs      []string `json:"runIds"`
	}
	r.Ask("chat.abort", wire.ChatAbort{SessionKey: "main"}, &aborted)
	if end, streamed = r.Chat("stopped"); !aborted.Aborted || end.State != wire.StateAborted || streamed == "" {
		t.Errorf("abort: %+v, ended as %s after %q", aborted, end.State, streamed)
	}

	n := len(r.Said())
	s.Stop()
	closed := r.Await("the close", n, func(s said) bool { return s.Closed != 0 })
	if closed.Closed != wire.CloseRestart {
		t.Errorf("the connection was closed with code %d", closed.Closed)
	}
	s.Start()
	again := hello(n)
	if again.Server.BootID == first.Server.BootID {
		t.Error("the hello after the restart is that of the first process")
	}
	r.Ask("chat.send", wire.ChatSend{SessionKey: "main", Message: "echo I am back", IdempotencyKey: "back"}, nil)
	r.Chat("back")
	var h wire.History
	r.Ask("chat.history", wire.ChatHistory{SessionKey: "main", Limit: 50}, &h)
	var texts []string
	for _, m := range h.Messages {
		texts = append(texts, m.Role+": "+m.Text())
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"user: count", "assistant: " + strings.TrimSpace(counted()), "user: wait",
		"user: echo I am back", "assistant: I am back"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is not in the history once:\n%s", want, all)
		}
	}
	for _, s := range r.Said() {
		if s.Gap != nil {
			t.Errorf("a gap: %s", s.Gap)
		}
	}
}
