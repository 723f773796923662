package chelatest

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// head is the front matter of a skill with more lines.
func head(name, description string, more ...string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n" + strings.Join(append(more, "---", ""), "\n")
}

// listed returns the names of the skills in the last prompt.
func listed(model *llmtest.Script) []string {
	_, list, _ := strings.Cut(lastSystem(model), "<available_skills>\n")
	list, _, _ = strings.Cut(list, "</available_skills>")
	var out []string
	for line := range strings.Lines(list) {
		_, name, _ := strings.Cut(line, "<name>")
		name, _, _ = strings.Cut(name, "</name>")
		out = append(out, name)
	}
	return out
}

func TestSkills(t *testing.T) {
	t.Parallel()
	t.Run("SKILL-01 SKILL-10 the skill of the highest source is listed", skillSources)
	t.Run("SKILL-02 a skill without what it needs is not listed", skillNeeds)
	t.Run("SKILL-03 an agent uses the skills of its list", func(t *testing.T) {
		t.Parallel()
		model := sayOK()
		g := Start(t, Options{Model: model, Config: Config{"agents.defaults": json.RawMessage(`{"skills": ["a"]}`),
			"agents.list": json.RawMessage(`[{"id": "x", "skills": []}, {"id": "y", "skills": ["b"]}]`)}})
		g.writeIn("skills/a/SKILL.md", head("a", "d"))
		g.writeIn("skills/b/SKILL.md", head("b", "d"))
		c := g.Client()
		for agent, want := range map[string]string{"main": "[a]", "x": "[]", "y": "[b]"} {
			c.Ask("agent:"+agent+":main", "hi")
			if got := fmt.Sprint(listed(model)); got != want ||
				strings.Contains(lastSystem(model), "available_skills") != (want != "[]") {
				t.Errorf("%s: %s, want %s", agent, got, want)
			}
		}
	})
	t.Run("SKILL-04 300 skills are all named within the limit", func(t *testing.T) {
		t.Parallel()
		model := sayOK()
		g := Start(t, Options{Model: model, Config: section("skills", `{"limits": {"maxSkillsInPrompt": 300}}`)})
		for i := range 300 {
			g.writeIn(fmt.Sprintf("skills/s%03d/SKILL.md", i),
				head(fmt.Sprintf("skill-%03d", i), strings.Repeat("describes ", 30)))
		}
		g.Client().Ask("main", "hi")
		_, list, _ := strings.Cut(lastSystem(model), "<available_skills>")
		list, _, _ = strings.Cut(list, "\n\n")
		if n := utf8.RuneCountInString(list); n > 18_000 || !strings.Contains(list, "chela skills") {
			t.Errorf("%d characters", n)
		}
		for i := range 300 {
			if name := fmt.Sprintf("skill-%03d", i); strings.Count(list, name) != 1 {
				t.Errorf("%s is named %d times", name, strings.Count(list, name))
			}
		}
	})
	t.Run("SKILL-05 an edit is in the next turn, and nothing else of the prompt changes", func(t *testing.T) {
		t.Parallel()
		model := sayOK()
		g := Start(t, Options{Model: model})
		g.writeIn("skills/a/SKILL.md", head("a", "old words"))
		c := g.Client()
		c.Ask("main", "hi")
		first := lastSystem(model)
		c.Ask("main", "hi")
		if lastSystem(model) != first {
			t.Error("the prompt changes by itself")
		}
		g.writeIn("skills/a/SKILL.md", head("a", "new words"))
		c.Ask("main", "hi")
		if got, want := lastSystem(model), strings.Replace(first, "old words", "new words", 1); got != want {
			t.Errorf("the prompt:\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("SKILL-08 a link that leaves its folder is not followed", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS == "windows" {
			t.Skip("needs links")
		}
		model, out := sayOK(), t.TempDir()
		g := Start(t, Options{Model: model})
		writeUnder(t, out, "evil/SKILL.md", head("evil", "d"))
		g.writeIn("skills/good/SKILL.md", head("good", "d"))
		if err := os.Symlink(filepath.Join(out, "evil"), filepath.Join(g.Dir, "skills", "evil")); err != nil {
			t.Fatal(err)
		}
		g.Client().Ask("main", "hi")
		if got := fmt.Sprint(listed(model)); got != "[good]" {
			t.Error(got)
		}
	})
	t.Run("SKILL-12 a prompt has names, and the text comes with one read", func(t *testing.T) {
		t.Parallel()
		var bodies []int
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			b, err := json.Marshal(r)
			if err != nil {
				return llmtest.Say(err.Error())
			}
			bodies = append(bodies, strings.Count(string(b), "BODY"))
			if n == 0 {
				return llmtest.Call("c1", "read", `{"path":"skills:tea"}`)
			}
			return llmtest.Say("done")
		})
		g := Start(t, Options{Model: model, Register: withSkills("tea", "coffee", "water")})
		g.Client().Ask("main", "make tea")
		if got, want := fmt.Sprint(listed(model)), "[coffee tea water]"; got != want || !slices.Equal(bodies, []int{0, 1}) {
			t.Errorf("%s, the text occurs %v times", got, bodies)
		}
	})
}

// skillSources removes a skill from one source after the other.
func skillSources(t *testing.T) {
	t.Parallel()
	dir, extra, home := t.TempDir(), t.TempDir(), t.TempDir()
	raw, err := json.Marshal(map[string]any{
		"load":    map[string]any{"extraDirs": []string{extra}},
		"entries": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	places := []struct{ name, dir string }{
		{"workspace", filepath.Join(dir, "workspace", "skills")},
		{"project", filepath.Join(dir, "workspace", ".agents", "skills")},
		{"personal", filepath.Join(home, ".agents", "skills")}, {"managed", filepath.Join(dir, "skills")},
		{"bundled", ""}, {"extra", extra},
	}
	for _, p := range places {
		if p.dir != "" {
			writeUnder(t, p.dir, "tea/SKILL.md", head("tea", "from "+p.name))
		}
	}
	model := sayOK()
	g := Start(t, Options{
		Dir:      dir,
		Model:    model,
		Env:      map[string]string{"HOME": home},
		Config:   Config{"skills": raw},
		Register: withSkills("tea"),
	})
	c := g.Client()
	for i, p := range places[:5] {
		c.Ask("main", "hi")
		want := "from " + p.name
		if p.dir == "" {
			want = "makes tea"
		}
		if got := lastSystem(model); !strings.Contains(got, "<name>tea</name><description>"+want+"</description>") ||
			strings.Count(got, "<name>tea</name>") != 1 {
			t.Errorf("step %d: want %s", i, want)
		}
		if p.dir == "" {
			break
		}
		if err := os.RemoveAll(filepath.Join(p.dir, "tea")); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("SKILL-10 a bundled skill that is not allowed gives way to none", func(t *testing.T) {
		m := sayOK()
		g := Start(t, Options{Model: m, Config: section("skills", `{"allowBundled": ["water"]}`),
			Register: withSkills("tea", "water")})
		g.Client().Ask("main", "hi")
		if got := fmt.Sprint(listed(m)); got != "[water]" {
			t.Error(got)
		}
	})
}

// skillNeeds checks what skills require.
func skillNeeds(t *testing.T) {
	t.Parallel()
	model := sayOK()
	g := Start(t, Options{
		Model: model, Env: map[string]string{"THERE": "1"},
		Config: Config{"skills": json.RawMessage(`{"entries": {"env-entry": {"env": {"MISSING": "x"}}, "key": {"apiKey": "k-0123456789"}, "off": {"enabled": false}}}`), "logging": json.RawMessage(`{"level": "warn"}`)},
	})
	needs := func(name, requires string, more ...string) {
		g.writeIn("skills/"+name+"/SKILL.md",
			head(name, "d", append([]string{`metadata: {"openclaw": {"requires": ` + requires + `}}`}, more...)...))
	}
	needs("bins-ok", `{"bins": ["sh"]}`)
	needs("bins-no", `{"bins": ["sh", "no-such-program"]}`)
	needs("any-ok", `{"anyBins": ["no-such-program", "sh"]}`)
	needs("any-no", `{"anyBins": ["no-such-program"]}`)
	needs("env-ok", `{"env": ["THERE"]}`)
	needs("env-no", `{"env": ["MISSING"]}`)
	needs("env-entry", `{"env": ["MISSING"]}`)
	needs("config-ok", `{"config": ["logging.level"]}`)
	needs("config-no", `{"config": ["browser.enabled"]}`)
	needs("off", `{}`)
	g.writeIn("skills/key/SKILL.md",
		head("key", "d", `metadata: {"clawdbot": {"primaryEnv": "OTHER", "requires": {"env": ["OTHER"]}}}`))
	g.writeIn("skills/os-no/SKILL.md", head("os-no", "d", `metadata: {"openclaw": {"os": ["plan9"]}}`))
	g.writeIn("skills/os-ok/SKILL.md", head("os-ok", "d", `metadata: {"openclaw": {"os": ["`+runtime.GOOS+`"]}}`))
	g.writeIn("skills/always/SKILL.md", head("always", "d", "metadata:", "  openclaw:", "    always: true",
		"    requires:", "      bins: [no-such-program]"))
	g.writeIn("skills/json5/SKILL.md", head("json5", "d", "metadata: |", "  { // JSON5",
		"    openclaw: { requires: { bins: ['no-such-program'], }, },", "  }"))
	g.Client().Ask("main", "hi")
	want := "[always any-ok bins-ok config-ok env-entry env-ok key os-ok]"
	if got := fmt.Sprint(listed(model)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// withSkills registers bundled skills.
func withSkills(names ...string) func(*standard.Registry) {
	files := fstest.MapFS{}
	for _, name := range names {
		files[name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(head(name, "makes "+name) + "BODY of " + name + "\n")}
	}
	return func(r *standard.Registry) { r.Skills(files) }
}

// echoTool answers with its arguments.
type echoTool struct{ calls *atomic.Int32 }

func (echoTool) Spec() tool.Spec {
	return tool.Spec{Name: "echo", Description: "echoes", Effect: tool.Acts, Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"commandName":{"type":"string"},"skillName":{"type":"string"}}}`)}
}

func (e echoTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	e.calls.Add(1)
	return tool.Text("echo " + string(c.Args)), nil
}

func TestSkillCommands(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	model := uses()
	g := Start(t, Options{Model: model, Tools: []tool.Tool{echoTool{&calls}},
		Config: Config{"agents.list": json.RawMessage(`[{"id": "x", "skills": []}]`),
			"tools": json.RawMessage(`{"exec": {"mode": "ask"}}`)}})
	g.writeIn("skills/x/SKILL.md", head("x", "echoes what is typed", "command-dispatch: tool", "command-tool: echo",
		"command-arg-mode: raw"))
	g.writeIn("skills/quiet/SKILL.md", head("Quiet Skill", "is for people only", "disable-model-invocation: true"))
	g.writeIn("skills/model/SKILL.md", head("model-only", "is for models only", "user-invocable: false"))
	g.writeIn("skills/status/SKILL.md", head("status", "has the name of a command"))
	g.writeIn("skills/status_2/SKILL.md", head("status_2", "has the name of that of a skill", "command-dispatch: tool",
		"command-tool: echo"))
	g.writeIn("skills/run/SKILL.md", head("run", "runs commands", "command-dispatch: tool", "command-tool: exec"))
	g.writeIn("skills/long/SKILL.md", head("a-very-long-name-of-a-skill-that-does-not-fit", "is long"))
	g.writeIn("skills/bad/SKILL.md", head("bad", "names no tool", "command-dispatch: tool"))
	c := g.Client()
	t.Run("SKILL-06 a command calls the tool without a model", func(t *testing.T) {
		for i, text := range []string{"/x a  b", "/skill x a  b", "/X: a  b"} {
			end := c.Ask("main", text)
			if want := `echo {"command":"a  b","commandName":"x","skillName":"x"}`; end.Text != want ||
				int(calls.Load()) != i+1 {
				t.Errorf("%s: %q after %d calls, want %q", text, end.Text, calls.Load(), want)
			}
		}
		if n := len(model.Requests()); n != 0 {
			t.Errorf("%d requests to the model", n)
		}
		if end := c.Ask("agent:x:main", "/x a"); strings.Contains(end.Text, "echo {") {
			t.Errorf("an agent without the skill calls its tool: %q", end.Text)
		}
	})
	t.Run("SKILL-06 a call that needs an approval is not made", func(t *testing.T) {
		if end := c.Ask("main", "/run touch /tmp/chela-skill-test-file"); !strings.Contains(end.Text, "needs an approval") {
			t.Errorf("%q", end.Text)
		}
	})
	t.Run("SKILL-09 a skill that is not in prompts has a command", func(t *testing.T) {
		for _, text := range []string{"/quiet_skill for me", "/skill quiet-skill for me"} {
			n := len(model.Requests())
			c.Ask("main", text)
			last := said(model.Requests()[n])
			want := "Use the skill Quiet Skill: read " + filepath.Join(g.Dir, "skills", "quiet", "SKILL.md") +
				" first, and follow it.\n\nfor me"
			if got := last[len(last)-1]; !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if strings.Contains(lastSystem(model), "Quiet Skill") {
			t.Error("it is in the prompt")
		}
		if end := c.Ask("main", `read {"path":"`+filepath.Join(g.Dir, "skills", "quiet", "SKILL.md")+
			`"}`); !strings.Contains(end.Text, "is for people only") {
			t.Errorf("it cannot be read: %q", end.Text)
		}
	})
	t.Run("a skill never has the name of a command", func(t *testing.T) {
		if end := c.Ask("main", "/status"); !strings.Contains(end.Text, "Session:") {
			t.Errorf("/status: %q", end.Text)
		}
		list := c.Ask("main", "/commands").Text
		for _, want := range []string{"- /x [input]: echoes what is typed", "- /quiet_skill ",
			"- /status_2 [input]: has the name of a command", "- /a_very_long_name_of_a_skill_that ", "- /bad "} {
			if !strings.Contains(list, "\n"+want) {
				t.Errorf("/commands does not have %q:\n%s", want, list)
			}
		}
		if end := c.Ask("main", "/status_2 a"); strings.Contains(end.Text, "skillName") {
			t.Errorf("/status_2 calls the skill with this name: %q", end.Text)
		}
		if end := c.Ask("main", "/status_2_2 a"); !strings.Contains(end.Text, `"skillName":"status_2"`) {
			t.Errorf("/status_2_2: %q", end.Text)
		}
		if strings.Contains(list, "model_only") {
			t.Error("/commands has a skill that is for models only")
		}
		var l wire.CommandsList
		if err := c.Call(t.Context(), wire.MethodCommandsList, wire.CommandsGet{}, &l); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(l.Commands, func(w wire.Command) bool { return w.Name == "x" }); i < 0 ||
			l.Commands[i].Source != "skill" || !l.Commands[i].AcceptsArgs {
			t.Errorf("commands.list: %+v", l.Commands)
		}
		if end := c.Ask("main", "/skill nope"); !strings.Contains(end.Text, "There is no skill nope. The skills:\n") {
			t.Errorf("%q", end.Text)
		}
	})
}

func TestSkillEnvironment(t *testing.T) {
	t.Parallel()
	t.Run("SKILL-07 commands of an agent with the skill get its variables, and no other ones", func(t *testing.T) {
		t.Parallel()
		model := uses()
		config := full()
		config["agents.list"] = json.RawMessage(`[{"id": "without", "skills": ["other"]}]`)
		config["skills"] = json.RawMessage(`{"entries": {"weather": {"apiKey": "env:WEATHER_SECRET", "env": {"PLACE": "Lisbon-0123456789", "HOME": "/nowhere", "LD_PRELOAD": "/x.so"}}}}`)
		g := Start(t, Options{Model: model, Config: config, Env: map[string]string{"WEATHER_SECRET": "sesame-open-4711"}})
		g.writeIn("skills/weather/SKILL.md", head("weather", "d", `metadata: {"openclaw": {"primaryEnv": "WEATHER_KEY"}}`))
		g.writeIn("skills/other/SKILL.md", head("other", "d"))
		c := g.Client()
		// Lengths tell the variables apart, whose values are hidden.
		command := `exec {"command":"printf '%s;%s;%s;%s' ${#WEATHER_KEY} ${#PLACE} \"$HOME\" \"$LD_PRELOAD\"; printf ' %s' \"$WEATHER_KEY\""}`
		with, without := g.Client(), g.Client()
		first, second := with.Send("agent:main:main", command), without.Send("agent:without:main", command)
		if end := with.Await(first); !strings.Contains(end.Text, "16;17;"+g.Dir+";") ||
			strings.Contains(end.Text, "sesame") || !strings.Contains(end.Text, "[redacted]") {
			t.Errorf("with the skill: %q", end.Text)
		}
		if end := without.Await(second); !strings.Contains(end.Text, "0;0;"+g.Dir+";") {
			t.Errorf("without the skill: %q", end.Text)
		}
		if os.Getenv("WEATHER_KEY") != "" || os.Getenv("PLACE") == "Lisbon-0123456789" {
			t.Error("this process has the variables")
		}
		if end := c.Ask("main", `exec {"command":"echo ${#PLACE}","env":{"PLACE":"abc"}}`); !strings.Contains(end.Text, "3") {
			t.Errorf("a variable of the call: %q", end.Text)
		}
	})
}

// registry is a registry of skills with one, tea.
type registry struct {
	*httptest.Server
	version atomic.Pointer[string]
	down    atomic.Bool
}

func newRegistry(t *testing.T) *registry {
	r := &registry{}
	v := "1.0"
	r.version.Store(&v)
	archive := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create("tea/SKILL.md")
		if err == nil {
			_, err = w.Write([]byte(head("tea", "tea of the registry, version "+*r.version.Load())))
		}
		if err := errors.Join(err, z.Close()); err != nil {
			t.Error(err)
		}
		return b.Bytes()
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		listing := map[string]any{
			"slug":        "tea",
			"name":        "Tea",
			"description": "makes\n\u202e tea",
			"version":     *r.version.Load(),
		}
		switch {
		case r.down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case q.URL.Path == "/v1/skills" && strings.Contains("tea", q.URL.Query().Get("q")):
			_ = json.NewEncoder(w).Encode(map[string]any{"skills": []any{listing, map[string]any{"slug": "../evil"}}})
		case q.URL.Path == "/v1/skills/tea":
			listing["versions"] = []any{map[string]any{
				"version": *r.version.Load(),
				"sha256":  fmt.Sprintf("%x", sha256.Sum256(archive())),
				"url":     "files/tea.zip",
			}, map[string]any{"version": "0.1", "sha256": strings.Repeat("0", 64), "url": "files/tea.zip"}}
			_ = json.NewEncoder(w).Encode(listing)
		case q.URL.Path == "/files/tea.zip":
			_, _ = w.Write(archive())
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func TestSkillMethods(t *testing.T) {
	t.Parallel()
	t.Run("SKILL-11 a skill is found in a registry, installed and updated", func(t *testing.T) {
		t.Parallel()
		r := newRegistry(t)
		model := sayOK()
		g := Start(t, Options{Model: model, Config: section("skills", `{"registry": {"url": "`+r.URL+`"}}`)})
		c := g.Client()
		var found wire.SkillsFound
		if err := c.Call(t.Context(), wire.MethodSkillsSearch, wire.SkillsSearch{Query: "tea"}, &found); err != nil ||
			len(found.Results) != 1 || found.Results[0].Slug != "tea" {
			t.Fatalf("search: %+v, %v", found, err)
		}
		var shown, done wire.SkillInstalled
		in := wire.SkillsInstall{From: "tea", Preview: true}
		if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, &shown); err != nil || shown.OK ||
			shown.Origin.Version != "1.0" {
			t.Fatalf("preview: %+v, %v", shown, err)
		}
		in.Preview, in.Hash = false, shown.Origin.Hash
		if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, &done); err != nil || !done.OK ||
			done.Skill.Dir != filepath.Join(g.Dir, "skills", "tea") {
			t.Fatalf("install: %+v, %v", done, err)
		}
		c.Ask("main", "hi")
		if !strings.Contains(lastSystem(model), "tea of the registry, version 1.0") {
			t.Error("the next turn does not list it")
		}
		v := "1.1"
		r.version.Store(&v)
		var updated wire.SkillsUpdated
		if err := c.Call(t.Context(), wire.MethodSkillsUpdate, wire.SkillsUpdate{All: true}, &updated); err != nil ||
			len(updated.Updates) != 1 || !updated.Updates[0].OK || updated.Updates[0].Old.Version != "1.0" {
			t.Fatalf("update: %+v, %v", updated, err)
		}
		c.Ask("main", "hi")
		if !strings.Contains(lastSystem(model), "tea of the registry, version 1.1") {
			t.Error("the update is not listed")
		}
		if err := c.Call(t.Context(), wire.MethodSkillsInstall, wire.SkillsInstall{From: "tea@0.1", Replace: true},
			nil); err == nil || !strings.Contains(err.Error(), "has the hash") {
			t.Errorf("an archive with another hash: %v", err)
		}
		r.down.Store(true)
		err := c.Call(t.Context(), wire.MethodSkillsUpdate, wire.SkillsUpdate{Slug: "tea"}, nil)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "status 503") {
			t.Errorf("offline: %v", err)
		}
		var s wire.SkillsStatus
		if err := c.Call(t.Context(), wire.MethodSkillsStatus, wire.SkillsGet{}, &s); err != nil || len(s.Skills) != 1 ||
			s.Skills[0].Origin == nil || s.Skills[0].Origin.Version != "1.1" || s.Skills[0].Edited {
			t.Errorf("offline, the list: %+v, %v", s, err)
		}
	})
	t.Run("SKILL-11 a model searches, and installs after consent", func(t *testing.T) {
		t.Parallel()
		r := newRegistry(t)
		model := uses()
		g := Start(t, Options{Model: model, Config: section("skills", `{"registry": {"url": "`+r.URL+`"}}`)})
		c := g.Client()
		if end := c.Ask("main", `skills {"action":"search","query":"tea"}`); !strings.Contains(end.Text,
			"tea 1.0: makes tea") {
			t.Errorf("search: %q", end.Text)
		}
		for _, decision := range []string{wire.Deny, wire.AllowOnce} {
			run := c.Send("main", `skills {"action":"install","name":"tea"}`)
			q := c.question()
			if !strings.Contains(fmt.Sprintf("%+v", q), "Install the skill tea 1.0 from the registry") {
				t.Errorf("the person is asked: %+v", q)
			}
			c.decide(q.ID, decision)
			end := c.Await(run)
			_, err := os.Stat(filepath.Join(g.Dir, "skills", "tea", "SKILL.md"))
			if installed := err == nil; installed != (decision == wire.AllowOnce) ||
				installed != strings.Contains(end.Text, "Installed tea 1.0. Read "+filepath.Join(g.Dir, "skills",
					"tea", "SKILL.md")) {
				t.Errorf("%s: %q, %v", decision, end.Text, err)
			}
		}
		c.Ask("main", "ls {}")
		if got := fmt.Sprint(listed(model)); got != "[tea]" {
			t.Error(got)
		}
		if end := c.Ask("main", `skills {"action":"install","name":"tea"}`); !strings.Contains(end.Text,
			"is installed already") {
			t.Errorf("installed twice: %q", end.Text)
		}
	})
	t.Run("without a registry, a search says how to configure one", func(t *testing.T) {
		t.Parallel()
		c := Start(t, Options{}).Client()
		if err := c.Call(t.Context(), wire.MethodSkillsSearch, wire.SkillsSearch{Query: "x"}, nil); err == nil ||
			!strings.Contains(err.Error(), "skills.registry.url") {
			t.Error(err)
		}
	})
	t.Run("SKILL-02 skills.status says what is missing", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{})
		g.writeIn("skills/x/SKILL.md", head("x", "d", `metadata: {"openclaw": {"requires": {"bins": ["nope"], "env": ["A"]}, "install": [{"kind": "brew", "formula": "nope"}]}}`))
		g.writeIn("skills/broken/SKILL.md", "---\nname: [\n---\n")
		var s wire.SkillsStatus
		if err := g.Client().Call(t.Context(), wire.MethodSkillsStatus, wire.SkillsGet{}, &s); err != nil ||
			len(s.Skills) != 1 || len(s.Problems) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		if k := s.Skills[0]; k.Eligible || fmt.Sprint(k.Reasons) != "[missing program: nope missing variable: A]" ||
			k.Install[0].Label != "brew install nope" || k.ModelVisible || k.CommandVisible {
			t.Errorf("%+v", k)
		}
	})
	t.Run("an agent's own skill, from a Git repository", gitSkill)
	t.Run("settings of a skill are changed, and never shown", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{})
		c := g.Client()
		key, off := "sesame-open-4711", false
		if err := c.Call(t.Context(), wire.MethodSkillsUpdate,
			wire.SkillsUpdate{Key: "x", Enabled: &off, APIKey: &key, Env: map[string]*string{"A_B": &key}}, nil); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(g.Dir, "chela.json"))
		if err != nil || strings.Count(string(b), key) != 2 || !strings.Contains(string(b), "A_B") {
			t.Errorf("%s, %v", b, err)
		}
		var got json.RawMessage
		if err := c.Call(t.Context(), wire.MethodConfigGet, wire.None{}, &got); err != nil ||
			bytes.Contains(got, []byte(key)) {
			t.Errorf("the configuration shows the key: %v", err)
		}
	})
}

// gitSkill installs a skill of a repository, whose hooks and filters must not run.
func gitSkill(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/git"); err != nil {
		needtest.Missing(t, "git")
	}
	repo, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	writeUnder(t, repo, "skills/tea/SKILL.md", head("tea", "d"))
	writeUnder(t, repo, "skills/other/SKILL.md", head("other", "d"))
	writeUnder(t, repo, ".gitattributes", "* filter=evil\n")
	config := full()
	model := uses()
	g := Start(t, Options{Model: model, Config: config})
	c := g.Client()
	commands := "cd '" + repo + "' && git init -q && git config user.email a@b.c && git config user.name n && git add . && git commit -qm one && git config filter.evil.smudge 'touch " + mark + "' && git tag v1 && git rev-parse HEAD"
	args, err := json.Marshal(map[string]string{"command": commands})
	if err != nil {
		t.Fatal(err)
	}
	commit := c.Ask("main", "exec "+string(args)).Text
	var done wire.SkillInstalled
	in := wire.SkillsInstall{From: "file://" + repo + "#v1", AgentID: "main"}
	if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, &done); err == nil ||
		!strings.Contains(err.Error(), "skills/other, skills/tea") {
		t.Errorf("several skills: %v", err)
	}
	in.Path = "skills/tea"
	if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, &done); err != nil {
		t.Fatal(err)
	}
	if done.Skill.Dir != filepath.Join(g.Dir, "workspace", "skills", "tea") || done.Origin.Commit == "" ||
		!strings.Contains(commit, done.Origin.Commit) {
		t.Errorf("%+v, the commit is %s", done, commit)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a filter of the repository ran")
	}
	for _, from := range []string{"ext::sh -c touch% /tmp/x", "-u", "https://127.0.0.1:1/x.git",
		"http://example.org/a.zip"} {
		if err := c.Call(t.Context(), wire.MethodSkillsInstall, wire.SkillsInstall{From: from}, nil); err == nil {
			t.Errorf("%s is accepted", from)
		}
	}
	var removed wire.SkillRemoved
	if err := c.Call(t.Context(), wire.MethodSkillsRemove, wire.SkillsRemove{AgentID: "main", Name: "tea"},
		&removed); err != nil || removed.Removed != done.Skill.Dir {
		t.Errorf("%+v, %v", removed, err)
	}
}
