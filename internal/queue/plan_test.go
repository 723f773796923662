package queue

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/chela"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// words makes waiting messages of "id[@place][!principal][=mode][+ms][*]": ms
// after t0, * for an attachment; s:, r: for other kinds.
func words(specs ...string) []Item {
	var out []Item
	for i, s := range specs {
		it := Item{Kind: Message, State: Waiting, Seq: int64(i + 1), Created: t0, Principal: chela.Principal{ID: "owner"}}
		if rest, ok := strings.CutPrefix(s, "s:"); ok {
			it.Kind, s = System, rest
		} else if rest, ok := strings.CutPrefix(s, "r:"); ok {
			it.Kind, s = Resume, rest
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

// flat is a decision in words.
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
		{"LANE-05 before what waits elsewhere", Policy{}, false, words("x@1", "a=interrupt", "y"), 0, "start a y"},
		{"LANE-05 nothing is steered into a run that ends", Policy{Mode: Steer}, true, words("a", "b=interrupt"), 0, "interrupt"},
		{"LANE-06 cap 2 of 5, summarize", Policy{Cap: 2}, false, words("a", "b", "c", "d", "e"), 0, "start d e, drop a b c"},
		{"LANE-06 summarize waits for the turn", Policy{Cap: 2}, true, words("a", "b", "c"), 0, ""},
		{"old", Policy{Cap: 2, Drop: DropOld}, true, words("a", "b", "c"), 0, "drop a"},
		{"new", Policy{Cap: 2, Drop: DropNew}, true, words("a", "b", "c"), 0, "drop c"},
		{"a cap below 1 is none given", Policy{Cap: -3, Drop: DropNew}, true, words("a", "b", "c"), 0, ""},
		{"what steers is not capped", Policy{Mode: Steer, Cap: 1}, true, words("a", "b", "c"), 0, "steer a b c"},
		{"LANE-10 topics have turns of their own", Policy{}, false, words("a@1", "b@2", "c@1", "d@2"), 0, "start a c"},
		{"people have turns of their own", Policy{}, false, words("a@1!ann", "b@1!bob", "c@1!ann"), 0, "start a c"},
		{"queue is steer", Policy{Mode: "queue"}, true, words("a"), 0, "steer a"},
		{"steer-backlog is both", Policy{Mode: SteerBacklog}, true, words("a"), 0, "steer a, later a:later"},
		{"a message's own mode", Policy{}, true, words("a", "b=steer"), 0, "steer b"},
		{"STEER-03 steer of an idle session is a turn", Policy{}, false, words("a=steer"), 0, "start a"},
		{"a followup ends what is collected", Policy{}, false, words("a", "b=followup", "c"), 0, "start a"},
		{"a followup first is alone", Policy{}, false, words("b=followup", "c"), 0, "start b"},
		{"one message never waits", Policy{Debounce: time.Second}, false, words("a"), 0, "start a"},
		{"two wait for quiet", Policy{Debounce: time.Second}, false, words("a", "b+500"), 600, "until +1500"},
		{"quiet", Policy{Debounce: time.Second}, false, words("a", "b+500"), 1500, "start a b"},
		{"a full queue does not wait", Policy{Debounce: time.Second, Cap: 2}, false, words("a", "b+500"), 600, "start a b"},
		{"LANE-08 three in a second are one", gather, false, words("a@1", "b@1+500", "c@1+1000"), 1100, "until +3000"},
		{"LANE-08 when it is quiet", gather, false, words("a@1", "b@1+500", "c@1+1000"), 3000, "start a b c"},
		{"LANE-08 a photo flushes", gather, false, words("a@1", "b@1+500*", "c@1+1000"), 1100, "start a b"},
		{"LANE-08 joined in followup too", Policy{Mode: Followup, Inbound: 2 * time.Second}, false, words("a@1", "b@1+500", "c@1+9000"), 9000, "start a b"},
		{"LANE-08 other senders pass", gather, false, words("a@1", "b@1!bob*"), 100, "start b"},
		{"LANE-08 held back from the run too", Policy{Mode: Steer, Inbound: 2 * time.Second}, true, words("a@1", "b@1+500"), 600, "until +2500"},
		{"a terminal is not held up", gather, false, words("a"), 0, "start a"},
		{"LANE-13 what is told joins the turn", Policy{}, false, words("a", "s:r", "b"), 0, "start r a b"},
		{"LANE-13 of another place it is first", Policy{}, false, words("a@1", "s:r@2"), 0, "start r"},
		{"LANE-13 of another person it is first", Policy{}, false, words("a", "s:r!bob", "s:q"), 0, "start r"},
		{"LANE-13 alone", Policy{}, false, words("s:r", "s:q"), 0, "start r q"},
		{"LANE-13 does not wait for quiet", Policy{Debounce: time.Second}, false, words("a", "b+500", "s:r+600"), 600, "start r a b"},
		{"told into the run when it steers", Policy{Mode: Steer}, true, words("s:r", "a"), 0, "steer r a"},
		{"nothing is dropped for a turn of others", Policy{Cap: 1}, false, words("a", "b", "s:r!bob"), 0, "start r"},
		{"a decision goes before all", Policy{}, false, words("a", "r:x", "s:q"), 0, "resume x"},
		{"a decision waits for the live run", Policy{}, true, words("r:x"), 0, ""},
		{"what is told has no cap", Policy{Cap: 1, Drop: DropOld}, false, words("s:a", "s:b", "s:c", "d"), 0, "start a b c d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Plan(c.p, c.live, c.waiting, t0.Add(time.Duration(c.after)*time.Millisecond))
			if s := flat(got); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	d := Plan(Policy{Cap: 2}, false, words("a", "b", "c", "d", "e"), t0)
	want := "[Queue overflow: 3 messages were dropped. In short:]\n- text a\n- text b\n- text c"
	if diff := cmp.Diff(want, d.Summary); diff != "" {
		t.Errorf("LANE-06: summary (-want +got):\n%s", diff)
	}
	if d.Drop[0].Note == "" {
		t.Error("a dropped message has no note")
	}
	many := words(strings.Fields(strings.Repeat("w ", 500))...)
	many[10].Inbound.Text = strings.Repeat("长", 10_000)
	if s := Plan(Policy{Cap: 2}, false, many, t0).Summary; strings.Count(s, "\n") > summaryLines+1 || len(s) > 20_000 {
		t.Errorf("summary of 498 messages has %d bytes", len(s))
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Mode{"queue": Steer, "STEER": Steer, "steer+backlog": SteerBacklog, "collect": Collect, "x": "", "": ""} {
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

// world carries decisions out as a conductor does, and watches.
type world struct {
	t       *testing.T
	p       Policy
	now     time.Time
	waiting []Item
	placed  map[string]string // item → where it ended
	order   map[string][]int  // target and mode → arrivals in order of being answered
	live    bool
}

func (w *world) place(it Item, where string) {
	if was, ok := w.placed[it.ID]; ok {
		w.t.Fatalf("%s ended as %s and as %s", it.ID, was, where)
	}
	w.placed[it.ID] = where
	for i, x := range w.waiting {
		if x.ID == it.ID {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			if where != "drop" {
				k := fmt.Sprint(targetOf(it), it.Kind, w.p.modeOf(it))
				w.order[k] = append(w.order[k], int(it.Seq))
			}
			return
		}
	}
	w.t.Fatalf("%s was not waiting", it.ID)
}

func (w *world) look() {
	d := Plan(w.p, w.live, w.waiting, w.now)
	if w.live && (len(d.Start) > 0 || len(d.Resume) > 0) {
		w.t.Fatal("LANE-02: a second run of the session")
	}
	if !w.live && (len(d.Steer) > 0 || d.Interrupt) {
		w.t.Fatal("steered into nothing")
	}
	n := 0
	for _, it := range d.Start {
		if it.Kind == Message {
			n++
		}
	}
	if n > w.p.limit() {
		for _, it := range d.Start {
			if w.p.modeOf(it) == Interrupt { // which is never dropped
				n--
			}
		}
		if n > w.p.limit() {
			w.t.Fatalf("cap %d: a turn of %d", w.p.limit(), n)
		}
	}
	for _, it := range d.Drop {
		if it.Kind != Message {
			w.t.Fatalf("dropped %s %s", it.Kind, it.ID)
		}
		w.place(it, "drop")
	}
	for _, it := range d.Start {
		w.place(it, "start")
	}
	for _, it := range d.Steer {
		w.place(it, "steer")
	}
	for _, it := range d.Resume {
		w.place(it, "resume")
	}
	w.waiting = append(w.waiting, d.Later...)
	w.live = w.live && !d.Interrupt || len(d.Start) > 0 || len(d.Resume) > 0
}

func TestPlanProperties(t *testing.T) {
	t.Parallel()
	modes := []Mode{Collect, Followup, Steer, SteerBacklog, Interrupt, ""}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		pick := func(n int) bool { return r.IntN(n) == 0 }
		w := &world{
			t: t, now: t0, placed: map[string]string{}, order: map[string][]int{},
			p: Policy{
				Mode: modes[r.IntN(len(modes))], Cap: r.IntN(6), Drop: []Drop{Summarize, DropOld, DropNew, ""}[r.IntN(4)],
				Debounce: time.Duration(r.IntN(3)) * time.Second, Inbound: time.Duration(r.IntN(3)) * time.Second,
			},
		}
		laters := 0
		for i := range 100 { // LANE-02: 100 random arrivals
			it := words(fmt.Sprintf("m%d@%d!p%d", i, r.IntN(2), r.IntN(2)))[0]
			if pick(3) {
				it.Inbound.Address = chela.Address{}
			}
			switch r.IntN(12) {
			case 0:
				it.Kind = System
			case 1:
				it.Kind = Resume
			}
			if it.Kind == Message && pick(5) {
				it.Inbound.Mode = string(modes[r.IntN(len(modes))])
			}
			if pick(6) {
				it.Inbound.Media = []chela.Media{{}}
			}
			it.Seq, it.Created = int64(i+1), w.now
			w.waiting = append(w.waiting, it)
			w.look()
			if pick(4) {
				w.live = false
				w.look()
			}
			w.now = w.now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		for range 1000 {
			if len(w.waiting) == 0 {
				break
			}
			w.live = false
			w.now = w.now.Add(5 * time.Second)
			w.look()
		}
		if len(w.waiting) > 0 {
			t.Fatalf("seed %d: %s wait for ever", seed, ids(w.waiting))
		}
		for id := range w.placed {
			if strings.HasSuffix(id, ":later") {
				laters++
			}
		}
		if len(w.placed)-laters != 100 {
			t.Fatalf("seed %d: %d of 100 were placed", seed, len(w.placed)-laters)
		}
		for k, seqs := range w.order {
			last := 0
			for _, s := range seqs {
				if s == 0 { // of Later
					continue
				}
				if s < last {
					t.Fatalf("seed %d: %s answered in the order %v", seed, k, seqs)
				}
				last = s
			}
		}
	}
}
