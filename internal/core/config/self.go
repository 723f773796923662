package config

import (
	"bytes"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// selfRule says whether an assistant may change keys of its own configuration.
type selfRule struct {
	path string // of the keys, with all keys below them; * is any name, [] any element
	why  string // why it may not; "": it may
}

// selfRules is the keys that an assistant may change, and why it may not change others.
// The rule with the longest path decides. A key without a rule is closed.
var selfRules = [...]selfRule{
	// who decides what it may do
	{"approvals", "it decides what a person is asked about"},
	{"tools", "it decides which tools there are, and what runs unasked"},
	{"commands", "it decides who may use which slash commands"},
	{"security", "it protects the installation"},
	{"compat", "it chooses the defaults of all security settings"},
	{"agents.defaults.sandbox", "it confines commands"},
	{"agents.list[].sandbox", "it confines commands"},
	{"agents.list[].tools", "it decides which tools there are, and what runs unasked"},
	{"agents.defaults.elevatedDefault", "it decides what runs unasked"},
	{"agents.defaults.workspace", "it decides which files the tools may use"},
	{"agents.list[].workspace", "it decides which files the tools may use"},
	{"agents.defaults.memorySearch", "it decides which files are read"},
	{"agents.list[].memorySearch", "it decides which files are read"},
	{"agents.defaults.subagents", "it limits subagents"},
	{"agents.list[].subagents", "it limits subagents"},
	{"agents.defaults.budget", "it limits what a run may cost"},
	{"agents.list[].budget", "it limits what a run may cost"},
	{"budget", "it limits what may be spent"},
	{"agents.defaults.modelPolicy", "it decides which models may be used"},
	{"agents.list[]", "agents are made and removed with chela agents"},

	// who may reach it, and whom it reaches
	{"gateway", "it decides who may connect"},
	{"channels", "it decides who may write to the assistant, and with which account it writes"},
	{"bindings", "it decides which agent answers whom"},
	{"session", "it decides which people share a conversation"},
	{"accessGroups", "it decides who may write to the assistant"},
	{"messages.groupChat", "it decides what the assistant answers in groups"},
	{"cron", "it decides where the results of jobs are sent"},
	{"agents.defaults.heartbeat", "it decides where the assistant writes unasked"},
	{"agents.list[].heartbeat", "it decides where the assistant writes unasked"},

	// programs, and secrets
	{"hooks", "it runs programs, and lets other programs in"},
	{"plugins", "it runs programs"},
	{"mcp", "it runs programs"},
	{"skills", "it adds instructions, and lets proposals in"},
	{"models", "it decides who gets the conversations and the keys"},
	{"env", "it holds secrets, and sets the environment of programs"},
	{"secrets", "it holds secrets"},
	{"storage", "it decides where conversations are stored"},
	{"auth", "it holds secrets"},
	{"logging", "it keeps secrets out of the log"},

	// what an assistant may change
	{"agents.defaults.model", ""},
	{"agents.defaults.imageModel", ""},
	{"agents.defaults.thinkingDefault", ""},
	{"agents.defaults.fastModeDefault", ""},
	{"agents.defaults.reasoningDefault", ""},
	{"agents.defaults.verboseDefault", ""},
	{"agents.defaults.userTimezone", ""},
	{"agents.defaults.imageMaxDimensionPx", ""},
	{"agents.defaults.maxHistoryMessages", ""},
	{"agents.defaults.contextTokens", ""},
	{"agents.defaults.contextLimits", ""},
	{"agents.defaults.contextPruning", ""},
	{"agents.defaults.compaction", ""},
	{"agents.defaults.startupContext", ""},
	{"agents.defaults.bootstrapMaxChars", ""},
	{"agents.defaults.bootstrapTotalMaxChars", ""},
	{"agents.defaults.bootstrapPromptTruncationWarning", ""},
	{"agents.defaults.heartbeat.every", ""},
	{"agents.defaults.heartbeat.activeHours", ""},
	{"agents.defaults.heartbeat.model", ""},
	{"agents.defaults.heartbeat.prompt", ""},
	{"agents.defaults.heartbeat.ackMaxChars", ""},
	{"agents.defaults.heartbeat.lightContext", ""},
	{"agents.list[].name", ""},
	{"agents.list[].identity", ""},
	{"agents.list[].model", ""},
	{"agents.list[].thinkingDefault", ""},
	{"agents.list[].fastModeDefault", ""},
	{"agents.list[].reasoningDefault", ""},
	{"agents.list[].verboseDefault", ""},
	{"agents.list[].contextPruning", ""},
	{"agents.list[].compaction", ""},
	{"agents.list[].heartbeat.every", ""},
	{"agents.list[].heartbeat.activeHours", ""},
	{"agents.list[].heartbeat.model", ""},
	{"agents.list[].heartbeat.prompt", ""},
	{"channels.*.heartbeat", ""},
	{"cron.maxConcurrentRuns", ""},
	{"cron.missedRuns", ""},
	{"cron.retry", ""},
	{"cron.sessionRetention", ""},
	{"cron.runLog", ""},
	{"cron.failureAlert.enabled", ""},
	{"cron.failureAlert.after", ""},
	{"cron.failureAlert.cooldownMs", ""},
	{"cron.failureAlert.includeSkipped", ""},
	{"gateway.port", ""},
	{"gateway.reload.debounceMs", ""},
	{"logging.level", ""},
	{"logging.consoleLevel", ""},
	{"logging.consoleStyle", ""},
	{"logging.maxFileBytes", ""},
	{"messages.queue", ""},
	{"messages.inbound", ""},
	{"messages.responseUsage", ""},
	{"messages.responsePrefix", ""},
	{"session.reset", ""},
	{"session.resetTriggers", ""},
	{"session.threadBindings", ""},
	{"skills.entries.*.enabled", ""},
	{"skills.limits", ""},
	{"tools.web.search.provider", ""},
	{"tools.web.search.maxResults", ""},
	{"tools.web.search.timeoutSeconds", ""},
	{"tools.web.search.cacheTtlMinutes", ""},
	{"tools.updatePlan", ""},
}

// closed is why an assistant may not change a key without a rule.
const closed = "it is not one of the settings that an assistant may change"

const readsFiles = "it reads other files"

// Closed returns why an assistant may not change a key of its own configuration; "": it
// may. All keys about security are closed, and all that are not known.
func Closed(path string) string {
	steps, err := ParsePath(path)
	if err != nil {
		return closed
	}
	return closedAt(steps)
}

func closedAt(steps []string) string {
	if slices.ContainsFunc(steps, indirect) {
		return readsFiles
	}
	best, why := 0, closed
	for _, r := range selfRules {
		want := strings.Split(strings.ReplaceAll(r.path, "[]", ".[]"), ".")
		if len(want) > best && len(want) <= len(steps) && matches(want, steps) {
			best, why = len(want), r.why
		}
	}
	return why
}

// matches reports whether the first steps of a path match a rule.
func matches(rule, steps []string) bool {
	for i, want := range rule {
		if want != steps[i] && want != "*" && !(want == "[]" && isIndex(steps[i])) {
			return false
		}
	}
	return true
}

// RefuseIncludes returns an error if the text of a change has a key such as $include,
// which would read another file. A text that cannot be read is no error here.
func RefuseIncludes(text []byte) error {
	v, err := decode(text)
	if err != nil {
		return nil
	}
	var found string
	differences(nil, v, nil, func(path []string, _ any) {
		if at := slices.IndexFunc(path, indirect); at >= 0 && found == "" {
			found = FormatPath(path[:at+1])
		}
	})
	if found == "" {
		return nil
	}
	return chela.Errorf(chela.CodeForbidden, "refused, nothing was written: you cannot change %s (%s)", found, readsFiles)
}

// indirect reports whether a key has a meaning of its own, such as $include.
func indirect(step string) bool { return strings.HasPrefix(step, "$") }

// Closed returns what the draft changes although an assistant may not change it, by
// path. What is in the files counts, and what is in force.
func (d *Draft) Closed() []Problem {
	var out []Problem
	report := func(path []string, value any) {
		p := Problem{Path: FormatPath(path), Message: closedAt(path)}
		if s, ok := value.(string); ok && p.Message == "" && variable().MatchString(s) {
			p.Message = "the value of a variable may be a secret"
		}
		if p.Message != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	differences(d.was.raw, d.tree.raw, nil, report)
	differences(any(d.was.root), any(d.tree.root), nil, report)
	return out
}

// differences reports each value that differs: the deepest ones, with the elements of
// arrays. Elements with ids are compared with those of the same id.
func differences(a, b any, path []string, report func(path []string, value any)) {
	if bytes.Equal(encode(a), encode(b)) {
		return
	}
	x, xs := members(a)
	y, ys := members(b)
	if !xs && !ys {
		report(path, b)
		return
	}
	if xs != ys { // one of them is a value, or missing
		if a != nil && !xs || b != nil && !ys {
			report(path, b)
		}
	}
	if p, ok := a.([]any); ok {
		if q, ok := b.([]any); ok {
			elements(p, q, path, report)
			return
		}
	}
	keys := sortedKeys(x)
	for _, k := range sortedKeys(y) {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		report(path, b) // {} and nothing
	}
	for _, k := range keys {
		differences(x[k], y[k], join(path, k), report)
	}
}

// members returns what is in an object, or in an array by index.
func members(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case []any:
		m := make(map[string]any, len(v))
		for i, e := range v {
			m[itoa(i)] = e
		}
		return m, true
	}
	return nil, false
}

// elements compares two arrays.
func elements(a, b []any, path []string, report func([]string, any)) {
	rest := slices.Clone(a)
	for i, e := range b {
		var old any
		switch j := slices.IndexFunc(rest, func(o any) bool { return idOf(e) != "" && idOf(o) == idOf(e) }); {
		case j >= 0:
			if j != i {
				report(path, nil) // their order may have a meaning
			}
			old, rest[j] = rest[j], nil
		case i < len(a) && idOf(e) == "" && idOf(a[i]) == "":
			old, rest[i] = a[i], nil
		}
		differences(old, e, join(path, itoa(i)), report)
	}
	for i, e := range rest {
		if e != nil {
			differences(e, nil, join(path, itoa(i)), report)
		}
	}
}
