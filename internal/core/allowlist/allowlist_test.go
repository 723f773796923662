package allowlist_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
)

func TestStricter(t *testing.T) {
	t.Parallel()
	p := func(s allowlist.Security, a allowlist.Ask, reads bool) allowlist.Policy {
		return allowlist.Policy{Security: s, Ask: a, Fallback: allowlist.Deny, Reads: reads}
	}
	for _, tt := range []struct{ a, b, want allowlist.Policy }{
		{p("full", "off", true), p("full", "always", true), p("full", "always", true)},
		{p("full", "off", true), p("allowlist", "off", true), p("allowlist", "off", true)},
		{p("deny", "off", true), p("allowlist", "always", true), p("deny", "always", true)},
		{p("allowlist", "on-miss", false), p("full", "off", true), p("allowlist", "on-miss", false)},
		{p("full", "on-miss", true), p("full", "off", true), p("full", "on-miss", true)},
		{p("full", "off", true), p("", "", true), p("", "", true)}, // an unknown value is the strictest
	} {
		if got := tt.a.Stricter(tt.b); got != tt.want {
			t.Errorf("%v, %v: %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := tt.b.Stricter(tt.a); got != tt.want {
			t.Errorf("%v, %v swapped: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// document returns a document with one entry for main.
func document(t *testing.T, pattern, args string) *allowlist.Document {
	t.Helper()
	entry, err := json.Marshal(map[string]string{"pattern": pattern, "argPattern": args})
	if err != nil {
		t.Fatal(err)
	}
	d, err := allowlist.Parse([]byte(`{"version": 1, "agents": {"main": {"allowlist": [` + string(entry) + `]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	root := filepath.Dir(pl.Path[0])
	appDir := filepath.Join(root, "opt", "far")
	for _, dir := range []string{appDir, filepath.Join(root, "second")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program(t, filepath.Join(appDir, "app-1.2"))
	program(t, filepath.Join(appDir, "plain.txt"))
	if err := os.Chmod(filepath.Join(appDir, "plain.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	program(t, filepath.Join(root, "second", "ls"))
	for link, to := range map[string]string{
		filepath.Join(pl.Path[0], "app"):  filepath.Join(appDir, "app-1.2"),
		filepath.Join(pl.Path[0], "mine"): filepath.Join(pl.Workspace, "git"),
		filepath.Join(pl.Workspace, "to"): filepath.Join(appDir, "app-1.2"),
		filepath.Join(root, "ws"):         pl.Workspace,
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	bin := pl.Path[0]
	for _, tt := range []struct {
		pattern, args, command string
		path                   []string // nil: that of the machine
		want                   bool
	}{
		{"ls", "", "ls -l", nil, true},
		{"ls", "", bin + "/ls", nil, false},
		{"l?", "", "ls", nil, true},
		{"*", "", "ls", nil, true},
		{"*", "", bin + "/ls", nil, false},
		{"*s", "", "ls", nil, true},
		{"**", "", "ls", nil, true},
		{"**", "", bin + "/ls", nil, false},
		{"ls", "", "env ls", nil, false}, // env is not in a trusted folder
		{bin + "/ls", "", "ls", nil, true},
		{bin + "/ls", "", bin + "/ls", nil, true},
		{bin + "/ls", "", bin + "/../bin/ls", nil, true},
		{bin + "/*", "", "ls", nil, true},
		{root + "/*", "", "ls", nil, false},
		{root + "/**", "", "ls", nil, true},
		{root + "/**/ls", "", "ls", nil, true},
		{"**/ls", "", "ls", nil, true},
		{bin + "/LS", "", "ls", nil, false},
		{bin + "/l.", "", "ls", nil, false},
		{"/ls", "", "ls", nil, false},
		{bin + "/ls", "", "ls", []string{root + "/second", bin}, false},
		{bin + "/ls", "", "ls", []string{"", bin}, false},
		{bin + "/ls", "", "ls", []string{".", bin}, false},
		{"ls", "", "ls", []string{pl.Workspace, bin}, false},
		{"ls", "", "ls", []string{filepath.Join(root, "ws"), bin}, false},
		{"app", "", "app", nil, true},
		{bin + "/app", "", "app", nil, true},
		{appDir + "/app-1.2", "", "app", nil, true},
		{appDir + "/*", "", "app", nil, true},
		{"mine", "", "mine", nil, false},
		{"/**", "", "mine", nil, false},
		{"/**", "", filepath.Join(appDir, "app-1.2"), nil, true},
		{"/**", "", appDir + "/../far/app-1.2", nil, true},
		{"/**", "", filepath.Join(pl.Workspace, "to"), nil, false},
		{"/**", "", filepath.Join(pl.Workspace, "git"), nil, false},
		{"/**", "", filepath.Join(root, "ws", "git"), nil, false},
		{"/**", "", filepath.Join(root, "ws", "to"), nil, false},
		{"/**", "", filepath.Join(appDir, "plain.txt"), nil, false},
		{"/**", "", filepath.Join(appDir, "none"), nil, false},
		{"/**", "", appDir, nil, false},
		{"/**", "", "plain.txt", []string{appDir}, false},
		{"/**", "", "./git", nil, false},
		{"/**", "", "../bin/ls", nil, false},
		{"/**", "", "''", nil, false},
		{"**", "", "''", nil, false},
		{"**", "", "none", nil, false},
		{"**", "", "ls", []string{filepath.Join(root, "empty"), bin}, true},
		{bin + "/**/ls", "", "ls", nil, true},
		{bin + "/**ls", "", "ls", nil, true},
		{root + "/**/none/ls", "", "ls", nil, false},
		{"~/bin/*", "", "/home/anna/bin/x", nil, false},
		{"ls", "-l", "ls -l", nil, true},
		{"ls", "-l", "ls -la", nil, false},
		{"ls", "-l", "ls x -l", nil, false},
		{"ls", "", "ls", nil, true},
		{"ls", "^$", "ls", nil, true},
		{"ls", "^$", "ls x", nil, false},
		{"ls", "a|b", "ls b", nil, true},
		{"ls", "a|b", "ls bc", nil, false},
		{"ls", "a b", "ls a b", nil, true},
		{"ls", "a b", "ls 'a b'", nil, false},
		{"ls", `a\\ b`, "ls 'a b'", nil, true},
		{"ls", `a`, "ls a ''", nil, false},
		{"ls", `a ''`, "ls a ''", nil, true},
		{"ls", `.*`, "ls 'a\nb'", nil, true},
		{"ls", `[^-]\S*`, "ls '-x y'", nil, false},
		{"ls", ".*", "ls *", nil, false},
		{"ls", ".*", "ls $X", nil, false},
		{"ls", "(?i)A", "ls a", nil, true},
	} {
		pl := pl
		if tt.path != nil {
			pl.Path = tt.path
		}
		d := document(t, tt.pattern, tt.args)
		r, err := allowlist.Config{Security: "allowlist"}.Rules(allowlist.Default(), d, "main", "/home/anna")
		if err != nil || r.Check() != nil {
			t.Fatal(tt.pattern, err, r.Check())
		}
		m, miss := match(r, j, pl, tt.command)
		if got := miss == nil; got != tt.want {
			t.Errorf("%q %q, %q: match %v (%q, %v), want %v", tt.pattern, tt.args, tt.command, got, m.Command, miss, tt.want)
		}
	}
	t.Run("an invalid entry allows nothing", func(t *testing.T) {
		for _, args := range []string{"(", "a)|(b", "(?=x)", `\1`, "a{2000}"} {
			d := document(t, "ls", args)
			r, err := allowlist.Config{Security: "allowlist"}.Rules(allowlist.Default(), d, "main", "")
			if err != nil || r.Check() == nil {
				t.Errorf("%q: %v, %v", args, err, r.Check())
			}
			if _, miss := match(r, j, pl, "ls a"); miss == nil {
				t.Errorf("%q matches", args)
			}
		}
	})
}

func TestSafeBins(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	empty := `{"version": 1, "defaults": {"security": "allowlist"}}`
	all := allowlist.Config{SafeBins: []string{"cut", "uniq", "head", "tail", "tr", "wc", "sort", "grep", "rg", "awk",
		"sed", "jq", "python3"}, Profiles: map[string]allowlist.Profile{
		"rg":  {Max: 1, Valued: []string{"--max-count", "-m"}, Plain: []string{"-i"}, Denied: []string{"-f"}},
		"awk": {Max: 5}, "sed": {Max: 5},
	}}
	r := rules(t, empty, all, pl)
	for command, want := range map[string]bool{
		"head":           true,
		"head -5":        true,
		"head -n 5":      true,
		"head -n5":       true,
		"head --lines=5": true,
		"head --lines 5": true,
		"head -qn 5":     true,
		"head -c 10 -q":  true,
		"head --":        true,
		"head x":         false,
		"head -5 x":      false,
		"head -n":        false,
		"head --line=5":  false,
		"head --unknown": false,

		"head -x":             false,
		"head -n $X":          false,
		"head -n *":           false,
		"head -":              false,
		"head -- x":           false,
		"head -n ./x":         false,
		"head -n './x'":       false,
		"head -n '../x'":      false,
		"head -n '~'":         false,
		"head -n~x":           false,
		"head --lines=~x":     false,
		"head -n .":           false,
		"head -n ..":          false,
		"head -n '.x'":        true,
		"head --lines=/etc/x": false,
		"tail -5":             true,
		"tail -n +2":          true,
		"tail -f":             false,
		"tail -fn 5":          false,
		"tail -F":             false,
		"tail --follow":       false,

		"tail --follow=name": false,
		"tail --retry":       false,
		"tail --pid=1":       false,
		"wc":                 true,
		"wc -l":              true,
		"wc -lw":             true,
		"wc --lines":         true,
		"wc --files0-from=x": false,

		"wc --files0-from x":   false,
		"wc x":                 false,
		"cut -d, -f2":          true,
		"cut -d ' ' -f 1-3":    true,
		"cut -d/ -f1":          true,
		"cut -f1 x":            false,
		"cut --complement -f1": true,
		"uniq":                 true,
		"uniq -c":              true,
		"uniq -f 1":            true,
		"uniq a b":             false,
		"uniq a":               false,

		"uniq --group x":     false,
		"uniq -w 3 -c":       true,
		"tr a b":             true,
		"tr -d x":            true,
		"tr -cd '[:alnum:]'": true,
		"tr / _":             true,
		"tr":                 false,
		"tr a b c":           false,

		"tr a-z A-Z":    true,
		"tr ./x y":      false,
		"tr $X y":       false,
		"tr * y":        false,
		"tr \"$X\" y":   false,
		"tr '*' y":      true,
		"sort":          true,
		"sort -r":       true,
		"sort -k2 -n":   true,
		"sort -t, -k 2": true,
		"sort -o x":     false,
		"sort -ox":      false,

		"sort -ro x":                false,
		"sort --output=x":           false,
		"sort --outp=x":             false,
		"sort -T /tmp":              false,
		"sort --compress-program=x": false,
		"sort --files0-from=x":      false,
		"sort x":                    false,
		"sort -R":                   false,
		"sort --random-source=x":    false,
		"grep -e x":                 true,
		"grep -ie x":                true,
		"grep -i -e x -A 3":         true,
		"grep x":                    false,
		"grep -e x f":               false,

		"grep -f x":                  false,
		"grep -r -e x":               false,
		"grep -R":                    false,
		"grep --file=x":              false,
		"grep -d recurse -e x":       false,
		"grep --recursive -e x":      false,
		"grep --exclude-from=x -e y": false,
		"rg x":                       true,
		"rg -i x":                    true,
		"rg -m 3 x":                  true,
		"rg -m3 x":                   true,
		"rg x y":                     false,
		"rg -f x":                    false,

		"rg --pre x": false,
		"rg ./x":     false,
		"rg a/b":     false,
		"rg ~":       false,
		"rg ../x":    false,
		"awk x":      false,
		"sed x":      false,
		"jq .":       false,
		"python3 -":  false,
		"python3":    false,
	} {
		m, err := match(r, j, pl, command)
		if got := err == nil; got != want {
			t.Errorf("AP-06 %q: %v (%q, %v), want %v", command, got, m.Command, err, want)
		}
	}
	t.Run("programs in untrusted folders are not safe bins", func(t *testing.T) {
		elsewhere, err := all.Rules(allowlist.Default(), &allowlist.Document{}, "main", "")
		if err != nil {
			t.Fatal(err)
		}
		elsewhere.Policy.Reads = false
		if _, err := match(elsewhere, j, pl, "head -5"); err == nil {
			t.Error("head in an untrusted folder matches")
		}
		if _, err := match(r, j, pl, pl.Path[0]+"/head -5"); err == nil {
			t.Error("head given by its path matches")
		}
	})
	interpreters, others := all.Bins().Unprofiled()
	if diff := cmp.Diff([][]string{{"python3"}, {"awk", "sed", "jq"}}, [][]string{interpreters, others}); diff != "" {
		t.Errorf("AP-07 -want +got:\n%s", diff)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	const text = `{"version": 1, "socket": {"path": "/s", "token": "t"}, "later": [1],
		"defaults": {"security": "allowlist", "askFallback": "deny", "autoAllowSkills": true},
		"agents": {
			"*": {"allowlist": ["rg"]},
			"default": {"ask": "always", "allowlist": [{"pattern": "a"}, {"pattern": "b"}]},
			"main": {"ask": "off", "mcpTools": [], "allowlist": [{"id": "1", "pattern": "b", "why": "mine", "lastUsedAt": 1.7e12, "lastUsedCommand": "b", "lastResolvedPath": "/b", "commandText": "b"}]}
		}}`
	d, err := allowlist.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.Settings("main"),
		(allowlist.Settings{Security: "allowlist", Ask: "off", Fallback: "deny"}); got.Security != want.Security ||
		got.Ask != want.Ask || got.Fallback != want.Fallback {
		t.Errorf("main: %+v", got)
	}
	var patterns []string
	for _, e := range d.Agents["main"].Allowlist {
		patterns = append(patterns, e.Pattern)
	}
	if diff := cmp.Diff([]string{"b", "a"}, patterns); diff != "" {
		t.Errorf("the list of the agent formerly called default: %s", diff)
	}
	b := string(d.Encode())
	for _, part := range []string{`"token": "t"`, `"later": [`, `"autoAllowSkills": true`, `"mcpTools": []`,
		`"why": "mine"`, `"commandText": "b"`, `"lastUsedAt": 1700000000000`} {
		if !strings.Contains(b, part) {
			t.Errorf("%s is missing in\n%s", part, b)
		}
	}
	again, err := allowlist.Parse([]byte(b))
	if err != nil || string(again.Encode()) != b || again.Hash() != d.Hash() {
		t.Errorf("reading the encoded document again: %v\n%s", err, again.Encode())
	}
	again.RecordUse([]allowlist.Use{{Agent: "main", ID: "1", Path: "/x"}}, "b c", 5)
	if again.Hash() != d.Hash() || strings.Contains(string(again.Encode()), `"lastUsedAt": 17`) {
		t.Errorf("RecordUse changed the hash or was not recorded:\n%s", again.Encode())
	}
	delete(again.Agents, "main")
	if again.Hash() == d.Hash() {
		t.Error("the hash is the same without the entries")
	}

	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	agents := ""
	for i := range 300 {
		agents += fmt.Sprintf(`,"a%d":{}`, i)
	}
	for name, bad := range map[string]string{
		"AP-16 empty file":        "",
		"AP-16 incomplete":        `{"version": 1, "agents`,
		"AP-16 not an object":     `[]`,
		"AP-16 null":              `null`,
		"AP-16 trailing text":     `{"version": 1} x`,
		"AP-16 no version":        `{}`,
		"AP-16 another version":   `{"version": 2}`,
		"AP-16 a version as text": `{"version": "one"}`,

		"AP-16 security":               `{"version": 1, "defaults": {"security": "fulll"}}`,
		"AP-16 security in mixed case": `{"version": 1, "defaults": {"security": "Deny"}}`,
		"AP-16 legacy security":        `{"version": 1, "defaults": {"security": "off"}}`,

		"AP-16 ask":                        `{"version": 1, "agents": {"main": {"ask": "never"}}}`,
		"AP-16 fallback":                   `{"version": 1, "defaults": {"askFallback": "ask"}}`,
		"AP-16 security of the wrong type": `{"version": 1, "defaults": {"security": true}}`,

		"AP-16 agents of the wrong type":   `{"version": 1, "agents": []}`,
		"AP-16 an agent of the wrong type": `{"version": 1, "agents": {"a": []}}`,
		"AP-16 a list of the wrong type":   `{"version": 1, "agents": {"a": {"allowlist": {}}}}`,

		"AP-16 an entry of the wrong type": `{"version": 1, "agents": {"a": {"allowlist": [5]}}}`,
		"AP-16 an entry without a pattern": `{"version": 1, "agents": {"a": {"allowlist": [{}]}}}`,
		"AP-16 an empty pattern":           `{"version": 1, "agents": {"a": {"allowlist": [" "]}}}`,

		"AP-16 a long pattern":   `{"version": 1, "agents": {"a": {"allowlist": ["` + strings.Repeat("x", 2000) + `"]}}}`,
		"AP-16 too many entries": `{"version": 1, "agents": {"a": {"allowlist": [` + many(3000, `"x"`) + `]}}}`,

		"AP-16 too many agents": `{"version": 1, "agents": {"x":{}` + agents + `}}`,
		"AP-16 too long":        `{"version": 1, "note": "` + strings.Repeat("x", 1<<20) + `"}`,

		"AP-16 too deep": strings.Repeat(`{"version":`, 20_000),
	} {
		if d, err := allowlist.Parse([]byte(bad)); err == nil {
			t.Errorf("%s: %s", name, d.Encode())
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), allowlist.FileName)
	f := allowlist.NewFile(path)
	if d, exists, err := f.Load(); err != nil || exists || len(d.Agents) != 0 {
		t.Fatalf("%+v %v %v", d, exists, err)
	}
	add := func(pattern string) error {
		_, err := f.Update("", func(d *allowlist.Document) error {
			a := d.Agents["main"]
			a.Allowlist = append(a.Allowlist, allowlist.Entry{Pattern: pattern})
			d.Agents["main"] = a
			return nil
		})
		return err
	}
	if err := add("ls"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	t.Run("edits take effect immediately", func(t *testing.T) {
		for i := range 20 { // same length, within one tick of the clock
			text := fmt.Sprintf(`{"version": 1, "agents": {"main": {"allowlist": ["p%02d"]}}}`, i)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			d, _, err := f.Load()
			if err != nil || d.Agents["main"].Allowlist[0].Pattern != fmt.Sprintf("p%02d", i) {
				t.Fatalf("%d: %+v, %v", i, d, err)
			}
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := add("x"); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("a conflicting update is refused", func(t *testing.T) {
		d, _, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		if err := add("between"); err != nil {
			t.Fatal(err)
		}
		_, err = f.Update(d.Hash(), func(*allowlist.Document) error { t.Error("change was called"); return nil })
		if chela.CodeOf(err) != chela.CodeConflict {
			t.Errorf("%v", err)
		}
	})
	t.Run("AP-16 an invalid file is not replaced", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := add("x"); err == nil || !strings.Contains(err.Error(), path) || chela.HintOf(err) == "" {
			t.Errorf("%v", err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "{" {
			t.Errorf("%s, %v", b, err)
		}
		if _, _, err := f.Load(); err == nil {
			t.Error("Load: no error")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, exists, err := f.Load(); exists || err != nil {
			t.Errorf("after the file was moved away: %v, %v", exists, err)
		}
	})
	t.Run("concurrent updates", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if err := add(fmt.Sprint("n", i)); err != nil {
					t.Error(err)
				}
				_, _, _ = f.Load()
			})
		}
		wg.Wait()
		if d, _, err := f.Load(); err != nil || len(d.Agents["main"].Allowlist) != 8 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestSource(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), allowlist.FileName)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &allowlist.Source{File: allowlist.NewFile(path), Base: allowlist.Default()}
	write(`{"version": 1, "agents": {"main": {"allowlist": [{"id": "1", "pattern": "ls"}]}}}`)
	first, err := s.Rules("main")
	if err != nil || first.Entries() != 1 {
		t.Fatal(first, err)
	}
	if again, _ := s.Rules("main"); again != first {
		t.Error("the rules were rebuilt without a change")
	}
	now := time.UnixMilli(1_800_000_000_000)
	use := []allowlist.Use{{Agent: "main", ID: "1", Path: "/bin/ls"}}
	recorded := func(at time.Time) int64 {
		t.Helper()
		if err := s.RecordUse(use, "ls", at); err != nil {
			t.Fatal(err)
		}
		d, _, err := s.File.Load()
		if err != nil {
			t.Fatal(err)
		}
		return d.Agents["main"].Allowlist[0].LastUsed
	}
	got := []int64{recorded(now), recorded(now.Add(time.Second)), recorded(now.Add(time.Hour))}
	if diff := cmp.Diff([]int64{now.UnixMilli(), now.UnixMilli(), now.Add(time.Hour).UnixMilli()}, got); diff != "" {
		t.Errorf("recorded -want +got:\n%s", diff)
	}
	write(`{"version": 1, "defaults": {"ask": "always"}}`)
	if r, err := s.Rules("main"); err != nil || r.Entries() != 0 || r.Policy.Ask != allowlist.Always {
		t.Errorf("%+v, %v", r, err)
	}
	write(`{`)
	if _, err := s.Rules("main"); err == nil {
		t.Error("AP-16 Rules of an invalid document: no error")
	}
	if err := s.RecordUse(use, "ls", now.Add(2*time.Hour)); err == nil {
		t.Error("AP-16 RecordUse in an invalid document: no error")
	}
}

// FuzzDocument checks that a document is refused, or keeps its meaning when
// it is encoded.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{
		`{"version": 1}`, list,
		`{"version": 1, "defaults": {"security": "full", "ask": "off", "askFallback": "full"}, "x": {}}`, `{"version": 1.0}`,
		`{"version": 1, "agents": {"default": {"allowlist": ["a"]}, "*": {"ask": "always", "allowlist": [{"id": "é", "pattern": "**/*", "argPattern": "(", "lastUsedAt": 1e99, "z": null}]}}}`,
		`{"version": 1, "agents": {"": {}}}`, `{"version": 1, "version": 2}`, `{"version": null}`,
		"{\"version\": 1, \"\\u0000\": \"\xff\"}", `{"version": 1, "socket": 5, "agents": null, "defaults": null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := allowlist.Parse(b)
		if err != nil {
			return
		}
		out := d.Encode()
		if len(out) > allowlist.MaxDocument {
			return
		}
		again, err := allowlist.Parse(out)
		if err != nil || again.Hash() != d.Hash() || string(again.Encode()) != string(out) {
			t.Fatalf("%q, encoded as %q: %v", b, out, err)
		}
		for id := range d.Agents {
			r, err := allowlist.Config{}.Rules(allowlist.Default(), d, chela.AgentID(id), "/home/anna")
			if err != nil || r.Policy != r.Policy.Stricter(allowlist.Policy{
				Security: allowlist.Default().Security,
				Ask:      allowlist.Off,
				Fallback: allowlist.Full,
				Reads:    true,
				Work:     true,
			}) {
				t.Fatalf("%q: %+v, %v", b, r, err)
			}
		}
	})
}

// FuzzMatch checks that the matcher accepts any input, and that appending a
// command never turns a miss into a match.
func FuzzMatch(f *testing.F) {
	for i, s := range corpus(f) {
		if i%7 == 0 && len(s.command) < 200 {
			f.Add(s.command, "ls -la")
		}
	}
	for _, s := range []string{"sh -c 'ls; rm x'", "find . -exec rm {} ;", "git -c a=b log", "ls\nrm x",
		"X=1 ls", "env ls", "head -5"} {
		f.Add(s, "echo 'a")
	}
	pl, j := machine(f)
	strict := rules(f, list, allowlist.Config{}, pl)
	loose := rules(f, strings.Replace(list, `"defaults": {"security": "allowlist"}, `, "", 1), allowlist.Config{}, pl)
	none := rules(f, `{"version": 1}`, allowlist.Config{SafeBins: []string{}}, pl)
	f.Fuzz(func(t *testing.T, command, more string) {
		if _, miss := match(none, j, pl, command); miss == nil && j.Parse(command).Denied != "" {
			t.Fatalf("%q matches an empty list", command)
		}
		if strings.HasSuffix(command, `\`) || strings.Contains(command, "\x00") {
			return // it would continue on the next line
		}
		for _, r := range []*allowlist.Rules{strict, loose} {
			p := j.Parse(command)
			if p.Undecidable != "" {
				continue // the appended text could make it another command
			}
			_, miss := r.Match(r.Policy, r.Policy.Reads, p, pl)
			m, missBoth := match(r, j, pl, command+"\n"+more)
			if miss != nil && missBoth == nil {
				t.Fatalf("%q is a miss (%v), but with %q appended it matches: %q", command, miss, more, m.Command)
			}
		}
	})
}
