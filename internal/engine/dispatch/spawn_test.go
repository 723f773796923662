package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/spawn"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
	"github.com/chela-ai/chela/internal/test/power"
)

// spawnConfig is a configuration whose subagents may be at depth 2 and have a workspace.
type spawnConfig string

func (spawnConfig) Subagents(chela.AgentID) subagent.Config {
	depth, children := 2, 20
	return subagent.Config{MaxDepth: &depth, MaxChildren: &children}
}
func (spawnConfig) HasAgent(chela.AgentID) bool            { return true }
func (spawnConfig) Types(chela.AgentID) []subagent.Type    { return subagent.Builtin() }
func (spawnConfig) CheckModel(chela.AgentID, string) error { return nil }
func (spawnConfig) ForkTokens() int64                      { return 0 }

func (spawnConfig) Focus() session.FocusPolicy  { return session.FocusPolicy{} }
func (spawnConfig) Sandboxed(session.Meta) bool { return false }

func (spawnConfig) Coder(chela.AgentID, string, string) (session.External, error) {
	return session.External{}, chela.Errorf(chela.CodeForbidden, "there are no coding agents")
}

func (c spawnConfig) Workspace(session.Meta) (string, error) { return string(c), nil }

// mortal is the store of a process that dies after a number of commits.
type mortal struct {
	store.Store
	left atomic.Int64 // commits until the death
	dead atomic.Bool
	died chan struct{}
}

func newMortal(s store.Store, commits int64) *mortal {
	m := &mortal{Store: s, died: make(chan struct{})}
	m.left.Store(commits)
	return m
}

func (m *mortal) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if m.dead.Load() {
		return errDead
	}
	err := m.Store.Update(ctx, s, f)
	if m.left.Add(-1) == 0 {
		m.dead.Store(true)
		close(m.died)
		return errDead
	}
	return err
}

func (m *mortal) View(ctx context.Context, f func(store.Reader) error) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.View(ctx, f)
}

// spawnLine is a call of sessions_spawn as a line for spawnModel.
func spawnLine(label, task string) string {
	b, err := json.Marshal(map[string]string{"label": label, "task": task})
	if err != nil {
		panic(err)
	}
	return "sessions_spawn " + string(b)
}

var announcement = regexp.MustCompile(`The subagent "([^"]+)"`)

// spawnModel makes the calls in the lines of a message or task, and reports results.
// The ids of its calls depend only on the conversation.
func spawnModel() *llmtest.Script {
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		text := last.PlainText()
		if m := announcement.FindAllStringSubmatch(text, -1); last.Role == llm.RoleUser && m != nil {
			return llmtest.Say("told " + m[0][1])
		}
		if last.Role == llm.RoleTool {
			return llmtest.Say("after " + last.ToolName)
		}
		var calls []llm.ToolCall
		for line := range strings.Lines(text) {
			if name, args, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(args, "{") {
				calls = append(calls, llmtest.ToolCall(fmt.Sprintf("c%d_%d", len(r.Messages), len(calls)), name, args))
			}
		}
		if calls != nil {
			return llmtest.Calls(calls...)
		}
		return llmtest.Say("done " + text)
	})
}

// spawnWorld is what outlives the processes.
type spawnWorld struct {
	mu      sync.Mutex
	effects map[string]int // by the argument of the tool act
	spawner *spawn.Spawner // of the last process
	ttl     time.Duration  // of leases; 0: one process has the store

	workspace string
}

// boot starts a process on the store that dies after a number of commits; 0: it does
// not die.
func (w *spawnWorld) boot(t *testing.T, st store.Store, commits int64, number int,
	tools ...tool.Tool) (*harness, *mortal) {
	m := newMortal(st, commits)
	act := newTool("act", tool.Acts, func(_ context.Context, c tool.Call) (tool.Result, error) {
		if m.dead.Load() {
			return tool.Result{}, errDead
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects[string(c.Args)]++
		return tool.Text("acted"), nil
	})
	var h *harness
	log := slog.New(slog.DiscardHandler)
	sp := spawn.New(spawn.Options{
		Log: log, Store: m, Config: spawnConfig(w.workspace), Bus: bus.New(log),
		Stop: func(tx store.Tx, key chela.SessionKey) (func(), error) { return h.con.StopIn(tx, key) },
		Delete: func(ctx context.Context, key chela.SessionKey) error {
			_, err := h.con.DeleteSession(ctx, key, nil)
			return err
		},
	})
	w.spawner = sp
	h = newHarness(t, spawnModel(),
		append(tools, act, sessions.NewSpawn(sp, sessions.SpawnOptions{Attachments: subagent.Attachments{Enabled: true}}),
			sessions.NewSubagents(sp), sessions.NewYield(sp))...)
	h.boots, h.drain, h.ttl = number, time.Millisecond, w.ttl
	h.ended = append(h.ended, sp.Ended)
	h.children = sp
	h.start(m, log, func() error { return nil })
	return h, m
}

// check compares the transcripts with what must have happened: each of the subagents
// was announced once to its requester, which answered.
func (w *spawnWorld) check(t *testing.T, st store.Store, requesters map[string]string) {
	t.Helper()
	labels := map[chela.SessionKey]string{key: "main"}
	var all []subagent.Child
	texts := map[string][]string{} // announcements by label of the session
	err := st.View(t.Context(), func(r store.Reader) error {
		var err error
		if all, err = r.Children().Recent(100); err != nil {
			return err
		}
		for _, c := range all {
			labels[c.Session] = c.Label
			if c.Label == "boss" && c.Result != "told leaf" { // it ends after its own subagent
				t.Errorf("the result of boss is %q", c.Result)
			}
			if c.Outcome != chela.OutcomeOK || c.Silent != "" || (c.Session.Agent() != "main" || c.Root != "m1") {
				t.Errorf("subagent %+v", c)
			}
		}
		for k, label := range labels {
			m, err := r.Sessions().Get(k)
			if err != nil {
				return err
			}
			entries, err := r.Sessions().Entries(m.ID, 0, 0)
			if err != nil {
				return err
			}
			answered := true
			for _, e := range entries {
				if e.Message == nil {
					continue
				}
				if a := announcement.FindAllStringSubmatch(e.Message.PlainText(), -1); e.Message.Role == llm.RoleUser && a != nil {
					answered = false
					for _, m := range a {
						texts[label] = append(texts[label], m[1])
					}
				} else if e.Message.Role == llm.RoleAssistant && e.Message.PlainText() != "" {
					answered = true
				}
			}
			if !answered {
				t.Errorf("%s: the last announcement was not answered", label)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(requesters) {
		t.Errorf("%d subagents, want %d", len(all), len(requesters))
	}
	for label, requester := range requesters {
		n := 0
		for _, a := range texts[requester] {
			if a == label {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was announced to %s %d times", label, requester, n)
		}
	}
	for args, n := range w.effects {
		if n > 1 {
			t.Errorf("the effect of %s happened %d times", args, n)
		}
	}
}

// child returns the subagent with the label.
func child(t *testing.T, st store.Store, label string) subagent.Child {
	t.Helper()
	list, err := store.Get(t.Context(), st,
		func(r store.Reader) ([]subagent.Child, error) { return r.Children().Recent(100) })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Label == label {
			return c
		}
	}
	t.Fatalf("there is no subagent %q", label)
	return subagent.Child{}
}

// TestSpawnLife deletes and archives the sessions of subagents.
func TestSpawnLife(t *testing.T) {
	t.Parallel()
	on := func(name string, f func(t *testing.T, w *spawnWorld, h *harness, st store.Store, release chan struct{})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &spawnWorld{effects: map[string]int{}, workspace: t.TempDir()}
				st := power.New(t).Open(t)
				release := make(chan struct{})
				stall := newTool("stall", tool.Reads, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					select {
					case <-release:
						return tool.Text("went on"), nil
					case <-ctx.Done():
						return tool.Result{}, ctx.Err()
					}
				})
				h, _ := w.boot(t, st, 0, 0, stall)
				defer h.stop()
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				var sweeping sync.WaitGroup
				sweeping.Go(func() { _ = w.spawner.Run(ctx) })
				f(t, w, h, st, release)
				cancel()
				sweeping.Wait()
			})
		})
	}
	alive := func() bool { return false }
	remove := func(t *testing.T, h *harness, k chela.SessionKey) {
		t.Helper()
		if deleted, err := h.con.DeleteSession(t.Context(), k, nil); err != nil || !deleted {
			t.Fatalf("deleted %v, %v", deleted, err)
		}
	}
	told := func(h *harness) (n int) {
		for _, l := range h.lines() {
			if strings.HasPrefix(l, "assistant: told ") {
				n++
			}
		}
		return n
	}
	on("SUB-11 the result of a subagent whose requester was deleted reaches the session above",
		func(t *testing.T, _ *spawnWorld, h *harness, st store.Store, release chan struct{}) {
			const work = chela.SessionKey("agent:main:work") // not the main session, which is the last resort
			h.wait(h.send("m1", spawnLine("boss", spawnLine("leaf", "stall {}")), func(in *chela.Inbound) { in.Session = work }))
			synctest.Wait()
			remove(t, h, child(t, st, "boss").Session)
			close(release)
			idle(t, st, alive)
			if c := child(t, st, "boss"); c.Silent != subagent.Lost || c.Archived.IsZero() || c.Tokens == (llm.Usage{}) {
				t.Errorf("boss: %+v", c)
			}
			var told []string
			for _, e := range h.entriesOf(work) {
				if l := line(e); strings.HasPrefix(l, "assistant: told") {
					told = append(told, l)
				}
			}
			if !slices.Equal(told, []string{"assistant: told leaf"}) {
				t.Errorf("told %q", told)
			}
		})
	on("an announcement that waits for a deleted session moves to the session above",
		func(t *testing.T, _ *spawnWorld, h *harness, st store.Store, release chan struct{}) {
			h.lanes.Set(spawn.Lane, 2)
			h.ask("m1", spawnLine("boss", spawnLine("leaf", "say x")+"\nstall {}"))
			synctest.Wait()
			if leaf, boss := child(t, st, "leaf"), child(t, st, "boss"); leaf.Open() || !boss.Open() {
				t.Fatalf("leaf %+v, boss %+v", leaf, boss)
			}
			remove(t, h, child(t, st, "boss").Session)
			close(release)
			idle(t, st, alive)
			if !slices.Contains(h.lines(), "assistant: told leaf") || told(h) != 1 {
				t.Errorf("transcript %q", h.lines())
			}
		})
	on("nothing runs in a subagent that was stopped, although a result waited for it",
		func(t *testing.T, w *spawnWorld, h *harness, st store.Store, release chan struct{}) {
			h.lanes.Set(spawn.Lane, 2)
			h.ask("m1", spawnLine("boss", spawnLine("leaf", "say x")+"\nstall {}"))
			synctest.Wait()
			boss := child(t, st, "boss")
			if killed, err := w.spawner.Kill(t.Context(), key, "boss"); err != nil || len(killed) != 1 {
				t.Fatalf("killed %+v, %v", killed, err)
			}
			close(release)
			time.Sleep(2 * time.Minute)
			idle(t, st, alive)
			if c := child(t, st, "boss"); c.Silent != subagent.Stopped || c.Result != "" || told(h) != 0 {
				t.Errorf("boss %+v, transcript %q", c, h.lines())
			}
			entries, err := store.Get(t.Context(), st, func(r store.Reader) ([]session.Entry, error) {
				m, err := r.Sessions().Get(boss.Session)
				if err != nil {
					return nil, err
				}
				return r.Sessions().Entries(m.ID, 0, 0)
			})
			for _, e := range entries {
				if strings.Contains(line(e), "leaf") && strings.Contains(line(e), "has finished") {
					t.Errorf("entry %q", line(e))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	on("a subagent has at most the tools of the run that starts it",
		func(t *testing.T, w *spawnWorld, h *harness, st store.Store, _ chan struct{}) {
			err := h.st.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
				tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
				_, err := tx.Queue().Put(queue.Item{
					ID:        "m1",
					Key:       "m1",
					Session:   key,
					Kind:      queue.Message,
					State:     queue.Waiting,
					Created:   time.Now(),
					Principal: chela.Owner("test"),
					Inbound:   chela.Inbound{Text: spawnLine("a", `act {"by":"a"}`)},

					Overrides: run.Overrides{Tools: run.Tools{Deny: []string{"act"}}},
				})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			idle(t, st, alive)
			if c := child(t, st, "a"); c.Outcome != chela.OutcomeOK || len(w.effects) != 0 {
				t.Errorf("subagent %+v, effects %v", c, w.effects)
			}
		})
	on("SUB-29 the session of an ended subagent is archived after an hour",
		func(t *testing.T, w *spawnWorld, h *harness, st store.Store, _ chan struct{}) {
			h.ask("m1", `sessions_spawn {"task":"say a","label":"a","attachments":[{"name":"x","content":"y"}]}`)
			idle(t, st, alive)
			file := filepath.Join(w.workspace, child(t, st, "a").FilesFolder(), "x")
			listed := func() int {
				l, err := w.spawner.List(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				return len(l.Children)
			}
			time.Sleep(59 * time.Minute)
			synctest.Wait()
			c := child(t, st, "a")
			if b, err := os.ReadFile(file); err != nil || string(b) != "y" {
				t.Errorf("the attachment after 59 minutes: %q, %v", b, err)
			}
			if !c.Archived.IsZero() || listed() != 1 {
				t.Errorf("after 59 minutes: archived %s, %d listed", c.Archived, listed())
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			c = child(t, st, "a")
			m, err := store.Get(t.Context(), st,
				func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(c.Session) })
			if err != nil || c.Archived.IsZero() || m.Archived.IsZero() || listed() != 0 {
				t.Errorf("after 61 minutes: archived %s, session %s, %d listed, %v", c.Archived, m.Archived, listed(), err)
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the attachment after 61 minutes: %v", err)
			}
			n, err := store.Get(t.Context(), st, func(r store.Reader) (int, error) { return r.Sessions().Count(m.ID) })
			if err != nil || n < 2 {
				t.Errorf("the transcript has %d entries, %v", n, err)
			}
		})
	on("SUB-12 the session of a subagent with cleanup delete is deleted when its result was taken",
		func(t *testing.T, w *spawnWorld, h *harness, st store.Store, _ chan struct{}) {
			h.ask("m1", `sessions_spawn {"task":"say a","label":"a","cleanup":"delete","attachments":[{"name":"x","content":"y"}]}`)
			idle(t, st, alive)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			c := child(t, st, "a")
			if _, err := os.Stat(filepath.Join(w.workspace, c.FilesFolder())); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the attachment: %v", err)
			}
			_, err := store.Get(t.Context(), st,
				func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(c.Session) })
			if !errors.Is(err, chela.ErrNotFound) || c.Archived.IsZero() || told(h) != 1 {
				t.Errorf("%v, archived %s, told %d times", err, c.Archived, told(h))
			}
		})
	on("SUB-16 a subagent whose message was cancelled, or whose session is gone, is announced as failed",
		func(t *testing.T, _ *spawnWorld, h *harness, st store.Store, release chan struct{}) {
			h.ask("m1", spawnLine("one", "stall {}")+"\n"+spawnLine("two", "stall {}")) // the lane has one place
			synctest.Wait()
			second := child(t, st, "one")
			h.view(func(r store.Reader) error {
				waiting, err := r.Queue().Waiting(second.Session)
				if len(waiting) == 0 { // it runs
					second = child(t, st, "two")
				}
				return err
			})
			if ids, err := h.con.Abort(t.Context(), second.Session, second.ID); err != nil || len(ids) != 1 {
				t.Fatalf("cancelled %v, %v", ids, err)
			}
			close(release)
			time.Sleep(2 * time.Minute)
			idle(t, st, alive)
			if c := child(t, st, second.Label); c.Open() || c.Outcome != chela.OutcomeError ||
				!strings.Contains(c.Error, "cancelled") {
				t.Errorf("the cancelled one: %+v", c)
			}
			if told(h) != 2 {
				t.Errorf("transcript %q", h.lines())
			}
		})
}

// TestSpawnShared has two processes share a store. The requester's turn is in progress in
// one of them when its subagent ends.
func TestSpawnShared(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{
		"the result waits for the end of the turn": false,
		"the process of the turn dies":             true,
	} {
		t.Run("a requester in another process: "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &spawnWorld{effects: map[string]int{}, workspace: t.TempDir(), ttl: ttl}
				st := power.New(t).Open(t)
				release := make(chan struct{})
				var hs [2]*harness
				var ms [2]*mortal
				for i := range hs {
					hs[i], ms[i] = w.boot(t, st, 0, 100*(i+1),
						newTool("stall", tool.Reads, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
							select {
							case <-release:
								return tool.Text("went on"), nil
							case <-ctx.Done():
								return tool.Result{}, ctx.Err()
							}
						}))
					hs[i].q.Mode = queue.Followup
					defer hs[i].stop()
				}
				synctest.Wait()
				hs[0].send("m1", spawnLine("kid", `act {"x":"1"}`)+"\nstall {}")
				synctest.Wait()
				time.Sleep(3 * ttl)
				kid := child(t, st, "kid")
				hs[1].view(func(r store.Reader) error {
					it, err1 := r.Queue().ByKey(kid.AnnounceKey())
					row, err2 := r.Runs().Get("m1")
					if kid.Open() || it.State != queue.Waiting || row.State != run.Running || row.Attempts != 1 {
						t.Errorf("subagent %+v, announcement %s, run %s", kid, it.State, row.State)
					}
					return errors.Join(err1, err2)
				})
				if dies {
					ms[0].dead.Store(true)
					time.Sleep(3 * ttl)
				}
				close(release)
				idle(t, st, func() bool { return false })
				w.check(t, st, map[string]string{"kid": "main"})
			})
		})
	}
}

// TestSpawnKilled kills the process after each commit of a turn that starts subagents,
// one of which starts another, and the next process after some commits of its own.
func TestSpawnKilled(t *testing.T) {
	t.Parallel()
	message := strings.Join([]string{
		spawnLine("a", "say a"), spawnLine("b", `act {"x":"1"}`), spawnLine("boss", spawnLine("leaf", `act {"x":"2"}`)),
	}, "\n")
	requesters := map[string]string{"a": "main", "b": "main", "boss": "main", "leaf": "boss"}
	cycle := func(t *testing.T, first, second int64) (completed bool) {
		synctest.Test(t, func(t *testing.T) {
			w := &spawnWorld{effects: map[string]int{}, workspace: t.TempDir()}
			st := power.New(t).Open(t)
			for i, commits := range []int64{first, second, 0} {
				h, m := w.boot(t, st, commits, i)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(owner(t.Context()), time.Minute)
				in := chela.Inbound{
					ID:      "m1",
					Session: key,
					Text:    message,
					Time:    time.Now(),
					Address: chela.Address{Channel: chela.LocalChannel},
					Sender:  chela.Sender{ID: "owner"},
				}
				// a client repeats a message that was not accepted
				if _, err := h.gate.Admit(ctx, in); err != nil && !m.dead.Load() {
					t.Errorf("admit: %v", err)
				}
				cancel()
				idle(t, st, m.dead.Load)
				dead := m.dead.Load()
				h.stop()
				if !dead {
					completed = i == 0
					break
				}
			}
			w.check(t, st, requesters)
		})
		return completed
	}
	kills := 0
	limit := 100
	if n, err := strconv.Atoi(os.Getenv("CHELA_TEST_KILLS")); err == nil {
		limit = 2 * n
	}
	for second := int64(3); kills < limit; second += 4 {
		for first := int64(1); kills < limit; first++ {
			if cycle(t, first, second+first%5) && first > 1 {
				if first < 20 {
					t.Fatalf("the turn has only %d commits", first)
				}
				break
			}
			kills++
			if t.Failed() {
				t.Fatalf("killed after %d commits, and after %d", first, second+first%5)
			}
		}
	}
	t.Logf("%d kills", kills)
}

// idle waits until nothing is left to do, or the process is dead.
func idle(t *testing.T, st store.Store, dead func() bool) {
	t.Helper()
	busy := ""
	for range 600 {
		synctest.Wait()
		if dead() {
			return
		}
		err := st.View(t.Context(), func(r store.Reader) error {
			active, err1 := r.Runs().Active("")
			keys, err2 := r.Queue().Sessions()
			open, err3 := r.Children().Open("")
			if busy = ""; len(active)+len(keys)+len(open) > 0 {
				busy = fmt.Sprintf("runs %+v, waiting in %v, open %+v", active, keys, open)
			}
			return errors.Join(err1, err2, err3)
		})
		if err != nil {
			t.Fatal(err)
		}
		if busy == "" {
			return
		}
		time.Sleep(time.Second)
	}
	t.Error("something is left to do: " + busy)
}
