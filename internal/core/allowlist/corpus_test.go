package allowlist_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/shell"
)

// sample is a command of the corpus with the expected results.
type sample struct {
	class, command string
	verdict        string
	match          bool
}

// corpus reads testdata/corpus.txt, which describes its format.
func corpus(t testing.TB) []sample {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "corpus.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	class := ""
	for n, line := range strings.Split(string(b), "\n") {
		if c, ok := strings.CutPrefix(line, "== "); ok {
			class = c
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " ", 3)
		if len(f) != 3 || !slices.Contains([]string{"reads", "ask", "never"}, f[0]) || f[1] != "match" && f[1] != "miss" {
			t.Fatalf("corpus, line %d: %q", n+1, line)
		}
		out = append(out, sample{class, unquoted(f[2]), f[0], f[1] == "match"})
	}
	return out
}

// unquoted returns the command of a line of the corpus.
func unquoted(s string) string {
	times := 1
	if i := strings.LastIndex(s, `"×`); i > 0 {
		n, err := strconv.Atoi(s[i+len(`"×`):])
		if err == nil {
			s, times = s[:i+1], n
		}
	}
	if u, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return strings.Repeat(u, times)
	}
	return s
}

// machine creates a folder with programs, and a workspace.
func machine(t testing.TB) (allowlist.Env, shell.Judge) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, ws := filepath.Join(root, "bin"), filepath.Join(root, "home", "workspace")
	for _, dir := range []string{bin, ws} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq("ls cat echo rg wc make npm go xargs find git python3 sh bash dash busybox toybox env nice nohup timeout stdbuf flock " +
		"head tail cut tr uniq sort rm sudo doas grep sed awk printf test true kill tee curl wget node perl ruby tar ssh vim less man docker sleep seq") {
		program(t, filepath.Join(bin, name))
	}
	for _, name := range []string{"ls", "make", "git"} {
		program(t, filepath.Join(ws, name))
	}
	return allowlist.Env{Path: []string{bin}, Workspace: ws, Home: "/home/anna"}, shell.Judge{Dir: ws, Home: "/home/anna"}
}

func program(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// list is the allowlist for the corpus.
const list = `{"version": 1, "defaults": {"security": "allowlist"}, "agents": {"main": {"allowlist": [
	"ls", "cat", "echo", "rg", "wc", "make", "npm", "go", "xargs", "find",
	{"pattern": "git", "argPattern": "(status|log|diff|show)( ([^-]\\S*|-\\d+|-p|--(oneline|short|stat)|--))*"},
	{"pattern": "**/python3", "argPattern": "safe\\.py( .*)?|--version"}
]}}}`

func rules(t testing.TB, document string, c allowlist.Config, pl allowlist.Env) *allowlist.Rules {
	t.Helper()
	d, err := allowlist.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	c.Dirs = pl.Path
	r, err := c.Rules(allowlist.Default(), d, "main", pl.Home)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// match matches a command against rules.
func match(r *allowlist.Rules, j shell.Judge, pl allowlist.Env, command string) (allowlist.Match, error) {
	return r.Match(r.Policy, r.Policy.Reads, j.Parse(command), pl)
}

// verdict returns the verdict on a plan, as in the corpus.
func verdict(p shell.Plan) string {
	switch {
	case p.Denied != "":
		return "never"
	case p.Changes != "":
		return "ask"
	}
	return "reads"
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	r := rules(t, list, allowlist.Config{}, pl)
	for _, s := range corpus(t) {
		p := j.Parse(s.command)
		if got := verdict(p); got != s.verdict {
			t.Errorf("S11 %s: %.100q: %s %q, want %s", s.class, s.command, got, p.Changes, s.verdict)
		}
		m, err := match(r, j, pl, s.command)
		if (err == nil) != s.match {
			t.Errorf("S11 %s: %.100q: match %.100q, error %v; want match %v", s.class, s.command, m.Command, err, s.match)
		}
	}
}

// TestEmptyList checks that without entries only commands that are judged
// read-only as a whole are on the list, also below a shell.
func TestEmptyList(t *testing.T) {
	t.Parallel()
	pl, j := machine(t)
	r := rules(t, `{"version": 1}`, allowlist.Config{SafeBins: []string{}}, pl)
	matches := 0
	for _, s := range corpus(t) {
		for _, before := range []string{"", "echo /etc/shadow | ", "cd ~/.ssh; ", "echo '-o x' | "} {
			command := before + s.command
			if _, err := match(r, j, pl, command); err == nil {
				matches++
				p := j.Parse(command)
				if verdict(p) != "reads" {
					t.Errorf("%.100q is on the list, but its verdict is %s: %q", command, verdict(p), p.Changes)
				}
			}
		}
	}
	if matches < 100 {
		t.Errorf("only %d match", matches)
	}
}

func BenchmarkMatch(b *testing.B) {
	pl, j := machine(b)
	var entries []string
	for i := range 100 {
		entries = append(entries, `{"pattern": "/opt/**/tool`+strconv.Itoa(i)+`", "argPattern": "(a|b)( .*)?"}`)
	}
	document := strings.Replace(list, `"ls", `, strings.Join(entries, ", ")+`, "ls", `, 1)
	path := filepath.Join(b.TempDir(), allowlist.FileName)
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		b.Fatal(err)
	}
	s := &allowlist.Source{File: allowlist.NewFile(path), Base: allowlist.Default(), All: allowlist.Config{Dirs: pl.Path}}
	for b.Loop() {
		r, err := s.Rules("main")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := match(r, j, pl, "make -j4 test && ls -la | head -5"); err != nil {
			b.Fatal(err)
		}
	}
}
