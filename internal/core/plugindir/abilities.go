package plugindir

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Abilities describes for people what the plug-in may do and what it adds, in one line
// each, sorted. It reads the folder, but runs nothing.
func (p *Plugin) Abilities() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, plainText(fmt.Sprintf(format, args...), 500)) }
	if p.Process != nil {
		add("runs a program: %s (%s)", commandLine(*p.Process), p.limits())
		if len(p.Tools) > 0 {
			add("adds the %s %s", plural(len(p.Tools), "tool", "tools"), toolNames(p.Tools))
		}
	}
	if c := p.Channel; c != nil {
		add("runs a program: %s (%s)", commandLine(c.Process), p.limits())
		add("adds the channel %s, which brings messages and gets the answers", c.Name)
	}
	for name, s := range p.Servers {
		switch {
		case !s.On() || name == p.ID && p.Process != nil:
			continue
		case s.Command != "":
			add("runs a program: %s (%s)", commandLine(s), p.limits())
		default:
			add("connects to the server %s", origin(s.URL))
		}
		add("adds the tools of the server %s (%s__*)", name, mcp.Prefix(name))
	}
	if n := count(p.Skills, func(dir, name string) bool { return isFile(filepath.Join(dir, name, "SKILL.md")) }); n > 0 {
		add("adds %d %s", n, plural(n, "skill", "skills"))
	}
	if n := count(p.Commands, func(dir, name string) bool {
		return strings.HasSuffix(name, ".md") && isFile(filepath.Join(dir, name))
	}); n > 0 {
		add("adds %d %s", n, plural(n, "command", "commands"))
	}
	if types := p.agentTypes(); len(types) > 0 {
		add("adds the agent %s %s", plural(len(types), "type", "types"), strings.Join(types, ", "))
	}
	out = append(out, p.hookAbilities()...)
	if !p.Entry.Key.IsZero() {
		add("gets the API key of plugins.entries.%s.apiKey", p.ID)
	}
	if names := slices.Sorted(maps.Keys(p.Entry.Env)); len(names) > 0 {
		add("gets the %s %s", plural(len(names), "variable", "variables"), strings.Join(names, ", "))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// limits describes what the programs may use.
func (p *Plugin) limits() string {
	if !p.confined() {
		return "not confined: it may do everything that Chela may"
	}
	parts := []string{"confined"}
	a := p.Permissions.with(p.Entry.Permissions)
	if len(a.Hosts) > 0 {
		parts = append(parts, "may connect to "+strings.Join(a.Hosts, ", "))
	}
	if len(a.Read) > 0 {
		parts = append(parts, "may read "+strings.Join(a.Read, ", "))
	}
	return strings.Join(append(parts, "may change "+strings.Join(append([]string{"its data folder"}, a.Write...), ", ")),
		"; ")
}

// commandLine returns the command of a server.
func commandLine(s mcp.Server) string {
	return plainText(strings.Join(append([]string{s.Command}, s.Args...), " "), 200)
}

// origin returns an address without a user, a path and parameters, which may be secret.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "at an invalid address"
	}
	return u.Scheme + "://" + u.Host
}

func toolNames(tools []mcp.Declared) string {
	var names []string
	for _, t := range tools {
		if t.Optional {
			t.Name += " (optional)"
		}
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// count returns the number of entries of folders that match.
func count(dirs []string, match func(dir, name string) bool) (n int) {
	for _, dir := range dirs {
		for _, name := range names(dir) {
			if match(dir, name) {
				n++
			}
		}
	}
	return n
}

// names returns the names in a folder, without hidden ones.
func names(dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && len(out) < limits.Files {
			out = append(out, e.Name())
		}
	}
	return out
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// agentTypes returns the names of the agent types.
func (p *Plugin) agentTypes() (out []string) {
	for _, t := range p.AgentTypes() {
		if t.Problem == "" {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// AgentTypes returns the agent types, and the problems of files that define none.
func (p *Plugin) AgentTypes() (types []subagent.Type) {
	taken := map[string]string{}
	for _, dir := range p.Agents {
		for _, name := range names(dir) {
			base, ok := strings.CutSuffix(name, ".md")
			path := filepath.Join(dir, name)
			if !ok || !isFile(path) {
				continue
			}
			types = subagent.AddType(types, taken, "agent type "+name, base, head(path))
		}
	}
	return types
}

// head returns the beginning of a file.
func head(path string) []byte {
	f, _, err := folder.OpenPath(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256<<10))
	if err != nil {
		return nil
	}
	return text
}

// deciding says what hooks at the deciding points do, and at others that show more than
// that something happened.
var deciding = map[string]string{
	"before_model_resolve":          "chooses the model",
	"before_prompt_build":           "changes the prompt",
	"inbound_claim":                 "answers messages in place of the model",
	"before_dispatch":               "answers messages in place of the model",
	"before_agent_run":              "stops runs before they begin",
	"before_agent_reply":            "answers messages in place of the model",
	"agent:bootstrap":               "changes the bootstrap files",
	"before_agent_finalize":         "sends answers back for revision",
	"before_tool_call":              "decides about tool calls",
	"after_tool_call":               "sees tool calls and their results",
	"tool_call_failed":              "sees tool calls and their errors",
	"tool_result_persist":           "changes the results of tools",
	"resolve_exec_env":              "sets variables of commands",
	"before_message_write":          "changes what is written to transcripts",
	"message_received":              "sees messages that arrive",
	"message:received":              "sees messages that arrive",
	"message:transcribed":           "sees messages that arrive",
	"message:preprocessed":          "sees messages that arrive",
	"message":                       "sees messages that arrive and are sent",
	"message_sent":                  "sees messages that are sent",
	"message:sent":                  "sees messages that are sent",
	"reply_payload_sending":         "changes or stops messages that are sent",
	"message_sending":               "changes or stops messages that are sent",
	"subagent_spawning":             "decides about subagents",
	"subagent_delivery_target":      "decides where results of subagents go",
	"before_install":                "decides about installations",
	"heartbeat_prompt_contribution": "adds to the prompt of heartbeats",
}

// hookAbilities describes the hooks.
func (p *Plugin) hookAbilities() (out []string) {
	add := func(format string, args ...any) { out = append(out, plainText(fmt.Sprintf(format, args...), 500)) }
	points := hook.New(nil)
	conversation, prompt := p.Entry.Allowed()
	var told []string
	for _, dir := range p.Hooks {
		for _, name := range names(dir) {
			at := filepath.Join(dir, name)
			if !isFile(filepath.Join(at, hookdir.FileName)) {
				continue
			}
			h, err := hookdir.Read(at, func(program string) string { return program })
			if err != nil {
				add("has a hook that cannot be used: %v", err)
				continue
			}
			add("runs a program: hook %s, %s (%s)", h.Name, filepath.Base(h.Handler), p.limits())
			for _, event := range h.Events {
				sees := points.Program(event, hook.Program{Prompt: true})
				changes := points.Program(event, hook.Program{Conversation: true})
				text := deciding[event]
				switch {
				case sees != nil && changes != nil && points.Program(event, hook.Program{Prompt: true, Conversation: true}) != nil:
					continue // there is no such event
				case sees != nil && !conversation:
					add("asks to see conversations (%s): plugins.entries.%s.hooks.allowConversationAccess", event, p.ID)
					continue
				case changes != nil && !prompt:
					add("asks to change the prompt (%s): plugins.entries.%s.hooks.allowPromptInjection", event, p.ID)
					continue
				case sees != nil:
					add("sees conversations (%s)", event)
				}
				if text != "" {
					add("%s (%s)", text, event)
				} else if sees == nil {
					told = append(told, event)
				}
			}
		}
	}
	if slices.Sort(told); len(told) > 0 {
		add("is told of events: %s", strings.Join(slices.Compact(told), ", "))
	}
	return out
}
