package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want, warning string }{
		{"plain", "---\nname: tea\ndescription: Makes tea.\n---\nBoil.", "tea|Makes tea.|false", ""},
		{"CRLF and a byte order mark", "\ufeff---\r\nname: tea\r\ndescription: Makes tea.\r\n---\r\n",
			"tea|Makes tea.|false", ""},
		{"the folder's name", "---\ndescription: Makes tea.\n---\n", "folder|Makes tea.|false", ""},
		{"hidden", "---\nname: a\ndescription: b\ndisable-model-invocation: true\n---\n", "a|b|true", ""},
		{"a colon", "---\nname: 'tea'\ndescription: Use it: always\n---\n", "tea|Use it: always|false", ""},
		{"blanks after the lines", "---  \nname: tea\ndescription: Makes tea.\n--- \nBoil.", "tea|Makes tea.|false", ""},
		{"no line end", "---\nname: tea\ndescription: Makes tea.\n---", "tea|Makes tea.|false", ""},
		{"hostile characters", "---\nname: \"a\\u202e\\n# b\"\ndescription: \"c\\0\\u200bd\"\n---\n", "a # b|c d|false", ""},
	} {
		s, warning, err := Parse("folder", []byte(tc.text))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := fmt.Sprintf("%s|%s|%t", s.Name, s.Description, s.Hidden); err != nil || got != tc.want ||
			(warning == "") != (tc.warning == "") || !strings.Contains(warning, tc.warning) {
			t.Errorf("%s: %s, %q, %v; want %s", tc.name, got, warning, err, tc.want)
		}
	}
	for _, text := range []string{"", "no front matter", "---\nname: a\n---\n", "---\nname: [\n---\n",
		"---\ndescription: [\n---\n", strings.Repeat("x", maxFile+1)} {
		if s, _, err := Parse("folder", []byte(text)); err == nil {
			t.Errorf("%.20q is accepted: %+v", text, s)
		}
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want, warning string }{
		{`{"openclaw": {"os": ["linux"], "requires": {"bins": ["a", "b"]}}}`, "[linux] [a b]", ""},
		{`{"openclaw": {"os": "linux", "requires": {"bins": "a, b"}}}`, "[linux] [a b]", ""},
		{`{"clawdbot": {"requires": {"bins": ["a"]}}, "other": 1}`, "[] [a]", ""},
		{`"{openclaw: {os: 'darwin', /* JSON5 */ requires: {bins: ['a',],}}}"`, "[darwin] [a]", ""},
		{`{"openclaw": {"requires": {"bins": 7}}}`, "[] []", "metadata"},
	} {
		s, warning, err := Parse("folder", []byte("---\nname: a\ndescription: b\nmetadata: "+tc.text+"\n---\n"))
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if got := fmt.Sprint(s.OS, s.Requires.Bins); got != tc.want || (warning == "") != (tc.warning == "") ||
			!strings.Contains(warning, tc.warning) {
			t.Errorf("%s: %s, %q, want %s", tc.text, got, warning, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b: c\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, _, err := Parse("folder", text)
		if err != nil {
			return
		}
		for _, v := range []string{s.Name, s.Description} {
			if v == "" || !utf8.ValidString(v) || strings.ContainsAny(v, "\n\r\x00\u202e") ||
				utf8.RuneCountInString(v) > maxDescription+1 {
				t.Errorf("%q gives %+v", text, s)
			}
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestFinder(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	put := func(path, name, description string) {
		t.Helper()
		write(t, filepath.Join(path, FileName), "---\nname: "+name+"\ndescription: "+description+"\n---\n")
	}
	var f Finder
	find := func() string {
		t.Helper()
		skills, problems := f.Find(Folder{Dir: filepath.Join(dir, "low")}, Folder{Dir: filepath.Join(dir, "high")},
			Folder{Dir: filepath.Join(dir, "none")})
		var b strings.Builder
		for _, s := range skills {
			fmt.Fprintf(&b, "%s=%s ", s.Name, s.Description)
		}
		for _, p := range problems {
			rel, _ := filepath.Rel(dir, p.File)
			fmt.Fprintf(&b, "!%s ", filepath.ToSlash(rel))
		}
		return strings.TrimSpace(b.String())
	}
	want := func(step, want string) {
		t.Helper()
		for range 2 { // the second time from the cache
			if got := find(); got != want {
				t.Errorf("%s: %q, want %q", step, got, want)
			}
		}
	}
	want("nothing", "")
	put(filepath.Join(dir, "low", "group", "b"), "b", "low")
	put(filepath.Join(dir, "low", "a"), "a", "low")
	put(filepath.Join(dir, "low", "a", "inner"), "inner", "below a skill")
	put(filepath.Join(dir, "low", ".git", "x"), "x", "hidden")
	put(filepath.Join(dir, "low", "1/2/3/4/5/6"), "six", "deep")
	put(filepath.Join(dir, "low", "1/2/3/4/5/7/8"), "seven", "too deep")
	want("a folder", "a=low b=low six=deep")
	write(t, filepath.Join(dir, "low", "lower", "skill.md"), "---\ndescription: case\n---\n")
	write(t, filepath.Join(dir, "low", "text", "SKILL.md.txt"), "---\ndescription: ending\n---\n")
	want("other names", "a=low b=low lower=case six=deep !low/text/SKILL.md.txt")
	for _, name := range []string{"lower", "text"} {
		if err := os.RemoveAll(filepath.Join(dir, "low", name)); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "high", "a"), "a", "high")
	want("another folder", "a=high b=low six=deep")
	put(filepath.Join(dir, "high", "z"), "a", "the second of the name")
	want("a name twice", "a=high b=low six=deep !high/z/SKILL.md")
	put(filepath.Join(dir, "high", "a"), "a", "HIGH") // of the same size
	want("an edit", "a=HIGH b=low six=deep !high/z/SKILL.md")
	if err := os.RemoveAll(filepath.Join(dir, "high")); err != nil {
		t.Fatal(err)
	}
	want("a folder is gone", "a=low b=low six=deep")
	if runtime.GOOS == "windows" {
		return
	}
	put(filepath.Join(out, "evil"), "evil", "outside")
	if err := errors.Join(os.Symlink(filepath.Join(out, "evil"), filepath.Join(dir, "low", "evil")),
		os.Symlink("group", filepath.Join(dir, "low", "zgroup")), os.Symlink(".", filepath.Join(dir, "low", "loop"))); err !=
		nil {
		t.Fatal(err)
	}
	want("SKILL-08 links", "a=low b=low six=deep !low/evil")
	if err := os.Link(filepath.Join(out, "evil", FileName), filepath.Join(dir, "low", "group", FileName)); err != nil {
		needtest.Missing(t, "hard links")
	}
	want("a hard link", "a=low six=deep !low/evil !low/group/SKILL.md")
}

func TestFinderLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range maxSkills + 2 {
		write(t, filepath.Join(dir, fmt.Sprintf("s%03d", i), FileName),
			fmt.Sprintf("---\nname: s%03d\ndescription: d\n---\n", i))
	}
	var f Finder
	skills, problems := f.Find(Folder{Dir: dir})
	if len(skills) != maxSkills || len(problems) != 1 || problems[0].File != filepath.Join(dir, "s300") ||
		!strings.Contains(problems[0].Text, "more than 300 skills") {
		t.Errorf("%d skills, %v", len(skills), problems)
	}
}

func TestUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := filepath.Join(dir, "a", FileName)
	write(t, at, "---\nname: a\ndescription: one\n---\n")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(at, old, old); err != nil {
		t.Fatal(err)
	}
	var f Finder
	f.Find(Folder{Dir: dir})
	info, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	s := seen{at, info, time.Now()}
	if s.changed() {
		t.Error("an old file counts as changed")
	}
	if young := (seen{at, info, old.Add(time.Millisecond)}); !young.changed() {
		t.Error("a file that was read right after a change counts as unchanged")
	}
	if gone := (seen{filepath.Join(dir, "b"), nil, time.Now()}); gone.changed() {
		t.Error("a file that was and is missing counts as changed")
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	var c Config
	many := make([]*Skill, 300)
	for i := range many {
		many[i] = &Skill{Name: fmt.Sprintf("skill-%03d", i), Description: strings.Repeat("words & more ", 60),
			File: fmt.Sprintf("/s/%03d/SKILL.md", i)}
	}
	c.Limits.MaxCount = 300
	got := c.Prompt(many[:100], "")
	if n := utf8.RuneCountInString(got); n > defaultMaxChars || strings.Count(got, "<name>") != 100 ||
		strings.Contains(got, "not listed") {
		t.Errorf("%d characters, %d skills", n, strings.Count(got, "<name>"))
	}
	if got = c.Prompt(many, ""); utf8.RuneCountInString(got) > defaultMaxChars ||
		!strings.Contains(got, "\nMore skills, by name only") {
		t.Errorf("%d characters: %s", utf8.RuneCountInString(got), got[len(got)-200:])
	}
	for _, s := range many {
		if strings.Count(got, s.Name) != 1 {
			t.Errorf("SKILL-04 %s is listed %d times", s.Name, strings.Count(got, s.Name))
		}
	}
	c.Limits.MaxChars = 1000
	if got = c.Prompt(many, ""); utf8.RuneCountInString(got) > 1000 || !strings.Contains(got, " more\n") {
		t.Errorf("%d characters: %s", utf8.RuneCountInString(got), got)
	}
	c.Limits.MaxChars = 0
	work := t.TempDir()
	c.Limits.MaxCount = 2
	got = c.Prompt([]*Skill{
		{Name: "a", Description: "<b> & c", File: filepath.Join(work, "skills", "a", FileName)},
		{Name: "h", Description: "d", Hidden: true}, {Name: "x", Description: "d", File: "/x"},
		{Name: "y", Description: "d", File: "/y"},
	}, work)
	want := "<available_skills>\n<skill><name>a</name><description>&lt;b&gt; &amp; c</description><location>skills/a/SKILL.md</location></skill>\n" +
		"<skill><name>x</name><description>d</description><location>/x</location></skill>\n</available_skills>\nMore skills, by name only, because the list would be too long (`chela skills info NAME` describes one): y.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := c.Prompt([]*Skill{{Name: "h", Description: "d", Hidden: true}}, ""); got != "" {
		t.Errorf("hidden skills give %q", got)
	}
}

// BenchmarkFind looks for 60 skills that have not changed.
func BenchmarkFind(b *testing.B) {
	dir := b.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range 60 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := errors.Join(os.Mkdir(sub, 0o700), os.WriteFile(filepath.Join(sub, FileName),
			[]byte("---\nname: s\ndescription: d\n---\n"), 0o600), os.Chtimes(filepath.Join(sub, FileName), old, old),
			os.Chtimes(sub, old, old)); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Chtimes(dir, old, old); err != nil {
		b.Fatal(err)
	}
	var f Finder
	for b.Loop() {
		f.Find(Folder{Dir: dir})
	}
}
