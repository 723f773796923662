//go:build unix

package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestHeartbeatKill kills the engine around a heartbeat that an event has started. The
// event is handled by one run, and its alert is sent once, except if the process died
// while it was being sent.
func TestHeartbeatKill(t *testing.T) {
	for _, c := range []struct {
		step string
		sent int
	}{
		{"heartbeat.claim:1", 1}, {"heartbeat.claimed:1", 1}, {"run.begin:1", 1}, {"run.execute:1", 1},
		{"run.end:1", 1}, {"run.ended:1", 1},
		{"channel.send:1", 0}, {"channel.sent:1", 1},
	} {
		t.Run("neither two heartbeats nor none after a kill at "+c.step, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI,
				func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("the kettle boils") })
			url, _ := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			conf["agents.defaults"] = json.RawMessage(
				`{"model": "mock/m", "heartbeat": {"every": "0m", "target": "file", "to": "7"}}`)
			cmd, cl := startSubprocess(t, dir, conf, c.step)
			cl.must(wire.MethodWake, wire.Wake{Mode: wire.WakeNow, Text: "it boils"}, nil)
			if err := cmd.Wait(); err == nil {
				t.Fatal("the engine exited normally")
			}
			var st store.Store
			Start(t, Options{
				Dir: dir, Config: conf, Wrap: func(s store.Store) store.Store { st = s; return s },
				Channels: map[string]channel.Channel{"file": fileChannel{dir, func(string) {}}},
			})
			var state heartbeat.State
			waittest.Until(t, "the end of the heartbeat", func() bool {
				var err error
				if state, err = store.Get(t.Context(), st,
					func(r store.Reader) (heartbeat.State, error) { return r.Heartbeats().State("main") }); err != nil {
					t.Fatal(err)
				}
				return state.Last.Run != "" && len(undelivered(t, st)) == 0
			})
			if state.Last.Status != heartbeat.StatusSent || len(state.Runs) > 0 {
				t.Errorf("state %+v", state)
			}
			err := st.View(t.Context(), func(r store.Reader) error {
				wakes, err := r.Heartbeats().Wakes()
				if err != nil || len(wakes) > 0 {
					t.Errorf("wakes %+v, %v", wakes, err)
				}
				m, err := r.Sessions().Get("agent:main:main")
				if err != nil {
					return err
				}
				entries, err := r.Sessions().Entries(m.ID, 0, 0)
				runs, events := map[chela.RunID]bool{}, 0
				for _, e := range entries {
					runs[e.Run] = true
					if e.Message != nil && strings.Contains(e.Message.PlainText(), "it boils") {
						events++
					}
				}
				delete(runs, "")
				if len(runs) != 1 || events != 1 {
					t.Errorf("%d runs got %d events", len(runs), events)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			b, _ := os.ReadFile(filepath.Join(dir, "sent.txt"))
			if n := strings.Count(string(b), "the kettle boils") - doubts(b); n != c.sent {
				t.Errorf("sent %d times, want %d", n, c.sent)
			}
		})
	}
}

// A reminder of the main session that waits for the next turn is not lost with the
// process.
func TestReminderKill(t *testing.T) {
	t.Run("SESS-15 a reminder that waits for the next heartbeat is in the next turn after a kill, once",
		func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI,
				func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("ok") })
			url, _ := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			cmd, c := startSubprocess(t, dir, conf, "")
			c.Ask("main", "hello")
			var job wire.CronAdded
			c.must(wire.MethodCronAdd, json.RawMessage(`{"name":"next","schedule":{"kind":"every","everyMs":36000000},"payload":{"kind":"systemEvent","text":"stand up"},"sessionTarget":"main","wakeMode":"next-heartbeat"}`), &job)
			c.must(wire.MethodCronRun, map[string]any{"id": job.ID, "mode": "force"}, nil)
			var page wire.CronRunsPage
			waittest.Until(t, "the run of the job", func() bool {
				c.must(wire.MethodCronRuns, map[string]any{"id": job.ID}, &page)
				return len(page.Entries) > 0
			})
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if n := len(srv.Requests()); n != 1 {
				t.Fatalf("%d requests before the kill", n)
			}
			c = Start(t, Options{Dir: dir, Config: conf}).Client()
			c.Ask("main", "good morning")
			c.Ask("main", "good evening")
			all := srv.Requests()
			for i, want := range []int{0, 1, 1} {
				if got := strings.Count(string(all[i].Body), "stand up"); got != want {
					t.Errorf("request %d contains the reminder %d times, want %d: %s", i, got, want, all[i].Body)
				}
			}
			if len(all) != 3 {
				t.Errorf("%d requests", len(all))
			}
		})
}
