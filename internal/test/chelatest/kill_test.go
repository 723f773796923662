//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// The kill driver. The engine runs in a separate process and is killed, at
// random and before every named step of a run. The driver is its client and
// model server. It checks what is visible from outside: the answers, the
// effects of tools, and in the end the rows in the database.

const (
	childDir  = "CHELA_TEST_CHILD"     // state directory; if set, the process is the engine
	childStep = "CHELA_TEST_KILL_STEP" // name:count of the step before which it dies
	cyclesEnv = "CHELA_TEST_KILLS"     // number of cycles; `make kill` uses more
)

// steps are the points of a run before which the process is killed.
var steps = [...]string{"run.begin", "run.execute", "model.end", "tool.start", "tool.run", "tool.end", "run.end", "run.ended", "run.resume"}

// TestMain makes the test binary the engine that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child is the engine, until it is killed.
func child(dir string) error {
	name, count, _ := strings.Cut(os.Getenv(childStep), ":")
	left, _ := strconv.Atoi(count)
	var n atomic.Int64
	step := func(s string) {
		if s == name && n.Add(1) == int64(left) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	o := app.Options{Log: log, State: dir, Config: fileConfig(dir), Env: func(string) string { return "" }, Step: step,
		Registry: standard.New()}
	o.Registry.Channel(Account("file", fileChannel{dir, step}, channel.Limits{}))
	e, err := app.New(context.Background(), o)
	for end := time.Now().Add(5 * time.Second); errors.Is(err, statedir.ErrOwned) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		e, err = app.New(context.Background(), o)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) // the driver closes it to stop the engine gracefully
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return e.Close(ctx)
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

// driver floods engines with messages and kills them.
type driver struct {
	t    *testing.T
	dir  string
	rnd  *rand.Rand
	next int // number of the next message

	mu       sync.Mutex
	accepted map[int]bool // messages that the engine acknowledged
	offered  map[int]string
}

const sessions = 3

func sessionFor(n int) string { return "agent:main:s" + strconv.Itoa(n%sessions) }

// TestKill kills the engine 200 times (or CHELA_TEST_KILLS times) and then lets
// it finish.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	cycles := 200
	if s := os.Getenv(cyclesEnv); s != "" {
		var err error
		if cycles, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d cycles", seed, cycles)
	d := &driver{
		t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 1)),
		accepted: map[int]bool{}, offered: map[int]string{},
	}
	model := httptest.NewServer(modelHandler(d))
	defer model.Close()
	d.configure(model.URL)
	for i := range cycles {
		d.cycle(i)
		if t.Failed() {
			return
		}
	}
	d.finish()
	t.Run("REC-05 no accepted message lost, none answered twice, no effect twice", func(t *testing.T) {
		d.t = t
		d.judge()
	})
}

func (d *driver) configure(url string) {
	c := Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m", "skipBootstrap": true}`),
		"messages":        json.RawMessage(`{"queue": {"mode": "followup", "cap": 10000}}`),
		"tools":           json.RawMessage(`{"exec": {"mode": "full"}}`),
		"models": json.RawMessage(fmt.Sprintf(
			`{"providers": {"mock": {"baseUrl": %q, "api": "openai-completions", "models": [{"id": "m", "contextWindow": 1000000}]}}}`, url+"/v1")),
	}
	b, err := json.Marshal(c)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "test.json"), b, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// spawn starts an engine and waits until it is ready.
func (d *driver) spawn(t testing.TB, step string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+d.dir, childStep+"="+step, "GORACE=halt_on_error=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	_, err = io.ReadFull(out, line) // a step may kill it before that
	if err != nil && step == "" {
		t.Fatalf("the engine did not start: %v", cmd.Wait())
	}
	return cmd, in
}

// cycle starts an engine, floods it, and kills it.
func (d *driver) cycle(i int) {
	step := ""
	if i%2 == 0 {
		step = fmt.Sprintf("%s:%d", steps[(i/2)%len(steps)], 1+d.rnd.IntN(3))
	}
	cmd, in := d.spawn(d.t, step)
	defer in.Close()
	after := time.Duration(1+d.rnd.IntN(90)) * time.Millisecond
	if step != "" {
		after = 400 * time.Millisecond // killed by the step, or idle
	}
	died := make(chan struct{})
	go func() { cmd.Wait(); close(died) }()
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	d.flood(ctx, died)
	select {
	case <-died:
	case <-ctx.Done():
		cmd.Process.Kill()
		<-died
	}
}

func dial(dir string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "chela.sock"))
	}
}

// flood sends messages until the engine is gone. It sends some of them twice,
// and repeats those that were never acknowledged.
func (d *driver) flood(ctx context.Context, died <-chan struct{}) {
	c, err := client.Dial(ctx, client.Options{Dial: dial(d.dir), Once: true})
	if err != nil {
		return
	}
	defer c.Close()
	for k := 0; k < 4; k++ {
		d.offer(ctx, c, d.pick())
	}
	select {
	case <-died:
	case <-ctx.Done():
	}
}

// pick returns the number of a message to send: a new one, one that was never
// acknowledged, or one that was.
func (d *driver) pick() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next > 0 && d.rnd.IntN(4) == 0 {
		return d.rnd.IntN(d.next)
	}
	for n := range d.offered {
		if !d.accepted[n] {
			return n
		}
	}
	d.next++
	return d.next - 1
}

func (d *driver) offer(ctx context.Context, c *client.Client, n int) {
	d.mu.Lock()
	text := d.offered[n]
	if text == "" {
		kind := [...]string{"plain", "read", "effect", "effect"}[d.rnd.IntN(4)]
		text = fmt.Sprintf("%s %d", kind, n)
		d.offered[n] = text
	}
	d.mu.Unlock()
	var sent wire.ChatSent
	err := c.Call(ctx, wire.MethodChatSend, wire.ChatSend{
		SessionKey: sessionFor(n), Message: text, IdempotencyKey: "m" + strconv.Itoa(n),
	}, &sent)
	if err == nil {
		d.mu.Lock()
		d.accepted[n] = true
		d.mu.Unlock()
		return
	}
	if we, ok := errors.AsType[*wire.Error](err); ok {
		d.t.Errorf("message %d was refused: %v", n, we)
	}
}

func modelHandler(d *driver) http.Handler { return http.HandlerFunc(d.model) }

// model is the model server: it requests the tool that the newest message
// names, and answers "done N" after the result.
func (d *driver) model(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
		} `json:"messages"`
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ask, done := "", false
	for _, m := range req.Messages {
		switch m.Role {
		case "user":
			if found := asked.FindString(string(m.Content)); found != "" {
				ask, done = found, false
			}
		case "tool":
			done = true
		}
	}
	kind, num, _ := strings.Cut(ask, " ")
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish string) {
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	switch {
	case done || kind == "plain" || kind == "":
		send(fmt.Sprintf(`{"content":"done %s"}`, num), "null")
		send(`{}`, `"stop"`)
	default:
		name, args := "read", `{"path":"AGENTS.md"}`
		if kind == "effect" {
			name, args = "exec", fmt.Sprintf(`{"command":"echo %s >> effects.txt"}`, num)
		}
		quoted, _ := json.Marshal(args)
		send(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%s","type":"function","function":{"name":%q,"arguments":%s}}]}`, num, name, quoted), "null")
		send(`{}`, `"tool_calls"`)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

var asked = regexp.MustCompile(`(plain|read|effect) \d+`)

// finish repeats the messages that were never acknowledged, and lets the engine
// work until nothing is left to do.
func (d *driver) finish() {
	cmd, in := d.spawn(d.t, "")
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Options{Dial: dial(d.dir), Once: true})
	if err != nil {
		d.t.Fatal(err)
	}
	for n := range d.next {
		if !d.accepted[n] {
			d.offer(ctx, c, n)
		}
	}
	for n := range d.next {
		var w wire.AgentWaited
		err := c.Call(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: "m" + strconv.Itoa(n), TimeoutMs: 30_000}, &w)
		if err != nil || w.Status == "timeout" {
			d.t.Errorf("message %d was not answered: %v %s", n, err, w.Status)
		}
	}
	c.Close()
	in.Close()
	if err := cmd.Wait(); err != nil {
		d.t.Errorf("the engine did not stop gracefully: %v", err)
	}
}

// judge checks the rows and the effects of the tools.
func (d *driver) judge() {
	t := d.t
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(d.dir, "chela.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	asked, answered := map[int]int{}, map[int]int{}
	notices, resumed := map[chela.RunID]string{}, 0
	err = db.View(context.Background(), func(r store.Reader) error {
		for s := range sessions {
			key := chela.SessionKey(sessionFor(s))
			left, err := r.Queue().Waiting(key)
			if err != nil {
				return err
			}
			if len(left) > 0 {
				t.Errorf("session %s: %d items are still queued", key, len(left))
			}
			active, err := r.Runs().Active(key)
			if err != nil {
				return err
			}
			if len(active) > 0 {
				t.Errorf("session %s: run %s is still %s", key, active[0].ID, active[0].State)
			}
			m, err := r.Sessions().Get(key)
			if err != nil {
				return err
			}
			entries, err := r.Sessions().Entries(m.ID, 0, 0)
			if err != nil {
				return err
			}
			for _, e := range entries {
				d.count(e, asked, answered)
				if e.Kind == session.KindNotice {
					notices[e.Run] = e.Text
					resumed++
				}
			}
		}
		for n := range d.next {
			it, err := r.Queue().Get("m" + strconv.Itoa(n))
			if err != nil {
				return err
			}
			if it.State != queue.Done {
				t.Errorf("message %d ended as %s", n, it.State)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	effects := d.effects()
	var given int
	for n := range d.next {
		if asked[n] != 1 {
			t.Errorf("message %d (%s) is in the transcript %d times", n, d.offered[n], asked[n])
		}
		if answered[n] > 1 {
			t.Errorf("message %d (%s) was answered %d times", n, d.offered[n], answered[n])
		}
		if answered[n] == 0 && notices[chela.RunID("m"+strconv.Itoa(n))] == "" {
			t.Errorf("message %d (%s) was neither answered nor closed with a notice", n, d.offered[n])
		}
		if answered[n] == 0 {
			given++
		}
		if effects[n] > 1 {
			t.Errorf("the tool of message %d ran %d times", n, effects[n])
		}
	}
	t.Logf("%d messages, %d notices of interruption, %d closed without an answer, %d effects", d.next, resumed, given, len(effects))
}

// count returns the message that an entry asks or answers.
func (d *driver) count(e session.Entry, asked, answered map[int]int) {
	if e.Kind != session.KindMessage {
		return
	}
	var n int
	text := e.Message.PlainText()
	switch {
	case e.Message.Role == llm.RoleUser && e.ItemID != "":
		if _, err := fmt.Sscanf(e.ItemID, "m%d", &n); err == nil {
			asked[n]++
		}
	case e.Message.Role == llm.RoleAssistant && len(e.Message.Calls()) == 0:
		if _, err := fmt.Sscanf(text, "done %d", &n); err == nil {
			answered[n]++
		}
	}
}

// effects returns how often the tool of each message ran.
func (d *driver) effects() map[int]int {
	out := map[int]int{}
	b, err := os.ReadFile(filepath.Join(d.dir, "workspace", "effects.txt"))
	if err != nil {
		d.t.Errorf("no tool had an effect: %v", err)
		return out
	}
	for line := range strings.Lines(string(b)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			d.t.Errorf("effects: %v", err)
		}
		out[n]++
	}
	return out
}
