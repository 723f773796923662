package compact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Config is agents.defaults.compaction. The zero Config has the defaults.
type Config struct {
	Enabled        *bool   `json:"enabled,omitempty"`        // automatic compaction; nil: true
	Mode           string  `json:"mode,omitempty"`           // safeguard (also ""), default, auto: the same as default
	Target         float64 `json:"targetTokens,omitempty"`   // of the window that is used after a compaction; 0: 0.7
	Model          string  `json:"model,omitempty"`          // "": that of the session
	Think          string  `json:"thinkingLevel,omitempty"`  // of the summary; "": low; inherit: that of the session
	TimeoutSeconds int     `json:"timeoutSeconds,omitempty"` // of each call of a model; 0: 180
	Keep           int     `json:"keepRecentTokens,omitempty"`
	Turns          *int    `json:"recentTurnsPreserve,omitempty"` // in mode safeguard; nil: 3
	Reserve        int     `json:"reserveTokens,omitempty"`
	Floor          *int    `json:"reserveTokensFloor,omitempty"` // nil: 20,000

	Identifiers     string `json:"identifierPolicy,omitempty"` // strict (also ""), off, custom
	IdentifierRules string `json:"identifierInstructions,omitempty"`
	QualityGuard    struct {
		Enabled    *bool `json:"enabled,omitempty"`    // nil: true
		MaxRetries *int  `json:"maxRetries,omitempty"` // nil: 1
	} `json:"qualityGuard,omitzero"`

	Sections   *[]string `json:"postCompactionSections,omitempty"` // of AGENTS.md; nil: see DefaultSections
	NotifyUser bool      `json:"notifyUser,omitempty"`
	MidTurn    struct {
		Enabled bool `json:"enabled,omitempty"`
	} `json:"midTurnPrecheck,omitzero"`
	MaxBytes Size  `json:"maxActiveTranscriptBytes,omitempty"` // 0: no limit
	Flush    Flush `json:"memoryFlush,omitzero"`
}

// Flush is the memoryFlush of a Config.
type Flush struct {
	Enabled  *bool  `json:"enabled,omitempty"`             // nil: true
	Soft     *int   `json:"softThresholdTokens,omitempty"` // before the threshold of a compaction; nil: 4000
	Prompt   string `json:"prompt,omitempty"`              // "": FlushPrompt
	System   string `json:"systemPrompt,omitempty"`        // is added to the system prompt
	Model    string `json:"model,omitempty"`               // "": that of the session
	MaxBytes Size   `json:"forceFlushTranscriptBytes,omitempty"`
}

// Size is a number of bytes: 2097152, or a text such as "2mb".
type Size int64

// UnmarshalJSON implements json.Unmarshaler.
func (s *Size) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*int64)(s)) == nil {
		if *s < 0 {
			return fmt.Errorf("size %d: want at least 0", *s)
		}
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("size %s: want a number of bytes or a text such as \"2mb\"", b)
	}
	word, unit := strings.ToLower(strings.TrimSpace(text)), int64(1)
	for _, u := range [...]struct {
		name string
		n    int64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30},
		{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"b", 1}} {
		if rest, ok := strings.CutSuffix(word, u.name); ok {
			word, unit = strings.TrimSpace(rest), u.n
			break
		}
	}
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return fmt.Errorf("size %q: want a number of bytes or a text such as \"2mb\"", text)
	}
	*s = Size(n * float64(unit))
	return nil
}

// Defaults of a Config.
const (
	defaultTarget     = 0.7
	defaultKeepRecent = 20_000
	defaultTurns      = 3
	defaultReserve    = 16_384
	defaultFloor      = 20_000
	defaultFlushSoft  = 4_000
	defaultRetries    = 1
	defaultTimeout    = 180 * time.Second
)

// DefaultSections are the sections of AGENTS.md that follow a summary.
func DefaultSections() []string { return []string{"Session Startup", "Red Lines"} }

// Validate checks the values.
func (c Config) Validate() error {
	switch {
	case !slices.Contains([]string{"", "auto", "default", "safeguard"}, c.Mode):
		return fmt.Errorf("mode %q: want auto, default or safeguard", c.Mode)
	case !slices.Contains([]string{"", "strict", "off", "custom"}, c.Identifiers):
		return fmt.Errorf("identifierPolicy %q: want strict, off or custom", c.Identifiers)
	case c.Target < 0 || c.Target > 1:
		return fmt.Errorf("targetTokens %v: want a part of the window, between 0 and 1", c.Target)
	case c.Think != "" && c.Think != "inherit" && !slices.Contains(llm.Levels[:], llm.Level(c.Think)):
		return fmt.Errorf("thinkingLevel %q: want inherit or one of %v", c.Think, llm.Levels)
	}
	for name, n := range map[string]int{
		"timeoutSeconds":                  c.TimeoutSeconds,
		"keepRecentTokens":                c.Keep,
		"reserveTokens":                   c.Reserve,
		"recentTurnsPreserve":             value(c.Turns, 0),
		"reserveTokensFloor":              value(c.Floor, 0),
		"qualityGuard.maxRetries":         value(c.QualityGuard.MaxRetries, 0),
		"memoryFlush.softThresholdTokens": value(c.Flush.Soft, 0),
	} {
		if n < 0 {
			return fmt.Errorf("%s %d: want at least 0", name, n)
		}
	}
	return nil
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Automatic reports whether conversations are compacted without a request.
func (c Config) Automatic() bool { return value(c.Enabled, true) }

// Timeout is the time limit of a call of a model.
func (c Config) Timeout() time.Duration {
	return cmp.Or(time.Duration(c.TimeoutSeconds)*time.Second, defaultTimeout)
}

// Retries is how often a bad summary is requested again.
func (c Config) Retries() int {
	if !value(c.QualityGuard.Enabled, true) {
		return 0
	}
	return min(value(c.QualityGuard.MaxRetries, defaultRetries), 5)
}

// SectionNames returns the sections of AGENTS.md that follow a summary.
func (c Config) SectionNames() []string { return value(c.Sections, DefaultSections()) }

// reserve is the part of a window that is kept free for the answer.
func (c Config) reserve(window int) int {
	n := max(cmp.Or(c.Reserve, defaultReserve), value(c.Floor, defaultFloor))
	return min(n, window/4) // a small window is not reserved as a whole
}

// Threshold returns the number of tokens above which a conversation is compacted.
func (c Config) Threshold(window int) int { return window - c.reserve(window) }

// FlushThreshold returns the number of tokens above which notes are saved.
func (c Config) FlushThreshold(window int) int {
	return c.Threshold(window) - min(value(c.Flush.Soft, defaultFlushSoft), window/8)
}

// Flushes reports whether notes are saved before a compaction.
func (c Config) Flushes() bool { return c.Automatic() && value(c.Flush.Enabled, true) }

// Limits returns the limits of a compaction for a model with the window. fixed is the
// size of the system prompt and the tools.
func (c Config) Limits(window, fixed int) Limits {
	target := cmp.Or(c.Target, defaultTarget)
	room := int(target*float64(window)) - fixed - SummaryTokens(window) - examTokens(window)
	room = max(room, window/8)
	most := min(room, max(window*3/10, 1)) // or else the next compaction would be soon
	l := Limits{Keep: min(cmp.Or(c.Keep, defaultKeepRecent), most), Most: most, Turns: value(c.Turns, defaultTurns)}
	if c.Mode == "auto" || c.Mode == "default" {
		l.Turns = 0
	}
	return l
}

// ExamBytes is the maximum size of the facts that the exam puts back, for a model with
// the window.
func (c Config) ExamBytes(window int) int { return examTokens(window) * estimate.BytesPerToken }
