package allowlist_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
)

func parse(t *testing.T, text string) *allowlist.Document {
	t.Helper()
	d, err := allowlist.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// members returns a document as it is encoded.
func members(t *testing.T, d *allowlist.Document) any {
	t.Helper()
	var m any
	if err := json.Unmarshal(d.Encode(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// What is read is written again, field by field, and nothing else.
func TestEncode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"version":1,"agents":{}}`,
		`{"version":1,"x":[1],"defaults":{"security":"deny","ask":"always","askFallback":"full","y":2},"agents":{"main":{"security":"full","ask":"off","askFallback":"allowlist","z":{},
			"allowlist":[{"id":"1","pattern":"ls","argPattern":"-l","source":"ann","host":true,"lastUsedAt":5,"lastUsedCommand":"ls -l","lastResolvedPath":"/bin/ls","w":"v"},{"id":"2","pattern":"go"}]},"none":{}}}`,
	} {
		d := parse(t, text)
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, members(t, d)); diff != "" {
			t.Error(diff)
		}
		again := parse(t, string(d.Encode()))
		if diff := cmp.Diff(d.Agents, again.Agents, cmp.Exporter(func(reflect.Type) bool { return true }),
			cmp.Comparer(func(a, b json.RawMessage) bool { return true })); diff != "" {
			t.Error(diff)
		}
	}
	// The old forms.
	d := parse(t, `{"version":1,"agents":{"default":{"q":1,"allowlist":["ls",{"pattern":"go","argPattern":"a"},{"pattern":"go","argPattern":"b"},{"pattern":" rg ","lastUsedAt":-5}]},"main":{"ask":null,"allowlist":[{"id":"m","pattern":"ls"}]}}}`)
	var got []string
	for _, e := range d.Agents["main"].Allowlist {
		got = append(got, fmt.Sprint(e.Pattern, " ", e.Args, " ", e.LastUsed, " ", len(e.ID)))
	}
	if diff := cmp.Diff([]string{"ls  0 1", "go a 0 16", "go b 0 16", "rg  0 16"}, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := d.Agents["default"]; ok || len(d.Agents) != 1 {
		t.Errorf("agents %v", d.Agents)
	}
	if a, b := d.Agents["main"].Allowlist[1], d.Agents["main"].Allowlist[2]; a.ID == b.ID {
		t.Errorf("two entries have the id %s", a.ID)
	}
	if again := parse(t, `{"version":1,"agents":{"default":{"q":1}}}`); !strings.Contains(string(again.Encode()),
		`"q": 1`) {
		t.Errorf("%s", again.Encode())
	}
	if d := parse(t, `{"version":1}`); len(d.Agents) != 0 {
		t.Errorf("agents %v", d.Agents)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	entry := func(e string) string { return `{"version":1,"agents":{"a":{"allowlist":[` + e + `]}}}` }
	repeat := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	agents := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"a%d":{}`, i))
		}
		return `{"version":1,"agents":{` + strings.Join(list, ",") + `}}`
	}
	size := func(n int) string { return `{"version":1}` + strings.Repeat(" ", n-len(`{"version":1}`)) }
	for name, tt := range map[string]struct{ most, more string }{
		"bytes":   {size(1 << 20), size(1<<20 + 1)},
		"agents":  {agents(256), agents(257)},
		"entries": {entry(repeat(2048, `"x"`)), entry(repeat(2049, `"x"`))},
		"pattern": {entry(`"` + strings.Repeat("x", 1<<10) + `"`), entry(`"` + strings.Repeat("x", 1<<10+1) + `"`)},
		"argument list": {entry(`{"pattern":"x","argPattern":"` + strings.Repeat("x", 1<<10) + `"}`),
			entry(`{"pattern":"x","argPattern":"` + strings.Repeat("x", 1<<10+1) + `"}`)},
		"id": {entry(`{"pattern":"x","id":"` + strings.Repeat("x", 128) + `"}`),
			entry(`{"pattern":"x","id":"` + strings.Repeat("x", 129) + `"}`)},
		"entries of all": {`{"version":1,"agents":{"a":{"allowlist":[` + repeat(1024, `"x"`) + `]},"b":{"allowlist":[` +
			repeat(1024, `"x"`) + `]}}}`, `{"version":1,"agents":{"a":{"allowlist":[` + repeat(1024, `"x"`) +
			`]},"b":{"allowlist":[` + repeat(1025, `"x"`) + `]}}}`},
		"type of a field": {entry(`{"pattern":"x","host":true}`), entry(`{"pattern":"x","host":"yes"}`)},
	} {
		if _, err := allowlist.Parse([]byte(tt.most)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := allowlist.Parse([]byte(tt.more)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A client that replaces a document does not know all of its fields.
func TestPreserveUnknown(t *testing.T) {
	t.Parallel()
	const old = `{"version":1,"top":1,"kept":1,"socket":{"path":"/old","token":"secret"},"defaults":{"d":1},
		"agents":{"main":{"m":1,"allowlist":[{"id":"0","pattern":"rg","r":1},{"id":"1","pattern":"ls","e":1,"f":1}]},"gone":{"g":1}}}`
	for _, tt := range []struct{ name, old, replacement, want string }{
		{"fields of each part", old, `{"version":1,"top":2,"socket":{"path":"/new"},"agents":{"main":{"allowlist":[{"id":"9","pattern":"ls"},{"id":"1","pattern":"make","e":2},{"id":"0","pattern":"rg"}]},"other":{}}}`,
			`{"version":1,"top":2,"kept":1,"socket":{"path":"/new","token":"secret"},"defaults":{"d":1},
			"agents":{"main":{"m":1,"allowlist":[{"id":"9","pattern":"ls"},{"id":"1","pattern":"make","e":2,"f":1},{"id":"0","pattern":"rg","r":1}]},"other":{}}}`},
		{"no socket given", `{"version":1,"socket":{"token":"secret"}}`, `{"version":1}`,
			`{"version":1,"socket":{"token":"secret"},"agents":{}}`},
		{"no socket before", `{"version":1}`, `{"version":1,"socket":{"path":"/new"}}`,
			`{"version":1,"socket":{"path":"/new"},"agents":{}}`},
		{"a token given", `{"version":1,"socket":{"token":"secret"}}`, `{"version":1,"socket":{"token":"new"}}`,
			`{"version":1,"socket":{"token":"new"},"agents":{}}`},
	} {
		was, d := parse(t, tt.old), parse(t, tt.replacement)
		before := members(t, was)
		d.PreserveUnknown(was)
		if diff := cmp.Diff(members(t, parse(t, tt.want)), members(t, d)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(before, members(t, was)); diff != "" {
			t.Errorf("%s: the old document changed: %s", tt.name, diff)
		}
	}
}

func TestHomeAndStrict(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	home := filepath.Dir(pl.Path[0])
	for pattern, want := range map[string]bool{
		"~/bin/ls":  true,
		"~/bin/*":   true,
		"~bin/ls":   false,
		"~/ls":      false,
		"**/bin/ls": true,
		"/**/ls":    true,
		"/**ls":     true,
		"**ls":      false,
	} {
		r, err := allowlist.Config{Security: "allowlist"}.Rules(allowlist.Default(), document(t, pattern, ""), "main", home)
		if err != nil {
			t.Fatal(err)
		}
		if _, miss := match(r, j, pl, pl.Path[0]+"/ls x"); (miss == nil) != want {
			t.Errorf("%s: %v", pattern, miss)
		}
	}
	r, err := allowlist.Config{Security: "allowlist"}.Rules(allowlist.Default(), document(t, "~/**/ls", ""), "main", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, miss := match(r, j, pl, "ls"); miss == nil {
		t.Error("a pattern in an unknown home folder matches")
	}
	for strict, want := range map[string]bool{
		`{}`:                         false,
		`{"strictInlineEval":false}`: false,
		`{"strictInlineEval":true}`:  true,
	} {
		if r, err := configuration(t, strict).Rules(allowlist.Default(), &allowlist.Document{}, "main", ""); err != nil ||
			r.StrictInline != want {
			t.Errorf("%s: %+v, %v", strict, r, err)
		}
	}
	if _, err := (allowlist.Config{Mode: "maybe"}).Rules(allowlist.Default(), &allowlist.Document{}, "main",
		""); err == nil {
		t.Error("an invalid mode: no error")
	}
}

// A file that cannot be used is not taken for one that is absent.
func TestUnusableFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), allowlist.FileName)
	f := allowlist.NewFile(path)
	refused := func(change func(*allowlist.Document) error, want chela.Code) error {
		t.Helper()
		_, err := f.Update("", change)
		if err == nil || want != "" && chela.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
		return err
	}
	no := errors.New("no")
	if err := refused(func(*allowlist.Document) error { return no }, ""); !errors.Is(err, no) {
		t.Error(err)
	}
	refused(func(d *allowlist.Document) error {
		d.Agents["main"] = allowlist.Agent{Allowlist: []allowlist.Entry{{Pattern: " "}}}
		return nil
	}, chela.CodeInvalid)
	if d, exists, err := f.Load(); exists || err != nil || len(d.Agents) != 0 {
		t.Errorf("after refused changes: %+v, %v, %v", d, exists, err)
	}
	d, err := f.Update("", func(d *allowlist.Document) error { d.Defaults.Ask = allowlist.Always; return nil })
	if err != nil || d.Defaults.Ask != allowlist.Always {
		t.Fatal(d, err)
	}
	if again, exists, err := f.Load(); again != d || !exists || err != nil {
		t.Errorf("%p, %v, %v, want %p", again, exists, err, d)
	}
	if again, exists, err := f.Load(); again != d || !exists || err != nil {
		t.Errorf("once more: %p, %v, %v, want %p", again, exists, err, d)
	}
	if _, err := f.Update(d.Hash(), func(*allowlist.Document) error { return nil }); err != nil {
		t.Errorf("with the right hash: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	d, exists, err := f.Load()
	if d != nil || !exists || chela.CodeOf(err) != chela.CodeInvalid || errors.Unwrap(err) == nil {
		t.Errorf("a folder: %v, %v, %v", d, exists, err)
	}
}

// Files in the workspace do not count, by whatever path.
func TestOutside(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	bin := pl.Path[0]
	link := filepath.Join(filepath.Dir(bin), "link")
	if err := os.Symlink(pl.Workspace, link); err != nil {
		t.Fatal(err)
	}
	linked := pl
	linked.Workspace = link
	for _, tt := range []struct {
		env        allowlist.Env
		name, want string
	}{
		{pl, "ls", bin + "/ls"}, {pl, bin + "/ls", bin + "/ls"}, {pl, bin + "/./ls", bin + "/ls"}, {pl, "none", ""},
		{pl, "", ""}, {pl, "./git", ""},
		{pl, pl.Workspace + "/git", ""}, {pl, link + "/git", ""}, {linked, pl.Workspace + "/git", ""},
		{linked, link + "/git", ""},
		{allowlist.Env{Path: pl.Path}, "ls", bin + "/ls"},
	} {
		if got := tt.env.Outside(tt.name); got != tt.want {
			t.Errorf("%s, workspace %s: %q, want %q", tt.name, tt.env.Workspace, got, tt.want)
		}
	}
	r, err := allowlist.Config{}.Rules(allowlist.Default(), document(t, "make", ""), "main", "")
	if err != nil {
		t.Fatal(err)
	}
	if m, miss := match(r, j, pl, "make x"); miss != nil || m.Command != bin+"/make x" {
		t.Errorf("runs %q, %v", m.Command, miss)
	}
	for command, want := range map[string]string{
		"npm":  "npm is not on the allowlist",
		"none": "none is not a program that could be on the allowlist",
	} {
		if _, miss := match(r, j, pl, command); miss == nil || miss.Error() != want {
			t.Errorf("%s: %v, want %s", command, miss, want)
		}
	}
}
