package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// resultsOf returns the results of the tools that the subagent with the task called.
func (f *family) resultsOf(task string) (results []string) {
	for _, r := range f.Requests() {
		if !strings.Contains(systemOf(r), "# Subagent Context") || r.Messages[0].PlainText() != task {
			continue
		}
		results = nil
		for _, m := range r.Messages {
			if m.Role == llm.RoleTool {
				results = append(results, m.PlainText())
			}
		}
	}
	return results
}

// spawnWith returns a line that calls sessions_spawn with arguments.
func spawnWith(args map[string]any) string {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return "sessions_spawn " + string(b)
}

func TestSubagentFiles(t *testing.T) {
	file := func(name, content, encoding string) map[string]any {
		return map[string]any{"name": name, "content": content, "encoding": encoding}
	}
	start := func(t *testing.T, config string) (*family, *Client, *Gateway) {
		t.Helper()
		f := newFamily()
		g := Start(t,
			Options{Model: f,
				Config: Config{"tools": json.RawMessage(`{"exec": {"mode": "full"}, "sessions_spawn": {"attachments": {` +
					config + `}}}`)}})
		return f, g.Client(), g
	}
	t.Run("attachments are files that the subagent can read, and are removed with its session", func(t *testing.T) {
		t.Parallel()
		f, c, g := start(t, `"enabled": true`)
		const read = "exec {\"command\":\"cat .chela/attachments/*/*\"}\nhold a\nthen say done"
		c.Ask("main", spawnWith(map[string]any{"task": read, "label": "reader", "cleanup": "delete", "attachments": []any{
			file("notes.txt", "high tide\n", "utf8"), file("raw.bin", "bG93IHRpZGUK", "base64"),
		}}))
		f.waitHeld(t, "a")
		if names, err := filepath.Glob(filepath.Join(g.Dir, "workspace", ".chela", "attachments", "*", "*")); err != nil ||
			len(names) != 2 {
			t.Errorf("files %q, %v", names, err)
		}
		f.release("a")
		c.answer("told reader ok")
		if got := f.resultsOf(read); len(got) != 1 || !strings.Contains(got[0], "high tide\nlow tide") {
			t.Errorf("read %q", got)
		}
		if got := systemOf(f.childRequest(read)); !strings.Contains(got, ": notes.txt, raw.bin\n") {
			t.Errorf("the prompt does not name the files:\n%s", got)
		}
	})
	t.Run("attachments that are not allowed start nothing and leave nothing", func(t *testing.T) {
		t.Parallel()
		f, c, g := start(t, `"enabled": true, "maxFiles": 2, "maxFileBytes": 10, "maxTotalBytes": 12`)
		for want, files := range map[string][]any{
			"at most 2 are allowed":            {file("a", "1", "utf8"), file("b", "1", "utf8"), file("c", "1", "utf8")},
			"maxFileBytes":                     {file("a", "12345678901", "utf8")},
			"maxTotalBytes":                    {file("a", "1234567", "utf8"), file("b", "1234567", "utf8")},
			"want the name of a file":          {file("../a", "1", "utf8")},
			"leading dot":                      {file(".env", "1", "utf8")},
			"another one has the same name":    {file("a", "1", "utf8"), file("A", "1", "utf8")},
			"illegal base64":                   {file("a", "?", "base64")},
			`there is no agent type \"pilot\"`: {file("a", "1", "utf8")},
			"may not be used for subagents":    {file("a", "1", "utf8")},
		} {
			args := map[string]any{"task": "say never", "attachments": files}
			switch {
			case strings.Contains(want, "pilot"):
				args["agentType"] = "pilot"
			case strings.Contains(want, "may not be used"):
				args["agentId"] = "nobody"
				want = "there is no agent"
			}
			if end := c.Ask("main", spawnWith(args)); !strings.Contains(end.Text, want) {
				t.Errorf("%v: answered %q", files, end.Text)
			}
		}
		if f.childRequest("say never") != nil {
			t.Error("a subagent was started")
		}
		if names, _ := filepath.Glob(filepath.Join(g.Dir, "workspace", ".chela", "attachments", "*")); len(names) > 0 {
			t.Errorf("left: %q", names)
		}
	})
	t.Run("a spawn that is refused in its transaction leaves no files", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f, Config: Config{
			"agents.defaults": json.RawMessage(`{"subagents": {"maxChildrenPerAgent": 1}}`),
			"tools":           json.RawMessage(`{"sessions_spawn": {"attachments": {"enabled": true}}}`),
		}})
		c := g.Client()
		c.Ask("main", task("hold a"))
		end := c.Ask("main", spawnWith(map[string]any{"task": "say never", "attachments": []any{file("a", "1", "utf8")}}))
		if !strings.Contains(end.Text, "at most 1 may") {
			t.Errorf("answered %q", end.Text)
		}
		if names, _ := filepath.Glob(filepath.Join(g.Dir, "workspace", ".chela", "attachments", "*")); len(names) > 0 {
			t.Errorf("left: %q", names)
		}
		f.release("a")
	})
	t.Run("attachments are off by default, and then no parameter", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		end := c.Ask("main", spawnWith(map[string]any{"task": "say never", "attachments": []any{file("a", "1", "utf8")}}))
		if !strings.Contains(end.Text, "attachments") || f.childRequest("say never") != nil {
			t.Errorf("answered %q", end.Text)
		}
		for _, s := range f.Requests()[0].Tools {
			if s.Name == "sessions_spawn" && strings.Contains(string(s.Schema), "attachments") {
				t.Error("the model is told of the parameter")
			}
		}
	})
	t.Run("commands of a subagent start in its folder, also those of its own subagents", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f, Config: Config{
			"agents.defaults": json.RawMessage(`{"subagents": {"maxSpawnDepth": 2}}`),
			"tools":           json.RawMessage(`{"exec": {"mode": "full"}}`),
		}})
		c := g.Client()
		at := filepath.Join(g.Dir, "workspace", "proj", "src")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		const leaf = "exec {\"command\":\"pwd\"}\nthen say leaf"
		for name, folder := range map[string]string{
			"relative": "proj",
			"absolute": filepath.Join(g.Dir, "workspace", "proj"),
		} {
			work := "exec {\"command\":\"pwd\"}\nexec {\"command\":\"pwd\",\"workdir\":\"src\"}\n" +
				task(leaf, "label", name+" leaf") + "\nsessions_yield {}"
			c.Ask("main", spawnWith(map[string]any{"task": work, "label": name, "cwd": folder}))
			c.answer("told " + name + " ok")
			got := f.resultsOf(work)
			if len(got) < 2 || !strings.HasSuffix(strings.TrimSpace(got[0]), "/workspace/proj") ||
				!strings.HasSuffix(strings.TrimSpace(got[1]), "/workspace/proj/src") {
				t.Errorf("%s: %q", name, got)
			}
			if got := f.resultsOf(leaf); len(got) != 1 || !strings.HasSuffix(strings.TrimSpace(got[0]), "/workspace/proj") {
				t.Errorf("%s, its subagent: %q", name, got)
			}
		}
		for folder, want := range map[string]string{
			"none":      "no such folder",
			"../..":     "no such folder",
			"/etc":      "not in the workspace",
			"AGENTS.md": "is not a folder",
		} {
			if end := c.Ask("other", spawnWith(map[string]any{"task": "say never", "cwd": folder})); !strings.Contains(end.Text,
				want) {
				t.Errorf("%s: answered %q", folder, end.Text)
			}
		}
	})
}
