package window

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Sizes of windows, in tokens.
const (
	MinWindow     = 16_000    // a run with a smaller window is refused
	WarnWindow    = 32_000    // a run with a smaller window is logged
	AssumedWindow = 200_000   // of a model about which nothing is known
	MillionWindow = 1_048_576 // of a model with the parameter context1m
)

// Source is what determined the size of a window.
type Source string

// The sources, in the order in which they are tried. The last two only make a window
// smaller.
const (
	SourceOverride Source = "override"           // contextTokensOverride of the model's params
	SourceMillion  Source = "context1m"          // context1m of the model's params
	SourceConfig   Source = "modelsConfig"       // models.providers.*.models[].contextWindow
	SourceModel    Source = "model"              // the catalog, or the model server
	SourceDefault  Source = "default"            // assumed
	SourceCap      Source = "agentContextTokens" // agents.defaults.contextTokens
	SourceProvider Source = "provider"           // an error in which the provider named its limit
)

// Size is the number of tokens that a request to a model may have, with the answer.
type Size struct {
	Tokens int    `json:"tokens"`
	Source Source `json:"source"`
}

// Claims are what is known about a window. Zero fields are unknown.
type Claims struct {
	Override int  // contextTokensOverride
	Million  bool // context1m
	Config   int  // models.providers.*.models[].contextWindow or contextTokens
	Model    int  // the catalog, or the model server
	Cap      int  // agents.defaults.contextTokens
	Reported int  // what the provider named in an error
}

// Resolve returns the window that the claims amount to. A configured size takes the
// place of the one in the catalog. An explicit override is not capped, except by what
// the provider reported.
func Resolve(c Claims) Size {
	var w Size
	switch {
	case c.Override > 0:
		w = Size{c.Override, SourceOverride}
	case c.Million:
		w = Size{MillionWindow, SourceMillion}
	case c.Config > 0:
		w = Size{c.Config, SourceConfig}
	case c.Model > 0:
		w = Size{c.Model, SourceModel}
	default:
		w = Size{AssumedWindow, SourceDefault}
	}
	if w.Source != SourceOverride {
		w = w.atMost(c.Cap, SourceCap)
	}
	return w.AtMost(c.Reported)
}

// AtMost returns the window, not larger than what the provider reported; 0: nothing. A
// report of less than [MinWindow] does not count: with it no run would begin, also after the
// server got a larger window, and if it has not, it says so again.
func (w Size) AtMost(reported int) Size {
	if reported < MinWindow {
		return w
	}
	return w.atMost(reported, SourceProvider)
}

func (w Size) atMost(n int, s Source) Size {
	if n > 0 && n < w.Tokens {
		return Size{n, s}
	}
	return w
}

// Assumed reports whether nothing is known about the window.
func (w Size) Assumed() bool { return w.Source == SourceDefault }

// String returns the size and its source: "200k tokens (assumed)".
func (w Size) String() string {
	s := string(w.Source)
	if w.Assumed() {
		s = "assumed"
	}
	return fmt.Sprintf("%s tokens (%s)", humanize.Count(int64(w.Tokens)), s)
}

// TooSmall is the error of a run whose window has fewer than [MinWindow] tokens.
type TooSmall struct {
	Window Size
	Model  string // provider/model
}

// Error says what set the window, what the minimum is, and how to change it.
func (e *TooSmall) Error() string {
	return fmt.Sprintf("the context window of %s is too small: %d tokens (source: %s); at least %d are needed. %s",
		e.Model, e.Window.Tokens, e.Window.Source, MinWindow, e.Window.hint())
}

// hint says how to get a larger window.
func (w Size) hint() string {
	const other = "select another model with /model"
	switch w.Source {
	case SourceOverride:
		return "Raise contextTokensOverride in the params of the model, or " + other
	case SourceConfig:
		return "Raise contextWindow of the model in models.providers, or " + other
	case SourceCap:
		return "Raise it: chela config set agents.defaults.contextTokens 200000"
	case SourceProvider:
		return "Start the server of the model with a larger context, or " + other
	}
	return "Select another model with /model"
}

// Check returns a *[TooSmall] error if the window is too small for a run with a model.
func (w Size) Check(model string) error {
	if w.Tokens < MinWindow {
		return &TooSmall{w, model}
	}
	return nil
}

// Small reports whether the window is large enough for a run, but so small that it
// will be full soon.
func (w Size) Small() bool { return w.Tokens >= MinWindow && w.Tokens < WarnWindow }

// Fill returns how full the window is with n tokens, from 0 to 1 and above.
func (w Size) Fill(n int) float64 { return float64(n) / float64(max(w.Tokens, 1)) }

// Bounds and smoothing of the calibration of estimates.
const (
	minRatio = 0.5
	maxRatio = 2.5
	newShare = 0.3 // weight of a new measurement
)

// Calibrate returns the ratio of real tokens to estimated ones after a call whose prompt
// had real tokens and was estimated to have some; before is the ratio so far, 0: none.
func Calibrate(before float64, real int64, estimated int) float64 {
	if real <= 0 || estimated <= 0 {
		return before
	}
	r := float64(real) / float64(estimated)
	if before > 0 {
		r = before + newShare*(r-before)
	}
	return min(max(r, minRatio), maxRatio)
}

// Calibrated returns an estimate in real tokens. ratio is from [Calibrate]; 0: none.
func Calibrated(estimated int, ratio float64) int {
	return int(float64(estimated) * cmp.Or(ratio, 1))
}

// opening precedes an assistant message that would be the first one.
const opening = "[The conversation begins here.]"

// History returns the newest messages of a conversation, at most n (0: all) and what
// belongs to them: a result is not parted from its call, and the turn in progress is
// complete. The first messages are also retained if keep reports so, for example a
// summary. The beginning moves in steps of a quarter of n, so that most requests begin
// like the one before.
func History(messages []*llm.Message, n int, keep func(*llm.Message) bool) []*llm.Message {
	first := 0
	for keep != nil && first < len(messages) && keep(messages[first]) {
		first++
	}
	if n <= 0 || len(messages)-first <= n {
		return messages
	}
	step := max(n/4, 1)
	from := first + (len(messages)-first-n+step-1)/step*step
	for i, m := range slices.Backward(messages) {
		if m.Role == llm.RoleUser {
			from = min(from, i)
			break
		}
	}
	for from > first && messages[from].Role == llm.RoleTool {
		from--
	}
	out := slices.Clone(messages[:first])
	if from = max(from, first); first == 0 && messages[from].Role != llm.RoleUser {
		out = append(out, llm.User(opening))
	}
	return append(out, messages[from:]...)
}
