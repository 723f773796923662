package job

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of a job.
const (
	MaxName    = 200      // characters
	maxText    = 64 << 10 // bytes of a payload
	maxScript  = 4 << 10  // bytes of a trigger
	maxField   = 1 << 10  // bytes of every other text
	maxTools   = 200
	maxTimeout = 24 * time.Hour
	maxAfter   = 1000
	// MaxJobs is the maximum number of jobs.
	MaxJobs = 20_000
)

// Complete sets the fields that are determined by others: a name, the target, the wake
// mode, and the delivery of a turn.
func (j *Job) Complete() {
	if j.Name = strings.Join(strings.Fields(j.Name), " "); j.Name == "" {
		j.Name = humanize.Truncate(strings.Join(strings.Fields(j.Payload.Content()), " "), 60)
	}
	if j.Payload.Kind == "" {
		switch {
		case j.Payload.Message != "" || j.Target != "" && j.Target != TargetMain:
			j.Payload.Kind = AgentTurn
		case j.Payload.Text != "":
			j.Payload.Kind = SystemEvent
		}
	}
	if j.Target == "" {
		j.Target = TargetIsolated
		if j.Payload.Kind == SystemEvent {
			j.Target = TargetMain
		}
	}
	if j.Wake == "" {
		j.Wake = WakeNow
	}
	if j.Delivery == nil && j.Payload.Kind == AgentTurn {
		j.Delivery = &Delivery{Mode: Announce}
	}
	if d := j.Delivery; d != nil && d.Mode == "" {
		d.Mode = Announce
		if strings.Contains(d.To, "://") {
			d.Mode = Webhook
		}
	}
}

// Check returns what is wrong with a job that is complete, whatever the time.
func (j Job) Check() error {
	if err := j.Schedule.Check(); err != nil {
		return err
	}
	p := j.Payload
	main := j.Target == TargetMain
	switch {
	case j.Name == "":
		return invalid("name is required")
	case utf8.RuneCountInString(j.Name) > MaxName:
		return invalid("name has more than %d characters", MaxName)
	case j.Target != TargetMain && j.Target != TargetIsolated && j.Target != TargetCurrent && !validSessionName(j.Named()):
		return invalid("sessionTarget %q: want main, isolated, current or session:NAME", j.Target)
	case j.Target == TargetCurrent && j.Session == "":
		return invalid("sessionTarget current: sessionKey is required, because there is no current session")
	case j.Wake != WakeNow && j.Wake != WakeNext:
		return invalid("wakeMode %q: want now or next-heartbeat", j.Wake)
	case p.Kind == "command" || p.Kind == "script" || p.Kind == "heartbeat" || p.Kind == "skillCollectionReview":
		return invalid("payload.kind %q is not supported; want systemEvent or agentTurn", p.Kind)
	case p.Kind != SystemEvent && p.Kind != AgentTurn:
		return invalid(`payload.kind %q: want {"kind":"agentTurn","message":"..."} or {"kind":"systemEvent","text":"..."}`,
			p.Kind)
	case main && p.Kind == AgentTurn:
		return invalid(`sessionTarget "main" goes with payload {"kind":"systemEvent","text":"..."}; for an agentTurn use sessionTarget "isolated"`)
	case !main && p.Kind == SystemEvent:
		return invalid(`sessionTarget %q goes with payload {"kind":"agentTurn","message":"..."}; for a systemEvent use sessionTarget "main"`, j.Target)
	case strings.TrimSpace(p.Message) == "" && p.Kind == AgentTurn:
		return invalid("payload.message is empty: say what the agent is to do")
	case len(p.Content()) > maxText:
		return invalid("payload has %s, at most %s are allowed", humanize.Bytes(int64(len(p.Content()))),
			humanize.Bytes(maxText))
	case p.TimeoutSeconds != nil && !(*p.TimeoutSeconds >= 0 && *p.TimeoutSeconds <= maxTimeout.Seconds()):
		return invalid("payload.timeoutSeconds %v is out of range; want 0 to %v", *p.TimeoutSeconds, maxTimeout.Seconds())
	case len(p.Tools) > maxTools || len(p.Fallbacks) > maxTools:
		return invalid("payload lists more than %d tools or models", maxTools)
	case main && j.Delivery != nil && j.Delivery.Mode == Announce:
		return invalid(
			`delivery.mode "announce" goes with sessionTarget "isolated"; an event of the main session is answered in its chat`)
	}
	for _, s := range [...]string{j.Description, j.DeclarationKey, j.DisplayName, j.Session, string(j.Agent), p.Model,
		p.Thinking, j.Schedule.Expr, j.Schedule.TZ} {
		if len(s) > maxField {
			return invalid("a field of the job has more than %s: %s", humanize.Bytes(maxField), humanize.Truncate(s, 40))
		}
	}
	return cmpErr(j.checkDelivery(), j.Trigger.check(), j.FailureAlert.check())
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func validSessionName(s string) bool {
	return s != "" && len(s) <= MaxName && !strings.ContainsAny(s, " \t\r\n\x00")
}

func (j Job) checkDelivery() error {
	d := j.Delivery
	if d == nil {
		return nil
	}
	switch d.Mode {
	case Announce, None:
	case Webhook:
		if err := checkURL("delivery.to", d.To, forWebhooks); err != nil {
			return err
		}
	default:
		return invalid("delivery.mode %q: want announce, webhook or none", d.Mode)
	}
	if d.Mode == Announce && d.To != "" && (d.Channel == "" || d.Channel == Last) {
		return invalid("delivery.to %q needs delivery.channel", d.To)
	}
	for name, to := range map[string]*Destination{
		"delivery.failureDestination":    d.Failure,
		"delivery.completionDestination": d.Completion,
	} {
		if err := to.check(name); err != nil {
			return err
		}
	}
	return nil
}

func (d *Destination) check(name string) error {
	switch {
	case d == nil:
		return nil
	case d.Mode == Webhook:
		return checkURL(name+".to", d.To, forWebhooks)
	case d.Mode != "" && d.Mode != Announce:
		return invalid("%s.mode %q: want announce or webhook", name, d.Mode)
	case d.To != "" && (d.Channel == "" || d.Channel == Last):
		return invalid("%s.to %q needs %s.channel", name, d.To, name)
	}
	return nil
}

// forWebhooks is what to do instead of credentials in the URL of a webhook.
const forWebhooks = "set cron.webhookToken instead"

// checkURL checks a URL. It must not hold credentials, which would be shown to everybody who
// may see the job; instead says what to do then.
func checkURL(name, s, instead string) error {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case !ok || host == "" || len(s) > maxField || strings.ContainsAny(s, " \t\r\n\x00"):
		return invalid("%s: %q is not a URL; want one like https://example.com/hook", name, humanize.Truncate(s, 80))
	case strings.Contains(host, "@"):
		return invalid("%s: the URL holds credentials; %s", name, instead)
	}
	return nil
}

func (a *Alert) check() error {
	if a == nil || a.Off {
		return nil
	}
	if a.After < 0 || a.After > maxAfter {
		return invalid("failureAlert.after %d is out of range; want 1 to %d", a.After, maxAfter)
	}
	if a.CooldownMs != nil && *a.CooldownMs < 0 {
		return invalid("failureAlert.cooldownMs must not be negative")
	}
	return a.Destination.check("failureAlert")
}

// The kinds of checks of a trigger.
const (
	CheckFile    = "file"
	CheckURL     = "url"
	CheckCommand = "command"
)

// Parts returns the kind of the check and its object: the path of a file, a URL, or a
// command line.
func (t Trigger) Parts() (kind, object string) {
	kind, object, _ = strings.Cut(strings.TrimSpace(t.Script), " ")
	return kind, strings.TrimSpace(object)
}

func (t *Trigger) check() error {
	if t == nil {
		return nil
	}
	kind, object := t.Parts()
	switch {
	case len(t.Script) > maxScript:
		return invalid("trigger.script has more than %s", humanize.Bytes(maxScript))
	case kind == CheckURL:
		return checkURL("trigger.script", object, "watch a command that has them")
	case kind != CheckFile && kind != CheckCommand || object == "":
		return invalid(
			`trigger.script %q: want "file PATH", "url URL" or "command LINE"; the job runs when what it finds has changed`,
			humanize.Truncate(t.Script, 80))
	}
	return nil
}
