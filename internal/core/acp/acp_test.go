package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func config(t *testing.T, section string) Config {
	t.Helper()
	var c Config
	if err := json.Unmarshal([]byte(section), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ section, name, want, err string }{
		{`{}`, "claude", "", "acp.enabled"},
		{`{"enabled": true}`, "claude", "claude-agent-acp", ""},
		{`{"enabled": true}`, " Gemini ", "gemini --acp", ""},
		{`{"enabled": true}`, "", "", "acp.defaultAgent is not set"},
		{`{"enabled": true, "defaultAgent": "OpenCode"}`, "", "opencode acp", ""},
		{`{"enabled": true, "agents": {"mine": {"command": "/x", "args": ["--acp"]}}}`, "", "/x --acp", ""},
		{`{"enabled": true, "agents": {"claude": {"cwd": "~/src"}}}`, "", "claude-agent-acp", ""},
		{`{"enabled": true, "agents": {"gemini": {"args": ["--other"]}}}`, "gemini", "gemini --other", ""},
		{`{"enabled": true, "agents": {"gemini": {"command": "/g"}}}`, "gemini", "/g", ""},
		{`{"enabled": true}`, "mine", "", `there is no coding agent "mine"; there are: claude, codex, gemini, opencode`},
		{`{"enabled": true, "allowedAgents": ["codex"]}`, "claude", "",
			`the coding agent "claude" is not in acp.allowedAgents (codex)`},
		{`{"enabled": true, "allowedAgents": ["CLAUDE"]}`, "claude", "claude-agent-acp", ""},
		{`{"enabled": true, "allowedAgents": ["*"]}`, "claude", "claude-agent-acp", ""},
		{`{"enabled": true, "allowedAgents": ["codex"], "defaultAgent": "claude"}`, "", "", "is not in acp.allowedAgents"},
	} {
		_, p, err := config(t, c.section).Find(c.name)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if err == nil && p.Line() != c.want || (c.err == "") != (err == nil) ||
			!strings.Contains(text+chela.HintOf(err), c.err) {
			t.Errorf("%s with %q: %q, %v", c.section, c.name, p.Line(), err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for section, want := range map[string]string{
		`{}`:                         "",
		`{"agents": {"claude": {}}}`: "",
		`{"agents": {"mine": {}}}`:   "acp.agents.mine.command is missing",
		`{"agents": {"My Agent": {"command": "x"}}}`: "want a name",
		`{"maxConcurrentSessions": 33}`:              "acp.maxConcurrentSessions",
		`{"runtime": {"ttlMinutes": -1}}`:            "acp.runtime.ttlMinutes",
	} {
		err := config(t, section).Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", section, err)
		}
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":           "/w",
		"~":          "/h",
		"~/src/shop": "/h/src/shop",
		"/a/../b":    "/b",
		"src":        "/w/src",
	} {
		if got := Folder(path, "/h", "/w"); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}
