package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// words makes waiting messages of "id[@address][!principal][~model][=mode][+ms][*]":
// +ms after t0, * for an attachment. A prefix selects another kind of item: s: an
// event, n: an event with Next, a: a child's announce, j: an event of a job, r: a
// decided call, k: a compaction, h: a message of the heartbeat, c: a message of a job,
// x: a message of another session.
func words(specs ...string) []Item {
	var out []Item
	for i, s := range specs {
		it := Item{Kind: Message, State: Waiting, Seq: int64(i + 1), Created: t0, Principal: chela.Principal{ID: "owner"}}
		it.Origin.Kind = chela.OriginPerson
		if prefix, rest, ok := strings.Cut(s, ":"); ok {
			s = rest
			switch prefix {
			case "s":
				it.Kind, it.Origin.Kind = Event, chela.OriginProcess
			case "n":
				it.Kind, it.Origin.Kind, it.Next = Event, chela.OriginProcess, true
			case "a":
				it.Kind, it.Origin.Kind, it.Root = Event, chela.OriginSubagent, "live"
			case "j":
				it.Kind, it.Origin.Kind = Event, chela.OriginCron
			case "r":
				it.Kind = Resume
			case "t":
				it.Kind, it.Inbound.Time = Resume, t0
			case "T":
				it.Kind, it.Inbound.Time = Resume, t0.Add(time.Minute)
			case "k":
				it.Kind = Compact
			case "h":
				it.Origin.Kind = chela.OriginHeartbeat
			case "c":
				it.Origin.Kind = chela.OriginCron
			case "x":
				it.Origin.Kind, it.Overrides.Deliver.Mode = chela.OriginAgent, run.DeliverSession
			}
		}
		if rest, ok := strings.CutSuffix(s, "*"); ok {
			it.Inbound.Media, s = []chela.Media{{Type: "image/png"}}, rest
		}
		if a, b, ok := strings.Cut(s, "+"); ok {
			var ms int
			fmt.Sscan(b, &ms)
			it.Created, s = t0.Add(time.Duration(ms)*time.Millisecond), a
		}
		if a, b, ok := strings.Cut(s, "="); ok {
			it.Inbound.Mode, s = b, a
		}
		if a, b, ok := strings.Cut(s, "~"); ok {
			it.Overrides.Model, s = b, a
		}
		if a, b, ok := strings.Cut(s, "!"); ok {
			it.Principal.ID, s = b, a
		}
		if a, b, ok := strings.Cut(s, "@"); ok {
			it.Inbound.Address, s = chela.Address{Channel: "fake", Thread: b}, a
		}
		it.ID, it.Key, it.Inbound.Text = s, "k"+s, "text "+s
		out = append(out, it)
	}
	return out
}

func ids(items []Item) string {
	var s []string
	for _, it := range items {
		s = append(s, it.ID)
	}
	return strings.Join(s, " ")
}

// livePerson returns a run in progress that a local message of a person started.
func livePerson() *Live {
	return &Live{Steerable: true, Run: run.Run{
		ID:        "live",
		State:     run.Running,
		Kind:      run.Turn,
		Origin:    chela.Origin{Kind: chela.OriginPerson},
		Principal: chela.Principal{ID: "owner"},
	}}
}

// flat formats a decision.
func flat(d Decision) string {
	var out []string
	add := func(name string, items []Item) {
		if len(items) > 0 {
			out = append(out, name+" "+ids(items))
		}
	}
	add("resume", d.Resume)
	add("start", d.Start)
	add("steer", d.Steer)
	add("later", d.Later)
	add("drop", d.Drop)
	add("changed", d.Changed)
	if d.Interrupt {
		out = append(out, "interrupt")
	}
	if !d.Until.IsZero() {
		out = append(out, fmt.Sprintf("until +%d", d.Until.Sub(t0).Milliseconds()))
	}
	return strings.Join(out, ", ")
}

func TestPlan(t *testing.T) {
	t.Parallel()
	gather := Policy{Inbound: 2 * time.Second}
	for _, c := range []struct {
		name    string
		p       Policy
		live    bool
		waiting []Item
		after   int // ms after t0
		want    string
	}{
		{"nothing waits", Policy{}, false, nil, 0, ""},
		{"LANE-03 collect waits while a run is live", Policy{}, true, words("a", "b", "c"), 0, ""},
		{"LANE-03 collect makes one turn in order", Policy{}, false, words("a", "b", "c"), 0, "start a b c"},
		{"LANE-04 followup makes a turn of each", Policy{Mode: Followup}, false, words("a", "b", "c"), 0, "start a"},
		{"LANE-05 interrupt ends the run", Policy{Mode: Interrupt}, true, words("a"), 0, "interrupt"},
		{"LANE-05 and the newest is answered", Policy{Mode: Interrupt}, false, words("a", "b"), 0, "start a b"},
		{"LANE-05 an interrupting message goes before other targets", Policy{}, false,
			words("x@1", "a=interrupt", "y"), 0, "start a y"},
		{"LANE-05 nothing steers an interrupted run", Policy{Mode: Steer}, true, words("a", "b=interrupt"), 0, "interrupt"},
		{"LANE-06 cap 2 of 5, summarize", Policy{Cap: 2}, false, words("a", "b", "c", "d", "e"), 0, "start d e, drop a b c"},
		{"LANE-06 summarize waits for the turn", Policy{Cap: 2}, true, words("a", "b", "c"), 0, ""},
		{"old", Policy{Cap: 2, Drop: DropOld}, true, words("a", "b", "c"), 0, "drop a"},
		{"new", Policy{Cap: 2, Drop: DropNew}, true, words("a", "b", "c"), 0, "drop c"},
		{"a cap below 1 means the default", Policy{Cap: -3, Drop: DropNew}, true, words("a", "b", "c"), 0, ""},
		{"steering messages are not capped", Policy{Mode: Steer, Cap: 1}, true, words("a", "b", "c"), 0, "steer a b c"},
		{"LANE-10 topics get separate turns", Policy{}, false, words("a@1", "b@2", "c@1", "d@2"), 0, "start a c"},
		{"people get separate turns", Policy{}, false, words("a@1!ann", "b@1!bob", "c@1!ann"), 0, "start a c"},
		{"queue is steer", Policy{Mode: "queue"}, true, words("a"), 0, "steer a"},
		{"steer-backlog is both", Policy{Mode: SteerBacklog}, true, words("a"), 0, "steer a, later a:later"},
		{"a message's own mode", Policy{}, true, words("a", "b=steer"), 0, "steer b"},
		{"STEER-03 steer of an idle session is a turn", Policy{}, false, words("a=steer"), 0, "start a"},
		{"a followup ends what is collected", Policy{}, false, words("a", "b=followup", "c"), 0, "start a"},
		{"a first followup gets a separate turn", Policy{}, false, words("b=followup", "c"), 0, "start b"},
		{"one message never waits", Policy{Debounce: time.Second}, false, words("a"), 0, "start a"},
		{"two wait for the quiet time", Policy{Debounce: time.Second}, false, words("a", "b+500"), 600, "until +1500"},
		{"after the quiet time", Policy{Debounce: time.Second}, false, words("a", "b+500"), 1500, "start a b"},
		{"a full queue does not wait", Policy{Debounce: time.Second, Cap: 2}, false, words("a", "b+500"), 600, "start a b"},
		{"LANE-08 three in a second are one", gather, false, words("a@1", "b@1+500", "c@1+1000"), 1100, "until +3000"},
		{"LANE-08 after the quiet time", gather, false, words("a@1", "b@1+500", "c@1+1000"), 3000, "start a b c"},
		{"LANE-08 an attachment ends the wait", gather, false, words("a@1", "b@1+500*", "c@1+1000"), 1100, "start a b"},
		{"LANE-08 joined in followup too", Policy{Mode: Followup, Inbound: 2 * time.Second}, false,
			words("a@1", "b@1+500", "c@1+9000"), 9000, "start a b"},
		{"LANE-08 other senders do not wait", gather, false, words("a@1", "b@1!bob*"), 100, "start b"},
		{"LANE-08 steering waits too", Policy{Mode: Steer, Inbound: 2 * time.Second}, true,
			words("a@1", "b@1+500"), 600, "until +2500"},
		{"LANE-08 the earliest of several senders", gather, false, words("a@1", "b@1!bob+500"), 600, "until +2000"},
		{"a local client does not wait", gather, false, words("a"), 0, "start a"},
		{"LANE-13 an event joins the turn", Policy{}, false, words("a", "s:r", "b"), 0, "start r a b"},
		{"LANE-13 an event of another address joins the turn", Policy{}, false, words("a@1", "s:r@2"), 0, "start r a"},
		{"LANE-13 an event of another principal joins the turn", Policy{}, false,
			words("a", "s:r!bob", "s:q"), 0, "start r q a"},
		{"LANE-13 only events", Policy{}, false, words("s:r", "s:q"), 0, "start r q"},
		{"LANE-13 an event does not wait for the quiet time", Policy{Debounce: time.Second}, false,
			words("a", "b+500", "s:r+600"), 600, "start r a b"},
		{"an event steers in steer mode", Policy{Mode: Steer}, true, words("s:r", "a"), 0, "steer r a"},
		{"a turn of events drops no messages", Policy{Cap: 2, Inbound: time.Second}, false,
			words("a@1", "b@2+500", "c@3+900", "s:r!bob"), 900, "start r"},
		{"a decision comes first", Policy{}, false, words("a", "r:x", "s:q"), 0, "resume x"},
		{"a decision waits for the live run", Policy{}, true, words("r:x"), 0, ""},
		{"events are not capped", Policy{Cap: 1, Drop: DropOld}, false, words("s:a", "s:b", "s:c", "d"), 0, "start a b c d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var live *Live
			if c.live {
				live = livePerson()
			}
			got := Plan(c.p, live, c.waiting, t0.Add(time.Duration(c.after)*time.Millisecond))
			if s := flat(got); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestLater checks that a message that steers and is answered once more does not steer
// again while the run is in progress.
func TestLater(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		p       Policy
		waiting []Item
	}{
		{"the mode of the session", Policy{Mode: SteerBacklog}, words("a")},
		{"the mode of the message", Policy{}, words("a=steer-backlog")},
	} {
		later := Plan(c.p, livePerson(), c.waiting, t0).Later
		if s := flat(Plan(c.p, livePerson(), later, t0)); s != "" {
			t.Errorf("%s: while the run is in progress: %q", c.name, s)
		}
		if s := flat(Plan(c.p, nil, later, t0)); s != "start a:later" {
			t.Errorf("%s: after the run: %q", c.name, s)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	d := Plan(Policy{Cap: 2}, nil, words("a", "b", "c", "d", "e"), t0)
	want := "[Queue overflow: 3 messages were dropped. In short:]\n- text a\n- text b\n- text c"
	if diff := cmp.Diff(want, d.Summary); diff != "" {
		t.Errorf("LANE-06: summary (-want +got):\n%s", diff)
	}
	if d.Drop[0].Note == "" {
		t.Error("a dropped message has no note")
	}
	many := words(strings.Fields(strings.Repeat("w ", 500))...)
	many[10].Inbound.Text = strings.Repeat("长", 10_000)
	if s := Plan(Policy{Cap: 2}, nil, many, t0).Summary; strings.Count(s, "\n") > summaryLines+1 || len(s) > 20_000 {
		t.Errorf("summary of 498 messages has %d bytes", len(s))
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Mode{
		"queue":         Steer,
		"STEER":         Steer,
		"steer+backlog": SteerBacklog,
		"collect":       Collect,
		"x":             "",
		"":              "",
	} {
		if got, ok := ParseMode(s); got != want || ok != (want != "") {
			t.Errorf("ParseMode(%q) = %q, %v", s, got, ok)
		}
	}
	for s, want := range map[string]Drop{"old": DropOld, "New": DropNew, "summarize": Summarize, "x": ""} {
		if got, ok := ParseDrop(s); got != want || ok != (want != "") {
			t.Errorf("ParseDrop(%q) = %q, %v", s, got, ok)
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	inherited := Policy{Mode: Steer, Debounce: time.Second, Cap: 3, Drop: DropOld, Inbound: time.Minute}
	if got := inherited.With(Prefs{}); got != inherited {
		t.Errorf("without settings: %+v", got)
	}
	want := Policy{Mode: Followup, Debounce: time.Hour, Cap: 9, Drop: DropNew, Inbound: time.Minute}
	if got := inherited.With(Prefs{Mode: "followup", Debounce: time.Hour, Cap: 9, Drop: "new"}); got != want {
		t.Errorf("with all settings: %+v, want %+v", got, want)
	}
	if got := (Policy{Mode: "x"}).Effective(); got != (Policy{Mode: Collect, Cap: DefaultCap, Drop: Summarize}) {
		t.Errorf("effective: %+v", got)
	}
}

// liveRun returns a run in progress, or a suspended one.
func liveRun(o chela.OriginKind, change ...func(*Live)) *Live {
	l := livePerson()
	l.Run.Origin.Kind = o
	for _, f := range change {
		f(l)
	}
	return l
}

func suspended(w run.Waits) func(*Live) {
	return func(l *Live) { l.Run.State, l.Run.Waits, l.Steerable = run.Suspended, w, false }
}

// TestJoin checks which items join a run in progress, in each mode.
func TestJoin(t *testing.T) {
	t.Parallel()
	waiting := words("m1", "m2~gpt", "h:beat", "a:done", "j:due")
	const person, beat, job = chela.OriginPerson, chela.OriginHeartbeat, chela.OriginCron
	for _, c := range []struct {
		mode Mode
		live chela.OriginKind
		want string
	}{
		{Collect, person, ""},
		{Collect, beat, ""},
		{Collect, job, ""},
		{Followup, person, ""},
		{Followup, beat, ""},
		{Followup, job, ""},
		{Steer, person, "steer done m1"},
		{Steer, beat, "steer done"},
		{Steer, job, "steer done"},
		{SteerBacklog, person, "steer done m1, later m1:later"},
		{SteerBacklog, beat, "steer done"},
		{SteerBacklog, job, "steer done"},
		{Interrupt, person, "interrupt"},
		{Interrupt, beat, "interrupt"},
		{Interrupt, job, "interrupt"},
	} {
		t.Run(fmt.Sprintf("%s into a run of %s", c.mode, c.live), func(t *testing.T) {
			if s := flat(Plan(Policy{Mode: c.mode}, liveRun(c.live), waiting, t0)); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
	t.Run("the heartbeat and the schedule do not interrupt", func(t *testing.T) {
		if s := flat(Plan(Policy{Mode: Interrupt}, liveRun(person), words("h:beat=interrupt", "c:job=interrupt",
			"a:done=interrupt"), t0)); s != "" {
			t.Errorf("got %q", s)
		}
	})
	steer := Policy{Mode: Steer}
	for _, c := range []struct {
		name    string
		live    *Live
		waiting []Item
		want    string
	}{
		{"another address", liveRun(person), words("m@1"), ""},
		{"another principal", liveRun(person), words("m!bob"), ""},
		{"equal overrides", liveRun(person, func(l *Live) { l.Run.Overrides.Model = "gpt" }), words("m~gpt"), "steer m"},
		{"no overrides", liveRun(person, func(l *Live) { l.Run.Overrides.Model = "gpt" }), words("m"), "steer m"},
		{"other overrides", liveRun(person, func(l *Live) { l.Run.Overrides.Model = "gpt" }), words("m~opus"), ""},
		{"a run with fewer rights", liveRun(person), admin(words("m")), ""},
		{"a run with more rights",
			liveRun(person, func(l *Live) { l.Run.Principal.Scopes = []chela.Scope{chela.ScopeAdmin} }), words("m"), ""},
		{"a compaction", liveRun(person, func(l *Live) { l.Run.Kind = run.Compact }), words("m", "a:done"), ""},
		{"another process", liveRun(person, func(l *Live) { l.Steerable = false }), words("m", "a:done"), ""},
	} {
		t.Run("a message steers: "+c.name, func(t *testing.T) {
			if s := flat(Plan(steer, c.live, c.waiting, t0)); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestOtherSession checks what messages of other sessions join, and what joins their runs.
func TestOtherSession(t *testing.T) {
	t.Parallel()
	owner := func(l *Live) { l.Run.Principal.Scopes = []chela.Scope{chela.ScopeAdmin} }
	answers := func(l *Live) { l.Run.Overrides.Deliver.Mode = run.DeliverSession }
	limited := words("x:m")
	limited[0].Overrides.Tools.Deny = []string{"exec"}
	const person, agent = chela.OriginPerson, chela.OriginAgent
	for _, c := range []struct {
		name    string
		mode    Mode
		live    *Live
		waiting []Item
		want    string
	}{
		{"steer", Steer, liveRun(person), words("x:m"), "steer m"},
		{"steer from another address", Steer, liveRun(person, func(l *Live) { l.Run.Address.Channel = "fake" }),
			words("x:m"), "steer m"},
		{"steer-backlog", SteerBacklog, liveRun(person), words("x:m"), "steer m, later m:later"},
		{"collect", Collect, liveRun(person), words("x:m"), ""},
		{"followup", Followup, liveRun(person), words("x:m"), ""},
		{"interrupt", Interrupt, liveRun(person), words("x:m", "x:n=interrupt"), ""},
		{"a later turn of an exchange", Steer, liveRun(person), words("x:m=followup"), ""},
		{"another principal", Steer, liveRun(person), words("x:m!bob"), ""},
		{"a run with more rights", Steer, liveRun(person, owner), words("x:m"), ""},
		{"a run with fewer rights", Steer, liveRun(person), admin(words("x:m")), ""},
		{"a run with other tools", Steer, liveRun(person), limited, ""},
		{"a run with the same tools", Steer,
			liveRun(person, func(l *Live) { l.Run.Overrides.Tools = limited[0].Overrides.Tools }), limited, "steer m"},
		{"the run of a child", Steer, liveRun(agent), words("x:m"), ""},
		{"its own run takes nothing else", Steer, liveRun(agent, answers), words("s:r", "a:done", "m", "x:n"), ""},
		{"and begins alone", Collect, nil, words("s:r", "n:e", "x:m", "x:n", "p"), "start m"},
		{"after what came before", Collect, nil, words("s:r", "p", "x:m", "q"), "start r p q"},
		{"events wait for the next run", Collect, nil, words("s:r", "n:e"), "start r e"},
		{"it does not end a suspended run", Collect, liveRun(person, func(l *Live) { l.Run.State = run.Suspended }),
			words("x:m"), ""},
	} {
		if s := flat(Plan(Policy{Mode: c.mode}, c.live, c.waiting, t0)); s != c.want {
			t.Errorf("%s: got %q, want %q", c.name, s, c.want)
		}
	}
}

func admin(items []Item) []Item {
	for i := range items {
		items[i].Principal.Scopes = []chela.Scope{chela.ScopeAdmin}
	}
	return items
}

// TestDevices checks that messages of one person share no run if they came from
// different devices or with different rights: a run acts with those of its first message.
func TestDevices(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*chela.Principal){
		"another device": func(p *chela.Principal) { p.Credential = "device:laptop" },
		"other rights":   func(p *chela.Principal) { p.Scopes = []chela.Scope{chela.ScopeAdmin} },
	} {
		waiting := words("a", "b", "c")
		change(&waiting[1].Principal)
		if got := flat(Plan(Policy{}, nil, waiting, t0)); got != "start a c" {
			t.Errorf("%s: %s, want start a c", name, got)
		}
	}
}

// TestNextRun checks that no run mixes overrides, and that messages that are not from a
// person get separate runs.
func TestNextRun(t *testing.T) {
	t.Parallel()
	waiting := words("m1", "m2~gpt", "h:beat", "m3", "c:job~opus", "a:done", "j:due")
	var got []string
	for len(waiting) > 0 {
		d := Plan(Policy{}, nil, waiting, t0)
		if len(d.Start) == 0 {
			t.Fatalf("%s wait forever", ids(waiting))
		}
		got = append(got, ids(d.Start))
		waiting = slices.DeleteFunc(waiting, func(it Item) bool {
			return slices.ContainsFunc(d.Start, func(s Item) bool { return s.ID == it.ID })
		})
	}
	want := []string{"done due m1 m3", "m2", "beat", "job"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// TestAnnounce checks the effect of a child's announcement on its parent.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	t.Run("SUB-31 results of subagents of two chats get two turns", func(t *testing.T) {
		waiting := words("a:x1@1", "a:y1@2", "a:x2@1", "s:e@3", "n:n@3")
		if s := flat(Plan(Policy{Mode: Steer}, liveRun(chela.OriginPerson), waiting, t0)); s != "steer e n" {
			t.Errorf("a run for another chat: %q", s)
		}
		if s := flat(Plan(Policy{}, nil, waiting, t0)); s != "start x1 x2 e n" {
			t.Errorf("first turn: %q", s)
		}
		if s := flat(Plan(Policy{}, nil, waiting[1:2], t0)); s != "start y1" {
			t.Errorf("second turn: %q", s)
		}
		if s := flat(Plan(Policy{}, nil, append(waiting, words("m@2")...), t0)); s != "start y1 e n m" {
			t.Errorf("a message of the second chat: %q", s)
		}
	})
	for _, c := range []struct {
		name string
		p    Policy
		live *Live
		want string
	}{
		{"steerable", Policy{Mode: Steer}, liveRun(chela.OriginPerson), "steer done"},
		{"busy in collect mode", Policy{}, liveRun(chela.OriginPerson), ""},
		{"suspended on an approval", Policy{Mode: Steer}, liveRun(chela.OriginPerson, suspended(run.WaitsApproval)), ""},
		{"suspended on children", Policy{Mode: Steer}, liveRun(chela.OriginPerson, suspended(run.WaitsChildren)),
			"resume done"},
		{"suspended on the children of another tree", Policy{Mode: Steer},
			liveRun(chela.OriginPerson, suspended(run.WaitsChildren), func(l *Live) { l.Run.ID = "other" }), ""},
		{"idle", Policy{Mode: Steer}, nil, "start done"},
		{"compacting", Policy{Mode: Steer}, liveRun(chela.OriginPerson, func(l *Live) { l.Run.Kind = run.Compact }), ""},
		{"live in another process", Policy{Mode: Steer}, liveRun(chela.OriginPerson, func(l *Live) { l.Steerable = false }),
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s := flat(Plan(c.p, c.live, words("a:done"), t0)); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestAvailable checks that the results of subagents wait for a run that waits for another
// try.
func TestAvailable(t *testing.T) {
	t.Parallel()
	waiting := words("a:done", "s:e", "m")
	for w, want := range map[run.Waits]string{run.WaitsRetry: "e m", run.WaitsApproval: "done e m"} {
		if got := ids(Available(waiting, []run.Run{{ID: "other", Waits: run.WaitsRetry},
			liveRun(chela.OriginPerson, suspended(w)).Run})); got != want {
			t.Errorf("%s: %q, want %q", w, got, want)
		}
	}
}

func TestSuspended(t *testing.T) {
	t.Parallel()
	approval, children := liveRun(chela.OriginPerson, suspended(run.WaitsApproval)),
		liveRun(chela.OriginPerson, suspended(run.WaitsChildren))
	retry := liveRun(chela.OriginPerson, suspended(run.WaitsRetry))
	for _, c := range []struct {
		name    string
		live    *Live
		waiting []Item
		want    string
	}{
		{"a person's message replaces it", approval, words("m"), "start m"},
		{"events join that run", approval, words("s:e", "n:x", "m"), "start e x m"},
		{"events alone wait", approval, words("s:e", "n:x"), ""},
		{"the heartbeat and jobs wait", approval, words("h:beat", "c:job"), ""},
		{"a decision comes first", approval, words("m", "r:x"), "resume x"},
		{"a decision resumes a run that waits for children too", children, words("a:done", "r:x"), "resume x"},
		{"a compaction runs beside it", children, words("a:done", "k:x"), "start x"},
		{"a person's message replaces a run that waits for children", children, words("a:done", "m"), "start done m"},
		{"other events join with a child's result", children, words("s:e", "a:done", "n:x"), "resume e done x"},
		{"an event for the next run does not resume", children, words("n:x"), ""},
		{"the result of a subagent of another chat waits", children, words("a:x@2", "s:e@2", "a:done"), "resume e done"},
		{"the result of a subagent of another chat does not resume", children, words("a:x@2"), ""},
		{"a message runs beside a run that waits for another try", retry, words("t:x", "m"), "start m"},
		{"so do events", retry, words("t:x", "s:e"), "start e"},
		{"so does a decided call of an earlier run", retry, words("t:x", "r:y"), "resume y"},
		{"a run that waits for another try goes on when nothing else waits", retry, words("n:e", "t:x"), "resume x"},
		{"it waits for its time", retry, words("T:x"), "until +60000"},
		{"it waits for the end of a run that waits for a person", approval, words("t:x"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s := flat(Plan(Policy{}, c.live, c.waiting, t0)); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestNext checks events that wait for the next run, such as those of a job that waits
// for the next heartbeat.
func TestNext(t *testing.T) {
	t.Parallel()
	t.Run("twenty-five events", func(t *testing.T) {
		var specs []string
		for i := range 25 {
			specs = append(specs, fmt.Sprintf("n:e%d", i))
		}
		waiting := words(specs...)
		d := Plan(Policy{}, nil, waiting, t0)
		if s := flat(d); s != "drop e0 e1 e2 e3 e4, changed e5" || d.Changed[0].Skipped != 5 || d.Drop[0].Note == "" {
			t.Fatalf("got %q: %+v", s, d.Changed)
		}
		waiting = append(d.Changed, waiting[6:]...)
		if s := flat(Plan(Policy{}, nil, waiting, t0)); s != "" {
			t.Fatalf("twenty events: %q", s)
		}
		more := words("n:f")[0]
		d = Plan(Policy{}, nil, append(slices.Clone(waiting), more), t0)
		if s := flat(d); s != "drop e5, changed e6" || d.Changed[0].Skipped != 6 {
			t.Fatalf("one more: %q: %+v", s, d.Changed)
		}
		for _, origin := range []string{"m", "h:beat", "c:job", "s:event"} {
			d = Plan(Policy{}, nil, append(slices.Clone(waiting), words(origin)...), t0)
			if len(d.Start) != MaxNext+1 || d.Start[0].ID != "e5" || d.Start[0].Skipped != 5 || len(d.Changed) != 0 {
				t.Errorf("with %s: %s", origin, flat(d))
			}
			if lead := Lead(d.Start); lead.Next {
				t.Errorf("with %s: %s leads", origin, lead.ID)
			}
		}
	})
	t.Run("a run takes the events within the limit", func(t *testing.T) {
		waiting := words("m")
		for i := range 22 {
			waiting = append(waiting, words(fmt.Sprintf("n:e%d", i))...)
		}
		d := Plan(Policy{}, nil, waiting, t0)
		if len(d.Start) != MaxNext+1 || ids(d.Drop) != "e0 e1" || d.Start[0].Skipped != 2 || len(d.Changed) != 0 {
			t.Errorf("got %s", flat(d))
		}
	})
	t.Run("a job that waits for the next heartbeat", func(t *testing.T) {
		job := words("j:remind")
		job[0].Next = true
		if s := flat(Plan(Policy{}, nil, job, t0)); s != "" {
			t.Errorf("without a run: %q", s)
		}
		if s := flat(Plan(Policy{Mode: Steer}, livePerson(), job, t0)); s != "" {
			t.Errorf("during a run: %q", s)
		}
		if s := flat(Plan(Policy{}, nil, append(job, words("h:beat")...), t0)); s != "start remind beat" {
			t.Errorf("with a heartbeat: %q", s)
		}
	})
}

// simulation executes decisions as a dispatcher does, and checks them.
type simulation struct {
	t       *testing.T
	p       Policy
	now     time.Time
	waiting []Item
	ended   map[string]string // item → "drop" or its run
	order   map[string][]int  // target and mode → arrivals in the order of their runs
	live    *Live
	runs    int
}

// end records where an item ended.
func (w *simulation) end(it Item, where string) {
	if was, ok := w.ended[it.ID]; ok {
		w.t.Fatalf("%s ended in %s and in %s", it.ID, was, where)
	}
	w.ended[it.ID] = where
	for i, x := range w.waiting {
		if x.ID == it.ID {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			if where != "drop" {
				k := fmt.Sprint(targetOf(it), it.Kind, it.Next, it.Origin.Kind, w.p.modeOf(it))
				w.order[k] = append(w.order[k], int(it.Seq))
			}
			return
		}
	}
	w.t.Fatalf("%s was not waiting", it.ID)
}

func (w *simulation) step() {
	d := Plan(w.p, w.live, w.waiting, w.now)
	running := w.live != nil && w.live.Run.State == run.Running
	if running && (len(d.Start) > 0 || len(d.Resume) > 0) {
		w.t.Fatal("LANE-02: a second run of the session")
	}
	if !running && (len(d.Steer) > 0 || d.Interrupt) {
		w.t.Fatal("steered without a live run")
	}
	for _, it := range d.Drop {
		if !it.fromPerson() && !it.Next {
			w.t.Fatalf("dropped %s %s", it.Kind, it.ID)
		}
		w.end(it, "drop")
	}
	for _, it := range d.Changed {
		i := slices.IndexFunc(w.waiting, func(x Item) bool { return x.ID == it.ID })
		if i < 0 || it.Skipped <= w.waiting[i].Skipped {
			w.t.Fatalf("changed %s", it.ID)
		}
		w.waiting[i] = it
	}
	w.start(d.Start)
	for _, it := range d.Steer {
		w.steers(it)
		w.end(it, string(w.live.Run.ID))
	}
	for _, it := range d.Resume {
		if w.live == nil { // a call of a run that has ended
			w.end(it, "resume")
			continue
		}
		w.live.Run.State = run.Running
		w.end(it, string(w.live.Run.ID))
	}
	w.waiting = append(w.waiting, d.Later...)
	if d.Interrupt {
		w.live = nil
	}
}

// start begins a run for the items. Its principal, address and overrides are
// those of its leading message, and each of its messages agrees with them.
func (w *simulation) start(items []Item) {
	if len(items) == 0 {
		return
	}
	lead := Lead(items)
	if lead.Next {
		w.t.Fatalf("%s started a run", lead.ID)
	}
	if lead.toSession() && len(items) > 1 {
		w.t.Fatalf("%s share a run of another session", ids(items))
	}
	if w.live != nil && lead.Kind != Compact && !lead.fromPerson() {
		w.t.Fatalf("%s %s replaced a suspended run", lead.Origin.Kind, lead.ID)
	}
	messages := 0
	for _, it := range items {
		switch {
		case it.Kind == Event:
		case it.Kind != Message:
			if len(items) > 1 {
				w.t.Fatalf("%s %s shares a run", it.Kind, it.ID)
			}
		case targetOf(it) != targetOf(lead) || it.ID != lead.ID && !(it.fromPerson() && lead.fromPerson()):
			w.t.Fatalf("%s of %s in a run of %s, %s", it.ID, it.Origin.Kind, lead.ID, lead.Origin.Kind)
		case w.p.modeOf(it) != Interrupt: // which is never dropped
			messages++
		}
	}
	if messages > w.p.Effective().Cap {
		w.t.Fatalf("cap %d: a run of %d messages", w.p.Effective().Cap, messages)
	}
	w.runs++
	id := chela.RunID(fmt.Sprint("run-", w.runs))
	for _, it := range items {
		w.end(it, string(id))
	}
	if lead.Kind == Compact && w.live != nil {
		return // the compaction ends while the run stays suspended
	}
	w.live = &Live{Steerable: true, Run: run.Run{
		ID:        id,
		State:     run.Running,
		Kind:      run.Turn,
		Origin:    lead.Origin,
		Principal: lead.Principal,
		Address:   lead.Inbound.Address,
		Overrides: lead.Overrides,
	}}
	if lead.Kind == Compact {
		w.live.Run.Kind = run.Compact
	}
}

// steers checks that the item may join the run in progress.
func (w *simulation) steers(it Item) {
	r := w.live.Run
	switch {
	case r.Overrides.Deliver.Mode == run.DeliverSession:
		w.t.Fatalf("%s steered into a run of another session", it.ID)
	case it.Kind == Event && it.Origin.Kind != chela.OriginCron && it.Origin.Kind != chela.OriginHeartbeat:
	case it.toSession() && r.Origin.Kind == chela.OriginPerson && it.Principal.ID == r.Principal.ID:
	case !it.fromPerson() || r.Origin.Kind != chela.OriginPerson || it.Principal.ID != r.Principal.ID ||
		it.Inbound.Address != r.Address || !it.Overrides.IsZero() && !it.Overrides.Equal(r.Overrides):
		w.t.Fatalf("%s of %s steered into a run of %s", it.ID, it.Origin.Kind, r.Origin.Kind)
	}
	if r.Kind == run.Compact || !w.live.Steerable {
		w.t.Fatalf("%s steered into a run that is not steerable", it.ID)
	}
}

// testPlan lets n items arrive, chosen by r, and checks that each ends in
// exactly one run or is dropped.
func testPlan(t *testing.T, r interface{ IntN(int) int }, n int) {
	modes := []Mode{Collect, Followup, Steer, SteerBacklog, Interrupt, ""}
	origins := []chela.OriginKind{chela.OriginCron, chela.OriginHeartbeat, chela.OriginSubagent,
		chela.OriginWebhook, chela.OriginProcess}
	one := func(n int) bool { return r.IntN(n) == 0 }
	w := &simulation{
		t: t, now: t0, ended: map[string]string{}, order: map[string][]int{},
		p: Policy{
			Mode: modes[r.IntN(len(modes))], Cap: r.IntN(6), Drop: []Drop{Summarize, DropOld, DropNew, ""}[r.IntN(4)],
			Debounce: time.Duration(r.IntN(3)) * time.Second, Inbound: time.Duration(r.IntN(3)) * time.Second,
		},
	}
	for i := range n {
		it := words(fmt.Sprintf("m%d@%d!p%d", i, r.IntN(2), r.IntN(2)))[0]
		if one(3) {
			it.Inbound.Address = chela.Address{}
		}
		switch r.IntN(12) {
		case 0, 1:
			it.Kind, it.Origin.Kind, it.Next = Event, origins[r.IntN(len(origins))], one(2)
			if w.live != nil && one(2) {
				it.Root = w.live.Run.Tree()
			}
		case 2:
			it.Kind = Resume
		case 3:
			if it.Origin.Kind = origins[r.IntN(len(origins))]; one(2) {
				it.Origin.Kind, it.Overrides.Deliver.Mode = chela.OriginAgent, run.DeliverSession
			}
		case 4:
			if one(3) {
				it.Kind = Compact
			}
		}
		if it.Kind == Message && one(5) {
			it.Inbound.Mode = string(modes[r.IntN(len(modes))])
		}
		if it.Kind == Message && one(5) {
			it.Overrides.Model = fmt.Sprint("model-", r.IntN(2))
		}
		if one(6) {
			it.Inbound.Media = []chela.Media{{}}
		}
		it.Seq, it.Created = int64(i+1), w.now
		w.waiting = append(w.waiting, it)
		w.step()
		if w.live != nil {
			w.live.Steerable = !one(8)
			if w.live.Run.Kind == run.Turn && w.live.Run.State == run.Running && one(6) {
				w.live.Run.State, w.live.Run.Waits = run.Suspended, []run.Waits{run.WaitsApproval, run.WaitsChildren}[r.IntN(2)]
			}
		}
		if one(4) {
			w.live = nil
			w.step()
		}
		w.now = w.now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
	stays := func(it Item) bool { return it.Next }
	for range 1000 {
		if !slices.ContainsFunc(w.waiting, func(it Item) bool { return !stays(it) }) {
			break
		}
		w.live = nil
		w.now = w.now.Add(5 * time.Second)
		w.step()
	}
	left := 0
	for _, it := range w.waiting {
		if !stays(it) {
			t.Fatalf("%s wait forever", ids(w.waiting))
		}
		left++
	}
	if left > MaxNext {
		t.Fatalf("%d events wait for the next run", left)
	}
	laters := 0
	for id := range w.ended {
		if strings.HasSuffix(id, ":later") {
			laters++
		}
	}
	if len(w.ended)-laters+left != n {
		t.Fatalf("%d of %d ended in a run", len(w.ended)-laters, n)
	}
	for k, seqs := range w.order {
		last := 0
		for _, s := range seqs {
			if s == 0 { // of Later
				continue
			}
			if s < last {
				t.Fatalf("%s: runs in the order %v", k, seqs)
			}
			last = s
		}
	}
}

func TestPlanProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			testPlan(t, rand.New(rand.NewPCG(seed, 7)), 100) // LANE-02: 100 random arrivals
		})
	}
}

// choices returns choices from the bytes of a fuzzer, and 0 after the last byte.
type choices []byte

func (c *choices) IntN(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("\x02\x03\x01\x00\x00\x01\x01\x05\x00\x02"))
	f.Add([]byte("\x04\x05\x02\x01\x01\x00\x00\x01\x03\x04\x07\x0b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := choices(data)
		testPlan(t, &c, min(len(data)/4, 60))
	})
}
