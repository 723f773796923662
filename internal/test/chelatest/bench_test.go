//go:build unix

package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report adds quantiles of the times, and the processor time per operation, to
// the results of a benchmark.
func report(b *testing.B, times []time.Duration, used time.Duration) {
	b.ReportMetric(quantile(times, 0.5), "p50-ms")
	b.ReportMetric(quantile(times, 0.95), "p95-ms")
	b.ReportMetric(float64(used)/1e6/float64(len(times)), "cpu-ms/turn")
	b.ReportMetric(0, "ns/op")
}

// quantile returns a quantile of times in milliseconds. It sorts them.
func quantile(times []time.Duration, f float64) float64 {
	slices.Sort(times)
	return float64(times[int(f*float64(len(times)-1))]) / 1e6
}

// echo is a model that always gives the same answer immediately.
type echo string

func (e echo) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m := &llm.Message{
			Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(string(e))}, Provider: "mock", Model: r.Model, Stop: llm.StopEnd,
		}
		if yield(llm.Event{Kind: llm.TextDelta, Text: string(e)}, nil) {
			yield(llm.Event{Kind: llm.Done, Message: m, Usage: llm.Usage{Input: 10, Output: 1}}, nil)
		}
	}
}

func quiet(b testing.TB, o Options) *Gateway {
	o.Log = slog.New(slog.DiscardHandler)
	return Start(b, o)
}

// BenchmarkTurn measures a trivial turn of one session, from chat.send to the
// final event, with a model in this process.
func BenchmarkTurn(b *testing.B) {
	c := quiet(b, Options{Model: echo("ok")}).Client()
	c.Ask("main", "warm up")
	var times []time.Duration
	begun := cpu()
	for b.Loop() {
		at := time.Now()
		c.Ask("main", "hi")
		times = append(times, time.Since(at))
	}
	report(b, times, cpu()-begun)
}

// BenchmarkTurn64 measures 64 concurrent sessions over one connection.
func BenchmarkTurn64(b *testing.B) {
	const n = 64
	c := quiet(b, Options{Model: echo("ok"), Config: Config{
		"agents.defaults": json.RawMessage(`{"maxConcurrent": 64}`),
	}}).Client()
	var times []time.Duration
	worst := make([]time.Duration, n)
	begun := cpu()
	for b.Loop() {
		runs := map[string]int{}
		at := time.Now()
		for i := range n {
			runs[c.Send("s"+strconv.Itoa(i), "hi")] = i
		}
		for len(runs) > 0 {
			run := c.next()
			i, ok := runs[run]
			if !ok {
				continue
			}
			delete(runs, run)
			took := time.Since(at)
			times = append(times, took)
			worst[i] = max(worst[i], took)
		}
	}
	report(b, times, cpu()-begun)
	b.ReportMetric(float64(slices.Max(worst))/float64(slices.Min(worst)), "worst/best-session")
}

// next returns the id of the next run that ends.
func (c *Client) next() string {
	for ev := range c.Events() {
		var chat wire.Chat
		if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.State != wire.StateDelta {
			return chat.RunID
		}
	}
	c.t.Fatal("the connection was closed")
	return ""
}

// seed writes a session with 2,000 messages and 5 MB to a state directory.
func seed(b testing.TB, dir string) {
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	err = db.Update(context.Background(), store.Synced, func(tx store.Tx) error {
		m := session.Meta{
			Key:     chela.MainSession(chela.DefaultAgent),
			ID:      "long",
			Agent:   chela.DefaultAgent,
			Created: now,
			Started: now,
			Updated: now,
			Active:  now,
		}
		if err := tx.Sessions().Put(m); err != nil {
			return err
		}
		text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 56)
		for i := range 2000 {
			msg := llm.User(fmt.Sprintf("%d %s", i, text))
			if i%2 == 1 {
				msg.Role, msg.Provider, msg.Model, msg.Stop = llm.RoleAssistant, "mock", "m", llm.StopEnd
			}
			e := &session.Entry{ID: strconv.Itoa(i), Kind: session.KindMessage, Time: now, Message: msg}
			if err := tx.Sessions().Append("long", e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSessions measures sessions.list with 100 of 10,000 sessions: the
// newest ones, and those that match a search.
func BenchmarkSessions(b *testing.B) {
	dir := b.TempDir()
	populate(b, dir, 10_000)
	c := quiet(b, Options{Dir: dir, Model: echo("ok")}).Client()
	b.Run("newest", func(b *testing.B) {
		call(b, c, wire.MethodSessionsList, wire.SessionsList{Limit: 100}, `"key":`, 100)
	})
	b.Run("search", func(b *testing.B) {
		call(b, c, wire.MethodSessionsList, wire.SessionsList{Limit: 100, Search: "harbour"}, `"key":`, 100)
	})
}

// call measures calls of a method. The result must contain the text want times.
func call(b *testing.B, c *Client, method string, params any, text string, want int) {
	var times []time.Duration
	var result json.RawMessage
	begun := cpu()
	for b.Loop() {
		at := time.Now()
		if err := c.Call(b.Context(), method, params, &result); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(at))
	}
	report(b, times, cpu()-begun)
	if n := bytes.Count(result, []byte(text)); n != want {
		b.Errorf("%s: %d of %s, want %d", method, n, text, want)
	}
}

// populate writes sessions to a state directory. Every tenth one mentions a
// harbour.
func populate(b testing.TB, dir string, n int) {
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now := time.Now().Add(-24 * time.Hour)
	err = db.Update(context.Background(), store.Synced, func(tx store.Tx) error {
		for i := range n {
			at := now.Add(time.Duration(i) * time.Second)
			m := session.Meta{
				Key: chela.SessionKey(fmt.Sprintf("agent:main:s-%d", i)), ID: strconv.Itoa(i), Agent: chela.DefaultAgent,
				Title: "What is the weather like at sea", Created: at, Started: at, Updated: at, Active: at,
				Tokens: llm.Usage{Input: 12_345, Output: 678}, Context: 4321, Calls: 7,
			}
			if i%10 == 0 {
				m.Title = "What is the weather like in the Harbour"
			}
			if err := tx.Sessions().Put(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// mock returns a model server that answers "ok" immediately and records when
// each request was complete.
func mock(b testing.TB) (url string, arrived *[]time.Time) {
	arrived = new([]time.Time)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		*arrived = append(*arrived, time.Now())
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":null}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	b.Cleanup(srv.Close)
	return srv.URL, arrived
}

func served(url string) Config {
	return Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m"}`),
		"models": json.RawMessage(fmt.Sprintf(
			`{"providers": {"mock": {"baseUrl": %q, "api": "openai-completions", "models": [{"id": "m", "contextWindow": 10000000}]}}}`, url+"/v1")),
	}
}

// BenchmarkLong measures a turn in a session with 2,000 messages and 5 MB over
// HTTP: the time that the gateway adds before and after the model, warm and for
// the first turn after a start.
func BenchmarkLong(b *testing.B) {
	b.Run("warm", func(b *testing.B) {
		dir := b.TempDir()
		seed(b, dir)
		url, _ := mock(b)
		c := quiet(b, Options{Dir: dir, Config: served(url)}).Client()
		c.Ask("main", "warm up")
		var times []time.Duration
		begun := cpu()
		for b.Loop() {
			at := time.Now()
			c.Ask("main", "hi")
			times = append(times, time.Since(at))
		}
		report(b, times, cpu()-begun)
	})
	b.Run("first", func(b *testing.B) {
		dir := b.TempDir()
		seed(b, dir)
		url, _ := mock(b)
		var times []time.Duration
		var used time.Duration
		for b.Loop() {
			b.StopTimer()
			g := quiet(b, Options{Dir: dir, Config: served(url)})
			c := g.Client()
			b.StartTimer()
			begun, at := cpu(), time.Now()
			c.Ask("main", "hi")
			times = append(times, time.Since(at))
			used += cpu() - begun
			b.StopTimer()
			c.Close()
			g.Stop()
			b.StartTimer()
		}
		report(b, times, used)
	})
}

// binary builds the product as it is released.
func binary(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "chela")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "../../../cmd/chela")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { b.ReportMetric(float64(info.Size())/1e6, "binary-MB") })
	return path
}

// home creates a state directory with a configuration that names a model
// server.
func home(b *testing.B, url string) []string {
	b.Helper()
	dir := b.TempDir()
	conf := fmt.Sprintf(`{agents: {defaults: {model: "mock/m"}}, models: {providers: {mock: {baseUrl: %q, api: "openai-completions", models: [{id: "m"}]}}}}`, url+"/v1")
	if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	return append(os.Environ(), "CHELA_STATE_DIR="+dir)
}

// BenchmarkAgent measures `chela agent -m hi`: a process from start to exit, on
// an existing state directory.
func BenchmarkAgent(b *testing.B) {
	bin := binary(b)
	url, _ := mock(b)
	env := home(b, url)
	ask := func() {
		cmd := exec.Command(bin, "agent", "-m", "hi")
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ok") {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	ask()
	var times []time.Duration
	for b.Loop() {
		at := time.Now()
		ask()
		times = append(times, time.Since(at))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/1e6, "p50-ms")
	b.ReportMetric(0, "ns/op")
}

var initTook = regexp.MustCompile(`init (\S+) @\S+ ms, (\S+) ms clock`)

// BenchmarkInit measures the initialization of packages before main: all of
// them, and the slowest one.
func BenchmarkInit(b *testing.B) {
	bin := binary(b)
	var sum, most []time.Duration
	for b.Loop() {
		cmd := exec.Command(bin, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		var total, top time.Duration
		for _, m := range initTook.FindAllSubmatch(out, -1) {
			ms, err := strconv.ParseFloat(string(m[2]), 64)
			if err != nil {
				b.Fatal(err)
			}
			d := time.Duration(ms * 1e6)
			total += d
			top = max(top, d)
		}
		sum, most = append(sum, total), append(most, top)
	}
	slices.Sort(sum)
	slices.Sort(most)
	b.ReportMetric(float64(sum[len(sum)/2])/1e6, "all-ms")
	b.ReportMetric(float64(most[len(most)/2])/1e6, "slowest-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdle measures the memory of an idle engine after ten messages:
// anonymous, and resident.
func BenchmarkIdle(b *testing.B) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		needtest.Missing(b, "/proc/self/smaps_rollup")
	}
	url, _ := mock(b)
	for b.Loop() {
		dir := b.TempDir()
		writeConfig(b, dir, served(url))
		p := spawn(b, dir, "")
		cl, err := client.Dial(context.Background(), client.Options{Dial: dial(dir), Caps: []string{wire.CapToolEvents}})
		if err != nil {
			b.Fatal(err)
		}
		tc := &Client{Client: cl, t: b}
		for range 10 {
			tc.Ask("main", "hi")
		}
		cl.Close()
		time.Sleep(8 * time.Second) // memory of the turns is returned
		b.ReportMetric(memory(b, p.Process.Pid, "Anonymous"), "anonymous-MB")
		b.ReportMetric(memory(b, p.Process.Pid, "Rss"), "resident-MB")
		p.stop(b)
	}
	b.ReportMetric(0, "ns/op")
}

// memory reads a memory value of a process, in MB.
func memory(b *testing.B, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			kb, err := strconv.Atoi(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))))
			if err != nil {
				b.Fatal(err)
			}
			return float64(kb) * 1024 / 1e6
		}
	}
	b.Fatalf("no %s in smaps_rollup", name)
	return 0
}
