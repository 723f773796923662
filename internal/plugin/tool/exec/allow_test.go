//go:build unix

package exec_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// listed returns options with the rules of a document in dir and a
// configuration.
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
		RecordUse: func(u []allowlist.Use, command string) {
			if err := s.RecordUse(u, command, time.Now()); err != nil {
				t.Error(err)
			}
		},
	}
}

// outcome describes the decision about a planned call.
func outcome(p tool.Plan) string {
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
		return `{"version": 1, "defaults": {"security": "allowlist"}, "agents": {"main": {"allowlist": [` +
			strings.Join(entries, ", ") + `]}}}`
	}
	yes := true
	for _, tt := range []struct {
		name, document, command, want string
		base                          allowlist.Policy
		config                        allowlist.Config
	}{
		{"AP-01 the document's always over full and off", `{"version": 1, "defaults": {"ask": "always"}}`, "touch x",
			"asks each time", allowlist.Permissive(), allowlist.Config{}},
		{"AP-01 the document's always over a read-only command", `{"version": 1, "defaults": {"ask": "always"}}`, "ls",
			"asks each time", allowlist.Permissive(), allowlist.Config{}},
		{"AP-01 the document's deny over full", `{"version": 1, "agents": {"main": {"security": "deny"}}}`, "ls", "refused",
			allowlist.Permissive(), allowlist.Config{}},
		{"AP-01 the document's full does not loosen", `{"version": 1, "defaults": {"security": "full", "ask": "off"}}`,
			"touch x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-01 without settings in the document", `{"version": 1}`, "touch x", "runs",
			allowlist.Permissive(), allowlist.Config{}},
		{"AP-02 on the list", list(`{"pattern": "/**/cat"}`), "cat x", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-02 piped into an unlisted program", list(`{"pattern": "/**/cat"}`), "cat x | rev", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"AP-02 nobody is asked", list(`{"pattern": "/**/cat"}`), "cat x | rev", "refused", allowlist.Default(),
			allowlist.Config{Mode: "allowlist"}},
		{"AP-03 a name looked up in PATH", list(`"rg"`), "rg x", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-03 the same name in the folder", list(`"rg"`), "./rg x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-03 the same file by its path", list(`"rg"`), bin + "/rg x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 a substitution", list(`"echo"`), "echo $(id)", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 in double quotes", list(`"echo"`), `echo "$(id)"`, "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 with backticks", list(`"echo"`), "echo `id`", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-04 nobody is asked", list(`"echo"`), "echo $(id)", "refused", allowlist.Default(),
			allowlist.Config{Mode: "allowlist"}},
		{"AP-04 in single quotes", list(`"echo"`), "echo '$(id)'", "runs", allowlist.Default(), allowlist.Config{}},
		{"AP-05 a filter after a listed program", list(`"cat"`), "cat f | head -5", "runs",
			allowlist.Default(), allowlist.Config{}},
		{"AP-05 a filter with a file", list(`"cat"`), "head /etc/passwd", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-06 tail -f", list(), "tail -f x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-06 wc --files0-from", list(), "wc --files0-from=x", "asks", allowlist.Default(), allowlist.Config{}},
		{"AP-06 sort -o", list(), "sort -o x", "asks", allowlist.Default(), allowlist.Config{SafeBins: []string{"sort"}}},
		{"AP-06 sort without -o", list(), "sort -r", "runs", allowlist.Default(),
			allowlist.Config{SafeBins: []string{"sort"}}},
		{"AP-07 an interpreter is not a filter", list(), "python3 -", "asks", allowlist.Default(),
			allowlist.Config{SafeBins: []string{"python3"}, Dirs: []string{bin}}},
		{"AP-09 matching arguments", list(`{"pattern": "tool", "argPattern": "^a b$"}`), "tool a b", "runs",
			allowlist.Default(), allowlist.Config{}},
		{"AP-09 other arguments", list(`{"pattern": "tool", "argPattern": "^a b$"}`), "tool a c", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"AP-09 unknown arguments", list(`{"pattern": "tool", "argPattern": "^a .*$"}`), "tool a $X", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"AP-09 one argument that looks like two", list(`{"pattern": "tool", "argPattern": "^a b$"}`), "tool 'a b'", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"AP-15 inline code", list(`"python3"`), "python3 -c 'print(1)'", "asks each time", allowlist.Default(),
			allowlist.Config{Strict: &yes}},
		{"AP-15 a file", list(`"python3"`), "python3 x.py", "runs", allowlist.Default(), allowlist.Config{Strict: &yes}},
		{"AP-15 inline code with a permissive policy", `{"version": 1}`, "cd /tmp; python3 -c 'print(1)'", "asks each time",
			allowlist.Permissive(), allowlist.Config{Strict: &yes}},
		{"AP-15 without strictInlineEval", list(`"python3"`), "python3 -c 'print(1)'", "runs",
			allowlist.Default(), allowlist.Config{}},
		{"AP-16 an incomplete document", `{"version": 1, "def`, "ls", "error", allowlist.Permissive(), allowlist.Config{}},
		{"AP-16 a document with an unknown value", `{"version": 1, "defaults": {"security": "fulll"}}`, "ls", "error",
			allowlist.Permissive(), allowlist.Config{}},
		{"AP-16 a document of another version", `{"version": 2}`, "ls", "error", allowlist.Permissive(), allowlist.Config{}},
		{"a read-only command with the default policy", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`,
			"tool x 2>&1 | tail -3", "runs", allowlist.Default(), allowlist.Config{}},
		{"without a sandbox, a builtin is not on the list", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`,
			"cd sub && tool x", "asks", allowlist.Default(), allowlist.Config{}},
		{"a command that reads only without its input", `{"version": 1}`, "echo /etc/shadow | xargs cat", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"a private file besides a listed program", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`,
			"tool && cat $HOME/.config/x", "asks", allowlist.Default(), allowlist.Config{}},
		{"a private file in another folder", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`,
			"tool; cd ~/.ssh; cat id", "asks", allowlist.Default(), allowlist.Config{}},
		{"a private file named by the input", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`,
			"tool; echo ~/.netrc | xargs cat", "asks", allowlist.Default(), allowlist.Config{}},
		{"a redirect to a file", `{"version": 1, "agents": {"*": {"allowlist": ["tool"]}}}`, "tool x > f", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"a listed command that is always denied", list(`"rm"`, `"/**"`), "rm -rf /", "refused",
			allowlist.Default(), allowlist.Config{}},
		{"rules of another agent", `{"version": 1, "agents": {"ops": {"allowlist": ["tool"]}}}`, "tool x", "asks",
			allowlist.Default(), allowlist.Config{}},
		{"the former name of main", `{"version": 1, "agents": {"default": {"allowlist": ["tool"]}}}`, "tool x", "runs",
			allowlist.Default(), allowlist.Config{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			o := listed(t, dir, tt.document, tt.base, tt.config)
			o.PathPrepend = []string{bin}
			b := newFixture(t, o)
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
					t.Errorf("the document was changed to %q", after)
				}
				return
			}
			if err != nil || outcome(p) != tt.want {
				t.Errorf("%s: %q %q, %v; want %s", outcome(p), p.Reason, p.Deny, err, tt.want)
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
	b := newFixture(t, o)
	text, _, err := b.run(t.Context(),
		m{"command": `tool "a  b" 'it'\''s' \$HOME $NOTHING *.none && sh -c 'tool "in a shell"' | cut -c1-200`})
	want := bin + "/tool a  b it's $HOME *.none\n" + bin + "/tool in a shell"
	if err != nil || !strings.Contains(text, want) {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	after, err := os.ReadFile(filepath.Join(dir, allowlist.FileName))
	for _, part := range []string{`"lastUsedAt":`, `"lastUsedCommand": "tool`, `"lastResolvedPath": "` + bin,
		`"note": "mine"`, `"why": "it is mine"`} {
		if err != nil || !strings.Contains(string(after), part) {
			t.Errorf("%s is not in the document:\n%s\n%v", part, after, err)
		}
	}
	t.Run("edits take effect for the next command", func(t *testing.T) {
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
			got = append(got, outcome(p))
		}
		if !slices.Equal(got, []string{"asks", "runs"}) {
			t.Errorf("tool, other: %v", got)
		}
	})
}

func TestFallback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, document, command, want string }{
		{"AP-08 no fallback", `{"version": 1}`, "touch x", "refused"},
		{"deny", `{"version": 1, "defaults": {"askFallback": "deny"}}`, "touch x", "refused"},
		{"full", `{"version": 1, "defaults": {"askFallback": "full"}}`, "touch x", "runs"},
		{"full, but inline code", `{"version": 1, "defaults": {"askFallback": "full"}}`, "perl -e 1", "refused"},
		{"allowlist, listed", `{"version": 1, "defaults": {"ask": "always", "askFallback": "allowlist"}}`, "ls", "runs"},
		{"allowlist, not listed", `{"version": 1, "defaults": {"ask": "always", "askFallback": "allowlist"}}`,
			"touch x", "refused"},
		{"a read-only command", `{"version": 1}`, "ls", "runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			yes := true
			o := listed(t, t.TempDir(), tt.document, allowlist.Default(), allowlist.Config{Strict: &yes})
			p, _, err := newFixture(t, o).plan(m{"command": tt.command})
			if full := strings.HasPrefix(tt.name, "full"); err != nil || p.Ask && p.Unattended != (full && tt.want == "runs") {
				t.Errorf("interactive: %+v, %v", p, err)
			}
			o.Interactive = false
			p, _, err = newFixture(t, o).plan(m{"command": tt.command})
			if err != nil || outcome(p) != tt.want {
				t.Errorf("%s: %q %q, %v; want %s", outcome(p), p.Reason, p.Deny, err, tt.want)
			}
		})
	}
}
