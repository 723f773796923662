package chelatest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/html"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// hostileTexts are texts that try to leave the element or attribute that they are in.
var hostileTexts = [...]string{
	`<script>alert(1)</script>`, `</script></style></title></pre></details><script>alert(2)</script>`,
	`"><img src=x onerror=alert(3)>`,
	`' onmouseover='alert(4)`, `<!--`, `-->]]>`, `<svg/onload=alert(5)>`, `</textarea><iframe src="javascript:alert(6)">`,
	`&lt;b&gt; &#60;script&#62;`,
	`%s %d {{.}} ${x}`, "nul \x00 and \x1b[31m red", "\u202eright to left", `<a href="javascript:alert(7)">link</a>`,
	`<meta http-equiv=refresh content="0;url=http://evil.test">`,
}

// elements parses a page as a browser does and returns its text. It fails the test for
// elements and attributes that a page of ours does not have.
func elements(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields("html head meta title style body h1 dl dt dd details summary small pre div p main article header footer span b a time img")
	var text strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			text.WriteString(n.Data + "\n")
		case n.Type == html.CommentNode:
			t.Errorf("a comment: %q", n.Data)
		case n.Type == html.ElementNode && !slices.Contains(names, n.Data):
			t.Errorf("an element <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "lang", "charset", "name", "content", "class", "dir", "id", "alt":
			case "http-equiv":
				if a.Val != "Content-Security-Policy" {
					t.Errorf("%s=%q", a.Key, a.Val)
				}
			case "href":
				if !strings.HasPrefix(a.Val, "#e") {
					t.Errorf("a link to %q", a.Val)
				}
			case "src":
				if !strings.HasPrefix(a.Val, "data:image/png;base64,") {
					t.Errorf("a picture from %.60q", a.Val)
				}
			default:
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return text.String()
}

// nasty is a tool with a hostile description and result.
type nasty string

func (n nasty) Spec() tool.Spec {
	return tool.Spec{Name: "nasty", Description: "Nasty. " + string(n), Effect: tool.Reads,
		Schema: json.RawMessage(`{"type":"object","description":"</pre><script>"}`)}
}

func (n nasty) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text("result " + string(n) + " " + canary), nil
}

func TestExportSession(t *testing.T) {
	t.Parallel()
	bad := strings.Join(hostileTexts[:], "\n")
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Role == llm.RoleUser && strings.Contains(last.PlainText(), "use the tool"):
			return llmtest.Think("thought "+bad, "sig",
				llmtest.Call(fmt.Sprint("c", n), "nasty", string(mustJSON(t, map[string]string{"path": bad}))))
		}
		return llmtest.Say("said " + bad)
	})
	conf := section("models", `{"providers": {"mock": {"apiKey": "`+canary+`", "models": [{"id": "m", "contextWindow": 200000, "input": ["text", "image"], "cost": {"input": 3, "output": 15}}]}}}`)
	g := Start(t, Options{Model: model, Config: conf, Tools: []tool.Tool{nasty(bad)}})
	g.writeIn("workspace/AGENTS.md", "Instructions "+bad)
	c := g.Client()
	c.Ask("main", "use the tool "+bad)
	pixel, err := base64.StdEncoding.DecodeString(
		"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	var ack wire.ChatSent
	c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "look", IdempotencyKey: "pic",
		Attachments: []wire.Attachment{{Type: "image", MIME: "image/png", FileName: `"><script>.png`, Content: pixel}}}, &ack)
	c.Await(ack.RunID)
	c.Ask("main", "/name Plans & <b>more</b>")
	c.Ask("main", "/compact")
	c.Ask("main", "and now")

	export := func(t *testing.T, command, name string) string {
		t.Helper()
		got := c.Ask("main", command).Text
		b, err := os.ReadFile(filepath.Join(g.Dir, "workspace", name))
		if err != nil || !strings.HasPrefix(got, "Exported to "+name+" in the workspace (") {
			t.Fatalf("%s: %q, %v", command, got, err)
		}
		return string(b)
	}
	t.Run("one page has the prompt, the tools and the transcript, and no element of a hostile text", func(t *testing.T) {
		page := export(t, "/export-session out/first", "out/first.html")
		text := elements(t, page)
		for _, want := range []string{
			"Plans & <b>more</b>", "mock/m", "Instructions <script>", "said <script>", "thought <script>", "result <script>",
			"🔧 nasty", "use the tool",
			"Compaction", "/compact", "Named Plans", "%s %d {{.}} ${x}", "&lt;b&gt; &#60;script&#62;",
			"<meta http-equiv=refresh",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in the page", want)
			}
		}
		for _, s := range model.Requests()[0].Tools {
			if line, _, _ := strings.Cut(s.Description, "\n"); !strings.Contains(text, line) {
				t.Errorf("the description of %s is not in the page", s.Name)
			}
		}
		last := model.Requests()[len(model.Requests())-1]
		for _, b := range last.System {
			for line := range strings.Lines(b.Text) {
				if line = strings.TrimSpace(line); !strings.ContainsAny(line, "\x00\x1b") && !strings.Contains(text, line) {
					t.Errorf("the page lacks a line of the system prompt: %q", line)
				}
			}
		}
		if strings.Contains(page, canary) || strings.Contains(page, "\x00") || strings.Contains(page, "\x1b") {
			t.Error("a key or a control character is in the page")
		}
		if n := strings.Count(page, "<img "); n != 1 {
			t.Errorf("%d pictures", n)
		}
	})
	t.Run("a path may not leave the workspace, and nothing is replaced", func(t *testing.T) {
		outside := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(g.Dir, "workspace", "away")); err != nil {
			needtest.Missing(t, "symbolic links")
		}
		g.writeIn("workspace/mine.html", "mine")
		for path, want := range map[string]string{
			"../out.html":            "outside the workspace",
			"/tmp/chela-export.html": "not a path in the workspace",
			"~/x.html":               "not a path in the workspace",
			"away/x.html":            "outside the workspace",
			"mine":                   "mine.html already exists",
			"mine.HTML":              "",
			".ssh/x":                 "belongs to Chela",
			"a\x00b":                 "NUL",

			"out/first": "already exists",
			"out":       "",
		} {
			if runtime.GOOS != "linux" && want == "" {
				continue
			}
			got := c.Ask("main", "/export-session "+path).Text
			if want == "" && !strings.HasPrefix(got, "Exported to ") || !strings.Contains(got, want) {
				t.Errorf("%q: %q, want %q", path, got, want)
			}
		}
		if b, _ := os.ReadFile(filepath.Join(g.Dir, "workspace", "mine.html")); string(b) != "mine" {
			t.Errorf("mine.html is %.60q", b)
		}
		if es, _ := os.ReadDir(outside); len(es) != 0 {
			t.Errorf("files outside: %v", es)
		}
	})
	t.Run("without a path, each export has a name of its own", func(t *testing.T) {
		names := map[string]bool{}
		for range 2 {
			got := c.Ask("main", "/export").Text
			name, _, _ := strings.Cut(strings.TrimPrefix(got, "Exported to "), " ")
			info, err := os.Stat(filepath.Join(g.Dir, "workspace", name))
			if err != nil || names[name] || !strings.HasPrefix(name, "session-plans-b-more-b-2") ||
				runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%q: %v, %v", got, info, err)
			}
			names[name] = true
		}
		if left, _ := filepath.Glob(filepath.Join(g.Dir, "workspace", ".tmp-*")); len(left) != 0 {
			t.Errorf("temporary files: %v", left)
		}
	})
	t.Run("MISC-07 a trajectory has the prompt, the requests and the calls, and no key; it can be imported",
		func(t *testing.T) {
			text := export(t, "/export-trajectory trace", "trace.jsonl")
			if strings.Contains(text, canary) {
				t.Error("the key is in the trajectory")
			}
			rows := map[string][]map[string]any{}
			for line := range strings.Lines(text) {
				var r struct {
					Type, CustomType string
					Data             map[string]any
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				rows[r.Type+r.CustomType] = append(rows[r.Type+r.CustomType], r.Data)
			}
			if got := rows["customchela.session"]; len(got) != 1 || got[0]["key"] != "agent:main:main" ||
				got[0]["model"] != "mock/m" || got[0]["costUSD"].(float64) <= 0 {
				t.Errorf("session %v", got)
			}
			if got := fmt.Sprint(rows["customchela.system_prompt"]); !strings.Contains(got, "Instructions <script>") {
				t.Errorf("system prompt %.200s", got)
			}
			if got := rows["customchela.tools"]; len(got) != 1 ||
				len(got[0]["tools"].([]any)) != len(model.Requests()[0].Tools) {
				t.Errorf("tools %.200v", got)
			}
			if got := rows["customchela.request"]; len(got) < 4 || got[0]["stopReason"] != "toolUse" || got[0]["model"] != "m" ||
				got[0]["usage"] == nil || got[0]["toolCalls"] != 1.0 {
				t.Errorf("requests %v", got)
			}
			if got := rows["customchela.run"]; len(got) < 4 || got[0]["state"] != "ok" || got[0]["toolCalls"] != 1.0 ||
				got[0]["origin"] != "person" {
				t.Errorf("runs %v", got)
			}
			if got := rows["customchela.call"]; len(got) != 1 || got[0]["toolName"] != "nasty" || got[0]["state"] != "closed" ||
				got[0]["outcome"] != "ok" || got[0]["decision"] != "allowed" || got[0]["toolCallId"] == "" {
				t.Errorf("calls %v", got)
			}
			in, err := session.Import(strings.NewReader(text))
			if err != nil || in.Branched+in.Duplicates != 0 || len(in.Entries) == 0 {
				t.Errorf("imported %d entries, %d branched: %v", len(in.Entries), in.Branched, err)
			}
		})
	t.Run("sessions.export has the three formats", func(t *testing.T) {
		var out wire.SessionExported
		c.must(wire.MethodSessionsExport, wire.SessionsExport{Key: "main", Format: "html"}, &out)
		if elements(t, out.HTML); !strings.HasSuffix(out.FileName, ".html") || out.JSONL != "" {
			t.Errorf("%s", out.FileName)
		}
		c.must(wire.MethodSessionsExport, wire.SessionsExport{Key: "main", Format: "trajectory"}, &out)
		if !strings.Contains(out.JSONL, "chela.call") || !strings.HasPrefix(out.FileName, "trajectory-") {
			t.Errorf("%s", out.FileName)
		}
		c.must(wire.MethodSessionsExport, wire.SessionsExport{Key: "main"}, &out)
		if strings.Contains(out.JSONL, "chela.call") ||
			!strings.Contains(out.JSONL, base64.StdEncoding.EncodeToString(pixel)) {
			t.Error("the exchange format has other rows, or lacks the picture")
		}
		if err := c.Call(t.Context(), wire.MethodSessionsExport, wire.SessionsExport{Key: "main", Format: "pdf"}, nil); err ==
			nil || !strings.Contains(err.Error(), "jsonl, html or trajectory") {
			t.Errorf("an unknown format: %v", err)
		}
	})
	if dir := os.Getenv("CHELA_TEST_PAGE"); dir != "" {
		b, _ := os.ReadFile(filepath.Join(g.Dir, "workspace", "out", "first.html"))
		if err := os.WriteFile(dir, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// mustJSON returns a value as JSON.
func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExportOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSenders(t, echoing(),
			Config{"agents.list": json.RawMessage(`[{"id": "main", "default": true}, {"id": "ops"}]`),
				"commands": json.RawMessage(`{"ownerAllowFrom": ["open:boss"]}`)})
		defer s.stop()
		files := func(agent string) (names []string) {
			dir := filepath.Join(s.Dir, "workspace"+agent)
			err := walkLive(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && (filepath.Ext(path) == ".html" || filepath.Ext(path) == ".jsonl") {
					names = append(names, d.Name())
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		ada, group := chela.Peer{Kind: chela.Direct, ID: "ada"}, chela.Peer{Kind: chela.Group, ID: "g"}
		s.say("open", ada, "ada", "hello")
		if got := fmt.Sprint(files("")); got != "[]" {
			t.Fatal(got)
		}
		for _, text := range []string{"/export-session", "/export", "/export-trajectory", "/export-session x"} {
			if got := s.say("open", ada, "ada", text); len(files("")) != 0 || strings.Contains(fmt.Sprint(got), "Exported") {
				t.Errorf("%s of somebody who is not an owner: %q, files %v", text, got, files(""))
			}
			if got := s.say("open", group, "ada", "@"+text); len(files("")) != 0 ||
				strings.Contains(fmt.Sprint(got), "Exported") {
				t.Errorf("%s in a group of somebody who is not an owner: %q, files %v", text, got, files(""))
			}
		}
		s.say("open", group, "boss", "@hello")
		if got := s.say("open", group, "boss", "@/export-session group"); len(got) != 1 ||
			!strings.HasPrefix(got[0], "Exported to group.html in the workspace (") {
			t.Errorf("in a group: %q", got)
		}
		if page, _ := os.ReadFile(filepath.Join(s.Dir, "workspace", "group.html")); !strings.Contains(string(page), "re: ") ||
			strings.Contains(string(page), "ada") {
			t.Errorf("the page of the group: %.80q", page)
		}
		s.Client.Ask("agent:ops:main", "hello")
		if got := s.Client.Ask("agent:ops:main", "/export-session x").Text; !strings.HasPrefix(got, "Exported to x.html") ||
			fmt.Sprint(files(""), files("-ops")) != "[group.html] [x.html]" {
			t.Errorf("another agent: %q; files %v, %v", got, files(""), files("-ops"))
		}
		if got := s.Client.Ask("nowhere", "/export-session empty").Text; !strings.Contains(got, "not found") &&
			!strings.HasPrefix(got, "Exported") {
			t.Errorf("a session without messages: %q", got)
		}
	})
}
