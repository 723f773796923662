package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// job returns the job that results from the record m and the fields of the draft.
func (d *draft) job(m map[string]any) (Job, error) {
	for _, finish := range [...]func(map[string]any) error{d.schedule, d.payload, d.delivery} {
		if err := finish(m); err != nil {
			return Job{}, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.values)) {
		set(m, strings.Split(path, "."), d.values[path].v)
	}
	if len(d.extra) > 0 {
		m["extra"] = d.extra
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return Job{}, err
	}
	var j Job
	if err := json.Unmarshal(raw, &j); err != nil {
		return Job{}, invalid("the job: %v", err)
	}
	j.Complete()
	checked := j
	if j.Target == TargetCurrent && d.old == nil && checked.Session == "" {
		checked.Session = TargetCurrent // the caller sets it
	}
	return j, checked.Check()
}

// set sets the value at a path in nested objects; nil removes it.
func set(m map[string]any, path []string, v any) {
	for _, name := range path[:len(path)-1] {
		inner, ok := m[name].(map[string]any)
		if !ok {
			if v == nil {
				return
			}
			inner = map[string]any{}
			m[name] = inner
		}
		m = inner
	}
	if name := path[len(path)-1]; v == nil {
		delete(m, name)
	} else {
		m[name] = v
	}
}

// given reports whether a field has a value, and returns the name that was used for it.
func (d *draft) given(path string) (string, bool) {
	v, ok := d.values[path]
	return v.name, ok && v.v != nil
}

// text returns the text of a field, or "".
func (d *draft) text(path string) string {
	s, _ := d.values[path].v.(string)
	return s
}

// has reports whether a field of an object has a value.
func (d *draft) has(object string) bool {
	for path, v := range d.values {
		if strings.HasPrefix(path, object+".") && v.v != nil {
			return true
		}
	}
	return false
}

// schedule decides on the kind of the schedule and resolves its times.
func (d *draft) schedule(m map[string]any) error {
	if err := d.dropZero("schedule.everyMs", KindEvery); err != nil {
		return err
	}
	kind, source := Kind(d.text("schedule.kind")), "schedule.kind"
	for _, of := range [...]struct {
		path string
		kind Kind
	}{{"schedule.at", KindAt}, {"schedule.everyMs", KindEvery}, {"schedule.expr", KindCron}} {
		name, ok := d.given(of.path)
		switch {
		case !ok:
		case kind == "":
			kind, source = of.kind, name
		case kind != of.kind && source == "schedule.kind":
			return invalid("%s goes with a schedule of kind %q, not %q", name, of.kind, kind)
		case kind != of.kind:
			return invalid("%s and %s contradict each other; give one of them", source, name)
		}
	}
	var old Kind
	if d.old != nil {
		old = d.old.Schedule.Kind
	}
	switch {
	case kind == "":
		kind = old
	case kind != old:
		delete(m, "schedule")
	}
	if kind != "" {
		d.values["schedule.kind"] = value{string(kind), "schedule.kind"}
	}
	return d.zone(kind, kind != old)
}

// dropZero removes a zero that a model fills in for another kind of schedule.
func (d *draft) dropZero(path string, kind Kind) error {
	if v, ok := d.values[path]; ok && v.v == int64(0) && Kind(d.text("schedule.kind")) != kind {
		_, at := d.given("schedule.at")
		_, expr := d.given("schedule.expr")
		if at || expr {
			delete(d.values, path)
		}
	}
	return nil
}

// zone resolves what depends on the zone of the schedule.
func (d *draft) zone(kind Kind, fresh bool) error {
	if name, ok := d.given("schedule.exact"); ok {
		if d.values["schedule.exact"].v == true {
			if err := d.put("schedule.staggerMs", name, int64(0)); err != nil {
				return err
			}
		}
	}
	delete(d.values, "schedule.exact")
	if kind == KindCron {
		if expr := d.text("schedule.expr"); expr != "" {
			for _, prefix := range [...]string{"CRON_TZ=", "TZ="} {
				if rest, ok := strings.CutPrefix(expr, prefix); ok {
					tz, rest, _ := strings.Cut(rest, " ")
					if err := d.put("schedule.tz", "schedule.expr", tz); err != nil {
						return err
					}
					d.values["schedule.expr"] = value{strings.TrimSpace(rest), "schedule.expr"}
				}
			}
		}
		if _, ok := d.values["schedule.tz"]; !ok && fresh && d.loc != nil && d.loc != time.Local {
			d.values["schedule.tz"] = value{d.loc.String(), "schedule.tz"}
		}
		return nil
	}
	if name, ok := d.given("schedule.staggerMs"); ok && d.values["schedule.staggerMs"].v != int64(0) {
		return invalid("%s goes with a cron expression", name)
	}
	delete(d.values, "schedule.staggerMs")
	tz := d.text("schedule.tz")
	tzName, _ := d.given("schedule.tz")
	if kind == KindEvery && d.every().days() > 0 {
		return nil
	}
	delete(d.values, "schedule.tz")
	if kind != KindAt {
		if tz != "" && d.old != nil {
			return invalid("%s goes with a cron expression, a time or an interval of whole days", tzName)
		}
		return nil
	}
	text := d.text("schedule.at")
	if text == "" {
		if tz != "" {
			return invalid("%s: give the time (at) as well", tzName)
		}
		return nil
	}
	loc := time.UTC
	if tz != "" {
		var err error
		if loc, err = (Schedule{TZ: tz}).Location(); err != nil {
			return err
		}
	}
	at, err := readAt(text, d.now, loc)
	if err != nil {
		return err
	}
	if ago := d.now.Sub(at); ago > maxPast && !d.lax {
		return invalid("schedule.at: %s was %s ago; now it is %s", at.UTC().Format(time.RFC3339), span(ago),
			d.now.UTC().Format(time.RFC3339))
	}
	d.values["schedule.at"] = value{at.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano), "schedule.at"}
	return nil
}

// every returns the interval that the schedule will have.
func (d *draft) every() (s Schedule) {
	if d.old != nil && d.old.Schedule.Kind == KindEvery {
		s.EveryMs = d.old.Schedule.EveryMs
	}
	if ms, ok := d.values["schedule.everyMs"].v.(int64); ok {
		s.EveryMs = ms
	}
	return s
}

// payload decides on the kind of the payload and on the field that its text is in.
func (d *draft) payload(m map[string]any) error {
	content, given := d.values["payload.content"]
	given = given && content.v != nil && content.v != ""
	delete(d.values, "payload.content")
	kind := PayloadKind(d.text("payload.kind"))
	if kind == "" {
		kind = d.payloadKind(content.name)
		d.values["payload.kind"] = value{string(kind), "payload.kind"}
	}
	if !given && d.old == nil && !d.lax {
		return invalid(`payload is required: {"kind":"agentTurn","message":"what the agent is to do"} or {"kind":"systemEvent","text":"a reminder"}`)
	}
	if d.old != nil && kind != d.old.Payload.Kind {
		if !given {
			content = value{d.old.Payload.Content(), "payload"}
			given = true
		}
		delete(m, "payload")
	}
	if kind == SystemEvent {
		for _, field := range [...]string{"model", "thinking", "timeoutSeconds", "lightContext", "fallbacks", "toolsAllow",
			"allowUnsafeExternalContent"} {
			if name, ok := d.given("payload." + field); ok && !empty(d.values["payload."+field].v) {
				return invalid(`%s goes with payload {"kind":"agentTurn","message":"..."}, not with a systemEvent`, name)
			}
			delete(d.values, "payload."+field)
		}
	}
	if list, ok := d.values["payload.toolsAllow"]; ok && list.v != nil && empty(list.v) {
		return invalid("%s is empty; leave it out for every tool that the agent may use", list.name)
	}
	if given {
		field := "payload.message"
		if kind == SystemEvent {
			field = "payload.text"
		}
		d.values[field] = content
	}
	return nil
}

// empty reports whether a value says nothing.
func empty(v any) bool {
	list, isList := v.([]any)
	return v == nil || v == false || v == float64(0) || isList && len(list) == 0
}

// payloadKind returns the kind of a payload that does not say it: it follows from the
// target, from fields that only one kind has, or from the name of the text.
func (d *draft) payloadKind(name string) PayloadKind {
	target := d.text("sessionTarget")
	if d.old != nil {
		if target != "" && (target == TargetMain) != (d.old.Target == TargetMain) {
			return kindFor(target)
		}
		return d.old.Payload.Kind
	}
	if target != "" {
		return kindFor(target)
	}
	for _, field := range [...]string{"model", "thinking", "timeoutSeconds", "lightContext", "fallbacks", "toolsAllow"} {
		if v := d.values["payload."+field].v; !empty(v) {
			return AgentTurn
		}
	}
	switch name = fold(name[strings.LastIndexByte(name, '.')+1:]); {
	case d.text("delivery.mode") == string(Announce) || d.text("delivery.to") != "" ||
		d.text("delivery.channel") != "" && d.text("delivery.channel") != Last:
		return AgentTurn
	case name == "":
		return ""
	case name == "text" || name == "reminder" || name == "systemevent":
		return SystemEvent
	}
	return AgentTurn
}

// kindFor returns the kind of payload that goes with a target.
func kindFor(target string) PayloadKind {
	if target == TargetMain {
		return SystemEvent
	}
	return AgentTurn
}

// delivery removes a destination that belongs to another kind of delivery.
func (d *draft) delivery(m map[string]any) error {
	if d.old == nil {
		return nil
	}
	if target := d.text("sessionTarget"); target == TargetMain && !d.has("delivery") {
		if old := d.old.Delivery; old != nil && old.Mode == Announce {
			delete(m, "delivery") // the answer is in the chat of the session
		}
	}
	mode := Mode(d.text("delivery.mode"))
	old, ok := m["delivery"].(map[string]any)
	if mode == "" || !ok || d.old.Delivery == nil || (mode == Webhook) == (d.old.Delivery.Mode == Webhook) {
		return nil
	}
	for _, name := range [...]string{"channel", "to", "threadId", "accountId"} {
		delete(old, name)
	}
	return nil
}

// span formats a duration, in days if it is long.
func span(d time.Duration) string {
	if days := int64(d / (24 * time.Hour)); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	return humanize.Span(d)
}
