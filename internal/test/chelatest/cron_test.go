package chelatest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// scheduled is a gateway with a channel, for tests of scheduled jobs in a synctest bubble.
// Its model answers a turn that contains
//
//	fail      with an error that stays
//	busy      with an error that passes
//	quiet     with NO_REPLY
//	hang      never
//	slow N    after N seconds
//	tell TEXT by sending TEXT to ann with the tool message
//
// and everything else with "done: " and the first line of the message.
type scheduled struct {
	*Gateway
	*Client
	t     *testing.T
	o     Options
	model *llmtest.Script
	phone *channeltest.Fake

	mu     sync.Mutex
	starts []started // model calls that begin a turn
}

type started struct {
	at   time.Time
	text string
}

func newScheduled(t *testing.T, conf string) *scheduled {
	t.Helper()
	return newScheduledWith(t, conf, func(*Options) {})
}

// newScheduledWith is newScheduled with options that f changes.
func newScheduledWith(t *testing.T, conf string, f func(*Options)) *scheduled {
	t.Helper()
	s := &scheduled{t: t, phone: new(channeltest.Fake)}
	s.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say("sent")
		}
		text := last.PlainText()
		s.mu.Lock()
		s.starts = append(s.starts, started{time.Now(), text})
		s.mu.Unlock()
		line, _, _ := strings.Cut(text, "\n")
		word := line[strings.LastIndex(line, "] ")+1:]
		word = strings.TrimSpace(word)
		verb, rest, _ := strings.Cut(word, " ")
		switch verb {
		case "fail":
			return llmtest.Status(401, "no key")
		case "busy":
			return llmtest.Status(503, "overloaded")
		case "quiet":
			return llmtest.Say("NO_REPLY")
		case "hang":
			return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangBody}}
		case "slow":
			var n int
			fmt.Sscan(rest, &n)
			return llmtest.Step{Parts: []llm.Part{llm.Text("done: " + word)}, Delay: time.Duration(n) * time.Second}
		case "tell":
			return llmtest.Call("c"+fmt.Sprint(len(s.starts)), "message",
				fmt.Sprintf(`{"action":"send","channel":"phone","to":"ann","message":%q}`, rest))
		}
		return llmtest.Say("done: " + cmp.Or(word, line))
	})
	s.o = Options{
		Dir: t.TempDir(), Model: s.model, Channels: map[string]channel.Channel{"phone": s.phone},
		Config: Config{
			"channels": json.RawMessage(`{"phone":{"allowFrom":["ann","bob"]}}`),
			"models":   json.RawMessage(`{"providers":{"mock":{"models":[{"id":"m","contextWindow":1000000},{"id":"big","contextWindow":1000000,"reasoning":true}]}}}`),
		},
	}
	f(&s.o)
	s.config(conf)
	s.start()
	return s
}

// config writes the configuration file: members of an object.
func (s *scheduled) config(members string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.o.Dir, "chela.json"), []byte("{"+members+"}"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scheduled) start() {
	s.t.Helper()
	s.Gateway = Start(s.t, s.o)
	s.Client = s.Gateway.Client()
}

func (s *scheduled) stop() {
	s.Client.Close()
	s.Gateway.Stop()
}

// restart stops the gateway for a time.
func (s *scheduled) restart(off time.Duration) {
	s.t.Helper()
	s.stop()
	time.Sleep(off)
	s.start()
}

// add adds a job, given as JSON.
func (s *scheduled) add(raw string, args ...any) wire.CronJob {
	s.t.Helper()
	j, err := s.try(fmt.Sprintf(raw, args...))
	if err != nil {
		s.t.Fatalf("add %s: %v", raw, err)
	}
	return j
}

func (s *scheduled) try(raw string) (wire.CronJob, error) {
	var j wire.CronJob
	err := s.Client.Call(s.t.Context(), wire.MethodCronAdd, json.RawMessage(raw), &j)
	return j, err
}

// ask calls a method of the schedule.
func ask[T any](s *scheduled, method string, params any) (out T) {
	s.t.Helper()
	if err := s.Client.Call(s.t.Context(), method, params, &out); err != nil {
		s.t.Fatalf("%s %v: %v", method, params, err)
	}
	return out
}

func (s *scheduled) job(id string) wire.CronJob {
	s.t.Helper()
	return ask[wire.CronJob](s, wire.MethodCronGet, map[string]string{"id": id})
}

func (s *scheduled) runs(id string) []wire.CronEntry {
	s.t.Helper()
	return ask[wire.CronRunsPage](s, wire.MethodCronRuns, map[string]any{"id": id, "limit": 200, "sortDir": "asc"}).Entries
}

// turns returns the turns whose message contains a text, as seconds after from. Turns
// about the result of a job count only if the text asks for them.
func (s *scheduled) turns(text string, from time.Time) (out []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.starts {
		about := "The scheduled job"
		if strings.Contains(st.text, text) && (strings.Contains(text, about) || !strings.Contains(st.text, about)) {
			out = append(out, st.at.Sub(from).Round(time.Millisecond).Seconds())
		}
	}
	return out
}

var ann = chela.Address{Channel: "phone", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}

func (s *scheduled) say(who, text string) {
	s.t.Helper()
	a := ann
	a.Peer.ID = who
	if err := s.phone.Say(s.t.Context(),
		chela.Inbound{Address: a, Sender: chela.Sender{ID: who}, Text: text, Mentioned: true}); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
}

// schedule runs a test with a scheduled gateway in a bubble.
func schedule(t *testing.T, name, conf string, f func(*testing.T, *scheduled)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := newScheduled(t, conf)
			f(t, s)
			s.stop()
		})
	})
}

// bubble runs a test in a synctest bubble, in parallel to others.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

func TestCron(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	schedule(t, "CR-01 a job in 20 minutes runs once, also after a restart", "", func(t *testing.T, s *scheduled) {
		from := time.Now()
		j := s.add(`{"name":"tea","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"make tea"},"sessionTarget":"isolated","wakeMode":"now"}`, in(20*time.Minute))
		time.Sleep(21 * time.Minute)
		got := s.job(j.ID)
		if got.Enabled || got.State.LastRunStatus != "ok" || got.NextRunAt != nil {
			t.Errorf("%+v", got)
		}
		s.restart(time.Minute)
		time.Sleep(30 * time.Minute)
		equal(t, "turns", s.turns("make tea", from), []float64{1200})
		equal(t, "runs", len(s.runs(j.ID)), 1)
	})
	schedule(t, "only sessions of jobs are deleted after cron.sessionRetention", `cron: {sessionRetention: "1h"}`,
		func(t *testing.T, s *scheduled) {
			j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":1800000},"payload":{"kind":"agentTurn","message":"tick"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			s.Ask("agent:main:work", "what does agent:main:cron:x mean?")
			s.Ask("agent:main:plan:cron:y", "and this key?")
			s.Ask("agent:main:cron:gone", "the job is gone")
			time.Sleep(5 * time.Hour)
			var list wire.SessionList
			s.must(wire.MethodSessionsList, wire.SessionsList{}, &list)
			var keys []string
			for _, r := range list.Sessions {
				keys = append(keys, r.Key)
			}
			slices.Sort(keys)
			equal(t, "sessions", keys, []string{"agent:main:cron:" + j.ID, "agent:main:plan:cron:y", "agent:main:work"})
			if got := s.messages("agent:main:work"); len(got) != 2 {
				t.Errorf("the session has %d messages", len(got))
			}
		})
	schedule(t, "CR-02 a run of 90 seconds does not shift the grid", "", func(t *testing.T, s *scheduled) {
		from := time.Now()
		s.add(`{"name":"x","schedule":{"kind":"every","everyMs":300000},"payload":{"kind":"agentTurn","message":"slow 90"},"sessionTarget":"isolated","wakeMode":"now"}`)
		time.Sleep(16 * time.Minute)
		equal(t, "turns", s.turns("slow 90", from), []float64{300, 600, 900})
	})
	schedule(t, "CR-08 a failing job pauses longer and longer, and a success ends that",
		"agents: {defaults: {model: {fallbacks: []}}}", func(t *testing.T, s *scheduled) {
			j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":10000},"payload":{"kind":"agentTurn","message":"fail"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"},"failureAlert":false}`)
			from := time.Now()
			time.Sleep(25 * time.Minute)
			turns := s.turns("fail", from)
			want := []float64{30, 60, 300, 900}
			if len(turns) < 5 {
				t.Fatalf("turns at %v", turns)
			}
			for i, w := range want {
				if gap := turns[i+1] - turns[i]; gap < w || gap > w+20 {
					t.Errorf("pause %d: %v s, want %v; turns at %v", i+1, gap, w, turns)
				}
			}
			if got := s.job(j.ID); got.State.ConsecutiveErrors != 5 || got.State.LastRunStatus != "error" {
				t.Errorf("%+v", got.State)
			}
			ask[wire.CronJob](s, wire.MethodCronUpdate,
				map[string]any{
					"id":    j.ID,
					"patch": map[string]any{"payload": map[string]any{"kind": "agentTurn", "message": "fine"}},
				})
			time.Sleep(70 * time.Minute)
			if got := s.job(j.ID); got.State.ConsecutiveErrors != 0 || got.State.LastRunStatus != "ok" ||
				time.Until(got.State.NextRunAt.Time()) > 11*time.Second {
				t.Errorf("after a success: %+v", got.State)
			}
		})
	schedule(t, "CR-10 three missed slots are one run", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`)
		time.Sleep(time.Minute)
		s.restart(3*time.Hour + 10*time.Minute)
		from := time.Now()
		time.Sleep(time.Minute)
		if turns := s.turns("report", from); len(turns) != 1 || turns[0] > 10 {
			t.Errorf("turns at %v", turns)
		}
		if next := s.job(j.ID).State.NextRunAt.Time().Sub(from); next > time.Hour {
			t.Errorf("next after %v", next)
		}
	})
	schedule(t, "missed slots are left out with the policy skip, and a person is told about a job that had no other",
		`cron: {missedRuns: "skip"}`, func(t *testing.T, s *scheduled) {
			s.say("ann", "hello")
			r := s.add(`{"name":"hourly","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`)
			o := s.add(`{"name":"once","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"call bob"},"sessionTarget":"isolated","wakeMode":"now"}`, in(time.Hour))
			s.restart(3*time.Hour + 10*time.Minute)
			time.Sleep(time.Minute)
			equal(t, "turns", len(s.turns("report", time.Now()))+len(s.turns("call bob", time.Now())), 0)
			for _, id := range []string{r.ID, o.ID} {
				if runs := s.runs(id); len(runs) != 1 || runs[0].Status != "skipped" {
					t.Errorf("%+v", runs)
				}
			}
			if texts := strings.Join(s.phone.Texts(ann), "\n"); strings.Count(texts, "⚠️") != 1 ||
				!strings.Contains(texts, `"once" did not run`) {
				t.Errorf("ann got %s", texts)
			}
		})
	schedule(t, "missed slots run one after the other with the policy all", `cron: {missedRuns: "all"}`,
		func(t *testing.T, s *scheduled) {
			s.add(`{"name":"x","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`)
			s.restart(15*time.Hour + 10*time.Minute)
			from := time.Now()
			time.Sleep(2 * time.Minute)
			if turns := s.turns("report", from); len(turns) != 10 {
				t.Errorf("turns at %v", turns)
			}
		})
	schedule(t, "missed slots of a job that fails are as far apart as its failures",
		`cron: {missedRuns: "all"}, agents: {defaults: {model: {fallbacks: []}}}`, func(t *testing.T, s *scheduled) {
			s.add(`{"name":"x","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"fail"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"},"failureAlert":false}`)
			s.restart(4*time.Hour + 10*time.Minute)
			from := time.Now()
			time.Sleep(10 * time.Minute)
			if turns := s.turns("fail", from); len(turns) != 4 || turns[1]-turns[0] < 30 || turns[2]-turns[1] < 60 ||
				turns[3]-turns[2] < 300 {
				t.Errorf("turns at %v", turns)
			}
		})
	schedule(t, "CR-11 five missed jobs begin at least 5 s apart", "", func(t *testing.T, s *scheduled) {
		for i := range 5 {
			s.add(`{"name":"x%d","schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`, i)
		}
		s.restart(2*time.Hour + 10*time.Minute)
		from := time.Now()
		time.Sleep(time.Minute)
		turns := s.turns("report", from)
		if len(turns) != 5 {
			t.Fatalf("turns at %v", turns)
		}
		for i := 1; i < 5; i++ {
			if turns[i]-turns[i-1] < 4.99 {
				t.Errorf("turns at %v", turns)
			}
		}
	})
	for n, want := range map[int]float64{1: 60, 2: 30} {
		schedule(t, fmt.Sprintf("CR-13 two due jobs with maxConcurrentRuns %d", n),
			fmt.Sprintf("cron: {maxConcurrentRuns: %d}", n), func(t *testing.T, s *scheduled) {
				at := in(time.Minute)
				for i := range 2 {
					s.add(`{"name":"x%d","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"slow 30"},"sessionTarget":"isolated","wakeMode":"now"}`, i, at)
				}
				time.Sleep(time.Minute)
				from := time.Now()
				time.Sleep(3 * time.Minute)
				turns := s.turns("slow 30", from)
				equal(t, "turns", len(turns), 2)
				if len(turns) == 2 && turns[1]-turns[0]+30 != want {
					t.Errorf("turns at %v", turns)
				}
			})
	}
	schedule(t, "CR-18 a turn that takes too long is stopped and counts as a failure", "",
		func(t *testing.T, s *scheduled) {
			j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"hang","timeoutSeconds":2},"sessionTarget":"isolated","wakeMode":"now","failureAlert":false}`)
			time.Sleep(70 * time.Second)
			got := s.job(j.ID)
			if got.State.LastRunStatus != "error" || !strings.Contains(got.State.LastError, "timed out") ||
				got.State.LastDurationMs < 2000 || got.State.LastDurationMs > 2500 || got.State.ConsecutiveErrors != 1 {
				t.Errorf("%+v", got.State)
			}
		})
	schedule(t, "CR-19 CR-32 events of the main session", "", func(t *testing.T, s *scheduled) {
		s.say("ann", "hello")
		from := time.Now()
		s.add(`{"name":"now","schedule":{"kind":"at","at":%q},"payload":{"kind":"systemEvent","text":"drink water"},"sessionTarget":"main","wakeMode":"now"}`, in(time.Minute))
		next := s.add(`{"name":"next","schedule":{"kind":"at","at":%q},"payload":{"kind":"systemEvent","text":"stand up"},"sessionTarget":"main","wakeMode":"next-heartbeat"}`, in(90*time.Second))
		time.Sleep(2 * time.Minute)
		equal(t, "turns of now", len(s.turns("drink water", from)), 1)
		if texts := s.phone.Texts(ann); !strings.Contains(texts[len(texts)-1], "done: drink water") {
			t.Errorf("ann got %q", texts)
		}
		if got := s.job(next.ID); got.State.LastRunStatus != "ok" || got.Enabled {
			t.Errorf("%+v", got)
		}
		s.say("ann", "anything else?")
		last := s.model.Requests()[len(s.model.Requests())-1]
		if all := fmt.Sprint(last.Messages[len(last.Messages)-1].PlainText(),
			last.Messages[len(last.Messages)-2].PlainText()); !strings.Contains(all, "stand up") {
			t.Errorf("the next turn does not contain the event: %s", all)
		}
	})
	schedule(t, "CR-20 CR-21 one message, none for NO_REPLY, none besides what the model sent", "",
		func(t *testing.T, s *scheduled) {
			for i, text := range []string{"report", "quiet", "tell the result is 42"} {
				s.add(`{"name":"x%d","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":%q},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`,
					i, in(time.Duration(i+1)*time.Minute), text)
			}
			time.Sleep(5 * time.Minute)
			equal(t, "messages", s.phone.Texts(ann), []string{"done: report", "the result is 42"})
			page := ask[wire.CronPage](s, wire.MethodCronList,
				map[string]any{"includeDisabled": true, "sortBy": "name", "sortDir": "asc"})
			var got []string
			for _, j := range page.Jobs {
				got = append(got, j.State.LastDelivery)
			}
			equal(t, "deliveries", got, []string{"delivered", "not-requested", "delivered"})
		})
	schedule(t, "CR-24 a disabled job runs by hand", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"x","enabled":false,"schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`)
		from := time.Now()
		time.Sleep(3 * time.Minute)
		equal(t, "turns of a disabled job", len(s.turns("report", from)), 0)
		due := ask[wire.CronStarted](s, wire.MethodCronRun, map[string]string{"id": j.ID, "mode": "due"})
		if due.RunID != "" || due.Reason != "not-due" {
			t.Errorf("%+v", due)
		}
		ran := ask[wire.CronStarted](s, wire.MethodCronRun, map[string]string{"id": j.ID})
		time.Sleep(5 * time.Second)
		equal(t, "turns", len(s.turns("report", from)), 1)
		if runs := s.runs(j.ID); len(runs) != 1 || runs[0].RunID != ran.RunID || runs[0].Status != "ok" {
			t.Errorf("%+v, %+v", ran, runs)
		}
		if got := s.job(j.ID); got.Enabled || got.NextRunAt != nil {
			t.Errorf("%+v", got)
		}
	})
	schedule(t, "CR-25 nothing runs while the schedule is off", "cron: {enabled: false}",
		func(t *testing.T, s *scheduled) {
			s.add(`{"name":"x","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`)
			time.Sleep(5 * time.Minute)
			equal(t, "turns", len(s.turns("report", time.Now())), 0)
			if st := ask[wire.CronStatus](s, wire.MethodCronStatus, nil); st.Enabled || st.Jobs != 1 {
				t.Errorf("%+v", st)
			}
		})
	schedule(t, "CR-27 CR-37 the agent, the model and the level of the job",
		`agents: {list: [{id: "main", default: true}, {id: "ops"}]}`, func(t *testing.T, s *scheduled) {
			j := s.add(`{"name":"x","agentId":"ops","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report","model":"mock/big","thinking":"high"},"sessionTarget":"isolated","wakeMode":"now"}`, in(time.Minute))
			time.Sleep(2 * time.Minute)
			r := s.model.Requests()[0]
			runs := s.runs(j.ID)
			if len(runs) != 1 || runs[0].SessionKey != "agent:ops:cron:"+j.ID || r.Model != "big" || r.Thinking != llm.High ||
				!strings.Contains(fmt.Sprint(r.System), "workspace-ops") {
				t.Errorf("%+v, model %s, level %q, system %.300s", runs, r.Model, r.Thinking, fmt.Sprint(r.System))
			}
			list := ask[wire.SessionList](s, wire.MethodSessionsList, map[string]any{})
			for _, m := range list.Sessions {
				if m.Key == "agent:ops:cron:"+j.ID && m.Thinking != "" {
					t.Errorf("the session keeps the level: %+v", m)
				}
			}
		})
	schedule(t, "CR-28 one alert an hour after two failures", "", func(t *testing.T, s *scheduled) {
		s.add(`{"name":"broken","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"fail"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"},"failureAlert":{"after":2}}`)
		time.Sleep(50 * time.Minute)
		if texts := s.phone.Texts(ann); len(texts) != 1 || !strings.Contains(texts[0], `"broken" failed 2 times in a row`) {
			t.Errorf("ann got %q", texts)
		}
	})
	schedule(t, "CR-33 the last chat is that at the run, an explicit one stays", "", func(t *testing.T, s *scheduled) {
		s.say("ann", "hello")
		s.add(`{"name":"last","sessionKey":"agent:main:main","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"one"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"last"}}`, in(10*time.Minute))
		s.add(`{"name":"fixed","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"two"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, in(10*time.Minute))
		s.say("bob", "hello")
		time.Sleep(11 * time.Minute)
		bob := ann
		bob.Peer.ID = "bob"
		equal(t, "bob", s.phone.Texts(bob)[1:], []string{"done: one"})
		equal(t, "ann", s.phone.Texts(ann)[1:], []string{"done: two"})
	})
	schedule(t, "CR-33 a channel that is gone is an error that a person is told", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"lost","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, in(10*time.Minute))
		s.stop()
		s.o.Channels = nil
		s.start()
		from := time.Now()
		time.Sleep(11 * time.Minute)
		if runs := s.runs(j.ID); len(runs) != 1 || runs[0].Status != "error" || runs[0].Delivery != "not-delivered" ||
			!strings.Contains(runs[0].Error, "phone") {
			t.Errorf("%+v", runs)
		}
		if told := s.turns(`The scheduled job "lost" has ended`, from); len(told) != 1 {
			t.Errorf("told at %v: %+v", told, s.starts)
		}
	})
	for _, tt := range []struct {
		name, text string
		starts     int
	}{{"permanent", "fail", 1}, {"transient", "busy", 4}} {
		schedule(t, "CR-34 a one-shot with a failure that is "+tt.name,
			`agents: {defaults: {model: {fallbacks: []}}}, models: {retry: {attempts: 1}}`, func(t *testing.T, s *scheduled) {
				s.say("ann", "hello")
				j := s.add(`{"name":"once","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":%q},"sessionTarget":"isolated","wakeMode":"now","failureAlert":false}`, in(time.Minute), tt.text)
				for range 4 {
					time.Sleep(30 * time.Minute)
					s.restart(time.Second)
				}
				runs := s.runs(j.ID)
				equal(t, "runs", len(runs), tt.starts)
				if got := s.job(j.ID); got.Enabled || got.State.LastRunStatus != "error" {
					t.Errorf("%+v", got)
				}
				if texts := strings.Join(s.phone.Texts(ann), "\n"); strings.Count(texts, "⚠️") != 1 ||
					!strings.Contains(texts, `"once" failed`) {
					t.Errorf("ann got %s", texts)
				}
			})
	}
	schedule(t, "CR-35 two starts are at least 2 s apart", "", func(t *testing.T, s *scheduled) {
		from := time.Now()
		s.add(`{"name":"x","schedule":{"kind":"every","everyMs":1000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
		time.Sleep(20 * time.Second)
		turns := s.turns("report", from)
		for i := 1; i < len(turns); i++ {
			if turns[i]-turns[i-1] < 2 {
				t.Errorf("turns at %v", turns)
			}
		}
		if len(turns) < 8 {
			t.Errorf("turns at %v", turns)
		}
	})
	schedule(t, "a removed job ends its run without a delivery", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"slow 30"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, in(time.Minute))
		time.Sleep(70 * time.Second)
		ask[map[string]any](s, wire.MethodCronRemove, map[string]string{"id": j.ID})
		time.Sleep(time.Minute)
		equal(t, "messages", len(s.phone.Texts(ann)), 0)
		if runs := s.runs(j.ID); len(runs) != 1 || runs[0].Status != "ok" {
			t.Errorf("%+v", runs)
		}
	})
	schedule(t, "a job with one slot that gets another one during its run runs then", "",
		func(t *testing.T, s *scheduled) {
			from := time.Now()
			j := s.add(`{"name":"x","deleteAfterRun":true,"schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"slow 30"},"sessionTarget":"isolated","wakeMode":"now"}`, in(time.Minute))
			time.Sleep(70 * time.Second)
			ask[wire.CronJob](s, wire.MethodCronUpdate,
				map[string]any{
					"id":    j.ID,
					"patch": map[string]any{"schedule": map[string]any{"kind": "at", "at": in(time.Minute)}},
				})
			time.Sleep(50 * time.Second)
			if got := s.job(j.ID); !got.Enabled || got.NextRunAt == nil || got.State.LastRunStatus != "ok" {
				t.Errorf("after the first run: %+v", got)
			}
			time.Sleep(time.Minute)
			equal(t, "turns", s.turns("slow 30", from), []float64{60, 130})
			if page := ask[wire.CronPage](s, wire.MethodCronList, map[string]any{"includeDisabled": true}); page.Total != 0 {
				t.Errorf("it was not deleted: %+v", page.Jobs)
			}
		})
	schedule(t, "a job with one slot that comes during a run by hand ends with that run", "",
		func(t *testing.T, s *scheduled) {
			from := time.Now()
			j := s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"slow 30"},"sessionTarget":"isolated","wakeMode":"now"}`, in(time.Minute))
			time.Sleep(50 * time.Second)
			ask[wire.CronStarted](s, wire.MethodCronRun, map[string]string{"id": j.ID})
			time.Sleep(10 * time.Minute)
			equal(t, "turns", s.turns("slow 30", from), []float64{50})
			if got := s.job(j.ID); got.Enabled || got.State.RunningAt != 0 {
				t.Errorf("%+v", got)
			}
		})
	schedule(t, "a deleted session does not leave its job running", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":600000},"payload":{"kind":"agentTurn","message":"slow 300"},"sessionTarget":"isolated","wakeMode":"now","failureAlert":false}`)
		time.Sleep(11 * time.Minute)
		ask[map[string]any](s, wire.MethodSessionsDelete, map[string]any{"key": "agent:main:cron:" + j.ID})
		time.Sleep(2 * time.Minute)
		if got := s.job(j.ID); got.State.RunningAt != 0 || got.State.LastRunStatus != "error" {
			t.Errorf("%+v", got.State)
		}
		time.Sleep(8 * time.Minute)
		equal(t, "turns", len(s.turns("slow 300", time.Now())), 2)
	})
	schedule(t, "CR-15 CR-16 a file of jobs is imported whenever it changes, and a broken one changes neither the jobs nor the file", "", func(t *testing.T, s *scheduled) {
		file := filepath.Join(s.o.Dir, "jobs.json")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if b, err := os.ReadFile(file); err != nil || string(b) != text {
				t.Errorf("the file is %q, %v", b, err)
			}
		}
		names := func() (all []string) {
			var list wire.CronPage
			s.must(wire.MethodCronList, nil, &list)
			for _, j := range list.Jobs {
				all = append(all, j.Name)
			}
			slices.Sort(all)
			return all
		}
		const one = `{"version":1,"jobs":[{"id":"tea","name":"tea","enabled":true,"schedule":{"kind":"every","everyMs":3600000},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"make tea"}}`
		const two = one + `,{"id":"bread","name":"bread","enabled":true,"schedule":{"kind":"every","everyMs":7200000},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"buy bread"}}`
		write(one + `]}`)
		s.config(fmt.Sprintf(`cron: {store: %q}`, file))
		s.restart(0)
		time.Sleep(2 * time.Minute)
		equal(t, "jobs of the file", names(), []string{"tea"})
		write(two + `]}`)
		equal(t, "after an edit", names(), []string{"bread", "tea"})
		write(two) // its end is missing, as if the program that writes it was killed
		equal(t, "with half a file", names(), []string{"bread", "tea"})
		write(one + `,{"id":"bread","name":"loaf","schedule":{"kind":"cron","expr":"every day"},"payload":{"kind":"agentTurn","message":"x"},"sessionTarget":"isolated"}]}`)
		equal(t, "with a job that is none", names(), []string{"bread", "tea"})
		from := time.Now()
		s.restart(0)
		time.Sleep(3 * time.Hour)
		equal(t, "jobs after a restart", names(), []string{"bread", "tea"})
		if n := len(s.turns("buy bread", from)); n == 0 {
			t.Error("a job of the file does not run")
		}
	})
	schedule(t, "CR-17 the newest runs of a job are kept", "cron: {runLog: {keepLines: 3}}",
		func(t *testing.T, s *scheduled) {
			j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":600000},"payload":{"kind":"agentTurn","message":"tick"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			s.add(`{"name":"y","schedule":{"kind":"every","everyMs":1800000},"payload":{"kind":"agentTurn","message":"tock"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(55 * time.Minute)
			s.must(wire.MethodCronUpdate, json.RawMessage(fmt.Sprintf(`{"id":%q,"patch":{"enabled":false}}`, j.ID)), nil)
			times := func() (all []wire.Millis) {
				for _, e := range s.runs(j.ID) {
					all = append(all, e.Time)
				}
				slices.Sort(all)
				return all
			}
			before := times()
			time.Sleep(2 * time.Hour)
			if after := times(); len(before) != 5 || !slices.Equal(after, before[2:]) {
				t.Errorf("of the runs at %v, those at %v are kept", before, after)
			}
		})
	schedule(t, "a watched file", "", func(t *testing.T, s *scheduled) {
		file := filepath.Join(s.o.Dir, "workspace", "inbox.txt")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		j := s.add(`{"name":"inbox","schedule":{"kind":"every","everyMs":60000},"trigger":{"script":"file inbox.txt"},"payload":{"kind":"agentTurn","message":"summarize it"},"sessionTarget":"isolated","wakeMode":"now"}`)
		from := time.Now()
		time.Sleep(5*time.Minute + time.Second)
		equal(t, "turns without a change", len(s.turns("summarize", from)), 0)
		write("two")
		time.Sleep(3 * time.Minute)
		if turns := s.turns("The file inbox.txt has changed", from); len(turns) != 1 || turns[0] > 361 {
			t.Errorf("turns at %v", turns)
		}
		os.Remove(file)
		time.Sleep(2 * time.Minute)
		equal(t, "turns after its removal", len(s.turns("does not exist any more", from)), 1)
		if got := s.job(j.ID); got.State.Checks < 9 || got.State.LastFiredAt == 0 || got.State.LastRunStatus != "ok" {
			t.Errorf("%+v", got.State)
		}
	})
}

// TestCronInterrupted kills the gateway while a job runs: the store is abandoned.
func TestCronInterrupted(t *testing.T) {
	t.Parallel()
	schedule(t, "CR-09 a run that was interrupted goes on, and the schedule too", "", func(t *testing.T, s *scheduled) {
		j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":600000},"payload":{"kind":"agentTurn","message":"slow 60"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`)
		time.Sleep(10*time.Minute + 10*time.Second)
		if got := s.job(j.ID); got.State.RunningAt == 0 {
			t.Errorf("%+v", got.State)
		}
		s.restart(time.Minute)
		time.Sleep(3 * time.Minute)
		got := s.job(j.ID)
		if got.State.RunningAt != 0 || got.State.LastRunStatus != "ok" || got.NextRunAt == nil {
			t.Errorf("%+v", got.State)
		}
		equal(t, "messages", s.phone.Texts(ann), []string{"done: slow 60"})
		equal(t, "runs", len(s.runs(j.ID)), 1)
	})
}

// TestCronRemoved removes jobs whose answers wait to be sent.
func TestCronRemoved(t *testing.T) {
	schedule(t, "the answer of a job that is removed is not sent, unless it is being sent", "",
		func(t *testing.T, s *scheduled) {
			const at = `{"name":%q,"schedule":{"kind":"every","everyMs":3600000},"payload":{"kind":"agentTurn","message":%[1]q},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"direct:ann"}}`
			s.phone.Latency = 10 * time.Second
			first, second := s.add(at, "first"), s.add(at, "second")
			run := func(id string) {
				ask[wire.CronStarted](s, wire.MethodCronRun, map[string]any{"id": id, "mode": "force"})
			}
			run(first.ID)
			time.Sleep(time.Second)
			run(second.ID)
			time.Sleep(time.Second)
			for _, id := range []string{first.ID, second.ID} {
				ask[any](s, wire.MethodCronRemove, map[string]string{"id": id})
			}
			time.Sleep(5 * time.Minute)
			equal(t, "messages", s.phone.Texts(ann), []string{"done: first"})
			if r := s.runs(first.ID); len(r) != 1 || r[0].Delivery != "delivered" {
				t.Errorf("the first job: %+v", r)
			}
			if r := s.runs(second.ID); len(r) != 1 || r[0].Status != "ok" || r[0].Delivery != "not-delivered" ||
				r[0].DeliveryError != "the job was removed" {
				t.Errorf("the second job: %+v", r)
			}
		})
}

// TestCronClock sets the wall clock of the schedule.
func TestCronClock(t *testing.T) {
	t.Parallel()
	shifted := func(t *testing.T, name string, f func(t *testing.T, s *scheduled, set func(time.Duration))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var by time.Duration
				begun := time.Now()
				s := &scheduled{t: t, phone: new(channeltest.Fake)}
				s.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
					s.mu.Lock()
					defer s.mu.Unlock()
					text := r.Messages[len(r.Messages)-1].PlainText()
					s.starts = append(s.starts, started{time.Now(), text})
					switch {
					case strings.Contains(text, "] fail"):
						return llmtest.Status(401, "no key")
					case strings.Contains(text, "] try") && time.Since(begun) < 3*time.Minute:
						return llmtest.Status(503, "overloaded")
					}
					return llmtest.Say("ok")
				})
				s.o = Options{Dir: t.TempDir(), Model: s.model, Now: func() time.Time {
					mu.Lock()
					defer mu.Unlock()
					return time.Now().Add(by)
				}}
				s.start()
				f(t, s, func(d time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					by = d
				})
				s.stop()
			})
		})
	}
	shifted(t, "CR-07 a clock that jumps forward is noticed within a minute",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now"}`, time.Now().Add(3*time.Hour).UTC().Format(time.RFC3339))
			time.Sleep(5 * time.Minute)
			set(4 * time.Hour)
			from := time.Now()
			time.Sleep(70 * time.Second)
			if turns := s.turns("report", from); len(turns) != 1 || turns[0] > 60 {
				t.Errorf("turns at %v", turns)
			}
		})
	shifted(t, "a time from now counts from the clock of the schedule",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			set(6 * time.Hour)
			from := time.Now()
			j := s.add(`{"name":"x","schedule":{"kind":"at","at":"20m"},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(time.Minute)
			ask[wire.CronJob](s, wire.MethodCronUpdate,
				map[string]any{"id": j.ID, "patch": map[string]any{"schedule": map[string]any{"kind": "at", "at": "30m"}}})
			time.Sleep(40 * time.Minute)
			if turns := s.turns("report", from); len(turns) != 1 || turns[0] < 1860 || turns[0] > 1861 {
				t.Errorf("turns at %v", turns)
			}
		})
	shifted(t, "an interval goes on when the clock is set back",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			set(6 * time.Hour)
			j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":600000,"anchorMs":1000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(31 * time.Minute)
			set(0)
			from := time.Now()
			time.Sleep(61 * time.Minute)
			if turns := s.turns("report", from); len(turns) != 10 {
				t.Errorf("turns at %v, want four before and six after the change", turns)
			}
			equal(t, "runs", len(s.runs(j.ID)), 10)
		})
	shifted(t, "an interval goes on when the clock was set back while the gateway was not running",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			set(6 * time.Hour)
			s.add(`{"name":"x","schedule":{"kind":"every","everyMs":600000,"anchorMs":1000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(31 * time.Minute)
			s.stop()
			set(0)
			s.start()
			from := time.Now()
			time.Sleep(31 * time.Minute)
			if turns := s.turns("report", from); len(turns) != 7 {
				t.Errorf("turns at %v, want four before and three after the change", turns)
			}
		})
	shifted(t, "a pause after failures is kept when the clock is set back, and gets no longer",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			set(6 * time.Hour)
			s.add(`{"name":"x","schedule":{"kind":"every","everyMs":10000},"payload":{"kind":"agentTurn","message":"fail"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"},"failureAlert":false}`)
			from := time.Now()
			time.Sleep(140 * time.Second) // three failures, the next run is in 5 min
			set(0)
			time.Sleep(8 * time.Minute)
			if turns := s.turns("fail", from); len(turns) != 4 || turns[3]-turns[2] < 300 {
				t.Errorf("turns at %v", turns)
			}
		})
	shifted(t, "a job that is enabled after the clock was set back runs",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			set(6 * time.Hour)
			j := s.add(`{"name":"x","schedule":{"kind":"every","everyMs":600000,"anchorMs":1000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(11 * time.Minute)
			ask[wire.CronJob](s, wire.MethodCronUpdate, map[string]any{"id": j.ID, "patch": map[string]any{"enabled": false}})
			set(0)
			got := ask[wire.CronJob](s, wire.MethodCronUpdate,
				map[string]any{"id": j.ID, "patch": map[string]any{"enabled": true}})
			if next := time.Until(got.State.NextRunAt.Time()); next > 10*time.Minute {
				t.Errorf("it runs in %s", next)
			}
		})
	shifted(t, "a job with one slot that was repeated does not run again when the clock was before its slot",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			set(6 * time.Hour)
			j := s.add(`{"name":"x","schedule":{"kind":"at","at":"10s"},"deleteAfterRun":false,"payload":{"kind":"agentTurn","message":"try"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(2 * time.Minute)
			set(0)
			time.Sleep(8 * time.Minute)
			list := s.runs(j.ID)
			if n := len(list); n < 2 || list[n-1].Status != "ok" {
				t.Fatalf("runs %+v", list)
			}
			set(6 * time.Hour)
			time.Sleep(2 * time.Minute)
			equal(t, "runs after the clock was set right", len(s.runs(j.ID)), len(list))
		})
	shifted(t, "no slot of an expression runs twice when the clock is set back",
		func(t *testing.T, s *scheduled, set func(time.Duration)) {
			j := s.add(`{"name":"x","schedule":{"kind":"cron","expr":"*/10 * * * *"},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`)
			time.Sleep(time.Hour + time.Minute)
			before := len(s.runs(j.ID))
			set(-30 * time.Minute)
			time.Sleep(28 * time.Minute)
			equal(t, "runs while the local time repeats", len(s.runs(j.ID)), before)
			time.Sleep(32 * time.Minute)
			if n := len(s.runs(j.ID)) - before; n < 3 || n > 4 {
				t.Errorf("%d runs afterwards: %+v", n, s.runs(j.ID))
			}
		})
}

// TestCronWebhook delivers results to a server on this machine.
func TestCronWebhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	type request struct {
		header http.Header
		body   map[string]any
		raw    string
	}
	var got []request
	fail := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if fail > 0 {
			fail--
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		q := request{header: r.Header, raw: string(b)}
		_ = json.Unmarshal(b, &q.body)
		got = append(got, q)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for _, allowed := range []bool{true, false} {
		t.Run(fmt.Sprintf("CR-22 CR-38 allowed %v", allowed), func(t *testing.T) {
			s := &scheduled{t: t, phone: new(channeltest.Fake)}
			s.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				if strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "quiet") {
					return llmtest.Say("NO_REPLY")
				}
				return llmtest.Say("the result")
			})
			conf := `{"webhookToken":"s3cret-token"}`
			if allowed {
				conf = fmt.Sprintf(`{"webhookToken":"s3cret-token","webhookSsrfPolicy":{"allowedHostnames":[%q]}}`, host)
			}
			s.o = Options{Dir: t.TempDir(), Model: s.model, Config: Config{"cron": json.RawMessage(conf)}}
			s.start()
			defer s.stop()
			mu.Lock()
			got = nil
			mu.Unlock()
			id := s.add(`{"name":"x","enabled":false,"schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"webhook","to":%q}}`, server.URL+"/done").ID
			quiet := s.add(`{"name":"q","enabled":false,"schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"agentTurn","message":"quiet"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"webhook","to":%q}}`, server.URL+"/quiet").ID
			ask[wire.CronStarted](s, wire.MethodCronRun, map[string]string{"id": quiet})
			ran := ask[wire.CronStarted](s, wire.MethodCronRun, map[string]string{"id": id})
			want := "delivered"
			if !allowed {
				want = "not-delivered"
			}
			waittest.Until(t, "the end of the delivery",
				func() bool { r := s.runs(id); return len(r) == 1 && r[0].Delivery == want })
			mu.Lock()
			defer mu.Unlock()
			if !allowed {
				equal(t, "requests", len(got), 0)
				if r := s.runs(id)[0]; r.Status != "error" || !strings.Contains(r.Error, "allowedHostnames") {
					t.Errorf("%+v", r)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d requests", len(got))
			}
			h, b := got[0].header, got[0].body
			if h.Get("Authorization") != "Bearer s3cret-token" || h.Get("Content-Type") != "application/json" ||
				!strings.HasPrefix(h.Get("X-Chela-Signature"), "v1=") || h.Get("Idempotency-Key") == "" {
				t.Errorf("headers %v", h)
			}
			if b["jobId"] != id || b["status"] != "ok" || b["summary"] != "the result" || b["action"] != "finished" ||
				b["runId"] != ran.RunID || strings.Contains(got[0].raw, "principal") {
				t.Errorf("body %s", got[0].raw)
			}
		})
	}
}

// TestCronKill stops the store at each commit of a claim and of an end: a run neither
// happens twice nor is lost.
func TestCronKill(t *testing.T) {
	t.Parallel()
	for n := range 14 {
		t.Run(fmt.Sprint("at commit ", n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dead := false
				var mu sync.Mutex
				left := -1
				s := &scheduled{t: t, phone: new(channeltest.Fake)}
				s.model = llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("the report") })
				s.o = Options{
					Dir: t.TempDir(), Model: s.model, Channels: map[string]channel.Channel{"phone": s.phone},
					Wrap: func(st store.Store) store.Store {
						return dying{st, func() bool {
							mu.Lock()
							defer mu.Unlock()
							if left >= 0 {
								left--
								dead = dead || left < 0
							}
							return dead
						}}
					},
				}
				s.start()
				j := s.add(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"phone","to":"ann"}}`, time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
				mu.Lock()
				left = n
				mu.Unlock()
				time.Sleep(2 * time.Minute)
				s.Client.Close()
				s.Gateway.Stop()
				mu.Lock()
				dead, left = false, -1
				mu.Unlock()
				s.start()
				time.Sleep(10 * time.Minute)
				equal(t, "messages", s.phone.Texts(ann), []string{"the report"})
				if runs := s.runs(j.ID); len(runs) != 1 || runs[0].Status != "ok" || runs[0].Delivery != "delivered" {
					t.Errorf("%+v", runs)
				}
				if got := s.job(j.ID); got.Enabled || got.State.RunningAt != 0 {
					t.Errorf("%+v", got)
				}
				s.stop()
			})
		})
	}
}

// dying is a store that refuses every write once it is dead.
type dying struct {
	store.Store
	dead func() bool
}

func (d dying) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	if d.dead() {
		return fmt.Errorf("the process is dead")
	}
	return d.Store.Update(ctx, sync, f)
}
