package shell_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/shell"
)

// calls returns the programs that a script runs, one per line; ">" marks one
// that only runs the next.
func calls(s shell.Script) []string {
	var out []string
	for _, st := range s.Steps {
		for _, c := range st.Calls {
			var words []string
			for _, w := range c.Argv {
				text := w.Text
				if !w.Literal {
					text = "<" + text + ">"
				}
				words = append(words, text)
			}
			line := strings.Join(words, " ")
			if c.Transparent {
				line = "> " + words[0]
			}
			out = append(out, line)
		}
		if st.Text != nil {
			out = append(out, calls(*st.Text)...)
		}
	}
	return out
}

func TestProgram(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"true 1":                {"true", "1"},
		`ls 'a b' "c" d\ e # f`: {"ls", "a b", "c", "d e"},
		"/bin/ls":               {"/bin/ls"},
		"sudo ls":               {"sudo", "ls"},
		"":                      nil,
		"true;false":            nil,
		"true &":                nil,
		"! true":                nil,
		"time true":             nil,
		"(true)":                nil,
		"true | cat":            nil,
		"true >x":               nil,
		"X=1 true":              nil,
		"X=1":                   nil,
		"ls *":                  nil,
		"ls ~":                  nil,
		"ls {a,b}":              nil,
		"ls $HOME":              nil,
		"ls $(pwd)":             nil,
		"ls $'a'":               nil,
		"ls a\u200bb":           nil, // an invisible character
	} {
		if got := (shell.Judge{}).Parse(command).Program; !cmp.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command string
		want    []string // nil: undecidable
		render  string
	}{
		{"ls -la | head -5", []string{"ls -la", "head -5"}, "/x/ls -la | /x/head -5"},
		{"a && b || c; d", []string{"a", "b", "c", "d"}, "/x/a && /x/b || /x/c; /x/d"},
		{`a 'b c' "d e" f\ g`, []string{"a b c d e f g"}, "/x/a 'b c' 'd e' 'f g'"},
		{`a "it's" '"'`, []string{`a it's "`}, `/x/a 'it'\''s' '"'`},
		{`a "" '$(b)' \$c`, []string{"a  $(b) $c"}, "/x/a '' '$(b)' '$c'"},
		{"a $X ${Y} *.go ~/x {a,b}", []string{"a <$X> <${Y}> <*.go> <~/x> <{a,b}>"}, "/x/a $X ${Y} *.go ~/x {a,b}"},
		{"env -u X LANG=C nice -n 5 timeout 9 a b", []string{"> env", "> nice", "> timeout", "a b"}, "/x/env -u X 'LANG=C' /x/nice -n 5 /x/timeout 9 /x/a b"},
		{"TZ='a b' a", []string{"a"}, "TZ='a b' /x/a"},
		{"sh -c 'a; b | c' && d", []string{"> sh", "a", "b", "c", "d"}, `/x/sh -c '/x/a; /x/b | /x/c' && /x/d`},
		{`sh -c "sh -c 'a b'"`, []string{"> sh", "> sh", "a b"}, `/x/sh -c '/x/sh -c '\''/x/a b'\'''`},
		{"busybox sh -c a", []string{"> busybox", "a"}, "/x/busybox sh -c /x/a"},
		{"nice -5 stdbuf -oL -e 0 flock -n -w 3 /l nohup a", []string{"> nice", "> stdbuf", "> flock", "> nohup", "a"}, "/x/nice -5 /x/stdbuf -oL -e 0 /x/flock -n -w 3 /l /x/nohup /x/a"},
		{"xargs -I{} -P4 a {} b", []string{"xargs -I{} -P4 a {} b", "a <{}> b <…>"}, "/x/xargs '-I{}' -P4 /x/a '{}' b"},
		{"find . -name x -exec a -l {} + -print", []string{"find . -name x -exec a -l {} + -print", "a -l <{}>"}, "/x/find . -name x -exec /x/a -l '{}' + -print"},
		{`find . -exec a {} \; -exec b \;`, []string{"find . -exec a {} ; -exec b ;", "a <{}>", "b"}, "/x/find . -exec /x/a '{}' ';' -exec /x/b ';'"},
		{"xargs -n 1 a b", []string{"xargs -n 1 a b", "a b <…>"}, "/x/xargs -n 1 /x/a b"},
		{"a 2>&1 >/dev/null | b", []string{"a", "b"}, "/x/a 2>&1 >/dev/null | /x/b"},
		{"a\nb # c", []string{"a", "b"}, "/x/a; /x/b"},
		{"'a;b' c", []string{"a;b c"}, "'/x/a;b' c"},
		{"a $(b)", nil, ""}, {"a `b`", nil, ""}, {"a <(b)", nil, ""}, {"a > f", nil, ""}, {"a < f", nil, ""}, {"a <<< x", nil, ""}, {"a <<E\nE", nil, ""},
		{"a &", nil, ""}, {"(a)", nil, ""}, {"{ a; }", nil, ""}, {"! a", nil, ""}, {"a |& b", nil, ""}, {"if a; then b; fi", nil, ""}, {"f() { a; }; f", nil, ""},
		{"$X", nil, ""}, {"a$X b", nil, ""}, {"*/a", nil, ""}, {"~/a", nil, ""}, {"X=1", nil, ""}, {"X=1 a", nil, ""}, {"PATH=x a", nil, ""}, {"LANG=$X a", nil, ""},
		{"a $'x'", nil, ""}, {`a $"x"`, nil, ""}, {"a $((1))", nil, ""}, {"a ${X:-b}", nil, ""}, {"a ${!X}", nil, ""}, {"a ${#X}", nil, ""}, {"a ${X[1]}", nil, ""}, {"a @(b|c)", nil, ""},
		{"eval a", nil, ""}, {"exec a", nil, ""}, {"command a", nil, ""}, {". a", nil, ""}, {"source a", nil, ""}, {"env -S 'a b'", nil, ""}, {"env", nil, ""}, {"env X=1 a", nil, ""}, {"timeout $X a", nil, ""},
		{"sh", nil, ""}, {"sh a", nil, ""}, {"sh -c \"$X\"", nil, ""}, {"sh -c 'a' b", nil, ""}, {"sh -lc a", nil, ""}, {"sh -c 'a > b'", nil, ""}, {"busybox rm x", nil, ""},
		{"find . -exec {} +", nil, ""}, {"find . -exec sh -c a +", nil, ""}, {"xargs sh -c a", nil, ""}, {"sudo a", nil, ""}, {"setsid a", nil, ""}, {"env -a a b", nil, ""}, {"env -C / a", nil, ""}, {"env --split-string a", nil, ""}, {"env -vS a", nil, ""}, {"env - a", nil, ""}, {"env -- a", nil, ""},
		{"nice -x a", nil, ""}, {"timeout a", nil, ""}, {"timeout 5", nil, ""}, {"timeout -v 5 a", nil, ""}, {"timeout 5 -x", nil, ""}, {"flock a", nil, ""}, {"flock /l -c a", nil, ""}, {"flock -c a /l", nil, ""}, {"nohup -a b", nil, ""}, {"stdbuf -x a", nil, ""},
		{"xargs -I a a", nil, ""}, {"xargs -Ia a", nil, ""}, {"xargs -i a", nil, ""}, {"xargs --replace=a a", nil, ""}, {"xargs -a f b", nil, ""}, {"xargs", nil, ""}, {"xargs -n 1", nil, ""}, {"xargs -I{} {}", nil, ""}, {"xargs -I{} a{} b", nil, ""}, {"find $X", nil, ""}, {"find *", nil, ""}, {"", nil, ""}, {"#", nil, ""}, {"a '", nil, ""}, {"a \x00", nil, ""}, {"a \u202e", nil, ""},
	} {
		s, err := shell.Judge{Home: "/home/anna"}.Script(tt.command)
		if tt.want == nil {
			var u shell.Undecidable
			if !errors.As(err, &u) || u == "" {
				t.Errorf("Script(%q): %v, %v; want an Undecidable error", tt.command, calls(s), err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, calls(s)); err != nil || diff != "" {
			t.Errorf("Script(%q): %v, -want +got:\n%s", tt.command, err, diff)
			continue
		}
		if got := s.Render(func(name string) string { return "/x/" + name }); got != tt.render {
			t.Errorf("Render of %q = %q, want %q", tt.command, got, tt.render)
		}
	}
}

// FuzzScript checks that a rendered script is read as the same script.
func FuzzScript(f *testing.F) {
	for _, s := range []string{
		"ls -la | head", `a 'b c' "d" \e $X *.go`, "env LANG=C nice a", "sh -c 'a \"b\"'", `find . -exec a {} \;`, "ls | xargs -n 1 a", "a 2>&1 >/dev/null", "TZ='x y' a", "a; b\nc && d || e",
		"busybox sh -c 'a b'", "a ~ {x,y} 'q'\\''r'", "sudo -u root a", "timeout 5 a", "'a b' c", "a \"$X\" ${Y}",
	} {
		f.Add(s)
	}
	j := shell.Judge{Home: "/home/anna"}
	same := func(name string) string { return name }
	f.Fuzz(func(t *testing.T, command string) {
		s, err := j.Script(command)
		if err != nil {
			return
		}
		again := s.Render(same)
		if len(again) > 8<<10 || strings.ContainsAny(command, "\n") && len(again) > 4<<10 {
			return // the quotes made it too long to parse
		}
		s2, err := j.Script(again)
		if err != nil {
			t.Fatalf("%q, rendered as %q: %v", command, again, err)
		}
		if diff := cmp.Diff(calls(s), calls(s2)); diff != "" {
			t.Fatalf("%q, rendered as %q:\n%s", command, again, diff)
		}
	})
}
