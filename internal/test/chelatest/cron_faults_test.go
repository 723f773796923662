package chelatest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// TestCronFaults breaks what a job depends on.
func TestCronFaults(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	for _, tt := range []struct {
		name      string
		faults    []channeltest.Fault
		best      bool
		delivery  string
		status    string
		got, told int
	}{
		{"accepted", nil, false, "delivered", "ok", 1, 0},
		{"accepted at the second attempt", []channeltest.Fault{channeltest.Temporary()}, false, "delivered", "ok", 1, 0},
		{"refused", []channeltest.Fault{channeltest.Permanent()}, false, "not-delivered", "error", 0, 1},
		{"refused, but not important", []channeltest.Fault{channeltest.Permanent()}, true, "not-delivered", "ok", 0, 0},
		{"accepted, and the connection is cut", []channeltest.Fault{channeltest.Cut()}, false, "delivered", "ok", 1, 0},
	} {
		schedule(t, "R10 the status says what became of an answer that is "+tt.name, "", func(t *testing.T, s *scheduled) {
			s.phone.Fail(tt.faults...)
			j := s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann","bestEffort":%t}}`, in(time.Minute), tt.best)
			from := time.Now()
			time.Sleep(3 * time.Minute)
			runs := s.runs(j.ID)
			if len(runs) != 1 || runs[0].Delivery != tt.delivery || runs[0].Status != tt.status {
				t.Errorf("%+v", runs)
			}
			if got := s.job(j.ID).State; got.LastDelivery != tt.delivery || got.LastRunStatus != tt.status {
				t.Errorf("%+v", got)
			}
			equal(t, "messages", len(s.phone.Texts(ann)), tt.got)
			equal(t, "told", len(s.turns("The scheduled job", from)), 0)
			equal(t, "told about it", len(s.turns("could not be delivered to phone", from)), tt.told)
		})
	}
	schedule(t, "R10 an unknown outcome is not called delivered", "", func(t *testing.T, s *scheduled) {
		s.o.Channels["phone"] = s.phone.Plain() // it cannot look a message up
		s.restart(time.Second)
		s.phone.Fail(channeltest.Cut())
		j := s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, in(time.Minute))
		time.Sleep(3 * time.Minute)
		if runs := s.runs(j.ID); len(runs) != 1 || runs[0].Delivery != "unknown" {
			t.Errorf("%+v", runs)
		}
		if got := s.phone.Texts(ann); len(got) != 2 ||
			!strings.HasPrefix(got[1], "I don't know whether the message that begins ") {
			t.Errorf("messages: %q", got)
		}
	})
	// R11: one result is told once, in every way in which it can be delivered.
	for i, delivery := range []string{
		``, `,"delivery":{"mode":"none"}`, `,"delivery":{"mode":"announce"}`,
		`,"delivery":{"mode":"announce","channel":"last"}`,
		`,"delivery":{"mode":"announce","channel":"phone"}`, `,"delivery":{"mode":"announce","channel":"phone","to":"ann"}`,
		`,"delivery":{"mode":"announce","channel":"phone","to":"ann","bestEffort":true}`,
		`,"delivery":{"mode":"announce","channel":"phone","to":"phone:ann"}`,
		`,"delivery":{"mode":"announce","channel":"phone","to":"ann","failureDestination":{"channel":"phone","to":"bob"}}`,
	} {
		for _, target := range []string{"isolated", "current", "session:reports"} {
			schedule(t, fmt.Sprintf("R11 one result is one message: %d %s", i, target), "", func(t *testing.T, s *scheduled) {
				s.say("ann", "hello")
				s.add(`{"name":"x","sessionKey":"agent:main:main","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":%q,"wakeMode":"now"%s}`, in(time.Minute), target, delivery)
				time.Sleep(3 * time.Minute)
				want := []string{"done: report"}
				if strings.Contains(delivery, "none") {
					want = nil
				}
				equal(t, "messages", s.phone.Texts(ann)[1:], want)
				bob := ann
				bob.Peer.ID = "bob"
				equal(t, "bob", len(s.phone.Texts(bob)), 0)
			})
		}
	}
	schedule(t, "CR-12 R9 a turn that never ends is given up after two hours, and the job runs again", "",
		func(t *testing.T, s *scheduled) {
			s.say("ann", "hello")
			j := s.add(`{"name":"stuck","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"slow 30000","timeoutSeconds":80000},"sessionTarget":"isolated","wakeMode":"now","failureAlert":{"after":1}}`)
			from := time.Now()
			time.Sleep(4*time.Hour + 10*time.Minute)
			turns := s.turns("slow", from)
			if len(turns) != 2 || turns[1]-turns[0] < 7200 || turns[1]-turns[0] > 10800 {
				t.Errorf("turns at %v", turns)
			}
			runs := s.runs(j.ID)
			if len(runs) != 1 || runs[0].Status != "error" || !strings.Contains(runs[0].Error, "stuck") {
				t.Errorf("%+v", runs)
			}
			if texts := strings.Join(s.phone.Texts(ann), "\n"); strings.Count(texts, "stuck: the turn") != 1 {
				t.Errorf("ann got %s", texts)
			}
		})
	schedule(t, "CR-14 a failing job does not disturb another one", "", func(t *testing.T, s *scheduled) {
		bad := s.add(`{"name":"bad","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"hang","timeoutSeconds":30},"sessionTarget":"isolated","wakeMode":"now","failureAlert":false}`, in(time.Minute))
		good := s.add(`{"name":"good","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`, in(time.Minute))
		time.Sleep(2 * time.Minute)
		if b, g := s.job(bad.ID).State, s.job(good.ID).State; b.LastRunStatus != "error" || g.LastRunStatus != "ok" ||
			g.LastDurationMs > 1000 {
			t.Errorf("%+v, %+v", b, g)
		}
	})
	schedule(t, "a session that is removed while its job waits", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"x","sessionKey":"agent:main:other","schedule":{"kind":"at","at":%q},"payload":{"kind":"systemEvent","text":"wake up"},"sessionTarget":"main","wakeMode":"now"}`, in(time.Minute))
		s.Ask("agent:main:other", "hello")
		if err := s.Client.Call(t.Context(), wire.MethodSessionsDelete, map[string]any{"key": "agent:main:other"},
			nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if got := s.job(j.ID).State; got.LastRunStatus != "ok" {
			t.Errorf("%+v", got)
		}
		equal(t, "turns", len(s.turns("wake up", time.Now())), 1)
	})
	schedule(t, "an agent that is removed", `agents: {list: [{id: "main", default: true}, {id: "ops"}]}`,
		func(t *testing.T, s *scheduled) {
			s.say("ann", "hello")
			j := s.add(`{"name":"x","agentId":"ops","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, in(time.Hour))
			s.stop()
			s.config("")
			s.start()
			time.Sleep(time.Hour + time.Minute)
			if got := s.job(j.ID).State; got.LastRunStatus != "error" || !strings.Contains(got.LastError, `no agent "ops"`) {
				t.Errorf("%+v", got)
			}
			if texts := s.phone.Texts(ann); len(texts) != 2 || !strings.Contains(texts[1], `no agent "ops"`) {
				t.Errorf("ann got %q", texts)
			}
		})
	var mu sync.Mutex
	full := false
	t.Run("R25 a full disk delays a claim", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := newScheduledWith(t, "", func(o *Options) {
				o.Wrap = func(st store.Store) store.Store {
					return failing{st, func() error {
						mu.Lock()
						defer mu.Unlock()
						if full {
							return fmt.Errorf("update: %w", chela.ErrFull)
						}
						return nil
					}}
				}
			})
			j := s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, in(time.Minute))
			set := func(v bool) { mu.Lock(); defer mu.Unlock(); full = v }
			set(true)
			from := time.Now()
			time.Sleep(90 * time.Second)
			equal(t, "turns", len(s.turns("report", from)), 0)
			set(false)
			time.Sleep(time.Minute)
			equal(t, "messages", s.phone.Texts(ann), []string{"done: report"})
			equal(t, "runs", len(s.runs(j.ID)), 1)
			s.stop()
		})
	})
	schedule(t, "R24 a sleep of 30 days is one run", "", func(t *testing.T, s *scheduled) {
		s.add(`{"name":"x","schedule":{"kind":"cron","expr":"0 9 * * *","tz":"Europe/Berlin"},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`)
		s.restart(30 * 24 * time.Hour)
		from := time.Now()
		time.Sleep(10 * time.Minute)
		equal(t, "turns", len(s.turns("report", from)), 1)
	})
}

// failing is a store whose writes fail.
type failing struct {
	store.Store
	err func() error
}

func (f failing) Update(ctx context.Context, sync store.Sync, g func(store.Tx) error) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Update(ctx, sync, g)
}
