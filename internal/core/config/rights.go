package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// right is a key that restricts what may be done, and how its values compare.
type right struct {
	path   string // below its scope; * is any name, + a name that both configurations have
	kind   grant
	ranked string // for ranked: the values, the strictest first; those in a group are equal, and "unset" is a value
}

// grant is how the values of a right compare.
type grant int

const (
	forbids grant = iota // a list of what is forbidden
	grants               // a list of what is allowed; not set: nothing, or the default
	permits              // a list of what is allowed; not set: everything
	ranked               // words, in an order
	limit                // a number; negative, or not set without a default: no limit
	proof                // a secret that others must know
)

const (
	off = "false|true" // allowed by true
	on  = "true|false" // restricted by true
)

// Rights by scope. What only narrows the size of work, such as a time limit, is not among
// them.
var (
	rights = [...]right{
		{"compat", ranked, "chela|openclaw"}, {"models.mode", ranked, "replace|merge"},
		{"models.providers.+.request.allowPrivateNetwork", ranked, off},
		{"gateway.auth.mode", ranked, "trusted-proxy password token|none"}, {"gateway.auth.token", proof, ""},
		{"gateway.auth.password", proof, ""},
		{"gateway.auth.trustedProxy.requiredHeaders", forbids, ""}, {"gateway.auth.trustedProxy.allowUsers", permits, ""},
		{"gateway.auth.trustedProxy.allowLoopback", ranked, off},
		{"gateway.auth.allowTailscale", ranked, off}, {"gateway.tailscale.mode", ranked, "off|serve|funnel"},
		{"gateway.bind", ranked, "loopback|tailnet|lan auto custom"}, {"gateway.tls.enabled", ranked, on},
		{"gateway.trustedProxies", grants, ""},
		{"gateway.controlUi.allowedOrigins", grants, ""}, {"gateway.nodes.commands.deny", forbids, ""},
		{"gateway.nodes.commands.allow", grants, ""}, {"gateway.nodes.pairing.autoApproveLocal", ranked, off},
		{"gateway.nodes.pairing.autoApproveCidrs", grants, ""},
		{"gateway.tools.deny", forbids, ""}, {"gateway.tools.allow", grants, ""},
		{"gateway.http.endpoints.chatCompletions.enabled", ranked, off},
		{"gateway.http.endpoints.responses.enabled", ranked, off}, {"gateway.http.endpoints.messages.enabled", ranked, off},
		{"commands.bash", ranked, off}, {"commands.mcp", ranked, off}, {"commands.plugins", ranked, off},
		{"commands.restart", ranked, off}, {"commands.debug", ranked, off},
		{"commands.config", ranked, off}, {"commands.ownerAllowFrom", grants, ""}, {"commands.allowFrom.*", permits, ""},
		{"hooks.enabled", ranked, off}, {"hooks.token", proof, ""}, {"hooks.allowRequestSessionKey", ranked, off},
		{"hooks.allowedSessionKeyPrefixes", grants, ""},
		{"hooks.allowedAgentIds", permits, ""},
		{"plugins.deny", forbids, ""}, {"plugins.allow", permits, ""},
		{"plugins.entries.*.enabled", ranked, "false|unset|true"}, {"plugins.entries.+.sandbox", ranked, on},
		{"plugins.entries.*.permissions.hosts", grants, ""}, {"plugins.entries.*.permissions.read", grants, ""},
		{"plugins.entries.*.permissions.write", grants, ""},
		{"plugins.entries.*.hooks.allowConversationAccess", ranked, off},
		{"plugins.entries.*.hooks.allowPromptInjection", ranked, off},
		{"mcp.servers.+.toolFilter.exclude", forbids, ""}, {"mcp.servers.+.toolFilter.include", permits, ""},
		{"session.dmScope", ranked, "per-account-channel-peer|per-channel-peer|per-peer|main"},
		{"session.sendPolicy.default", ranked, "deny|allow"}, {"session.sendPolicy.rules", forbids, ""},
		{"budget.usdPerDay", limit, ""}, {"budget.unpriced", ranked, "block|allow"},
		{"cron.webhookSsrfPolicy.allowedHostnames", grants, ""},
		{"logging.redactSensitive", ranked, "tools|off"}, {"logging.redactPatterns", forbids, ""},
		{"skills.workshop.approvalPolicy", ranked, "pending|auto"}, {"undo.enabled", ranked, on},
	}

	// toolRights is below tools, for all agents and for one.
	toolRights = [...]right{
		{"deny", forbids, ""}, {"allow", permits, ""}, {"alsoAllow", grants, ""},
		{"profile", ranked, "minimal|messaging|coding|full"}, {"profile", ranked, "minimal|coding|messaging|full"},
		{"byProvider.*.deny", forbids, ""}, {"byProvider.*.allow", permits, ""}, {"toolsBySender.*.deny", forbids, ""},
		{"toolsBySender.*.allow", permits, ""},
		{"sandbox.tools.deny", forbids, ""}, {"sandbox.tools.allow", permits, ""}, {"subagents.tools.deny", forbids, ""},
		{"subagents.tools.allow", permits, ""},
		// what runs at all, and unasked
		{"exec.mode", ranked, "deny|allowlist|always ask auto|full"},
		{"exec.mode", ranked, "deny always|allowlist ask|auto|full"},
		{"exec.security", ranked, "deny|allowlist ask review sudo unset|full off"},
		{"exec.ask", ranked, "always true|on-miss|unset false|off"},
		{"exec.host", ranked, "sandbox|auto|gateway node"}, {"exec.sandbox", ranked, on},
		{"exec.dangerousPatterns", forbids, ""}, {"exec.safeBins", grants, ""},
		{"exec.safeBinTrustedDirs", grants, ""}, {"exec.strictInlineEval", ranked, on},
		{"exec.applyPatch.enabled", ranked, off}, {"exec.applyPatch.workspaceOnly", ranked, on},
		{"fs.workspaceOnly", ranked, on}, {"elevated.enabled", ranked, off}, {"elevated.allowFrom.*", grants, ""},
		{"sessions.visibility", ranked, "self|tree|agent|all"}, {"agentToAgent.enabled", ranked, off},
		{"agentToAgent.allow", permits, ""},
		{"message.crossContext.allowWithinProvider", ranked, off}, {"message.crossContext.allowAcrossProviders", ranked, off},
		{"web.fetch.enabled", ranked, off}, {"web.search.enabled", ranked, off},
		{"web.fetch.ssrfPolicy.allowedHostnames", grants, ""},
		{"web.fetch.ssrfPolicy.dangerouslyAllowPrivateNetwork", ranked, off},
		{"web.fetch.ssrfPolicy.allowRfc2544BenchmarkRange", ranked, off},
		{"web.fetch.ssrfPolicy.allowIpv6UniqueLocalRange", ranked, off},
	}

	// agentRights is below agents.defaults, and below an agent.
	agentRights = [...]right{
		{"sandbox.mode", ranked, "all|non-main|off"}, {"sandbox.workspaceAccess", ranked, "none|ro|rw"},
		{"sandbox.scope", ranked, "session|agent|shared"},
		{"sandbox.docker.network", ranked, "none"}, {"sandbox.docker.readOnlyRoot", ranked, on},
		{"sandbox.docker.capDrop", forbids, ""}, {"sandbox.docker.binds", grants, ""},
		{"sandbox.docker.dangerouslyAllowContainerNamespaceJoin", ranked, off},
		{"sandbox.docker.dangerouslyAllowExternalBindSources", ranked, off},
		{"elevatedDefault", ranked, "off|ask|on|full"}, {"modelPolicy.allow", permits, ""},
		{"subagents.allowAgents", grants, ""}, {"memorySearch.extraPaths", grants, ""},
		{"budget.toolCalls", limit, ""}, {"budget.failures", limit, ""}, {"budget.identicalCalls", limit, ""},
		{"budget.minutes", limit, ""}, {"budget.tokens", limit, ""},
		{"budget.usd", limit, ""}, {"budget.usdPerTask", limit, ""}, {"budget.usdPerDay", limit, ""},
	}

	// chatRights is below a channel, and below an account of it.
	chatRights = [...]right{
		{"dmPolicy", ranked, "disabled|allowlist|pairing|open"}, {"groupPolicy", ranked, "disabled|allowlist|open"},
		{"allowFrom", grants, ""}, {"groupAllowFrom", permits, ""},
		{"groups", permits, ""}, {"groups.+.allowFrom", permits, ""}, {"groups.+.requireMention", ranked, "true unset|false"},
		{"allowBots", ranked, "false|mentions|true"},
		{"configWrites", ranked, "false|true unset"}, {"actions.*", ranked, "false|true unset"},
	}
)

// Loosened returns the paths at which next allows more than t: what is not forbidden any
// more, and what is allowed in addition. An agent, a channel or an account that only one of
// them has is not compared.
func (t *Tree) Loosened(next *Tree) []string {
	c := &comparison{known: t.known}
	was, is := any(t.root), any(next.root)
	c.compare(rights[:], nil, was, is)
	c.compare(toolRights[:], []string{"tools"}, was, is)
	c.compare(agentRights[:], []string{"agents", "defaults"}, was, is)
	old := agentsOf(was)
	for id, at := range agentsOf(is) {
		if from, ok := old[id]; ok {
			c.moved(toolRights[:], join(from, "tools"), join(at, "tools"), []string{"tools"}, was, is)
			c.moved(agentRights[:], from, at, []string{"agents", "defaults"}, was, is)
		}
	}
	for _, name := range namesOf(was, "channels") {
		channel := []string{"channels", name}
		if _, ok := ValueAt(is, channel); !ok {
			continue
		}
		c.compare(chatRights[:], channel, was, is)
		for _, id := range namesOf(was, "channels", name, "accounts") {
			at := concat(channel, []string{"accounts", id})
			if _, ok := ValueAt(is, at); ok {
				c.moved(chatRights[:], at, at, channel, was, is)
			}
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

// Before returns the configuration that the program used last; nil: there is none.
func (t *Tree) Before() *Tree {
	if t.opts.LastGood == "" {
		return nil
	}
	if _, err := t.opts.lastGood(t.path); err != nil {
		return nil
	}
	before, err := t.opts.load(t.path, t.opts.LastGood, nil)
	if err != nil {
		return nil
	}
	return before
}

// comparison collects what has been loosened.
type comparison struct {
	known *node
	found []string
}

// compare compares the values below a path.
func (c *comparison) compare(rights []right, at []string, was, is any) {
	c.moved(rights, at, at, nil, was, is)
}

// moved compares the values below a path with those that were below another one. What is
// not set there has the value below general, unless that is nil.
func (c *comparison) moved(rights []right, from, to, general []string, was, is any) {
	for _, r := range rights {
		steps := strings.Split(r.path, ".")
		for _, rest := range pathsOf(steps, from, to, was, is) {
			old, hadOld := ValueAt(was, concat(from, rest))
			now, hasNow := ValueAt(is, concat(to, rest))
			if !hadOld && !hasNow {
				continue
			}
			at := concat(to, rest)
			if general != nil {
				at = concat(general, rest)
				if !hadOld {
					old, _ = ValueAt(was, at)
				}
				if !hasNow {
					now, _ = ValueAt(is, at)
				}
			}
			var unset any
			if n := c.known.at(at); n != nil && n.key != nil && n.key.Default != "" {
				unset, _ = decodeJSON([]byte(n.key.Default))
			}
			if r.looser(old, now, unset) && !deniedExec(is, to, rest) {
				c.found = append(c.found, FormatPath(concat(to, rest)))
			}
		}
	}
}

// deniedExec reports whether a path is one of those that say when a command is asked about,
// where the configuration forbids all commands.
func deniedExec(is any, to, rest []string) bool {
	if len(rest) != 2 || rest[0] != "exec" || !slices.Contains([]string{"mode", "security", "ask"}, rest[1]) {
		return false
	}
	for _, at := range [][]string{to, {"tools"}} {
		mode, hasMode := ValueAt(is, concat(at, []string{"exec", "mode"}))
		security, hasSecurity := ValueAt(is, concat(at, []string{"exec", "security"}))
		if hasMode || hasSecurity {
			return mode == "deny" || security == "deny"
		}
	}
	return false
}

// looser reports whether a value allows more than an older one. unset is the default; nil:
// there is none.
func (r right) looser(old, now, unset any) bool {
	value := func(v any) any {
		if v == nil {
			return unset
		}
		return v
	}
	switch r.kind {
	case forbids:
		return !subset(denials(value(old)), listOf(value(now)))
	case grants:
		return !slices.Contains(listOf(value(old)), "*") && !subset(listOf(value(now)), listOf(value(old)))
	case permits:
		if old == nil {
			return false
		}
		return !slices.Contains(listOf(old), "*") && (now == nil || !subset(listOf(now), listOf(old)))
	case limit:
		return number(now, unset) > number(old, unset)
	case proof:
		return old != nil && now == nil
	}
	return r.rank(value(now)) > r.rank(value(old))
}

// rank returns the position of a value; the one after the last: it is not in the list.
func (r right) rank(v any) int {
	word := "unset"
	if v != nil {
		word = fmt.Sprint(v)
	}
	groups := strings.Split(r.ranked, "|")
	for i, g := range groups {
		if slices.Contains(strings.Fields(g), word) {
			return i
		}
	}
	return len(groups)
}

// number returns a limit, which is unset if it is 0; without one it is infinite.
func number(v, unset any) float64 {
	for _, v := range [...]any{v, unset} {
		n, _ := v.(json.Number)
		if f, err := n.Float64(); err == nil && f < 0 {
			break
		} else if err == nil && f > 0 {
			return f
		}
	}
	return math.Inf(1)
}

// denials returns the elements of a list that forbid: all but rules that allow.
func denials(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return listOf(v)
	}
	return listOf(slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		rule, ok := e.(map[string]any)
		return ok && rule["action"] != "deny"
	}))
}

// listOf returns the elements of a list, the keys of an object, or a value alone, as texts.
func listOf(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			} else {
				out = append(out, string(encode(e)))
			}
		}
		return out
	case map[string]any:
		return sortedKeys(v)
	}
	return []string{fmt.Sprint(v)}
}

// subset reports whether list contains all elements.
func subset(elements, list []string) bool {
	return !slices.ContainsFunc(elements, func(e string) bool { return !slices.Contains(list, e) })
}

// pathsOf returns the steps with * and + replaced by the names that are at this place.
func pathsOf(steps, from, to []string, was, is any) [][]string {
	at := slices.IndexFunc(steps, func(s string) bool { return s == "*" || s == "+" })
	if at < 0 {
		return [][]string{steps}
	}
	old, now := namesOf(was, concat(from, steps[:at])...), namesOf(is, concat(to, steps[:at])...)
	names := slices.Compact(slices.Sorted(slices.Values(concat(old, now))))
	var out [][]string
	for _, name := range names {
		if steps[at] == "+" && !(slices.Contains(old, name) && slices.Contains(now, name)) {
			continue
		}
		out = append(out, pathsOf(concat(join(steps[:at], name), steps[at+1:]), from, to, was, is)...)
	}
	return out
}

// namesOf returns the names in the object at a path.
func namesOf(v any, path ...string) []string {
	v, _ = ValueAt(v, path)
	m, _ := v.(map[string]any)
	return sortedKeys(m)
}

// agentsOf returns the paths of the agents, by id.
func agentsOf(root any) map[string][]string {
	out := map[string][]string{}
	list, _ := ValueAt(root, []string{"agents", "list"})
	elements, _ := list.([]any)
	for i, e := range elements {
		if id := idOf(e); id != "" {
			out[id] = []string{"agents", "list", itoa(i)}
		}
	}
	for _, id := range namesOf(root, "agents", "entries") {
		out[id] = []string{"agents", "entries", id}
	}
	return out
}

// concat returns both paths as one.
func concat(a, b []string) []string { return append(slices.Clip(a), b...) }
