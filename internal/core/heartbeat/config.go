package heartbeat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Config is agents.defaults.heartbeat, or heartbeat of an agent. Nil and zero fields are
// unset.
type Config struct {
	Every     *Interval `json:"every"` // "0m": no ticks
	Model     string    `json:"model"`
	Prompt    string    `json:"prompt"`
	Session   string    `json:"session"`
	Target    string    `json:"target"` // TargetOwner, TargetLast, TargetNone, or a channel
	To        string    `json:"to"`
	Account   string    `json:"accountId"`
	Direct    string    `json:"directPolicy"` // allow, block
	MaxAck    *int      `json:"ackMaxChars"`
	Hours     *Hours    `json:"activeHours"`
	Light     *bool     `json:"lightContext"`
	Isolated  *bool     `json:"isolatedSession"`
	Reasoning *bool     `json:"includeReasoning"`
	Timeout   *int      `json:"timeoutSeconds"`
}

// Targets of alerts other than a channel.
const (
	TargetOwner = "owner" // the direct chat of a person who may change settings
	TargetLast  = "last"  // the chat that was last used in the session
	TargetNone  = "none"  // clients of the gateway only
)

// Interval is a duration in the configuration. A number is in minutes.
type Interval time.Duration

// UnmarshalJSON accepts a duration such as "30m", or a number of minutes, also as text.
func (i *Interval) UnmarshalJSON(b []byte) error {
	s := string(bytes.Trim(b, `"`))
	if n, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil && n >= 0 && n < 1e6 {
		*i = Interval(n * float64(time.Minute))
		return nil
	}
	d, err := humanize.ParseDuration(s)
	if err != nil {
		return err
	}
	*i = Interval(d)
	return nil
}

// MarshalJSON writes the duration as text.
func (i Interval) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(i).String()) }

// Hours is a part of the day.
type Hours struct {
	Start string `json:"start"`    // "09:00"
	End   string `json:"end"`      // "22:00", at most "24:00"
	Zone  string `json:"timezone"` // an IANA name; "user" or "": the person's; "local": that of the machine
}

// The defaults of [Config], and the least interval.
const (
	DefaultEvery  = 30 * time.Minute
	DefaultMaxAck = 300
	minEvery      = time.Minute
)

// Or returns c with the fields of d where c has none.
func (c Config) Or(d Config) Config {
	return Config{
		Every:   cmp.Or(c.Every, d.Every),
		Model:   cmp.Or(c.Model, d.Model),
		Prompt:  cmp.Or(c.Prompt, d.Prompt),
		Session: cmp.Or(c.Session, d.Session),
		Target:  cmp.Or(c.Target, d.Target),
		To:      cmp.Or(c.To, d.To),
		Account: cmp.Or(c.Account, d.Account),

		Direct: cmp.Or(c.Direct, d.Direct),
		MaxAck: cmp.Or(c.MaxAck, d.MaxAck),
		Hours:  cmp.Or(c.Hours, d.Hours),
		Light:  cmp.Or(c.Light, d.Light),

		Isolated:  cmp.Or(c.Isolated, d.Isolated),
		Reasoning: cmp.Or(c.Reasoning, d.Reasoning),
		Timeout:   cmp.Or(c.Timeout, d.Timeout),
	}
}

// Check returns an error that names the first invalid value. key is the path of the
// section.
func (c Config) Check(key string) error {
	fail := func(name, hint string, v any) error {
		return &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("%s.%s: %v is not valid", key, name, v),
			Hint: "chela config set " + key + "." + name + " " + hint}
	}
	if c.Every != nil && *c.Every != 0 && time.Duration(*c.Every) < minEvery {
		return fail("every", "30m", time.Duration(*c.Every))
	}
	if c.MaxAck != nil && *c.MaxAck < 0 {
		return fail("ackMaxChars", "300", *c.MaxAck)
	}
	if c.Timeout != nil && *c.Timeout < 0 {
		return fail("timeoutSeconds", "600", *c.Timeout)
	}
	if !slices.Contains([]string{"", "allow", "block"}, c.Direct) {
		return fail("directPolicy", "allow", strconv.Quote(c.Direct))
	}
	if c.Session != "" {
		if _, err := chela.ParseSessionKey(c.Session, chela.DefaultAgent); err != nil {
			return fail("session", "main", err)
		}
	}
	if c.Hours == nil {
		return nil
	}
	if _, err := c.Hours.window(time.UTC); err != nil {
		return &chela.Error{Code: chela.CodeInvalid, Message: key + ".activeHours", Hint: "chela config set " + key +
			`.activeHours '{"start": "08:00", "end": "23:00"}'`, Err: err}
	}
	return nil
}

// Settings is how heartbeats of an agent work.
type Settings struct {
	Agent chela.AgentID
	// Every is the interval; 0: no ticks.
	Every time.Duration
	// NeedsFile is set if there are ticks only while HEARTBEAT.md has content.
	NeedsFile bool

	Model     string           // empty: that of the session
	Prompt    string           // of a tick
	Session   chela.SessionKey // of ticks
	Target    string
	To        string
	Account   chela.AccountID
	BlockDM   bool // alerts do not go to direct chats
	MaxAck    int
	Hours     Window
	Light     bool          // without the bootstrap files of the workspace
	Isolated  bool          // ticks have a session of their own, without a history
	Reasoning bool          // alerts are preceded by the model's reasoning
	Timeout   time.Duration // of a run; 0: that of other runs
}

// Settings returns the settings of an agent. zone is the person's time zone. The
// configuration has been checked.
func (c Config) Settings(id chela.AgentID, zone *time.Location) Settings {
	s := Settings{
		Agent:     id,
		Every:     DefaultEvery,
		Model:     c.Model,
		Prompt:    cmp.Or(strings.TrimSpace(c.Prompt), DefaultPrompt),
		Target:    cmp.Or(c.Target, TargetOwner),
		To:        c.To,
		Account:   chela.AccountID(c.Account),
		BlockDM:   c.Direct == "block",
		MaxAck:    DefaultMaxAck,
		Light:     isSet(c.Light),
		Isolated:  isSet(c.Isolated),
		Reasoning: isSet(c.Reasoning),
	}
	if c.Every != nil {
		s.Every = time.Duration(*c.Every)
	}
	if c.MaxAck != nil {
		s.MaxAck = *c.MaxAck
	}
	if c.Timeout != nil {
		s.Timeout = time.Duration(*c.Timeout) * time.Second
	}
	if c.Hours != nil {
		s.Hours, _ = c.Hours.window(zone)
	}
	s.Session, _ = chela.ParseSessionKey(c.Session, id)
	return s
}

func isSet(b *bool) bool { return b != nil && *b }

// Visibility is what a channel shows of heartbeats. Nil fields have the defaults.
type Visibility struct {
	OK        *bool `json:"showOk"`       // that nothing needs attention; false
	Alerts    *bool `json:"showAlerts"`   // true
	Indicator *bool `json:"useIndicator"` // clients show the outcome; true
}

// Or returns v with the fields of d where v has none.
func (v Visibility) Or(d Visibility) Visibility {
	return Visibility{OK: cmp.Or(v.OK, d.OK), Alerts: cmp.Or(v.Alerts, d.Alerts),
		Indicator: cmp.Or(v.Indicator, d.Indicator)}
}

// ShowsOK reports whether it is shown that nothing needs attention.
func (v Visibility) ShowsOK() bool { return isSet(v.OK) }

// ShowsAlerts reports whether alerts are shown.
func (v Visibility) ShowsAlerts() bool { return v.Alerts == nil || *v.Alerts }

// ShowsIndicator reports whether clients show the outcome.
func (v Visibility) ShowsIndicator() bool { return v.Indicator == nil || *v.Indicator }

// ShowsNothing reports whether a heartbeat would have no effect.
func (v Visibility) ShowsNothing() bool {
	return !v.ShowsOK() && !v.ShowsAlerts() && !v.ShowsIndicator()
}
