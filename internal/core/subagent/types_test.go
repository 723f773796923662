package subagent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/subagent"
)

func TestParseType(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want subagent.Type
		err  string
	}{
		{"---\nname: Critic\ndescription: |\n  reads a text\n  and says what is weak\ntools: read, grep ,\nmodel: mock/m\nthinking: low\nreadOnly: true\n---\n\nBe strict.\n", subagent.Type{
			Name: "critic", Description: "reads a text and says what is weak", Tools: run.Tools{Allow: []string{"read", "grep"}},
			Model: "mock/m", Think: "low", ReadOnly: true, Prompt: "Be strict.",
		}, ""},
		{"\ufeff---\r\ndescription: d\r\ntools:\r\n  - read\r\n  - 'web_*'\r\ndisallowedTools: [exec]\r\nmodel: inherit\r\n---\r\n", subagent.Type{
			Name: "file", Description: "d", Tools: run.Tools{Allow: []string{"read", "web_*"}, Deny: []string{"exec"}},
		}, ""},
		{"--- \nname: critic\ndescription: use it for reviews: text and code\n---",
			subagent.Type{Name: "critic", Description: "use it for reviews: text and code"}, ""},
		{"Be strict.", subagent.Type{}, "it does not begin with front matter"},
		{"---\nname: x\n", subagent.Type{}, "front matter: it begins in line 1, and no line --- ends it"},
		{"---\nname: x\n---\n", subagent.Type{}, "it has no description"},
		{"---\ndescription: d\nthinking: hugely\n---\n", subagent.Type{},
			`thinking "hugely": want one of off, minimal, low,`},
		{"---\nname: a b\ndescription: d\n---\n", subagent.Type{}, `name "a b"`},
		{"---\nname: [\n---\n", subagent.Type{}, "front matter: "},
		{"---\ndescription: d\ntools: {a: 1}\n---\n", subagent.Type{}, "front matter: "},
	} {
		got, err := subagent.ParseType("file", []byte(tc.text))
		if text := errorText(err); (text == "") != (tc.err == "") || !strings.HasPrefix(text, tc.err) {
			t.Errorf("%q: error %q, want %q", tc.text, text, tc.err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.text, diff)
		}
	}
	long, err := subagent.ParseType("x", []byte("---\ndescription: "+strings.Repeat("长", 300)+"\n---\n"))
	if err != nil || len([]rune(long.Description)) != 200 || !strings.HasSuffix(long.Description, "…") {
		t.Errorf("long description: %d characters, %v", len([]rune(long.Description)), err)
	}
}

func FuzzParseType(f *testing.F) {
	f.Add("---\nname: x\ndescription: d\ntools: [a, b]\n---\nbody")
	f.Add("---\na: &a [*a]\n---\n")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := subagent.ParseType("x", []byte(s))
		if err == nil && (got.Name == "" || got.Description == "" || strings.Contains(got.Description, "\n")) {
			t.Errorf("%+v", got)
		}
	})
}

func TestTypes(t *testing.T) {
	t.Parallel()
	list := subagent.MergeTypes([]subagent.Type{{Name: "critic", Description: "c"}, {Name: "plan", Description: "mine"}},
		[]subagent.Type{{Name: "general", Description: "a plug-in's"}, {Name: "critic", Description: "a plug-in's"},
			{Name: "tester", Description: "t"}})
	var names []string
	for _, k := range list {
		names = append(names, k.Name)
	}
	if !slices.Equal(names, []string{"critic", "explore", "general", "plan", "tester"}) {
		t.Errorf("types %v", names)
	}
	if k, err := subagent.FindType(list, " EXPLORE"); err != nil || !k.ReadOnly || k.Prompt == "" {
		t.Errorf("explore: %+v, %v", k, err)
	}
	for _, name := range [...]string{"critic", "general"} {
		if k, _ := subagent.FindType(list, name); k.Description == "a plug-in's" {
			t.Errorf("a plug-in replaces the type %s", name)
		}
	}
	if k, _ := subagent.FindType(list, "plan"); k.Description != "mine" {
		t.Errorf("a type of the workspace does not replace the built-in one: %+v", k)
	}
	var own []subagent.Type
	taken := map[string]string{}
	for _, f := range [...]struct{ name, text string }{
		{"a", "---\nname: critic\ndescription: first\n---\n"}, {"b", "---\nname: Critic\ndescription: second\n---\n"},
		{"plan", "---\ndescription: [\n---\n"},
	} {
		own = subagent.AddType(own, taken, "agents/"+f.name+".md", f.name, []byte(f.text))
	}
	if k := subagent.AddType(nil, map[string]string{}, "agents/x.md", "x",
		[]byte("---\ndescription: x\nmodle: m\ncolor: red\n---\n"))[0]; k.Warning !=
		"agents/x.md: unknown keys have no effect: color, modle" {
		t.Errorf("unknown keys: %+v", k)
	}
	broken := subagent.MergeTypes(own, nil)
	if k, err := subagent.FindType(broken, "critic"); err != nil || k.Description != "first" {
		t.Errorf("the first of two types with one name: %+v, %v", k, err)
	}
	if _, err := subagent.FindType(broken, "plan"); !strings.HasPrefix(errorText(err),
		`the agent type "plan" cannot be used: agents/plan.md: front matter: line `) {
		t.Errorf("a type that is not valid: %v", err)
	}
	if got := subagent.Problems(broken); len(got) != 2 ||
		got[0] != "agents/b.md: the name critic is taken by agents/a.md" || !strings.HasPrefix(got[1], "agents/plan.md: ") {
		t.Errorf("problems %q", got)
	}
	if _, err := subagent.FindType(list, "pilot"); errorText(err) !=
		`there is no agent type "pilot"; there are critic, explore, general, plan, tester` {
		t.Errorf("unknown: %v", err)
	}
}
