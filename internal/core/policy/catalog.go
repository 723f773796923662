package policy

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// groups maps the name of a group to its tools. It includes tools that this
// build does not have, so that lists with their names are valid.
var groups = map[string][]string{
	"group:fs":         {"read", "write", "edit", "apply_patch", "ls", "find", "grep"},
	"group:runtime":    {"exec", "process", "code_execution", "terminal"},
	"group:web":        {"web_search", "web_fetch", "x_search"},
	"group:memory":     {"memory_search", "memory_get"},
	"group:sessions":   {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "sessions_search", "sessions_yield", "subagents", "session_status"},
	"group:ui":         {"browser", "canvas", "screen", "dashboard", "show_widget", "portal"},
	"group:automation": {"cron", "gateway", "heartbeat_respond"},
	"group:messaging":  {"message"},
	"group:nodes":      {"nodes", "computer", "mobile_ui"},
	"group:agents":     {"agents_list", "get_goal", "create_goal", "update_goal", "plan", "ask_user", "skill_workshop", "skills"},
	"group:media":      {"image", "image_generate", "tts", "music_generate", "video_generate"},
}

// Names in lists that stand for tools of plug-ins: those of the servers at
// mcp.servers, and those of all plug-ins.
const (
	MCP        = "bundle-mcp"
	allPlugins = "group:plugins"
)

// agentTools returns the tools of "group:openclaw": all except files and
// commands.
func agentTools() []string {
	var names []string
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if group != "group:fs" && group != "group:runtime" {
			names = append(names, groups[group]...)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "canvas" })
}

// profiles maps a profile to the tools that it allows. "full" and "" allow
// everything.
var profiles = map[string][]string{
	"minimal": {"session_status"},
	"coding": {"group:fs", "group:runtime", "group:web", "group:sessions", "group:memory", "group:agents",
		"cron", "image", "image_generate", "music_generate", "video_generate", MCP},
	"messaging": {"group:messaging", "sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status", MCP},
}

// Profiles returns the names of the profiles.
func Profiles() []string { return []string{"minimal", "coding", "messaging", "full"} }

// ProfilesOf returns the names of the profiles that include the tool.
func ProfilesOf(t Tool) []string {
	return slices.DeleteFunc(Profiles(), func(p string) bool {
		allow, limited := profiles[p]
		return limited && t.canonical().match(expand(allow)) == ""
	})
}

// aliases maps alternative names of tools to their names.
var aliases = map[string]string{"bash": "exec", "shell": "exec", "automations": "cron", "view_image": "image", "list_dir": "ls",
	"update_plan": "plan", "progress_card": "plan"}

// Name returns the canonical name of a tool: lower case and without aliases.
func Name(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if real, ok := aliases[name]; ok {
		return real
	}
	return name
}

// expand replaces groups by their tools.
func expand(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		p = Name(p)
		switch {
		case p == "":
		case p == "group:openclaw" || p == "group:chela":
			out = append(out, agentTools()...)
		case groups[p] != nil:
			out = append(out, groups[p]...)
		default:
			out = append(out, p)
		}
	}
	return out
}

// match returns the first pattern that matches the name, or "".
func match(patterns []string, name string) string {
	for _, p := range patterns {
		if p == name {
			return p
		}
		if !strings.ContainsAny(p, `*?[`) {
			continue
		}
		if ok, err := path.Match(p, name); ok && err == nil {
			return p
		}
	}
	return ""
}

// Match reports whether one of the patterns, which may be groups, matches the
// tool.
func Match(patterns []string, name string) bool { return match(expand(patterns), Name(name)) != "" }

// known reports whether the pattern matches a tool in groups, or may match tools of
// plug-ins, which need not exist yet.
func known(pattern string) bool {
	if pattern == MCP || pattern == allPlugins || strings.Contains(pattern, "__") {
		return true
	}
	for _, names := range groups {
		if slices.ContainsFunc(names, func(n string) bool { return match([]string{pattern}, n) != "" }) {
			return true
		}
	}
	return false
}
