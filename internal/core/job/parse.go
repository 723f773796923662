package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/spelling"
)

const (
	// maxRaw is the maximum size of a job that is read, in bytes.
	maxRaw = 256 << 10
	// maxPast is how long ago the time of a new one-shot job may be.
	maxPast = time.Minute
)

// Parse reads a job that a person, a program or a model asks for. It accepts many forms
// of one meaning: fields of the schedule, the payload and the delivery beside the other
// fields, other names of fields, texts for numbers, and JSON in a text. What has no
// clear meaning is an error: an unknown field, two fields that contradict each other, a
// schedule that is not understood.
//
// Times relative to now are resolved. A time without a zone is in the zone that is
// given with it, or else in UTC. A cron expression without a zone is in loc; nil is the
// zone of the host. The result is complete and checked, except that a job with the
// target current may have no session yet. Its id is empty unless it was given.
func Parse(raw json.RawMessage, now time.Time, loc *time.Location) (Job, error) {
	d := draft{index: newIndex(), now: now, loc: loc, values: map[string]value{}}
	if err := d.read(raw); err != nil {
		return Job{}, err
	}
	return d.job(map[string]any{"enabled": true})
}

// Patch returns the job with the changes that raw describes, in the forms that [Parse]
// accepts. A field that is absent is unchanged, null resets it, and the objects of the
// job are merged; a schedule, payload or delivery of another kind replaces the old one.
// The state cannot be changed, but enabling a job that was disabled clears its errors.
func (j Job) Patch(raw json.RawMessage, now time.Time, loc *time.Location) (Job, error) {
	d := draft{index: newIndex(), now: now, loc: loc, values: map[string]value{}, old: &j}
	if err := d.read(raw); err != nil {
		return Job{}, err
	}
	if id, ok := d.values["id"]; ok && id.v != string(j.ID) {
		return Job{}, invalid("id: %v is not the id of this job", id.v)
	}
	delete(d.values, "id")
	old, err := toMap(j)
	if err != nil {
		return Job{}, err
	}
	changed, err := d.job(old)
	if err == nil && changed.Enabled && !j.Enabled {
		s := &changed.State
		s.Disabled, s.Errors, s.Skips, s.BadSchedule = nil, 0, 0, 0
	}
	return changed, err
}

// toMap returns the JSON object of a job.
func toMap(j Job) (map[string]any, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	v, err := decode(raw)
	m, _ := v.(map[string]any)
	return m, err
}

// decode reads one JSON value. Numbers are kept as they are.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON value")
	}
	return v, nil
}

// value is the value of a field.
type value struct {
	v    any    // nil: null
	name string // that was used for the field
}

// draft is a job, or a change of one, while it is read.
type draft struct {
	index  index
	now    time.Time
	loc    *time.Location // of cron expressions; nil: the zone of the host
	old    *Job           // nil: the job is new
	lax    bool           // unknown fields are put into extra
	values map[string]value
	extra  map[string]any
}

// read collects the fields of a JSON object.
func (d *draft) read(raw []byte) error {
	if len(raw) > maxRaw {
		return invalid("the job has %s, at most %s are allowed", humanize.Bytes(int64(len(raw))), humanize.Bytes(maxRaw))
	}
	v, err := decode(raw)
	if err != nil {
		return invalid("the job is not JSON: %v", err)
	}
	m, ok := toObject(v)
	if !ok {
		return invalid(
			`want a job like {"schedule":{"kind":"every","everyMs":300000},"payload":{"kind":"agentTurn","message":"..."}}`)
	}
	return d.object("", m)
}

// toObject returns a JSON object, which may be in a text.
func toObject(v any) (map[string]any, bool) {
	for range 3 {
		switch x := v.(type) {
		case map[string]any:
			return x, true
		case string:
			if !strings.HasPrefix(strings.TrimSpace(x), "{") && !strings.HasPrefix(x, `"`) {
				return nil, false
			}
			inner, err := decode([]byte(x))
			if err != nil {
				return nil, false
			}
			v = inner
		default:
			return nil, false
		}
	}
	return nil, false
}

// object collects the fields of an object, whose path is empty for the job itself.
func (d *draft) object(path string, m map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := d.field(path, name, m[name]); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) field(path, name string, v any) error {
	full := strings.TrimPrefix(path+"."+name, ".")
	folded := fold(name)
	if v == nil && d.old == nil || v == "" && (d.old == nil || folded != "description") {
		return nil // models fill in what they do not mean
	}
	if d.lax && path == "" && folded == "owner" {
		d.keep(full, v)
		return nil
	}
	if f, ok := d.index[[2]string{path, folded}]; ok {
		return d.convert(f, full, folded, v)
	}
	if path == "" && (folded == "job" || folded == "patch" || folded == "data") {
		if m, ok := toObject(v); ok {
			return d.object("", m)
		}
	}
	if object, ok := objects[strings.TrimPrefix(strings.ToLower(path)+"."+folded, ".")]; ok {
		return d.inner(object, full, v)
	}
	if d.lax {
		d.keep(full, v)
		return nil
	}
	return unknown(path, full, folded)
}

// keep keeps a field that has no meaning here, by its path.
func (d *draft) keep(full string, v any) {
	if d.extra == nil {
		d.extra = map[string]any{}
	}
	d.extra[full] = v
}

// unknown returns an error about a field that does not exist.
func unknown(path, full, folded string) error {
	names, nearest := strings.Fields(canonical[path]), ""
	for _, name := range names {
		if n := spelling.Distance(folded, strings.ToLower(name)); n <= 2 && n < len(name)/2 {
			nearest = name
			break
		}
	}
	if folded == "pacing" {
		return invalid("pacing is not supported; use schedule")
	}
	if nearest != "" {
		return invalid("unknown field %q; did you mean %q?", full, nearest)
	}
	return invalid("unknown field %q; want one of %s", full, strings.Join(names, ", "))
}

// inner reads a field that holds other fields, or a text that stands for them.
func (d *draft) inner(path, full string, v any) error {
	if m, ok := toObject(v); ok {
		if err := supported(path, m); err != nil {
			return err
		}
		return d.object(path, m)
	}
	text, isText := v.(string)
	switch {
	case v == nil && (path == "schedule" || path == "payload"):
		return invalid("%s cannot be removed", full)
	case v == nil:
		return d.put(path, full, nil)
	case isText && path == "schedule":
		field, v, err := readSchedule(text)
		if err != nil {
			return err
		}
		return d.put(field, full, v)
	case path == "schedule":
		if n, ok := v.(json.Number); ok {
			return invalid("schedule: %s has no unit; %s", n, scheduleExamples)
		}
	case isText && path == "payload":
		return d.put("payload.content", full, strings.TrimSpace(text))
	case isText && path == "trigger":
		return d.put("trigger.script", full, strings.TrimSpace(text))
	case path == "delivery":
		return d.mode("deliver", full, v)
	case path == "failureAlert":
		on, err := toBool(v, full)
		if err != nil {
			return err
		}
		if on {
			return d.put(path, full, map[string]any{})
		}
		return d.put(path, full, false)
	}
	return invalid("%s: want an object", full)
}

// supported returns an error for the kinds of schedules and payloads that exist
// elsewhere, before their fields are called unknown.
func supported(path string, m map[string]any) error {
	kind, _ := m["kind"].(string)
	switch k := word(path+".kind", kind); {
	case path == "schedule" && (k == "on-exit" || k == "stream"):
		return Schedule{Kind: Kind(k)}.Check()
	case path == "payload" && (k == "command" || k == "script" || k == "heartbeat" || k == "skillCollectionReview"):
		return invalid("payload.kind %q is not supported; want systemEvent or agentTurn", k)
	}
	return nil
}

// put stores a value. Two names of a field may not have different values.
func (d *draft) put(path, name string, v any) error {
	if have, ok := d.values[path]; ok && !reflect.DeepEqual(have.v, v) {
		first, second := min(have.name, name), max(have.name, name)
		if first == second {
			return invalid("%s is given twice, with different values", first)
		}
		return invalid("%s and %s contradict each other; give one of them", first, second)
	}
	d.values[path] = value{v, name}
	return nil
}

// convert reads the value of a field and stores it.
func (d *draft) convert(f field, full, folded string, v any) error {
	if f.kind == asIgnored {
		if d.lax {
			d.keep(full, v)
		}
		return nil
	}
	if v == nil {
		return d.put(f.path, full, nil)
	}
	var err error
	switch f.kind {
	case asText, asWord:
		v, err = toText(v, full)
		if f.kind == asWord {
			v = word(f.path, v.(string))
		}
	case asTarget:
		return d.target(full, folded, v)
	case asMode:
		return d.mode(folded, full, v)
	case asBool:
		v, err = toBool(v, full)
	case asNot:
		var b bool
		b, err = toBool(v, full)
		v = !b
		if folded == "nodeliver" && err == nil {
			return d.mode("deliver", full, v)
		}
	case asInt:
		v, err = toInt(v, full)
	case asNumber:
		v, err = toNumber(v, full)
	case asList:
		v, err = toList(v, full)
	case asSpan, asSeconds:
		v, err = toSpan(v, full, folded)
		if f.kind == asSeconds && err == nil {
			v = float64(v.(int64)) / 1000
		}
	case asTime:
		var text string
		if text, err = toText(v, full); err == nil {
			v, err = anchor(text, full, d.now)
		}
	case asAt:
		v, err = toText(v, full)
	case asWatch:
		var text string
		text, err = toText(v, full)
		v = strings.TrimPrefix(folded, "watch") + " " + text
	}
	if err != nil {
		return err
	}
	return d.put(f.path, full, v)
}

// word returns the spelling in the record of a word.
func word(path, s string) string {
	folded := fold(s)
	switch {
	case path == "wakeMode" && (folded == "next" || folded == "nextheartbeat"):
		return string(WakeNext)
	case path == "schedule.kind" && (folded == "once" || folded == "oneshot" || folded == "date"):
		return string(KindAt)
	case path == "schedule.kind" && folded == "interval":
		return string(KindEvery)
	case path == "payload.kind":
		for _, kind := range [...]string{string(SystemEvent), string(AgentTurn), "skillCollectionReview"} {
			if folded == strings.ToLower(kind) {
				return kind
			}
		}
	}
	return strings.ToLower(strings.TrimSpace(s))
}

// target reads the target of a job; "session" may be the key of a session, too.
func (d *draft) target(full, folded string, v any) error {
	text, err := toText(v, full)
	if err != nil {
		return err
	}
	switch lower := strings.ToLower(text); {
	case lower == TargetMain || lower == TargetIsolated || lower == TargetCurrent:
		text = lower
	case folded == "session" && !strings.HasPrefix(lower, targetNamed):
		return d.put("sessionKey", full, text)
	}
	return d.put("sessionTarget", full, text)
}

// mode reads how an answer is delivered: a mode, whether it is announced, or the URL of
// a webhook.
func (d *draft) mode(folded, full string, v any) error {
	text, isText := v.(string)
	text = strings.TrimSpace(text)
	if lower := strings.ToLower(text); isText && strings.HasPrefix(lower, "http://") ||
		strings.HasPrefix(lower, "https://") {
		if err := d.put("delivery.to", full, text); err != nil {
			return err
		}
		return d.put("delivery.mode", full, string(Webhook))
	}
	if m := Mode(strings.ToLower(text)); m == Announce || m == Webhook || m == None {
		return d.put("delivery.mode", full, string(m))
	}
	on, err := toBool(v, full)
	switch {
	case err != nil || folded == "mode" || folded == "deliverymode":
		return invalid("%s: %s is not a mode; want announce, webhook or none", full, show(v))
	case !on && folded != "webhook" && folded != "webhookurl":
		return d.put("delivery.mode", full, string(None))
	case on && folded == "webhook":
		return d.put("delivery.mode", full, string(Webhook))
	case on && folded != "webhookurl":
		return d.put("delivery.mode", full, string(Announce))
	}
	return invalid("%s: %s is not a URL", full, show(v))
}

// show returns a value for a message.
func show(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "the value"
	}
	return humanize.Truncate(string(raw), 80)
}

func toText(v any, name string) (string, error) {
	switch x := v.(type) {
	case string:
		return strings.TrimSpace(x), nil
	case json.Number:
		return x.String(), nil
	}
	return "", invalid("%s: want a text, not %s", name, show(v))
}

func toBool(v any, name string) (bool, error) {
	switch x := v.(type) {
	case bool:
		return x, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(x)) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
	}
	return false, invalid("%s: want true or false, not %s", name, show(v))
}

func toNumber(v any, name string) (float64, error) {
	text := ""
	switch x := v.(type) {
	case json.Number:
		text = x.String()
	case string:
		text = strings.TrimSpace(x)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > maxMillis {
		return 0, invalid("%s: want a number, not %s", name, show(v))
	}
	return f, nil
}

func toInt(v any, name string) (int64, error) {
	f, err := toNumber(v, name)
	if err == nil && f != math.Trunc(f) {
		err = invalid("%s: want a whole number, not %s", name, show(v))
	}
	return int64(f), err
}

func toList(v any, name string) ([]any, error) {
	if text, ok := v.(string); ok {
		if inner, err := decode([]byte(text)); err == nil {
			v = inner
		} else {
			list := []any{}
			for _, part := range strings.Split(text, ",") {
				if part = strings.TrimSpace(part); part != "" {
					list = append(list, part)
				}
			}
			v = list
		}
	}
	list, ok := v.([]any)
	if !ok {
		return nil, invalid("%s: want a list of names, not %s", name, show(v))
	}
	for _, item := range list {
		if _, ok := item.(string); !ok {
			return nil, invalid("%s: want a list of names, not %s", name, show(v))
		}
	}
	return list, nil
}

// toSpan returns the milliseconds of a duration: a text with a unit, or a number in the
// unit of the field's name.
func toSpan(v any, name, folded string) (int64, error) {
	if text, ok := v.(string); ok {
		if d, ok := readInterval(text); ok {
			return d.Milliseconds(), nil
		}
	}
	f, err := toNumber(v, name)
	if err != nil {
		return 0, invalid(`%s: %s is not a duration; want one like "5m" or "1h30m"`, name, show(v))
	}
	for suffix, unit := range map[string]time.Duration{
		"ms":      time.Millisecond,
		"seconds": time.Second,
		"minutes": time.Minute,
		"hours":   time.Hour,
		"timeout": time.Second,
	} {
		if strings.HasSuffix(folded, suffix) {
			if f *= float64(unit.Milliseconds()); math.Abs(f) > maxMillis || f != math.Trunc(f) {
				return 0, invalid("%s: %s is out of range", name, show(v))
			}
			return int64(f), nil
		}
	}
	return 0, invalid(`%s: %s has no unit; want one like "5m" or "1h30m"`, name, show(v))
}

// anchor returns the instant of an anchor in milliseconds.
func anchor(text, name string, now time.Time) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	t, err := readAt(text, now, time.UTC)
	if err != nil {
		return 0, invalid(`%s: %q is not a time; want one like "2026-03-01T09:00:00Z"`, name, text)
	}
	return t.UnixMilli(), nil
}
