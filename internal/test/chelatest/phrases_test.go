package chelatest

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// phrases are the texts of the gateway that the web page knows in Chinese, as patterns.
func phrases(t *testing.T) (known []*regexp.Regexp) {
	t.Helper()
	b, err := os.ReadFile("../../../web/src/phrases.json")
	if err != nil {
		t.Fatal(err)
	}
	var list map[string]string
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	gap := regexp.MustCompile(`\\?\{0\\?\}`)
	for en, zh := range list {
		if zh == "" || strings.Count(en, "{0}") != strings.Count(zh, "{0}") || strings.Count(en, "{") > 1 {
			t.Errorf("%q is translated as %q", en, zh)
		}
		known = append(known, regexp.MustCompile("^"+gap.ReplaceAllString(regexp.QuoteMeta(en), "(?s:.+)")+"$"))
	}
	return known
}

// TestReasonsInChinese asks about calls of each kind that needs a person, and checks that the
// web page can say every reason in Chinese, and so the reason why a model answers.
func TestReasonsInChinese(t *testing.T) {
	t.Parallel()
	known := phrases(t)
	check := func(what, text string) {
		t.Helper()
		for clause := range strings.SplitSeq(text, "; ") {
			found := false
			for _, p := range known {
				found = found || p.MatchString(clause)
			}
			if !found {
				t.Errorf("%s: web/src/phrases.json does not have %q", what, clause)
			}
		}
	}
	type call struct{ tool, args string }
	calls := []call{
		{"exec", `{"command": "touch ~/made"}`},
		{"exec", `{"command": "rm ~/notes.txt &"}`},
		{"exec", `{"command": "ssh host ls"}`},
		{"exec", `{"command": "sudo reboot"}`},
		{"exec", `{"command": "cat ~/.ssh/id_ed25519"}`},
		{"exec", `{"command": "cat chela.json", "workdir": ".."}`},
		{"exec", `{"command": "python3 -c 'print(1)'", "security": "allowlist", "ask": "always"}`},
		{"read", `{"path": "~/.ssh/id_ed25519"}`},
		{"write", `{"path": "~/made.txt", "content": "x"}`},
		{"write", `{"path": ".vscode/tasks.json", "content": "x"}`},
	}
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		n, err := strconv.Atoi(last.PlainText())
		if last.Role == llm.RoleTool || err != nil {
			return llmtest.Say("ok")
		}
		return llmtest.Call("call_"+strconv.Itoa(n), calls[n].tool, calls[n].args)
	})
	g := Start(t, Options{Model: model, Config: section("tools.fs", `{"workspaceOnly": false}`)})
	c := g.Client()
	for n, k := range calls {
		questions, _ := c.decideAll(c.Send("main", strconv.Itoa(n)), "deny")
		if len(questions) == 0 {
			t.Errorf("%s %s did not ask", k.tool, k.args)
		}
		for _, q := range questions {
			check(k.tool+" "+k.args, q.Request.Reason)
		}
	}
	var now wire.ModelsStatus
	c.must(wire.MethodModelsStatus, wire.None{}, &now)
	check("the default model", now.Reason)
}
