package chelatest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/wire"
)

// crowd is 502 sessions of an agent, the oldest of which are kept for a reason.
func crowd(t *testing.T, st store.Store) {
	t.Helper()
	begin := time.Now().Add(-1000 * time.Hour)
	err := st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		var errs []error
		for i := range 501 {
			m := session.Meta{
				Key:     chela.SessionKey(fmt.Sprintf("agent:main:s%d", i)),
				ID:      fmt.Sprint("id", i),
				Agent:   "main",
				Created: begin,
				Updated: begin.Add(time.Duration(i) * time.Hour),
			}
			switch i {
			case 0:
				m.Pinned = begin
			case 1:
				m.Archived = begin
			case 2:
				m.Key = "agent:main:talk:group:7"
			case 3: // of a subagent whose requester works
				m.Key, m.Bounds = "agent:main:subagent:a", session.Bounds{SpawnedBy: "agent:main:busy", Depth: 1}
				errs = append(errs, tx.Children().Put(subagent.Child{
					ID:        "a",
					Session:   m.Key,
					Requester: "agent:main:busy",
					Ended:     begin,
					Outcome:   "ok",
				}))
			case 4: // of a command in the background, whose result is to come
				_, err := tx.Queue().Put(queue.Item{
					ID:      "result",
					Key:     "result",
					Session: m.Key,
					Kind:    queue.Event,
					State:   queue.Deferred,
					Created: begin,
					Origin:  chela.Origin{Kind: chela.OriginProcess},
				})
				errs = append(errs, err)
			case 5: // with an event that waits for the next turn
				_, err := tx.Queue().Put(queue.Item{
					ID:      "note",
					Key:     "note",
					Session: m.Key,
					Kind:    queue.Event,
					Next:    true,
					State:   queue.Waiting,
					Created: begin,
					Origin:  chela.Origin{Kind: chela.OriginProcess},
				})
				errs = append(errs, err)
			case 6: // of a thread in a direct chat
				m.Address = chela.Address{Channel: "talk", Account: "default",
					Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}, Thread: "7"}
			}
			errs = append(errs, tx.Sessions().Put(m))
		}
		busy := session.Meta{Key: "agent:main:busy", ID: "busy", Agent: "main", Created: begin, Updated: begin}
		return errors.Join(append(errs, tx.Sessions().Put(busy))...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestRetention has a platform deliver a message again.
func TestRetention(t *testing.T) {
	t.Parallel()
	t.Run("IN-01 a message that comes again within 30 days is not answered again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir, a := t.TempDir(), chela.Address{Channel: "chat", Account: "default", Peer: direct("ann")}
			for i, after := range []time.Duration{0, 29 * 24 * time.Hour, 2 * 24 * time.Hour} {
				time.Sleep(after)
				chat := new(channeltest.Fake)
				g := Start(t, Options{
					Dir: dir, Model: llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") }),
					Config:   section("channels", `{"chat": {"allowFrom": ["ann"]}}`),
					Channels: map[string]channel.Channel{"chat": chat.Plain()},
				})
				time.Sleep(2 * time.Minute) // old rows are deleted a minute after the start
				if err := chat.Say(t.Context(),
					chela.Inbound{ID: "1", Address: a, Sender: chela.Sender{ID: "ann"}, Text: "hello"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if got, want := len(chat.Texts(a)), [...]int{1, 0, 1}[i]; got != want {
					t.Errorf("after %s more: %d answers, want %d", after, got, want)
				}
				g.Stop()
			}
		})
	})
}

func TestSessionMaintenance(t *testing.T) {
	for mode, gone := range map[string][]string{"enforce": {"agent:main:s7", "agent:main:s8"}, "warn": nil} {
		t.Run("SESS-08 502 sessions in mode "+mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
					if r.Messages[0].PlainText() == "work" {
						<-release
					}
					return llmtest.Say("ok")
				})
				var st store.Store
				var log lockedBuffer
				g := Start(t, Options{
					Model: model, Config: section("session", `{"maintenance": {"pruneAfter": 0, "mode": "`+mode+`"}}`),
					Wrap: func(s store.Store) store.Store { st = s; return s }, Log: slog.New(slog.NewTextHandler(&log, nil)),
				})
				crowd(t, st)
				c := g.Client()
				run := c.Send("busy", "work")
				keys := func() (all []string) {
					err := st.View(t.Context(), func(r store.Reader) error {
						list, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: 1000})
						for _, m := range list {
							all = append(all, string(m.Key))
						}
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					slices.Sort(all)
					return all
				}
				before := keys()
				if len(before) != 502 {
					t.Fatalf("%d sessions", len(before))
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				after := keys()
				removed := slices.DeleteFunc(before, func(k string) bool { return slices.Contains(after, k) })
				if !slices.Equal(removed, gone) {
					t.Errorf("removed %q, want %q", removed, gone)
				}
				if warned := strings.Count(log.String(), "more sessions than session.maintenance.maxEntries"); warned > 1 ||
					warned == 1 != (mode == "warn") {
					t.Errorf("%d warnings:\n%s", warned, log.String())
				}
				close(release)
				if end := c.Await(run); end.Text != "ok" {
					t.Errorf("the session that worked: %s %q", end.State, end.Error)
				}
				// The requester does not work any more, and there is one session more.
				c.Ask("new", "hello")
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if left := keys(); mode == "enforce" && (len(left) != 500 || slices.Contains(left, "agent:main:subagent:a")) {
					t.Errorf("%d sessions, with that of the subagent %t", len(left), slices.Contains(left, "agent:main:subagent:a"))
				}
				c.Close()
				g.Stop()
			})
		})
	}
	t.Run("limits out of range are errors", func(t *testing.T) {
		for _, v := range []string{`{"maxEntries": 0}`, `{"maxEntries": 100001}`} {
			_, err := TryStart(t, Options{Model: llmtest.NewScript(), Config: Config{"session.maintenance": json.RawMessage(v)}})
			if err == nil || !strings.Contains(err.Error(), "session.maintenance: maxEntries: ") ||
				!strings.Contains(err.Error(), "between 1 and 100000") {
				t.Errorf("%s: %v", v, err)
			}
		}
	})
}

// The size and the age of transcripts.
func TestTranscriptLimits(t *testing.T) {
	for _, tc := range []struct {
		name, config string
		left         []string // sessions
		past         int      // transcripts that resets ended, of all sessions
		warnings     int
	}{
		{"SESS-14 more than maxDiskBytes in mode warn", `{"maxDiskBytes": "100kb"}`,
			[]string{"a", "b", "c", "d", "main"}, 2, 1},
		{"less than maxDiskBytes", `{"maxDiskBytes": "1mb"}`, []string{"a", "b", "c", "d", "main"}, 2, 0},
		{"transcripts that resets ended are deleted first",
			`{"mode": "enforce", "maxDiskBytes": "170kb", "highWaterBytes": "90%"}`, []string{"a", "b", "c", "d", "main"}, 1, 0},
		{"then sessions, but not those that are pinned or the main one",
			`{"mode": "enforce", "maxDiskBytes": 100000, "highWaterBytes": "70kb"}`, []string{"a", "d", "main"}, 0, 0},
		{"by age", `{"mode": "enforce", "pruneAfter": "5h", "resetArchiveRetention": "0"}`,
			[]string{"a", "c", "d", "main"}, 2, 0},
		{"ended transcripts by age", `{"mode": "enforce", "resetArchiveRetention": "30m"}`,
			[]string{"a", "b", "c", "d", "main"}, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") })
				var log lockedBuffer
				dir := t.TempDir()
				g := Start(t, Options{Dir: dir, Model: model})
				c := g.Client()
				large := strings.Repeat("large ", 5000) // 30 KB
				c.Ask("main", "hello "+large)
				for _, key := range []string{"a", "b", "c", "d"} {
					time.Sleep(2 * time.Hour)
					c.Ask(key, "hello "+large)
				}
				c.must(wire.MethodSessionsPatch, json.RawMessage(`{"key": "a", "pinned": true}`), nil)
				time.Sleep(time.Hour)
				c.Ask("d", "/new")
				c.Ask("d", "hello "+large)
				time.Sleep(time.Hour)
				c.Ask("d", "/new")
				c.Ask("d", "hello")
				time.Sleep(time.Minute)
				c.Close()
				g.Stop()

				var st store.Store
				g = Start(t, Options{
					Dir: dir, Model: model, Config: section("session", `{"maintenance": `+tc.config+`}`),
					Wrap: func(s store.Store) store.Store { st = s; return s }, Log: slog.New(slog.NewTextHandler(&log, nil)),
				})
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				var left []string
				past := 0
				err := st.View(t.Context(), func(r store.Reader) error {
					list, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: 100})
					for _, m := range list {
						left = append(left, strings.TrimPrefix(string(m.Key), "agent:main:"))
						p, err := r.Sessions().Past(m.Key)
						if err != nil {
							return err
						}
						past += len(p)
					}
					return err
				})
				slices.Sort(left)
				if err != nil || !slices.Equal(left, tc.left) || past != tc.past {
					t.Errorf("%q and %d ended transcripts are left, want %q and %d (%v)\n%s", left, past, tc.left,
						tc.past, err, log.String())
				}
				if n := strings.Count(log.String(), "larger than session.maintenance.maxDiskBytes"); n != tc.warnings {
					t.Errorf("%d warnings, want %d:\n%s", n, tc.warnings, log.String())
				}
				g.Stop()
			})
		})
	}
	t.Run("values that are none are errors", func(t *testing.T) {
		for _, v := range []string{`{"maxDiskBytes": "much"}`, `{"pruneAfter": "soon"}`, `{"resetArchiveRetention": "x"}`,
			`{"maxDiskBytes": "1mb", "highWaterBytes": "0%"}`} {
			_, err := TryStart(t, Options{Model: llmtest.NewScript(), Config: Config{"session.maintenance": json.RawMessage(v)}})
			if err == nil || !strings.Contains(err.Error(), "session.maintenance: ") {
				t.Errorf("%s: %v", v, err)
			}
		}
	})
}
