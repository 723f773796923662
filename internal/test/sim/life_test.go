package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/internal/test/power"
)

// life is one start of the gateway, until it is stopped or killed.
type life struct {
	w   *world
	n   int
	ctx context.Context // ends when the process is dead
	end context.CancelFunc
	g   *chelatest.Gateway
	db  store.Store // the store without failures

	killed  atomic.Bool // the process is dead
	crashed atomic.Bool // it was killed, not stopped
	commits atomic.Int64
	views   atomic.Int64
	updates atomic.Int64 // in progress
	shared  atomic.Bool  // the last synced commit was made at the same time as others
	armed   atomic.Bool  // the process is killed after the next commit
	fault   atomic.Int64 // number of commits until the one that fails; 0: chance decides
	steps   sync.Map     // name → *atomic.Int64
	// crash is the point at which the process is killed; the zero crash is none.
	crash crash
	once  sync.Once
	image power.Image // of the disk, at the crash
	disk  *power.Disk // nil: power is never lost
	work  sync.WaitGroup
	span  *span             // guarded by the mutex of the world
	web   *llmtest.Listener // the port; nil: there is none
}

// crash is a point at which the process is killed: before the nth pass of a step or after
// the commit that follows it, or before or after the nth commit.
type crash struct {
	step  string // empty: a commit
	n     int64
	after bool
	power bool // power is lost
	// shared counts only the passes of the step that follow a synced commit which was
	// made at the same time as others.
	shared bool
	torn   bool // a part of what was not synced is on the disk
}

// steps are the points of a run at which the process is killed.
var steps = [...]string{
	"run.begin", "run.execute", "model.end", "tool.start", "tool.run", "tool.end", "run.end", "run.ended", "run.steer",
	"run.steer", "run.steer", "run.suspend",
	"approval.ask", "approval.decide", "run.resume", "channel.send", "channel.sent", "detached.end",
	"tool.effect", "accepted",
}

// learned are the points at which the outside has just learned something, which must not
// be lost with the power.
var learned = [...]string{"tool.effect", "channel.sent", "accepted"}

func (l *life) dead() bool { return l.killed.Load() }

// kill kills the process.
func (l *life) kill(why string) {
	if l.w.failures() == 0 {
		return // the day is over
	}
	l.once.Do(func() {
		l.killed.Store(true)
		l.crashed.Store(true)
		if l.disk != nil {
			switch {
			case l.crash.power && l.crash.torn:
				l.image = l.disk.Torn(l.w.seed)
			case l.crash.power:
				l.image = l.disk.Cut()
			default:
				l.image = l.disk.AfterKill()
			}
		}
		l.over()
		l.w.tell("gateway %d: killed %s, power lost: %t", l.n, why, l.crash.power)
		l.end()
	})
}

// over notes that the gateway does not run any more.
func (l *life) over() {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.span.to.IsZero() {
		l.span.to = time.Now()
	}
}

// step is called at named points.
func (l *life) step(name string) {
	if name == "heartbeat.claimed" {
		l.w.beatClaimed(l)
	}
	if l.dead() || l.crash.step == "" || l.crash.shared && !l.shared.Load() {
		return
	}
	c, _ := l.steps.LoadOrStore(name, new(atomic.Int64))
	switch {
	case c.(*atomic.Int64).Add(1) != l.crash.n || name != l.crash.step:
	case l.crash.after:
		l.armed.Store(true)
	default:
		l.kill(fmt.Sprintf("before %s %d", name, l.crash.n))
	}
}

// gate is the store of a life. It fails when the process is dead, and sometimes before.
type gate struct {
	store.Store
	l *life
}

var errFault = errors.New("disk I/O error")

// View implements store.Store.
func (g gate) View(ctx context.Context, f func(store.Reader) error) error {
	g.delay("view", g.l.views.Add(1))
	if g.l.dead() {
		return errDead
	}
	return g.Store.View(ctx, f)
}

// delay makes the nth use of the store slow sometimes, so that other work is done
// meanwhile.
func (g gate) delay(what string, n int64) {
	if g.l.w.chance(15, what, g.l.n, n) {
		time.Sleep(seconds(g.l.w.rnd("delay", what, g.l.n, n), 0, 0.05))
	}
}

// Update implements store.Store.
func (g gate) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if g.l.dead() {
		return errDead
	}
	n := g.l.commits.Add(1)
	g.delay("before", n)
	c := g.l.crash
	here := c.step == "" && c.n == n
	if here && !c.after {
		g.l.kill(fmt.Sprintf("before commit %d", n))
	}
	if g.l.dead() {
		return errDead
	}
	percent := 1.5
	if n <= 6 && g.l.n > 1 { // starts are rare
		percent = 25
	}
	if g.l.fault.Load() > 0 && g.l.fault.Add(-1) == 0 || g.l.w.chance(percent, "store", g.l.n, n) {
		g.l.w.failsAt(n)
		return errFault
	}
	others := g.l.updates.Add(1) > 1
	err := g.Store.Update(ctx, s, f)
	if others = g.l.updates.Add(-1) > 0 || others; err == nil && s == store.Synced {
		g.l.shared.Store(others)
	}
	g.delay("after", n)
	if err == nil && g.l.armed.Load() {
		g.l.kill(fmt.Sprintf("after the commit that follows %s %d", c.step, c.n))
	}
	if here && c.after {
		g.l.kill(fmt.Sprintf("after commit %d", n))
	}
	if g.l.dead() {
		return errDead
	}
	return err
}

// failsAt notes that a commit fails.
func (w *world) failsAt(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, time.Now())
	w.tellLocked("store: commit %d fails", n)
}

// start starts a gateway. It returns nil if that was killed while it started.
func (w *world) start(n int, crash crash, disk *power.Disk, config chelatest.Config) *life {
	l := &life{w: w, n: n, crash: crash, disk: disk, span: &span{n: n, born: time.Now()}}
	w.mu.Lock()
	w.spans = append(w.spans, l.span)
	w.mu.Unlock()
	l.ctx, l.end = context.WithCancel(context.Background())
	tools := []tool.Tool{
		l.tool("look", tool.Reads, true), l.tool("wait", tool.Reads, false), l.tool("put", tool.Writes, false),
		l.tool("act", tool.Acts, false),
		asking{l.tool("ask", tool.Acts, false)}, l.tool("later", tool.Acts, false),
	}
	o := chelatest.Options{
		Dir:    w.dir,
		Model:  model{l},
		Config: config,
		Step:   l.step,
		Now:    w.wall,
		Tools:  tools,
		Hooks:  l.hooks,
		Listen: l.listen(),
		Channels: map[string]channel.Channel{
			"able":  able{account{w.platforms["able"], l}},
			"plain": account{w.platforms["plain"], l},
		},
		Limits: map[string]channel.Limits{"plain": {Text: 200}},
		Wrap: func(s store.Store) store.Store {
			l.db = s
			w.beatClaimed(l) // those that the life before could not note
			return gate{s, l}
		},
		Log: slog.New(slog.NewTextHandler(storyWriter{w}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if disk != nil {
		// The start looks for the file of the stock store.
		if err := os.WriteFile(filepath.Join(w.dir, "chela.db"), []byte("on the simulated disk"), 0o600); err != nil {
			w.broken("%v", err)
		}
		usual := pick(w.rnd("disk", l.n), weighted[float64]{1, 0.03}, weighted[float64]{1, 0.3})
		disk.Fail(func(n int, op power.Op, _ string) power.Fault {
			if op == power.Sync && w.failures() > 0 { // commits that arrive meanwhile share the next one
				r := w.rnd("sync", l.n, n)
				time.Sleep(pick(r, weighted[time.Duration]{7, seconds(r, 0, usual)}, weighted[time.Duration]{1, seconds(r, 0, 1)}))
			}
			return power.None
		})
		o.Store = &standard.Store{File: "chela.db",
			Open: func(ctx context.Context, _ string, so standard.StoreOptions) (standard.Database, error) {
				o := disk.Options()
				o.Log = so.Log
				return sqlite.Open(ctx, o)
			}}
	}
	g, err := chelatest.TryStart(w.t, o)
	if err != nil {
		if !l.dead() && !errors.Is(err, errFault) {
			w.broken("start: gateway %d does not start: %v", n, err)
		}
		l.over()
		l.end()
		l.work.Wait()
		return nil
	}
	l.g = g
	w.mu.Lock()
	l.span.from = time.Now()
	w.mu.Unlock()
	w.tell("gateway %d: started", n)
	w.setLife(l)
	return l
}

// stopTime is how long the work of a gateway may take to end when it is stopped. Then
// programs of hooks have another second, and clients half a second.
const (
	stopTime = 10 * time.Second
	lastTime = 2 * time.Second
)

// stop ends a gateway, which is dead or stopped gracefully.
func (l *life) stop() {
	graceful := !l.dead()
	begun := time.Now()
	l.over()
	l.w.setLife(nil)
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	err := l.g.Close(ctx)
	l.g.Engine = nil
	took := time.Since(begun)
	l.end()
	l.killed.Store(true)
	l.work.Wait()
	if graceful {
		l.w.tell("gateway %d: stopped in %s, %v", l.n, took, err)
		if took > stopTime+lastTime {
			l.w.broken("L8: the gateway stopped in %s", took)
		}
	}
}

// dial connects to the gateway. The connection breaks when the process is killed.
func (l *life) dial(ctx context.Context) (net.Conn, error) {
	if l.dead() {
		return nil, errDead
	}
	c, err := l.g.Dial(ctx)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(l.ctx, func() { c.Close() })
	return c, nil
}

// storyWriter adds the log of the gateway to the story.
type storyWriter struct{ w *world }

func (s storyWriter) Write(p []byte) (int, error) {
	if !strings.Contains(string(p), errDead.Error()) {
		_, line, _ := strings.Cut(strings.TrimSpace(string(p)), " level=")
		s.w.tell("log: %s", line)
	}
	return len(p), nil
}

var _ io.Writer = storyWriter{}

// fakeTool is a tool whose effects are counted.
type fakeTool struct {
	l      *life
	name   string
	effect tool.Effect
	many   bool
}

func (l *life) tool(name string, e tool.Effect, parallel bool) fakeTool {
	return fakeTool{l, name, e, parallel}
}

// Spec implements tool.Tool.
func (f fakeTool) Spec() tool.Spec {
	return tool.Spec{
		Name: f.name, Description: "Does something.", Effect: f.effect, Parallel: f.many,
		Schema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`),
	}
}

// Run implements tool.Tool.
func (f fakeTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	var a struct{ Key string }
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Result{}, err
	}
	w, l := f.l.w, f.l
	if l.dead() {
		return tool.Result{}, errDead
	}
	w.mu.Lock()
	w.starts = append(w.starts, toolStart{a.Key, c.Run, time.Now()})
	w.mu.Unlock()
	rnd := w.rnd("tool", a.Key)
	before := seconds(rnd, 0, 3)
	if f.name == "wait" {
		before = seconds(rnd, 5, 90)
	}
	select {
	case <-time.After(before):
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-l.ctx.Done():
		return tool.Result{}, errDead
	}
	if l.dead() {
		return tool.Result{}, errDead
	}
	if rnd.IntN(12) == 0 && f.name != "later" {
		return tool.Result{}, errors.New("it did not work")
	}
	if f.effect != tool.Reads {
		w.mu.Lock()
		w.effects[c.ID]++
		w.callLocked(a.Key).effects++
		w.tellLocked("tool: %s has its effect, %s, session %s", f.name, a.Key, c.Session)
		w.mu.Unlock()
		w.react(w.chatOf(a.Key), "effect "+a.Key, weighted[string]{2, "/stop"}, weighted[string]{1, "/new"})
		if l.step("tool.effect"); l.dead() {
			return tool.Result{}, errDead
		}
	}
	if f.name == "later" {
		return l.background(ctx, c, a.Key, seconds(rnd, 1, 200))
	}
	select {
	case <-time.After(pick(rnd, weighted[time.Duration]{3, seconds(rnd, 0, 1)},
		weighted[time.Duration]{1, seconds(rnd, 1, 40)})):
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-l.ctx.Done():
		return tool.Result{}, errDead
	}
	return tool.Text("did " + a.Key), nil
}

// callLocked returns the ledger's record of a call.
func (w *world) callLocked(key string) *call {
	if w.calls[key] == nil {
		w.calls[key] = &call{key: key}
	}
	return w.calls[key]
}

// background starts work in the background, as a command does.
func (l *life) background(ctx context.Context, c tool.Call, key string, takes time.Duration) (tool.Result, error) {
	resolve, err := dispatch.Defer(gate{l.db, l}, fmt.Sprint("sim", l.n), func(s string) string { return s },
		func(queue.Item) {})(ctx, c, "background "+key+" was lost")
	if err != nil {
		return tool.Result{}, err
	}
	l.w.mu.Lock()
	l.w.background[key] = c.Session
	l.w.mu.Unlock()
	if from := l.w.chatOf(key); from != nil && l.w.chance(15, "during", key) {
		l.w.do(func() {
			r := l.w.rnd("during", key)
			time.Sleep(seconds(r, 0.5, takes.Seconds()))
			l.w.order(from, pick(r, weighted[string]{1, "/stop"}, weighted[string]{2, "/new"}))
		})
	}
	l.work.Go(func() {
		select {
		case <-time.After(takes):
		case <-l.ctx.Done():
			return
		}
		for resolve(l.ctx, "background "+key+" has ended", queue.Result{Outcome: chela.OutcomeOK, Ended: time.Now()}) !=
			nil && !l.dead() {
			time.Sleep(time.Second)
		}
	})
	return tool.Text("did " + key), nil
}

// asking is a tool that a person must allow.
type asking struct{ fakeTool }

// Plan implements tool.Planner.
func (a asking) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	return tool.Plan{
		Effect: tool.Acts,
		Ask:    true,
		Reason: "it acts",
		Text:   "act " + string(c.Args),
		Hash:   string(c.Args),
	}, nil
}
