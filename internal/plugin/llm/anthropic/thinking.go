package anthropic

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
)

const (
	unknownTokens = 8192  // of an answer, for unknown models
	defaultTokens = 32000 // of an answer, unless the request sets more
	unknownLimit  = 64000 // of an answer with thinking, for unknown models
	minBudget     = 1024  // required by the service
)

// budget returns the number of thinking tokens of a level, for models with a
// token budget.
func budget(l llm.Level) int {
	switch l {
	case llm.Low:
		return 4096
	case llm.Medium, llm.Adaptive:
		return 10000
	case llm.High:
		return 16000
	case llm.XHigh:
		return 24000
	case llm.Max:
		return 32000
	}
	return minBudget
}

// effort returns the effort of a level, for models with adaptive thinking. ""
// leaves it to the model.
func effort(l llm.Level, m llm.Model) string {
	switch l {
	case llm.Minimal, llm.Low:
		return "low"
	case llm.XHigh, llm.Max:
		if m.Thinks(l) {
			return string(l)
		}
		return "high"
	case llm.Medium, llm.High:
		return string(l)
	}
	return ""
}

// thinking is the thinking configuration of a request.
type thinking struct {
	maxTokens int
	thinking  string // JSON; "": none
	output    string // JSON; "": none
}

// think returns the thinking configuration for the model. replays reports
// whether the history allows thinking with a budget.
func think(r *llm.Request, m llm.Model, replays bool) thinking {
	t := thinking{maxTokens: maxTokens(r, m)}
	level := r.Thinking
	if level == "" || level == llm.Off || m.ID != "" && len(m.Levels) == 0 {
		return t
	}
	if m.ID != "" && m.Thinks(llm.Adaptive) {
		t.thinking = `{"type":"adaptive"}`
		if e := effort(level, m); e != "" {
			t.output = fmt.Sprintf(`{"effort":%q}`, e)
		}
		return t
	}
	if !replays {
		return t
	}
	limit := cmp.Or(m.MaxOutput, unknownLimit)
	if r.Ceiling > 0 {
		limit = min(limit, r.Ceiling)
	}
	// max_tokens includes the thinking, so that it grows by the budget; the model's limit may
	// leave less of it.
	total := min(t.maxTokens+budget(level), max(limit, t.maxTokens))
	tokens := min(budget(level), total-minBudget)
	if tokens < minBudget {
		return t
	}
	t.maxTokens = total
	t.thinking = fmt.Sprintf(`{"budget_tokens":%d,"type":"enabled"}`, tokens)
	return t
}

// maxTokens returns the limit of the answer, which the service requires.
func maxTokens(r *llm.Request, m llm.Model) int {
	switch {
	case r.MaxTokens > 0 && m.MaxOutput > 0:
		return min(r.MaxTokens, m.MaxOutput)
	case r.MaxTokens > 0:
		return r.MaxTokens
	case m.MaxOutput > 0:
		return min(m.MaxOutput, defaultTokens)
	}
	return unknownTokens
}

// replays reports whether a history with these encodings of msgs allows
// thinking with a budget: if the last assistant turn has calls, it must begin
// with its thinking. A turn of another provider's model has none.
func replays(msgs []*llm.Message, enc [][]byte) bool {
	turn := -1 // start of the last assistant turn
	calls := false
	for i := len(msgs) - 1; i >= 0; i-- {
		if len(enc[i]) == 0 {
			continue
		}
		if msgs[i].Role == llm.RoleAssistant {
			turn, calls = i, calls || len(msgs[i].Calls()) > 0
		} else if turn >= 0 {
			break
		}
	}
	return !calls || bytes.HasPrefix(enc[turn], []byte(thinkingStart)) || bytes.HasPrefix(enc[turn], []byte(redactedStart))
}
