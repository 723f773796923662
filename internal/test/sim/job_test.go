package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// scheduled is a scheduled job, as the person who made it knows it.
type scheduled struct {
	tag     string
	kind    string    // of the plan of the model
	timeout int       // in seconds; 0: the default
	fast    bool      // its interval may be short
	id      string    // empty: not known
	created time.Time // as the gateway says
	changes []*change
	byHand  []byHand
	dropped []time.Time // when its session was deleted
}

// change is a request that adds, changes or removes a job.
type change struct {
	definition
	sent    time.Time
	acked   time.Time // zero: nobody knows whether it was carried out
	refused bool      // it was not carried out
	sets    bool      // it says whether the job is enabled
}

// definition is what a person wants of a job. Its slots are first, first + every, …, in
// the time of the wall clock.
type definition struct {
	first   time.Time
	every   time.Duration // 0: there is one slot
	enabled bool
	removed bool
	deletes bool             // after it succeeded
	session chela.SessionKey // of the event; empty: a turn of its own
	next    bool             // the event waits for the next turn
	to      chela.Address    // of the announcement
	tell    chela.SessionKey // that is told the result
	args    map[string]any   // of cron.add
}

// byHand is a run that a person has asked for.
type byHand struct {
	id          string // of the run
	sent, acked time.Time
}

// span is the time in which a gateway runs.
type span struct {
	n    int
	born time.Time // it begins to start
	from time.Time // it has started; zero: it was killed before
	to   time.Time // it is dead, or begins to stop; zero: it is the last one
}

// clockStep is an instant at which the wall clock was set.
type clockStep struct {
	at time.Time
	by time.Duration // from then on, the wall clock is ahead by this
}

// wall returns the time of the wall clock.
func (w *world) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.shiftLocked())
}

func (w *world) shiftLocked() time.Duration { return w.clock[len(w.clock)-1].by }

// setClock sets the wall clock forward, or back.
func (w *world) setClock(by time.Duration) {
	by = by.Round(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = append(w.clock, clockStep{time.Now(), w.shiftLocked() + by})
	w.tellLocked("the clock is set by %s, to %s", by, time.Now().Add(w.shiftLocked()).UTC().Format(time.TimeOnly))
}

// clockAhead sets the clock to the latest time that it has shown.
func (w *world) clockAhead() {
	w.mu.Lock()
	most := time.Duration(0)
	for _, c := range w.clock {
		most = max(most, c.by)
	}
	by := most - w.shiftLocked()
	w.mu.Unlock()
	if by > 0 {
		w.setClock(by)
	}
}

// skew returns by how much the clock is set.
func skew(r *rand.Rand) time.Duration {
	by := pick(r, weighted[time.Duration]{5, seconds(r, 2, 90)}, weighted[time.Duration]{2, seconds(r, 90, 1800)},
		weighted[time.Duration]{2, seconds(r, 1800, 5*3600)})
	if r.IntN(2) == 0 {
		return -by
	}
	return by
}

// plan makes the jobs, webhooks, heartbeats and hooks of a day.
func (w *world) plan(s size) {
	for i := range w.rnd("jobs").IntN(s.jobs + 1) {
		w.jobs = append(w.jobs, &scheduled{tag: fmt.Sprint("j", i)})
	}
	if w.rnd("hooks").IntN(2) == 0 {
		w.hooked = &hooked{map[string]int{}, map[chela.RunID]int{}}
	}
	if r := w.rnd("webhooks"); r.IntN(3) == 0 {
		for i := range 1 + r.IntN(s.jobs+1) {
			w.webhooks = append(w.webhooks, w.newWebhook(r, i))
		}
	}
	if r := w.rnd("heartbeats"); r.IntN(4) == 0 {
		w.beats = &beats{every: time.Duration(60+r.IntN(300)) * time.Second}
		for i := range r.IntN(s.jobs + 1) {
			w.beats.events = append(w.beats.events, &wakeEvent{tag: fmt.Sprint("b", i), next: r.IntN(3) == 0})
		}
		w.beats.file = r.IntN(2) == 0
	}
}

// schedule begins the lives of the jobs, and sets the clock during the day.
func (w *world) schedule(length time.Duration) {
	if len(w.jobs) == 0 {
		return
	}
	for _, j := range w.jobs {
		w.do(func() { w.keep(j, length) })
	}
	r := w.rnd("clock")
	for range pick(r, weighted[int]{2, 0}, weighted[int]{2, 1}, weighted[int]{1, 3}) {
		at, by := seconds(r, 1, length.Seconds()), skew(r)
		if r.IntN(3) == 0 { // back into the day
			by = -seconds(r, 0.2*at.Seconds(), 0.9*at.Seconds())
		}
		w.do(func() {
			time.Sleep(time.Until(w.begun.Add(at)))
			w.setClock(by)
		})
	}
}

// keep adds a job, changes it during the day, and ends it with the day.
func (w *world) keep(j *scheduled, length time.Duration) {
	r := w.rnd("job", j.tag)
	end := w.begun.Add(length)
	time.Sleep(seconds(r, 1, 0.6*length.Seconds()))
	d := w.newJob(r, j)
	if !w.add(j, &d) {
		return
	}
	for range r.IntN(4) {
		time.Sleep(seconds(r, 1, 0.5*length.Seconds()))
		if !time.Now().Before(end) {
			break
		}
		next := d
		what := pick(r, weighted[string]{3, "schedule"}, weighted[string]{2, "delivery"}, weighted[string]{2, "pause"},
			weighted[string]{5, "run"}, weighted[string]{2, "remove"}, weighted[string]{1, "session"})
		if !d.enabled && r.IntN(2) == 0 {
			what = "resume"
		}
		patch := map[string]any{}
		switch what {
		case "schedule":
			w.newSchedule(r, j, &next, d.every == 0)
			patch["schedule"] = next.args["schedule"]
		case "delivery":
			w.newDelivery(r, &next)
			patch["delivery"], patch["sessionKey"] = next.args["delivery"], next.args["sessionKey"]
		case "pause":
			next.enabled, patch["enabled"] = false, false
		case "resume":
			next.enabled, patch["enabled"] = true, true
			if d.every == 0 {
				w.newSchedule(r, j, &next, true)
				patch["schedule"] = next.args["schedule"]
			}
		case "remove":
			next.removed, next.enabled = true, false
		case "run":
			w.run(j, pick(r, weighted[string]{3, "force"}, weighted[string]{1, "if-enabled"}, weighted[string]{1, "due"}))
			continue
		case "session":
			w.dropSession(j)
			continue
		}
		if d.session != "" && what == "delivery" {
			continue
		}
		if w.change(j, what, next, patch) {
			d = next
		} else if d.every > 0 {
			w.broken("JOB: the change of %s was refused", j.tag)
		}
		if d.removed {
			return
		}
	}
	time.Sleep(time.Until(end.Add(time.Second)))
	if d.every > 0 && d.enabled {
		d.enabled = false
		w.change(j, "pause", d, map[string]any{"enabled": false})
	}
}

// newJob makes a job.
func (w *world) newJob(r *rand.Rand, j *scheduled) definition {
	d := definition{enabled: r.IntN(12) > 0, args: map[string]any{"name": j.tag, "declarationKey": j.tag}}
	once := r.IntN(3) == 0
	w.newSchedule(r, j, &d, once)
	if once && r.IntN(2) == 0 {
		d.deletes = true
		d.args["deleteAfterRun"] = true
	}
	d.args["enabled"] = d.enabled
	text := "please do <<" + j.tag + ">>"
	if r.IntN(3) == 0 {
		j.kind = pick(r, weighted[string]{6, "say"}, weighted[string]{2, "read"}, weighted[string]{1, "silent"},
			weighted[string]{2, "refuse"})
		if d.next = r.IntN(2) == 0; d.next { // many runs cost little
			j.fast = true
			w.newSchedule(r, j, &d, once)
		}
		d.session = pick(r, weighted[chela.SessionKey]{2, "agent:main:main"},
			weighted[chela.SessionKey]{1, "agent:main:able:direct:ann"},
			weighted[chela.SessionKey]{1, "agent:main:plain:group:hall:thread:1"})
		d.args["sessionKey"], d.args["sessionTarget"], d.args["wakeMode"] = d.session, "main", "now"
		if d.next {
			d.args["wakeMode"] = "next-heartbeat"
		}
		d.args["payload"] = map[string]any{"kind": "systemEvent", "text": text}
		return d
	}
	j.kind = pick(r, weighted[string]{10, "say"}, weighted[string]{4, "read"}, weighted[string]{3, "tools"},
		weighted[string]{1, "spawn"}, weighted[string]{2, "silent"},
		weighted[string]{3, "refuse"}, weighted[string]{3, "busy"}, weighted[string]{2, "hang"},
		weighted[string]{1, "nothing"})
	payload := map[string]any{"kind": "agentTurn", "message": text}
	if j.kind == "hang" || r.IntN(6) == 0 {
		j.timeout = 3 + r.IntN(30)
		payload["timeoutSeconds"] = j.timeout
	}
	d.args["payload"], d.args["sessionTarget"] = payload, "isolated"
	w.newDelivery(r, &d)
	return d
}

// with returns a copy of arguments with another value.
func with(args map[string]any, name string, value any) map[string]any {
	out := map[string]any{name: value}
	for k, v := range args {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// zone is a time zone whose offset does not change in January.
type zone struct {
	name   string
	offset time.Duration
}

// newSchedule makes a schedule whose first slots are in the next minutes.
func (w *world) newSchedule(r *rand.Rand, j *scheduled, d *definition, once bool) {
	now := w.wall()
	var s map[string]any
	z := pick(r, weighted[zone]{1, zone{"UTC", 0}}, weighted[zone]{1, zone{"Europe/Berlin", time.Hour}},
		weighted[zone]{1, zone{"Asia/Kolkata", 5*time.Hour + 30*time.Minute}},
		weighted[zone]{1, zone{"America/New_York", -5 * time.Hour}},
		weighted[zone]{1, zone{"Pacific/Auckland", 13 * time.Hour}})
	cron := func(format string, args ...any) {
		s = map[string]any{"kind": "cron", "expr": fmt.Sprintf(format, args...), "tz": z.name, "staggerMs": 0}
	}
	switch how := r.IntN(8); {
	case once:
		if other := time.Now(); other.After(now) { // a request with a time in the past is refused
			now = other
		}
		d.first, d.every = now.Add(seconds(r, 4, 120)).Truncate(time.Millisecond), 0
		s = map[string]any{
			"kind": "at",
			"at":   d.first.In(time.FixedZone("", int(z.offset.Seconds()))).Format(time.RFC3339Nano),
		}
	case how < 4:
		d.every = time.Duration(15+r.IntN(90)) * time.Second
		if j.fast {
			d.every = time.Duration(1000+r.IntN(15_000)) * time.Millisecond
		}
		d.first = now.Add(seconds(r, -4000, 30)).Truncate(time.Millisecond)
		s = map[string]any{"kind": "every", "everyMs": d.every.Milliseconds(), "anchorMs": d.first.UnixMilli()}
		if how == 0 { // from the creation on
			d.first, s["anchorMs"] = j.created.Add(-backwards*d.every), nil
		}
	case how < 6: // some times in each minute
		n := 1 + r.IntN(3)
		at := r.IntN(60 / n)
		d.every, d.first = time.Minute/time.Duration(n), time.Unix(int64(at), 0)
		var list []string
		for i := range n {
			list = append(list, fmt.Sprint(at+i*60/n))
		}
		cron("%s * * * * *", strings.Join(list, ","))
	case how == 6:
		n := 1 + r.IntN(3)
		d.every, d.first = time.Duration(n)*time.Minute, time.Unix(0, 0)
		cron("*/%d * * * *", n)
	default: // once a day
		at := now.Add(seconds(r, 60, 240)).Truncate(time.Minute)
		d.every, d.first = 24*time.Hour, at.Add(-48*time.Hour)
		local := at.UTC().Add(z.offset)
		cron("%d %d * * *", local.Minute(), local.Hour())
	}
	d.args = with(d.args, "schedule", s)
}

// backwards is the number of slots of a job before its creation, which come if the clock
// is set back.
const backwards = 10_000

// newDelivery says where the answer goes.
func (w *world) newDelivery(r *rand.Rand, d *definition) {
	c := w.chats[3+r.IntN(len(w.chats)-3)] // on a platform
	d.to, d.tell = chela.Address{}, ""
	var key any
	out := map[string]any{"mode": "announce", "channel": nil, "to": nil, "threadId": nil} // nil resets what was there
	switch n := r.IntN(8); {
	case n < 4:
		d.to = c.address
		out["channel"], out["to"] = c.address.Channel, string(c.address.Peer.Kind)+":"+c.address.Peer.ID
		if c.address.Thread != "" {
			out["threadId"] = c.address.Thread
		}
	case n < 6: // where the session was used last; nowhere, if it was never used
		d.to, d.tell = c.address, c.session
		key, out["channel"] = string(c.session), "last"
	case n == 6:
		d.tell, out["channel"] = "agent:main:main", "last"
	default:
		out["mode"] = "none"
	}
	d.args = with(with(d.args, "delivery", out), "sessionKey", key)
}

// describe returns the arguments of a request, for the story.
func describe(args any) string {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// ask calls a method until it is answered. The error is the refusal.
func (w *world) ask(what, method string, in, out any) error {
	_, err := w.insist(what, method, in, out)
	return err
}

// insist is ask, and reports whether the call was repeated, so that it may have been
// carried out before it was refused.
func (w *world) insist(what, method string, in, out any) (again bool, err error) {
	for ; ; again = true {
		err := w.client.Call(context.Background(), method, in, out)
		if we, ok := errors.AsType[*wire.Error](err); err == nil || ok && we.Code == wire.InvalidRequest {
			if err == nil {
				w.learned()
			}
			return again, err
		}
		w.tell("terminal: %s is not answered: %v", what, err)
		time.Sleep(3 * time.Second)
	}
}

// learned is called when somebody has got an answer.
func (w *world) learned() {
	if l, _ := w.current(); l != nil {
		l.step("accepted")
		l.step("cron.acked")
	}
}

// request carries out a change, and reports whether it was accepted.
func (w *world) request(j *scheduled, what string, d definition, method string, in any, out any) bool {
	c := &change{definition: d, sent: time.Now(), sets: what == "adds" || strings.Contains(what, "resume")}
	w.mu.Lock()
	j.changes = append(j.changes, c)
	w.mu.Unlock()
	w.tell("terminal: %s %s %s", what, j.tag, describe(in))
	again, err := w.insist(what+" "+j.tag, method, in, out)
	done := err == nil || d.removed || again && w.inForce(j, d) // a job that is gone is removed
	w.mu.Lock()
	defer w.mu.Unlock()
	if !done {
		c.refused = true
		w.tellLocked("terminal: %s %s is refused: %v", what, j.tag, err)
		return false
	}
	c.acked = time.Now()
	w.tellLocked("terminal: %s %s is done", what, j.tag)
	return true
}

// inForce reports whether a job with one slot has the schedule of a definition.
func (w *world) inForce(j *scheduled, d definition) bool {
	var now wire.CronJob
	if d.every > 0 || j.id == "" || w.ask("reading "+j.tag, wire.MethodCronGet, wire.CronID{ID: j.id}, &now) != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, now.Schedule.At)
	return err == nil && at.Equal(d.first)
}

// add adds a job.
func (w *world) add(j *scheduled, d *definition) bool {
	args := map[string]any{}
	for k, v := range d.args {
		if v != nil {
			args[k] = v
		}
	}
	var added wire.CronDeclared
	if !w.request(j, "adds", *d, wire.MethodCronAdd, args, &added) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	j.id, j.created = added.Job.ID, added.Job.CreatedAt.Time()
	if sc, _ := d.args["schedule"].(map[string]any); sc["kind"] == "every" && sc["anchorMs"] == nil {
		d.first = j.created.Add(-backwards * d.every)
		j.changes[0].first = d.first
	}
	return true
}

// change changes or removes a job.
func (w *world) change(j *scheduled, what string, d definition, patch map[string]any) bool {
	if d.removed {
		return w.request(j, "removes", d, wire.MethodCronRemove, wire.CronID{ID: j.id}, nil)
	}
	raw := json.RawMessage(describe(patch))
	return w.request(j, "changes ("+what+")", d, wire.MethodCronUpdate, wire.CronUpdate{ID: j.id, Patch: raw}, nil)
}

// run runs a job by hand.
func (w *world) run(j *scheduled, mode string) {
	b := byHand{sent: time.Now()}
	w.tell("terminal: runs %s, %s", j.tag, mode)
	var out wire.CronStarted
	if err := w.ask("running "+j.tag, wire.MethodCronRun, wire.CronRun{ID: j.id, Mode: mode}, &out); err != nil {
		w.tell("terminal: running %s is refused: %v", j.tag, err)
		return
	}
	w.tell("terminal: runs %s: %s %s", j.tag, out.RunID, out.Reason)
	b.id, b.acked = out.RunID, time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	j.byHand = append(j.byHand, b)
}

// dropSession deletes the session in which a job works.
func (w *world) dropSession(j *scheduled) {
	key := "agent:main:cron:" + j.id
	w.mu.Lock()
	j.dropped = append(j.dropped, time.Now())
	w.deleted[chela.SessionKey(key)] = time.Now()
	w.mu.Unlock()
	w.tell("terminal: deletes %s of %s", key, j.tag)
	if err := w.ask("deleting "+key, wire.MethodSessionsDelete, wire.SessionsDelete{Key: key}, nil); err != nil {
		w.tell("terminal: %s is not deleted: %v", key, err)
	}
}

// probeJobs runs as many jobs as there are places in their lane.
func (w *world) probeJobs() {
	for i := range width {
		var j wire.CronJob
		err := w.ask("adding a probe", wire.MethodCronAdd, map[string]any{
			"name":          fmt.Sprint("probe", i),
			"enabled":       false,
			"schedule":      map[string]any{"kind": "every", "everyMs": 3_600_000},
			"sessionTarget": "isolated",
			"payload":       map[string]any{"kind": "agentTurn", "message": "please do <<probe.c>>"},

			"delivery": map[string]any{"mode": "none"},
		}, &j)
		if err == nil {
			err = w.ask("running a probe", wire.MethodCronRun, wire.CronRun{ID: j.ID}, nil)
		}
		if err != nil {
			w.broken("JOB: the probe does not run: %v", err)
		}
	}
}

// jobKind returns the kind of the plan of a job, or "".
func (w *world) jobKind(tag string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.jobs {
		if j.tag == tag {
			return j.kind
		}
	}
	return ""
}
