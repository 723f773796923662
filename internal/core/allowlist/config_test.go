package allowlist_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
)

// configuration reads a configuration as from tools.exec.
func configuration(t *testing.T, text string) allowlist.Config {
	t.Helper()
	var c allowlist.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// text describes a policy.
func text(p allowlist.Policy) string {
	s := string(p.Security) + " " + string(p.Ask) + " fallback " + string(p.Fallback)
	if p.Reads {
		s += " reads"
	}
	if p.Work {
		s += " work"
	}
	return s
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ config, want string }{
		{`{}`, "allowlist on-miss fallback deny reads work"},
		{`{"mode":"auto"}`, "allowlist on-miss fallback deny reads work"},
		{`{"mode":"ask"}`, "allowlist on-miss fallback deny reads"},
		{`{"mode":"review"}`, "allowlist on-miss fallback deny reads"},
		{`{"mode":"on-miss"}`, "allowlist on-miss fallback deny reads"},
		{`{"mode":"sudo"}`, "allowlist on-miss fallback deny reads"},
		{`{"mode":"full"}`, "full off fallback deny reads"},
		{`{"mode":"off"}`, "full off fallback deny reads"},
		{`{"mode":"always"}`, "allowlist always fallback deny reads"},
		{`{"mode":"allowlist"}`, "allowlist off fallback deny reads"},
		{`{"mode":"deny"}`, "deny off fallback deny reads"},
		{`{"mode":"maybe"}`, "error"},

		{`{"security":"deny"}`, "deny on-miss fallback deny reads"},
		{`{"security":"allowlist"}`, "allowlist on-miss fallback deny"},
		{`{"security":"full"}`, "full on-miss fallback deny reads"},
		{`{"security":"off"}`, "full off fallback deny reads"},
		{`{"security":"ask","ask":"off"}`, "allowlist off fallback deny reads"},
		{`{"security":"review"}`, "allowlist on-miss fallback deny reads"},
		{`{"security":"sudo"}`, "allowlist on-miss fallback deny reads"},
		{`{"security":"maybe"}`, "error"},

		{`{"ask":"off"}`, "allowlist off fallback deny reads work"},
		{`{"ask":"on-miss"}`, "allowlist on-miss fallback deny reads"},
		{`{"ask":"always"}`, "allowlist always fallback deny reads"},
		{`{"ask":true}`, "allowlist always fallback deny reads"},
		{`{"ask":"true"}`, "allowlist always fallback deny reads"},
		{`{"ask":false}`, "allowlist on-miss fallback deny reads work"},
		{`{"ask":"false"}`, "allowlist on-miss fallback deny reads work"},
		{`{"ask":1}`, "error"},
		{`{"ask":"maybe"}`, "error"},

		// With a mode, the other settings can only make it stricter.
		{`{"mode":"auto","security":"full","ask":"off"}`, "allowlist on-miss fallback deny reads"},
		{`{"mode":"full","security":"allowlist"}`, "allowlist off fallback deny"},
		{`{"mode":"full","ask":"always"}`, "full always fallback deny reads"},
	} {
		c := configuration(t, tt.config)
		p, err := c.Policy(allowlist.Default())
		got := text(p)
		if err != nil {
			got = "error"
		}
		if got != tt.want || (c.Check() == nil) != (err == nil) {
			t.Errorf("%s: %s, %v, want %s", tt.config, got, err, tt.want)
		}
	}
	if p, err := configuration(t, `{"ask":"always"}`).Policy(allowlist.Permissive()); err != nil ||
		text(p) != "full always fallback deny reads" {
		t.Errorf("on another base: %s, %v", text(p), err)
	}
	for profile, ok := range map[string]bool{
		`{}`:                                    true,
		`{"minPositional":1,"maxPositional":1}`: true,
		`{"minPositional":2,"maxPositional":1}`: false,
		`{"minPositional":-1}`:                  false,
	} {
		if err := configuration(t, `{"safeBinProfiles":{"rg":`+profile+`}}`).Check(); (err == nil) != ok ||
			err != nil && !strings.Contains(err.Error(), "safeBinProfiles.rg") {
			t.Errorf("profile %s: %v", profile, err)
		}
	}
}

// An agent's configuration takes what it leaves open from that of all agents.
func TestWithDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, own, all, want string }{
		{"nothing", `{}`, `{"mode":"ask","security":"deny","ask":"always","safeBins":["a"],"safeBinTrustedDirs":["/a"],"strictInlineEval":true}`,
			`{"mode":"ask","security":"deny","ask":"always","safeBins":["a"],"safeBinTrustedDirs":["/a"],"strictInlineEval":true}`},
		{"a mode replaces mode, security and ask", `{"mode":"auto"}`, `{"mode":"deny","security":"deny","ask":"always"}`,
			`{"mode":"auto"}`},
		{"security and ask for themselves", `{"security":"full"}`, `{"mode":"ask","security":"deny","ask":"always"}`,
			`{"mode":"ask","security":"full","ask":"always"}`},
		{"ask", `{"ask":"off"}`, `{"security":"deny","ask":"always"}`, `{"security":"deny","ask":"off"}`},
		{"ask that is false", `{"ask":false}`, `{"ask":"always"}`, `{"ask":"always"}`},
		{"ask that is empty", `{"ask":""}`, `{"ask":"always"}`, `{"ask":"always"}`},
		{"no safe bins", `{"safeBins":[]}`, `{"safeBins":["a"]}`, `{"safeBins":[]}`},
		{"folders of both", `{"safeBinTrustedDirs":["/b"]}`, `{"safeBinTrustedDirs":["/a"]}`,
			`{"safeBinTrustedDirs":["/a","/b"]}`},
		{"not strict", `{"strictInlineEval":false}`, `{"strictInlineEval":true}`, `{"strictInlineEval":false}`},
		{"profiles of both", `{"safeBinProfiles":{"a":{"maxPositional":1}}}`,
			`{"safeBinProfiles":{"a":{"maxPositional":2},"b":{"maxPositional":3}}}`,
			`{"safeBinProfiles":{"a":{"maxPositional":1},"b":{"maxPositional":3}}}`},
		{"profiles of its own", `{"safeBinProfiles":{"a":{"maxPositional":1}}}`, `{}`,
			`{"safeBinProfiles":{"a":{"maxPositional":1}}}`},
	} {
		all := configuration(t, tt.all)
		got, want := configuration(t, tt.own).WithDefaults(all), configuration(t, tt.want)
		unexported := cmp.Exporter(func(reflect.Type) bool { return true })
		if diff := cmp.Diff(want, got, unexported); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(configuration(t, tt.all).Profiles, all.Profiles); diff != "" {
			t.Errorf("%s: the profiles of all agents changed: %s", tt.name, diff)
		}
	}
}

// The settings of a document, together with those of the configuration.
func TestEffective(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ document, want string }{
		{`{}`, "allowlist on-miss fallback deny reads work"},
		{`{"defaults":{"security":"full","ask":"off"}}`, "allowlist on-miss fallback deny reads work"},
		{`{"defaults":{"security":"allowlist"}}`, "allowlist on-miss fallback deny"},
		{`{"defaults":{"security":"deny"}}`, "deny on-miss fallback deny reads work"},
		{`{"defaults":{"ask":"off"}}`, "allowlist on-miss fallback deny reads work"},
		{`{"defaults":{"ask":"on-miss"}}`, "allowlist on-miss fallback deny reads"},
		{`{"defaults":{"ask":"always"}}`, "allowlist always fallback deny reads"},
		{`{"defaults":{"askFallback":"full"}}`, "allowlist on-miss fallback full reads work"},
		// main, then all agents, then the defaults
		{`{"defaults":{"security":"full","ask":"off","askFallback":"full"},"agents":{"*":{"security":"deny","ask":"always","askFallback":"allowlist"}}}`, "deny always fallback allowlist reads"},
		{`{"agents":{"*":{"security":"deny","ask":"always","askFallback":"full"},"main":{"security":"full","ask":"off","askFallback":"deny"}}}`, "allowlist on-miss fallback deny reads work"},
		{`{"agents":{"other":{"security":"deny","ask":"always","askFallback":"full"}}}`,
			"allowlist on-miss fallback deny reads work"},
		// the agent formerly called default
		{`{"agents":{"default":{"security":"deny","ask":"always","askFallback":"full"}}}`, "deny always fallback full reads"},
		{`{"agents":{"default":{"security":"deny","ask":"always","askFallback":"full"},"main":{"security":"full","ask":"off","askFallback":"deny"}}}`, "allowlist on-miss fallback deny reads work"},
	} {
		d, err := allowlist.Parse([]byte(`{"version":1,` + tt.document[1:]))
		if tt.document == `{}` {
			d, err = allowlist.Parse([]byte(`{"version":1}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := text(d.Effective(allowlist.Default(), "main")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.document, got, tt.want)
		}
	}
}

// An agent has the entries for all agents and its own, and no other's. A match
// says which of them it used.
func TestEntriesOfAgents(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	d, err := allowlist.Parse([]byte(`{"version":1,"agents":{"*":{"allowlist":[{"id":"all","pattern":"ls","host":true}]},
		"main":{"allowlist":[{"id":"own","pattern":"make","host":true},{"id":"boxed","pattern":"go"},{"id":"bad","pattern":"rg","argPattern":"("}]},"other":{"allowlist":["npm"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := allowlist.Config{}.Rules(allowlist.Default(), d, "main", "")
	if err != nil || r.Entries() != 3 {
		t.Fatalf("%d entries, %v", r.Entries(), err)
	}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "allowlist of main, rg: ") {
		t.Errorf("an invalid entry: %v", err)
	}
	bin := pl.Path[0]
	all, own, boxed := allowlist.Use{Agent: "*", ID: "all", Path: bin + "/ls"}, allowlist.Use{Agent: "main", ID: "own",
		Path: bin + "/make"}, allowlist.Use{Agent: "main", ID: "boxed", Path: bin + "/go"}
	for _, tt := range []struct {
		command string
		reads   bool
		want    allowlist.Match
	}{
		{"make", false, allowlist.Match{Used: []allowlist.Use{own}, Host: true}},
		{"ls && make", false, allowlist.Match{Used: []allowlist.Use{all, own}, Host: true}},
		{"go build && make", false, allowlist.Match{Used: []allowlist.Use{boxed, own}}},
		{"make && go build", false, allowlist.Match{Used: []allowlist.Use{own, boxed}}},
		{"cat x && make", true, allowlist.Match{Used: []allowlist.Use{own}}},
		{"cat x", true, allowlist.Match{}},
		{"cat x && make", false, allowlist.Match{Command: "miss"}},
		{"npm i", true, allowlist.Match{Command: "miss"}},
	} {
		got, miss := r.Match(r.Policy, tt.reads, j.Parse(tt.command), pl)
		if got.Command = ""; miss != nil {
			got.Command = "miss"
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.command, diff)
		}
	}
	again, err := allowlist.Config{}.Rules(allowlist.Default(), d, chela.AgentID(allowlist.AllAgents), "")
	if err != nil || again.Entries() != 1 {
		t.Errorf("of all agents: %d entries, %v", again.Entries(), err)
	}
}

// The use of an entry is recorded with it alone.
func TestRecordUse(t *testing.T) {
	t.Parallel()
	d, err := allowlist.Parse([]byte(`{"version":1,"agents":{"*":{"allowlist":[{"id":"1","pattern":"ls"}]},"main":{"allowlist":[{"id":"1","pattern":"ls"},{"id":"2","pattern":"go"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	last := func(agent string, i int) string {
		e := d.Agents[agent].Allowlist[i]
		return strings.TrimSpace(e.Command + " " + e.Path)
	}
	d.RecordUse([]allowlist.Use{{Agent: "main", ID: "2", Path: "/bin/go"}, {Agent: "none", ID: "2"}},
		strings.Repeat("x", 1<<10), 5)
	if e := d.Agents["main"].Allowlist[1]; e.LastUsed != 5 || len(e.Command) != 1<<10 ||
		last("main", 0) != "" || last("*", 0) != "" {
		t.Errorf("%+v", d.Agents)
	}
	d.RecordUse([]allowlist.Use{{Agent: "main", ID: "2", Path: "/bin/go"}}, strings.Repeat("x", 1<<10+1), 6)
	if e := d.Agents["main"].Allowlist[1]; e.LastUsed != 6 || e.Command != "" {
		t.Errorf("a long command: %+v", e)
	}
}
