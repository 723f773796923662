package chelatest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/wire"
)

// TestPrompt checks what the system prompt says about the machine and the
// configuration.
func TestPrompt(t *testing.T) {
	t.Parallel()
	model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") })
	g := Start(t, Options{Model: model, Config: section("agents.defaults", `{
		"userTimezone": "Asia/Tokyo", "bootstrapMaxChars": 300, "bootstrapTotalMaxChars": 400, "skipBootstrap": true}`)})
	for _, name := range []string{"AGENTS.md", "SOUL.md"} {
		writeFile(t, g, name, strings.Repeat(name+" ", 100))
	}
	g.Client().Ask("main", "hi")
	var b strings.Builder
	for _, block := range model.Requests()[0].System {
		b.WriteString(block.Text)
	}
	text := b.String()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Your working directory is: " + prompt.Name(filepath.Join(g.Dir, "workspace")), "Time zone: Asia/Tokyo",
		"host=" + prompt.Name(host) + " ", "os=" + runtime.GOOS + " (" + runtime.GOARCH + ")", "model=mock/m",
		"because of their length: AGENTS.md, SOUL.md",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for name, most := range map[string]int{"AGENTS.md ": 300, "SOUL.md ": 100} {
		if n := strings.Count(text, name) * len(name); n > most {
			t.Errorf("the prompt has %d characters of %s, want at most %d", n, name, most)
		}
	}
	if strings.Contains(text, "## Sandbox") {
		t.Errorf("a session without a sandbox has one: %s", text)
	}
}

// TestWorkspaceRemoved removes the workspace under a running gateway: the next message finds
// a new one, with its first files, but without those that were used up.
func TestWorkspaceRemoved(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			switch {
			case last.Role == llm.RoleTool:
				return llmtest.Say(last.PlainText())
			case strings.Contains(last.PlainText(), "write a.txt"):
				return llmtest.Call("c"+strconv.Itoa(len(r.Messages)), "write", `{"path": "a.txt", "content": "milk\n"}`)
			default:
				return llmtest.Call("c"+strconv.Itoa(len(r.Messages)), "ls", `{"path": "."}`)
			}
		})
		g := Start(t, Options{Model: model, Config: section("agents.defaults", fmt.Sprintf(`{"skipBootstrap": %t}`, bare))})
		c, dir := g.Client(), filepath.Join(g.Dir, "workspace")
		for range 2 {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			c.Ask("main", "write a.txt")
			if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(b) != "milk\n" {
				t.Errorf("after the workspace was removed, a.txt is %q, %v", b, err)
			}
			got := c.Ask("main", "list the files")
			if has := strings.Contains(got.Text, "AGENTS.md"); has == bare || strings.Contains(got.Text, "BOOTSTRAP.md") {
				t.Errorf("skipBootstrap %t: the new workspace has %s", bare, got.Text)
			}
		}
	}
}

// TestPrivateFilesInPrompt replaces a file of the workspace, between two turns, by
// links to private files.
func TestPrivateFilesInPrompt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need rights")
	}
	const secret = "a6c9d2e4-private"
	model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") })
	dir := t.TempDir()
	ws := filepath.Join(dir, "workspace")
	for name, text := range map[string]string{
		"conf/chela.json":        `{session: {$include: "./more.json"}} // `,
		"conf/more.json":         "{} // ",
		"conf/chela.json.bak":    "{} // ",
		".env":                   "KEY=",
		"keys/id_ed25519":        "",
		".ssh/config":            "",
		"../exec-approvals.json": `{"version": 1} // `,
	} {
		plant(t, filepath.Join(ws, name), text+secret)
	}
	soul, other := filepath.Join(ws, "SOUL.md"), filepath.Join(ws, "other.md")
	plant(t, soul, "the first character")
	plant(t, other, "an ordinary file")
	if err := os.Symlink("conf", filepath.Join(ws, "at")); err != nil {
		t.Fatal(err)
	}
	g := Start(t, Options{Dir: dir, File: filepath.Join(ws, "at", "chela.json"), Model: model})
	c := g.Client()
	system := func() string {
		t.Helper()
		if end := c.Ask("main", "hi"); end.Text != "ok" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		rs := model.Requests()
		var b strings.Builder
		for _, block := range rs[len(rs)-1].System {
			b.WriteString(block.Text)
		}
		return b.String()
	}
	if text := system(); !strings.Contains(text, "the first character") {
		t.Fatalf("SOUL.md is not in the prompt: %s", text)
	}
	const omitted = "SOUL.md is omitted"
	for _, tt := range []struct {
		name   string
		link   func(target, name string) error
		target string
		want   string // in the prompt
	}{
		{"E7 a link to the configuration", os.Symlink, "conf/chela.json", omitted},
		{"E7 a link through a link to its folder", os.Symlink, "at/chela.json", omitted},
		{"E7 a link to what it includes", os.Symlink, "conf/more.json", omitted},
		{"E7 a link to an earlier version of it", os.Symlink, "conf/chela.json.bak", omitted},
		{"E7 a link to .env", os.Symlink, ".env", omitted},
		{"E7 a link to a key", os.Symlink, "keys/id_ed25519", omitted},
		{"E7 a link into .ssh", os.Symlink, ".ssh/config", omitted},
		{"E7 a link to the state directory", os.Symlink, "../exec-approvals.json", omitted},
		{"E7 a hard link to the configuration", os.Link, filepath.Join(ws, "conf/chela.json"), omitted},
		{"E7 a hard link to the state directory", os.Link, filepath.Join(dir, "exec-approvals.json"), omitted},
		{"E7 a hard link to .env", os.Link, filepath.Join(ws, ".env"), omitted},
		{"a link to an ordinary file", os.Symlink, "other.md", "an ordinary file"},
		{"E7 a link to a file that became a link", os.Symlink, "other.md", omitted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := errors.Join(os.Remove(soul), tt.link(tt.target, soul)); err != nil {
				t.Fatal(err)
			}
			if text := system(); strings.Contains(text, secret) || !strings.Contains(text, tt.want) ||
				strings.Contains(text, "the first character") {
				t.Errorf("want %q in %s", tt.want, text)
			}
			if tt.want == omitted {
				return
			}
			if err := errors.Join(os.Remove(other), os.Symlink(".env", other)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestSandboxFolder runs a sandboxed session whose folder cannot be made.
func TestSandboxFolder(t *testing.T) {
	t.Parallel()
	model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") })
	g := Start(t, Options{Model: model, Config: section("agents.defaults", `{"sandbox": {"mode": "all"}}`)})
	c := g.Client()
	path := filepath.Join(g.Dir, "sandboxes")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := c.Ask("main", "hi"); end.State != wire.StateError ||
		!strings.Contains(end.Error, "folder of the sandbox cannot be made") || strings.Contains(end.Error, g.Dir) ||
		len(model.Requests()) != 0 {
		t.Errorf("%s %q %q after %d requests, want an error about the sandbox", end.State, end.Text,
			end.Error, len(model.Requests()))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if end := c.Ask("main", "hi"); end.Text != "ok" {
		t.Errorf("once it can be made: %s %q %q", end.State, end.Text, end.Error)
	}
}

// TestModelsStatus checks what clients are told about models, keys and cooldowns.
func TestModelsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := testServices()
		srv, hc := network(t, func(_ string, _ int, got llmtest.ReceivedRequest) llmtest.Step {
			if keyOf(got) == "bad" {
				return llmtest.Status(http.StatusTooManyRequests, "slow down")
			}
			return llmtest.Say("ok")
		})
		conf := asks(`{"models": {"openai/gpt-5": {"alias": "quick"}}}`, all[0].ref(), all[1].ref())
		g := Start(t, Options{HTTP: hc, Env: keys(map[string]string{"ANTHROPIC_API_KEYS": "bad;good"}), Config: conf})
		c := g.Client()
		if end := c.Ask("main", "hi"); end.Text != "ok" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		var status wire.ModelsStatus
		c.must(wire.MethodModelsStatus, nil, &status)
		if status.Default != all[0].ref() || status.Reason != "configured" ||
			!slices.Equal(status.Fallbacks, []string{all[1].ref()}) || status.Aliases["quick"] != "openai/gpt-5" {
			t.Errorf("%+v", status)
		}
		var got []string
		for _, p := range status.Providers {
			if p.ID != all[0].name && p.ID != all[1].name {
				continue
			}
			for _, k := range p.Keys {
				line := k.ID
				for _, r := range k.Cooldowns {
					if left := time.Until(r.Until.Time()); left <= 0 || left > time.Hour {
						t.Errorf("the cooldown of %s ends in %v", k.ID, left)
					}
					line += " " + r.Reason + " " + r.Model
				}
				got = append(got, line)
			}
			if !p.Ready || p.Error != "" {
				t.Errorf("%+v", p)
			}
		}
		want := []string{"anthropic:ANTHROPIC_API_KEYS/1 rate_limit " + all[0].model, "anthropic:ANTHROPIC_API_KEYS/2",
			"openai:OPENAI_API_KEYS/1"}
		if !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
		var choices wire.ChatMetadata
		c.must(wire.MethodChatMetadata, wire.ChatMetadataGet{}, &choices)
		for _, s := range all {
			if !slices.ContainsFunc(choices.Models, func(m wire.Model) bool { return m.Provider == s.name && m.ID == s.model }) {
				t.Errorf("the choices do not contain %s: %+v", s.ref(), choices.Models)
			}
		}
		if len(choices.Commands) == 0 {
			t.Error("the choices contain no commands")
		}
		g.Stop()
		srv.close()
	})
}
