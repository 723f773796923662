package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Config is the section cron of the configuration. Nil and zero fields are unset.
type Config struct {
	Enabled    *bool      `json:"enabled"`
	Concurrent *int       `json:"maxConcurrentRuns"`
	Missed     Missed     `json:"missedRuns"`
	Retry      Retry      `json:"retry"`
	Alert      AlertRule  `json:"failureAlert"`
	Token      secret.Ref `json:"webhookToken"`
	Webhook    SSRF       `json:"webhookSsrfPolicy"`
	Retention  Retention  `json:"sessionRetention"`
	Log        RunLog     `json:"runLog"`
	File       string     `json:"store"` // a file of jobs that is imported whenever it changes
}

// Missed is what happens to slots that came while the gateway was not running.
type Missed string

// The policies for missed slots.
const (
	MissedOnce Missed = "once" // the latest one runs
	MissedSkip Missed = "skip" // none runs
	MissedAll  Missed = "all"  // the latest MaxMissed run, oldest first
)

// MaxMissed is the greatest number of missed slots of a job that run.
const MaxMissed = 10

// Retry says how a job that fails is repeated.
type Retry struct {
	Attempts  *int    `json:"maxAttempts"` // of a job with one slot, after a passing failure
	BackoffMs []int64 `json:"backoffMs"`
}

// AlertRule is cron.failureAlert: the alert of all jobs. It is on by default.
type AlertRule struct {
	Enabled *bool `json:"enabled"`
	Alert
}

// UnmarshalJSON reads the rule; the embedded alert would hide the other fields.
func (a *AlertRule) UnmarshalJSON(b []byte) error {
	var on struct {
		Enabled *bool `json:"enabled"`
	}
	if err := json.Unmarshal(b, &on); err != nil && string(b) != "false" {
		return err
	}
	a.Enabled = on.Enabled
	return a.Alert.UnmarshalJSON(b)
}

// SSRF is cron.webhookSsrfPolicy.
type SSRF struct {
	Hosts []string `json:"allowedHostnames"` // private hosts to which webhooks may be sent
}

// RunLog is cron.runLog.
type RunLog struct {
	Keep *int `json:"keepLines"`
}

// Retention is how long the transcripts of isolated runs are kept. In JSON it is a
// duration, or false: for ever.
type Retention struct {
	Set     bool
	Forever bool
	For     time.Duration
}

// UnmarshalJSON accepts a duration such as "24h", milliseconds, or false.
func (r *Retention) UnmarshalJSON(b []byte) error {
	*r = Retention{Set: true}
	var text string
	var ms int64
	switch {
	case bytes.Equal(b, []byte("false")):
		r.Forever = true
	case bytes.Equal(b, []byte("null")):
		*r = Retention{}
	case json.Unmarshal(b, &ms) == nil:
		r.For = time.Duration(ms) * time.Millisecond
	case json.Unmarshal(b, &text) == nil:
		d, err := humanize.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("sessionRetention: %w", err)
		}
		r.For = d
	default:
		return fmt.Errorf("sessionRetention: %s is not a duration like \"24h\", or false", b)
	}
	return nil
}

// The defaults of [Config].
const (
	defaultConcurrent = 8
	defaultAttempts   = 3
	defaultAfter      = 2
	defaultCooldown   = time.Hour
	defaultRetention  = 24 * time.Hour
	defaultKeep       = 2000
	// Timeout is the default time limit of a run.
	Timeout = 10 * time.Minute
	// Stuck is the longest time that a run may take, whatever its own limit.
	Stuck = 2 * time.Hour
	// MaxErrors is the number of consecutive failures after which a job is disabled.
	MaxErrors = 10
	// MaxBadSchedule is the number of failures to compute a slot after which a job is disabled.
	MaxBadSchedule = 3
)

// backoff is how long a job waits after its first, second, … consecutive failure.
var backoff = [...]time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// Check returns an error that names the first value out of its range.
func (c Config) Check() error {
	bad := func(key, hint, format string, args ...any) error {
		return &chela.Error{Code: chela.CodeInvalid, Message: "cron." + key + ": " + fmt.Sprintf(format, args...),
			Hint: "chela config set cron." + key + " " + hint}
	}
	switch {
	case c.Concurrent != nil && (*c.Concurrent < 1 || *c.Concurrent > 256):
		return bad("maxConcurrentRuns", "8", "%d is out of range, it must be between 1 and 256", *c.Concurrent)
	case c.Missed != "" && c.Missed != MissedOnce && c.Missed != MissedSkip && c.Missed != MissedAll:
		return bad("missedRuns", "once", "%q; want once, skip or all", c.Missed)
	case c.Retry.Attempts != nil && (*c.Retry.Attempts < 0 || *c.Retry.Attempts > 100):
		return bad("retry.maxAttempts", "3", "%d is out of range, it must be between 0 and 100", *c.Retry.Attempts)
	case c.Retention.Set && !c.Retention.Forever && c.Retention.For <= 0:
		return bad("sessionRetention", "24h", "it must be longer than nothing, or false")
	case c.Log.Keep != nil && *c.Log.Keep < 1:
		return bad("runLog.keepLines", "2000", "%d is out of range, it must be at least 1", *c.Log.Keep)
	}
	for _, ms := range c.Retry.BackoffMs {
		if ms < 0 || ms > int64(24*time.Hour/time.Millisecond) {
			return bad("retry.backoffMs", "'[30000]'", "%d is out of range", ms)
		}
	}
	return c.Alert.check()
}

// On reports whether jobs run.
func (c Config) On() bool { return c.Enabled == nil || *c.Enabled }

// MaxConcurrent returns the number of jobs that may run at once.
func (c Config) MaxConcurrent() int {
	if c.Concurrent == nil {
		return defaultConcurrent
	}
	return *c.Concurrent
}

// MaxAttempts returns how often a job with one slot is repeated after a passing failure.
func (c Config) MaxAttempts() int {
	if c.Retry.Attempts == nil {
		return defaultAttempts
	}
	return *c.Retry.Attempts
}

// Backoff returns how long a job waits after its n-th consecutive failure.
func (c Config) Backoff(n int) time.Duration {
	n = max(n, 1)
	if list := c.Retry.BackoffMs; len(list) > 0 {
		return time.Duration(list[min(n, len(list))-1]) * time.Millisecond
	}
	return backoff[min(n, len(backoff))-1]
}

// Keep returns how many runs of a job are kept.
func (c Config) Keep() int {
	if c.Log.Keep == nil {
		return defaultKeep
	}
	return *c.Log.Keep
}

// Retain returns how long the transcripts of isolated runs are kept; 0: for ever.
func (c Config) Retain() time.Duration {
	switch r := c.Retention; {
	case !r.Set:
		return defaultRetention
	case r.Forever:
		return 0
	default:
		return r.For
	}
}

// AlertFor returns the alert of a job, and false if nobody is told about its failures.
func (c Config) AlertFor(j Job) (a Alert, cooldown time.Duration, on bool) {
	a, on = c.Alert.Alert, (c.Alert.Enabled == nil || *c.Alert.Enabled) && !c.Alert.Off
	if own := j.FailureAlert; own != nil {
		a, on = *own, !own.Off
		if a.After == 0 {
			a.After = c.Alert.After
		}
		if a.CooldownMs == nil {
			a.CooldownMs = c.Alert.CooldownMs
		}
		if a.Destination == (Destination{}) {
			a.Destination = c.Alert.Destination
		}
	}
	if a.After == 0 {
		a.After = defaultAfter
	}
	cooldown = defaultCooldown
	if a.CooldownMs != nil {
		cooldown = time.Duration(*a.CooldownMs) * time.Millisecond
	}
	return a, cooldown, on
}
