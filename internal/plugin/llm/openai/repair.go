package openai

import (
	"cmp"
	"strings"

	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// repair changes q so that a request suits a service that refused one with the message,
// and reports whether it did. It changes only fields that were not configured as a part
// of the request.
//
// Most servers name the field only in the text of the error, each in words of its own. A wrong
// guess costs one request; the caller then gets the error of that.
func repair(q *quirks, message string) bool {
	says := func(field string) bool { return dialect.Mentions(message, field) }
	refuses, demands := dialect.Refuses(message), dialect.Demands(message)
	switch {
	case says(reasoning):
		return q.repairThinking(demands)
	case says(details) && q.thinkingField == details && !demands:
		q.thinkingField = ""
	// not about the number
	case says(cmp.Or(q.limit, "max_tokens")) && refuses && !strings.ContainsAny(message, "0123456789"):
		if q.limit == "" {
			q.limit = "max_completion_tokens"
		} else {
			q.limit = ""
		}
	case (says("stream_options") || says("include_usage")) && !q.noUsage:
		q.noUsage = true
	case says("temperature") && q.ownTemperature != ownAll:
		q.ownTemperature = ownAll
	case says("developer") && q.developer:
		q.developer = false
	case says("prompt_cache_key") && q.cacheKey:
		q.cacheKey = false
	case says("cache_control") && q.markers:
		q.markers = false
	case q.form != noForm && refuses && (says("reasoning_effort") || says("enable_thinking") ||
		says("chat_template_kwargs") || says("thinking") || says("reasoning")):
		q.form = noForm
	case strings.Contains(message, "tool call id") && strings.Contains(message, "length of 9") && q.callID == 0:
		q.callID = 9
	case strings.Contains(message, "after role") && strings.Contains(message, "tool") && !q.bridge:
		q.bridge = true
	case strings.Contains(message, "roles must alternate") && !(q.merge && q.bridge):
		q.merge, q.bridge = true, true
	case says("content") && q.empty == "" && (says("null") || says("<nil>") || says("none") || says("string")):
		q.empty = `""`
	default:
		return false
	}
	return true
}

// repairThinking adds the thinking of all assistant messages if it is demanded, and
// leaves it out otherwise.
func (q *quirks) repairThinking(demanded bool) bool {
	switch {
	case demanded && (q.thinkingField != reasoning || q.demands != ofAll):
		q.thinkingField, q.demands, q.blank = reasoning, ofAll, space
	case !demanded && q.thinkingField == reasoning:
		q.thinkingField, q.demands = "", ofNone
	default:
		return false
	}
	return true
}
