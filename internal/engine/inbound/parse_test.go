package inbound

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want commandLine
		ok   bool
	}{
		{"/status", commandLine{name: "status"}, true},
		{"see /STATUS", commandLine{}, false},
		{"/STATUS", commandLine{name: "status"}, true},
		{"/status:", commandLine{name: "status"}, true},
		{"/status：", commandLine{name: "status"}, true},
		{"  /think:high ", commandLine{name: "think", args: "high"}, true},
		{"/think： high", commandLine{name: "think", args: "high"}, true},
		{"/new fix\nthe tests", commandLine{name: "new", args: "fix\nthe tests"}, true},
		{"/model@otherbot x", commandLine{name: "model", bot: "otherbot", args: "x"}, true},
		{"/x-y_1 z", commandLine{name: "x-y_1", args: "z"}, true},
		{"/usr/bin is full", commandLine{}, false},
		{"/", commandLine{}, false},
		{"//x", commandLine{}, false},
		{"/1", commandLine{}, false},
		{"/status?", commandLine{}, false},
		{"/status@", commandLine{}, false},
		{"status", commandLine{}, false},
		{"/статус", commandLine{}, false},
	} {
		got, ok := parse(c.in)
		if got != c.want && ok || ok != c.ok {
			t.Errorf("parse(%q) = %+v, %v, want %+v, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestParseDirectives(t *testing.T) {
	t.Parallel()
	inline := func(name string) bool { return name == "status" || name == "help" }
	isModel := func(name string) bool { return name == "mock/m:1.5" }
	for _, c := range []struct {
		in, text string
		think    llm.Level
		mode     queue.Mode
		names    string
	}{
		{"hello /think low", "hello", llm.Low, "", ""},
		{"hello /t: high there", "hello there", llm.High, "", ""},
		{"/think low\nhello", "hello", llm.Low, "", ""},
		{"no /queue steer really", "no really", "", queue.Steer, ""},
		{"hey /status how are you", "hey how are you", "", "", "status"},
		{"hey /STATUS: and /help", "hey and", "", "", "status help"},
		{"hello /think low /queue steer /status", "hello", llm.Low, queue.Steer, "status"},
		{"/think low/queue steer", "/think low/queue steer", "", "", ""},
		{"//status", "//status", "", "", ""},
		{"Please fix:\n/status\nline three", "Please fix:\n/status\nline three", "", "", ""},
		{"Please fix:\n```\ncurl /status /think low x\n```", "Please fix:\n```\ncurl /status /think low x\n```", "", "", ""},
		{"/think low\nfix this:\nx /status\n/queue steer", "fix this:\nx /status", llm.Low, queue.Steer, ""},
		{"The cronjob says /status is broken, why?", "The cronjob says /status is broken, why?", "", "", ""},
		{"what does /help do", "what does /help do", "", "", ""},
		{"our CLI has /model mock/m:1.5 as an example", "our CLI has /model mock/m:1.5 as an example", "", "", ""},
		{"/think about it", "/think about it", "", "", ""},
		{"what is `/think low`?", "what is `/think low`?", "", "", ""},
		{"see /usr/bin and a/status", "see /usr/bin and a/status", "", "", ""},
		{"/status/x", "/status/x", "", "", ""},
		{"/think low/x", "/think low/x", "", "", ""},
		{"1 / 2 /thinks low", "1 / 2 /thinks low", "", "", ""},
		{"two  spaces\n\nstay", "two  spaces\n\nstay", "", "", ""},
		{"", "", "", "", ""},
		{"go /verbose on /reasoning stream /elevated FULL /model mock/m:1.5 on", "go on", "", "", ""},
		{"go /verbose loud /reasoning maybe /elevated no /model other",
			"go /verbose loud /reasoning maybe /elevated no /model other", "", "", ""},
	} {
		got := parseDirectives(c.in, directiveRules{settings: true, elevated: true, inline: inline, model: isModel})
		if got.text != c.text || got.think != c.think || got.mode != c.mode || strings.Join(got.names, " ") != c.names {
			t.Errorf("parseDirectives(%q) = %+v", c.in, got)
		}
	}
}

// TestParseExec parses the settings of /exec inside a message.
func TestParseExec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, text string
		want     run.Exec
	}{
		{"go /exec host=sandbox ask=always on", "go on", run.Exec{Host: "sandbox", Ask: "always"}},
		{"/exec security=DENY\tgo", "go", run.Exec{Security: "deny"}},
		{"/exec: ask=off ask=on-miss go", "go", run.Exec{Ask: "on-miss"}},
		{"/exec ask=default go", "go", run.Exec{}},
		{"/exec host=node go", "/exec host=node go", run.Exec{}},
		{"/exec ask=always, go", "/exec ask=always, go", run.Exec{}},
		{"/exec host go", "/exec host go", run.Exec{}},
		{"/exec color=red go", "/exec color=red go", run.Exec{}},
		{"/execute ask=always go", "/execute ask=always go", run.Exec{}},
		{"x/exec ask=always go", "x/exec ask=always go", run.Exec{}},
	} {
		d := parseDirectives(c.in, directiveRules{settings: true, inline: func(string) bool { return false },
			model: func(string) bool { return false }})
		if d.text != c.text || d.exec != c.want {
			t.Errorf("%q: %q, %+v", c.in, d.text, d.exec)
		}
		if d := parseDirectives(c.in, directiveRules{inline: func(string) bool { return false }}); d.text != c.in ||
			!d.exec.IsZero() {
			t.Errorf("%q without the right to change settings: %q, %+v", c.in, d.text, d.exec)
		}
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	for _, c := range Commands() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if w, ok := parse("/" + n); !ok || w.name != n || len(n) > 32 {
				t.Errorf("/%s cannot be parsed", n)
			}
		}
		if c.Help == "" || c.Group == "" || c.run == nil && c.before == nil && !c.later {
			t.Errorf("/%s is incomplete: %+v", c.Name, c)
		}
	}
	if diff := cmp.Diff(byName()["tell"].Name, "steer"); diff != "" {
		t.Error(diff)
	}
	got := map[string]chela.Scope{}
	for _, c := range Commands() {
		got[c.Name] = c.Scope
	}
	want := map[string]chela.Scope{
		"help":     "",
		"commands": "",
		"tools":    "",
		"whoami":   "",
		"models":   "",
		"stop":     "",
		"steer":    "",
		"status":   chela.ScopeRead,
		"budget":   chela.ScopeRead,
		"tts":      chela.ScopeAdmin,
		"new":      chela.ScopeWrite,
		"compact":  chela.ScopeWrite,
		"reset":    chela.ScopeWrite,
		"queue":    chela.ScopeWrite,

		"retry":    chela.ScopeWrite,
		"name":     chela.ScopeWrite,
		"usage":    chela.ScopeWrite,
		"model":    chela.ScopeWrite,
		"think":    chela.ScopeWrite,
		"elevated": chela.ScopeWrite,
		"fast":     chela.ScopeWrite,

		"exec":      chela.ScopeWrite,
		"verbose":   chela.ScopeWrite,
		"subagents": chela.ScopeWrite,
		"kill":      chela.ScopeWrite,
		"focus":     chela.ScopeWrite,
		"unfocus":   chela.ScopeWrite,

		"session":           chela.ScopeWrite,
		"skill":             "",
		"undo":              chela.ScopeAdmin,
		"forget":            chela.ScopeAdmin,
		"agents":            chela.ScopeRead,
		"approve":           chela.ScopeApprovals,
		"config":            chela.ScopeAdmin,
		"debug":             chela.ScopeAdmin,
		"export-session":    chela.ScopeAdmin,
		"export-trajectory": chela.ScopeAdmin,
		"context":           chela.ScopeRead,
		"btw":               "",
		"reasoning":         chela.ScopeWrite,
		"send":              chela.ScopeWrite,
		"activation":        chela.ScopeWrite,

		"tasks":   chela.ScopeRead,
		"bash":    chela.ScopeAdmin,
		"mcp":     chela.ScopeAdmin,
		"plugins": chela.ScopeAdmin,
		"restart": chela.ScopeAdmin,

		"diagnostics": chela.ScopeAdmin,
		"acp":         chela.ScopeAdmin,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		"/think low hello", "hey /status: /help x", "/new@bot：x", "/queue steer /t high\n/", "/usr/bin", " / \xff/t: low",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, ok := parse(s)
		if ok && (w.name == "" || w.name != strings.ToLower(w.name) || strings.TrimSpace(w.args) != w.args ||
			!strings.Contains(s, w.args)) {
			t.Errorf("parse(%q) = %+v", s, w)
		}
		d := parseDirectives(s, directiveRules{settings: true, inline: func(n string) bool { return n == "status" },
			model: func(string) bool { return false }})
		if d.think == "" && d.mode == "" && len(d.names) == 0 && d.text != s {
			t.Errorf("parseDirectives(%q) found nothing but returned %q", s, d.text)
		}
		if len(d.text) > len(s) {
			t.Errorf("parseDirectives(%q) = %q", s, d.text)
		}
		left, all := strings.Fields(d.text), strings.Fields(s)
		for _, word := range left { // no word is new
			if !slices.Contains(all, word) {
				t.Errorf("parseDirectives(%q) added the word %q", s, word)
			}
		}
		_, _ = llm.ParseLevel(s)
	})
}
