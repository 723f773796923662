//go:build unix

package exec_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
)

// listed returns options by which the document in dir holds over the
// configuration, and the source of the rules.
func listed(t *testing.T, dir, document string, base allowlist.Policy, c allowlist.Config) exec.Options {
	t.Helper()
	path := filepath.Join(dir, allowlist.FileName)
	if document != "" {
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &allowlist.Source{File: allowlist.NewFile(path), Base: base, All: c}
	return exec.Options{
		Interactive: true, Rules: s.Rules,
		Used: func(u []allowlist.Use, command string) {
			if err := s.Used(u, command, time.Now()); err != nil {
				t.Error(err)
			}
		},
	}
}

// fate is what becomes of a planned call.
func fate(p tool.Plan) string {
	switch {
	case p.Deny != "":
		return "refused"
	case p.Ask && p.Once:
		return "asks each time"
	case p.Ask:
		return "asks"
	}
	return "runs"
}

func TestAllowlist(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"rg", "tool", "python3"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho \"$0 $*\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := func(entries ...string) string {
		return `{"version": 1, "defaults": {"security": "allowlist"}, "agents": {"main": {"allowlist": [` + strings.Join(entries, ", ") + `]}}}`
	}
	yes := true
	for _, tt := range []struct {
		name, document, command, want string
		base                          allowlist.Policy
		config                        allowlist.Config
	}{
		{"AP-01 the document's always over full and off", `{"version": 1, "defaults": {"ask": "always"}}`, "touch x", "asks each time", allowlist.Open(), allowlist.Config{}},
		{"AP-01 and over what only reads", `{"version": 1, "defaults": {"ask": "always"}}`, "ls", "asks each time", allowlist.Open(), allowlist.Config{}},
		{"AP-01 the document's deny over full", `{"version": 1, "agents": {"main": {"security": "deny"}}}`, "ls", "refused", allowlist.Open(), allowlist.Config{}},
		{"AP-01 the document's full does not loosen", `{"version": 1, "defaults": {"security": "full", "ask": "off"}}`, "touch x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-01 without a word of the document", `{"version": 1}`, "touch x", "runs", allowlist.Open(), allowlist.Config{}},
		{"AP-02 on the list", list(`{"pattern": "/**/cat"}`), "cat x", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-02 and piped into what is not", list(`{"pattern": "/**/cat"}`), "cat x | rev", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-02 nobody is asked", list(`{"pattern": "/**/cat"}`), "cat x | rev", "refused", allowlist.Default(), allowlist.Config{Mode: "allowlist"}},
		{"AP-03 a name that is looked up", list(`"rg"`), "rg x", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-03 the same name in the folder", list(`"rg"`), "./rg x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-03 the same file by its path", list(`"rg"`), bin + "/rg x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 a substitution", list(`"echo"`), "echo $(id)", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 in double quotes", list(`"echo"`), `echo "$(id)"`, "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 with backticks", list(`"echo"`), "echo `id`", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 nobody is asked", list(`"echo"`), "echo $(id)", "refused", allowlist.Default(), allowlist.Config{Mode: "allowlist"}},
		{"AP-04 in single quotes it is a text", list(`"echo"`), "echo '$(id)'", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-05 a filter behind a program of the list", list(`"cat"`), "cat f | head -5", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-05 a filter with a file", list(`"cat"`), "head /etc/passwd", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-06 tail -f", list(), "tail -f x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-06 wc --files0-from", list(), "wc --files0-from=x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-06 sort -o", list(), "sort -o x", "asks", allowlist.Default(), allowlist.Config{SafeBins: []string{"sort"}}},
		{"AP-06 sort without", list(), "sort -r", "runs", allowlist.Default(), allowlist.Config{SafeBins: []string{"sort"}}},
		{"AP-07 an interpreter is no filter", list(), "python3 -", "asks", allowlist.Default(), allowlist.Config{SafeBins: []string{"python3"}, Dirs: []string{bin}}},
		{"AP-09 with these arguments", list(`{"pattern": "tool", "argPattern": "^a b$"}`), "tool a b", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-09 with others", list(`{"pattern": "tool", "argPattern": "^a b$"}`), "tool a c", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-09 with arguments that are not known", list(`{"pattern": "tool", "argPattern": "^a .*$"}`), "tool a $X", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-09 with one argument that looks like two", list(`{"pattern": "tool", "argPattern": "^a b$"}`), "tool 'a b'", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-15 code in the command", list(`"python3"`), "python3 -c 'print(1)'", "asks each time", allowlist.Default(), allowlist.Config{Strict: &yes}},
		{"AP-15 a file", list(`"python3"`), "python3 x.py", "runs", allowlist.Default(), allowlist.Config{Strict: &yes}},
		{"AP-15 where all runs", `{"version": 1}`, "cd /tmp; python3 -c 'print(1)'", "asks each time", allowlist.Open(), allowlist.Config{Strict: &yes}},
		{"AP-15 without the wish", list(`"python3"`), "python3 -c 'print(1)'", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-16 a document that is cut off", `{"version": 1, "def`, "ls", "error", allowlist.Open(), allowlist.Config{}},
		{"AP-16 a document with a word that nobody knows", `{"version": 1, "defaults": {"security": "fulll"}}`, "ls", "error", allowlist.Open(), allowlist.Config{}},
		{"AP-16 a document of another version", `{"version": 2}`, "ls", "error", allowlist.Open(), allowlist.Config{}},
		{"what reads is on the list of the default", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`, "cd sub && tool x 2>&1 | tail -3", "runs", allowlist.Default(), allowlist.Config{}},
		{"what reads in its place is not what reads alone", `{"version": 1}`, "echo /etc/shadow | xargs cat", "asks", allowlist.Default(), allowlist.Config{}},
		{"nor beside a program of the list", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`, "tool && cat $HOME/.config/x", "asks", allowlist.Default(), allowlist.Config{}},
		{"nor in another folder", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`, "tool; cd ~/.ssh; cat id", "asks", allowlist.Default(), allowlist.Config{}},
		{"nor with what comes in", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`, "tool; echo ~/.netrc | xargs cat", "asks", allowlist.Default(), allowlist.Config{}},
		{"a redirect into a file is on no list", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`, "tool x > f", "asks", allowlist.Default(), allowlist.Config{}},
		{"a plan that is never run is not on the list", list(`"rm"`, `"/**"`), "rm -rf /", "refused", allowlist.Default(), allowlist.Config{}},
		{"rules of another agent", `{"version": 1, "agents": {"ops": {"allowlist": ["tool"]}}}`, "tool x", "asks", allowlist.Default(), allowlist.Config{}},
		{"the older name of main", `{"version": 1, "agents": {"default": {"allowlist": ["tool"]}}}`, "tool x", "runs", allowlist.Default(), allowlist.Config{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			o := listed(t, dir, tt.document, tt.base, tt.config)
			o.PathPrepend = []string{bin}
			b := newBox(t, o)
			if err := os.Mkdir(filepath.Join(b.dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.dir, "rg"), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			p, _, err := b.plan(m{"command": tt.command})
			if tt.want == "error" {
				if err == nil || !strings.Contains(err.Error(), allowlist.FileName) {
					t.Fatalf("%+v, %v", p, err)
				}
				after, _ := os.ReadFile(filepath.Join(dir, allowlist.FileName))
				if string(after) != tt.document {
					t.Errorf("the document is %q now", after)
				}
				return
			}
			if err != nil || fate(p) != tt.want {
				t.Errorf("%s: %q %q, %v; want that it %s", fate(p), p.Reason, p.Deny, err, tt.want)
			}
		})
	}
}

func TestAllowlistRuns(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho \"$0 $*\"\n"
	for _, name := range []string{"tool", "other"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	document := `{"version": 1, "note": "mine", "agents": {"main": {"security": "allowlist", "allowlist": [{"id": "1", "pattern": "` + bin + `/tool", "why": "it is mine"}]}}}`
	o := listed(t, dir, document, allowlist.Default(), allowlist.Config{})
	o.PathPrepend = []string{bin}
	b := newBox(t, o)
	text, _, err := b.run(t.Context(), m{"command": `tool "a  b" 'it'\''s' \$HOME $NOTHING *.none && sh -c 'tool "in a shell"' | cut -c1-200`})
	want := bin + "/tool a  b it's $HOME *.none\n" + bin + "/tool in a shell"
	if err != nil || !strings.Contains(text, want) {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	after, err := os.ReadFile(filepath.Join(dir, allowlist.FileName))
	for _, part := range []string{`"lastUsedAt":`, `"lastUsedCommand": "tool`, `"lastResolvedPath": "` + bin, `"note": "mine"`, `"why": "it is mine"`} {
		if err != nil || !strings.Contains(string(after), part) {
			t.Errorf("%s is not in the document:\n%s\n%v", part, after, err)
		}
	}
	t.Run("a document that is edited by hand holds for the next command", func(t *testing.T) {
		next := strings.Replace(document, "/tool", "/other", 1)
		if err := os.WriteFile(filepath.Join(dir, allowlist.FileName), []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range []string{"tool x", "other x"} {
			p, _, err := b.plan(m{"command": c})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fate(p))
		}
		if !slices.Equal(got, []string{"asks", "runs"}) {
			t.Errorf("tool, other: %v", got)
		}
	})
}

func TestFallback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, document, command, want string }{
		{"AP-08 nothing is said", `{"version": 1}`, "touch x", "refused"},
		{"deny", `{"version": 1, "defaults": {"askFallback": "deny"}}`, "touch x", "refused"},
		{"full", `{"version": 1, "defaults": {"askFallback": "full"}}`, "touch x", "runs"},
		{"full, but code in the command", `{"version": 1, "defaults": {"askFallback": "full"}}`, "perl -e 1", "refused"},
		{"allowlist, and it is on it", `{"version": 1, "defaults": {"ask": "always", "askFallback": "allowlist"}}`, "ls", "runs"},
		{"allowlist, and it is not", `{"version": 1, "defaults": {"ask": "always", "askFallback": "allowlist"}}`, "touch x", "refused"},
		{"what reads needs nobody", `{"version": 1}`, "ls", "runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			yes := true
			o := listed(t, t.TempDir(), tt.document, allowlist.Default(), allowlist.Config{Strict: &yes})
			p, _, err := newBox(t, o).plan(m{"command": tt.command})
			if full := strings.HasPrefix(tt.name, "full"); err != nil || p.Ask && p.Alone != (full && tt.want == "runs") {
				t.Errorf("where somebody may be asked: %+v, %v", p, err)
			}
			o.Interactive = false
			p, _, err = newBox(t, o).plan(m{"command": tt.command})
			if err != nil || fate(p) != tt.want {
				t.Errorf("%s: %q %q, %v; want that it %s", fate(p), p.Reason, p.Deny, err, tt.want)
			}
		})
	}
}
