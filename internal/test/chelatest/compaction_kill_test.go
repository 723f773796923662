//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// TestCompactionKill kills the engine at each step of a compaction. The next engine
// finishes it, and every message stays in the history.
func TestCompactionKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	for _, step := range []string{"flush.begin:1", "flush.end:1", "compact.summarize:1", "compact.commit:1",
		"compact.committed:1"} {
		t.Run("killed at "+step, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
				var step llmtest.Step
				switch body := string(r.Body); {
				case strings.Contains(body, "Summarize the conversation."):
					step = llmtest.Say(goodSummary + " ORD-77-1")
				case strings.Contains(body, "summarized soon"):
					step = llmtest.Say("NO_REPLY")
				default:
					step = llmtest.Say("ok")
				}
				step.Usage = &llm.Usage{Input: int64(len(r.Body) / 4), Output: 5}
				return step
			})
			url, _ := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			conf["models"] = json.RawMessage(strings.Replace(string(conf["models"]), "200000", "24000", 1))
			cmd, cl := startSubprocess(t, dir, conf, step)
			sent := 0
			for ; sent < 12; sent++ {
				if _, err := cl.Client.Send(t.Context(), "main", filler(sent, 2000)+
					fmt.Sprintf(" The order is ORD-77-%d.", sent)); err != nil {
					break
				}
				if ended(cl) {
					break
				}
			}
			if err := cmd.Wait(); err == nil {
				t.Fatal("the engine exited normally")
			}
			var st store.Store
			c := Start(t, Options{Dir: dir, Config: conf, Wrap: func(s store.Store) store.Store { st = s; return s }}).Client()
			for i := range 4 {
				if end := c.Ask("main", filler(20+i, 1500)); end.Text != "ok" {
					t.Fatalf("%s %s", end.State, end.Error)
				}
			}
			c.until("main", 1)
			history := strings.Join(c.lines("main"), "\n")
			for i := range sent {
				if n := strings.Count(history, fmt.Sprintf("message %d. ", i)); n != 1 {
					t.Errorf("message %d is %d times in the history", i, n)
				}
			}
			cuts := compactions(t, st)
			for i, e := range cuts {
				if c := session.CompactionOf(e); c.TokensAfter >= c.TokensBefore || i > 0 && e.First <= cuts[i-1].First {
					t.Errorf("compaction %d: from %d, %+v", i, e.First, c)
				}
			}
			if strings.Contains(history, "NO_REPLY") {
				t.Error("the notes are shown")
			}
		})
	}
}

// ended reads the events until a run ends. It reports whether the connection was closed.
func ended(c *Client) bool {
	for ev := range c.Events() {
		var chat wire.Chat
		if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.State == wire.StateFinal && chat.Message != nil {
			return false
		}
	}
	return true
}

// compactions returns the compactions of the main session.
func compactions(t *testing.T, st store.Store) (cuts []session.Entry) {
	t.Helper()
	err := st.View(t.Context(), func(r store.Reader) error {
		m, err := r.Sessions().Get("agent:main:main")
		if err != nil {
			return err
		}
		all, err := r.Sessions().Entries(m.ID, 0, 0)
		for _, e := range all {
			if e.Kind == session.KindCut {
				cuts = append(cuts, e)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cuts
}

// fullStore is a store whose disk may be full.
type fullStore struct {
	store.Store
	full atomic.Bool
}

// Update implements store.Store.
func (s *fullStore) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	if s.full.Load() {
		return errors.New("database or disk is full")
	}
	return s.Store.Update(ctx, sync, f)
}

func TestCompactionFaults(t *testing.T) {
	t.Parallel()
	long := func(c *Client) {
		for i := range 5 {
			c.Ask("main", filler(i, 500))
		}
	}
	t.Run("a compaction on a full disk is done when there is space again", func(t *testing.T) {
		t.Parallel()
		st := &fullStore{}
		k := &talker{}
		once := true
		g := Start(t, Options{
			Model: k.script(), Config: windowed(100_000, noFlush),
			Wrap: func(s store.Store) store.Store { st.Store = s; return st },
			Step: func(name string) {
				if name == "compact.commit" && once {
					once = false
					st.full.Store(true)
				}
			},
		})
		c := g.Client()
		long(c)
		before := len(c.lines("main"))
		run := c.Send("main", "/compact")
		for ev := range c.Events() {
			if strings.Contains(string(ev.Payload), "cannot be written") {
				break
			}
		}
		if n := len(compactions(t, st)); n != 0 {
			t.Errorf("%d compactions", n)
		}
		st.full.Store(false)
		if end := c.Await(run); !strings.Contains(end.Text, "🧹 Compacted") {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if n := len(compactions(t, st)); n != 1 || len(c.lines("main")) < before {
			t.Errorf("%d compactions", n)
		}
	})
	t.Run("two compactions at once follow each other, and a message waits for them", func(t *testing.T) {
		t.Parallel()
		held, free := make(chan struct{}), make(chan struct{})
		k := &talker{summary: func(n int, _ *llm.Request) llmtest.Step {
			if n == 1 {
				close(held)
				<-free
			}
			return llmtest.Say(goodSummary)
		}}
		st := &fullStore{}
		g := Start(t, Options{Model: k.script(), Config: windowed(100_000, noFlush), Wrap: func(s store.Store) store.Store {
			st.Store = s
			return st
		}})
		c, other := g.Client(), g.Client()
		long(c)
		first := c.Send("main", "/compact")
		<-held
		second, message := c.Send("main", "/compact"), c.Send("main", "and now?")
		var out wire.SessionCompacted
		if other.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: "main"}, &out); out.Compacted ||
			out.Reason != "a run is in progress" {
			t.Errorf("%+v", out)
		}
		close(free)
		c.awaitAll(first, second, message)
		cuts := compactions(t, st)
		for i, e := range cuts {
			if i > 0 && e.First <= cuts[i-1].First {
				t.Errorf("compaction %d begins at %d, the one before at %d", i, e.First, cuts[i-1].First)
			}
		}
		if l := c.lines("main"); len(cuts) == 0 || l[len(l)-1] != "assistant: ok" {
			t.Errorf("%d compactions; the history ends with %q", len(cuts), l[len(l)-1])
		}
	})
	t.Run("/stop ends a compaction, and nothing has changed", func(t *testing.T) {
		t.Parallel()
		held := make(chan struct{})
		k := &talker{summary: func(n int, _ *llm.Request) llmtest.Step {
			if n == 1 {
				close(held)
			}
			return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangBody}}
		}}
		st := &fullStore{}
		c := Start(t, Options{Model: k.script(), Config: windowed(100_000, noFlush), Wrap: func(s store.Store) store.Store {
			st.Store = s
			return st
		}}).Client()
		long(c)
		run := c.Send("main", "/compact")
		<-held
		c.Send("main", "/stop")
		if end := c.Await(run); end.State != wire.StateAborted {
			t.Errorf("%s %q", end.State, end.Error)
		}
		if n := len(compactions(t, st)); n != 0 {
			t.Errorf("%d compactions", n)
		}
		if end := c.Ask("main", "go on"); end.Text != "ok" {
			t.Errorf("%s %q", end.State, end.Error)
		}
	})
}
