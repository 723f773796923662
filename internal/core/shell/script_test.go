package shell_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/shell"
)

// calls returns the programs that a plan runs, one per line; ">" marks one
// that only runs the next.
func calls(p shell.Plan) []string {
	var out []string
	for _, s := range p.Segments {
		var words []string
		for _, w := range s.Argv {
			text := w.Text
			if !w.Literal || w.Glob {
				text = "<" + text + ">"
			}
			words = append(words, text)
		}
		line := strings.Join(words, " ")
		if s.Transparent {
			line = "> " + words[0]
		}
		out = append(out, line)
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
		"sh -c 'ls $X'":         {"sh", "-c", "ls $X"},
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
		"ls $'a'\"$X\"":         nil,
		"ls a\u200bb":           nil, // an invisible character
	} {
		if got := (shell.Judge{}).Parse(command).Program; !cmp.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestRender(t *testing.T) {
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
		{"a $X ${Y} *.go ~/x {a,b}", []string{"a <$X> <${Y}> <*.go> /home/anna/x a b"}, "/x/a $X ${Y} *.go /home/anna/x a b"},
		{"env -u X LANG=C nice -n 5 timeout 9 a b", []string{"> env", "> nice", "> timeout", "a b"},
			"/x/env -u X 'LANG=C' /x/nice -n 5 /x/timeout 9 /x/a b"},
		{"TZ='a b' a", []string{"a"}, "TZ='a b' /x/a"},
		{"sh -c 'a; b | c' && d", []string{"> sh", "a", "b", "c", "d"}, `/x/sh -c '/x/a; /x/b | /x/c' && /x/d`},
		{`sh -c "sh -c 'a b'"`, []string{"> sh", "> sh", "a b"}, `/x/sh -c '/x/sh -c '\''/x/a b'\'''`},
		{"busybox sh -c a", []string{"> busybox", "a"}, "/x/busybox sh -c /x/a"},
		{"nice -5 stdbuf -oL -e 0 flock -n -w 3 /l nohup a", []string{"> nice", "> stdbuf", "> flock", "> nohup", "a"},
			"/x/nice -5 /x/stdbuf -oL -e 0 /x/flock -n -w 3 /l /x/nohup /x/a"},
		{"a 2>&1 >/dev/null | b", []string{"a", "b"}, "/x/a 2>&1 >/dev/null | /x/b"},
		{"a\nb # c", []string{"a", "b"}, "/x/a; /x/b"},
		{"'a;b' c", []string{"a;b c"}, "'/x/a;b' c"},
		{"a $(b)", nil, ""}, {"a `b`", nil, ""}, {"a <(b)", nil, ""}, {"a > f", nil, ""}, {"a < f", nil, ""},
		{"a <<< x", nil, ""}, {"a <<E\nE", nil, ""},
		{"a &", nil, ""}, {"(a)", nil, ""}, {"{ a; }", nil, ""}, {"! a", nil, ""}, {"a |& b", nil, ""},
		{"if a; then b; fi", nil, ""}, {"f() { a; }; f", nil, ""},
		{"$X", nil, ""}, {"a$X b", nil, ""}, {"*/a", nil, ""}, {"~bob/a", nil, ""}, {"a ~bob", nil, ""}, {"X=1", nil, ""},
		{"X=1 a", nil, ""}, {"PATH=x a", nil, ""}, {"LANG=$X a", nil, ""},
		{"a $'x'", nil, ""}, {"a $'x'\"$X\"", nil, ""}, {"a \"$X\"\"$(b)\"", nil, ""}, {`a $"x"`, nil, ""},
		{"a $((1))", nil, ""}, {"a ${X:-b}", nil, ""}, {"a ${!X}", nil, ""}, {"a ${#X}", nil, ""},
		{"a ${X[1]}", nil, ""}, {"a @(b|c)", nil, ""},
		{"eval a", nil, ""}, {"exec a", nil, ""}, {"command a", nil, ""}, {". a", nil, ""}, {"source a", nil, ""},
		{"env -S 'a b'", nil, ""}, {"env", nil, ""}, {"env X=1 a", nil, ""}, {"timeout $X a", nil, ""},
		{"timeout * a", nil, ""}, {"timeout -k $X 5 a", nil, ""}, {"nice -n $X a", nil, ""}, {"nice -n * a", nil, ""},
		{"env -u $X a", nil, ""}, {"find . $X", nil, ""}, {"find . -exec a {} +", nil, ""}, {"find . -ok a {} +", nil, ""},
		{"xargs a", nil, ""}, {"a | xargs -n 1 b", nil, ""}, {"a {b,c}*", nil, ""}, {"timeout 5 -k 5 a", nil, ""},
		{"sh", nil, ""}, {"sh a", nil, ""}, {"sh -c \"$X\"", nil, ""}, {"sh -c 'a' b", nil, ""}, {"sh -lc a", nil, ""},
		{"sh -c 'a > b'", nil, ""}, {"busybox rm x", nil, ""},
		{"find . -exec {} +", nil, ""}, {"find . -exec sh -c a +", nil, ""}, {"xargs sh -c a", nil, ""}, {"sudo a", nil, ""},
		{"setsid a", nil, ""}, {"env -a a b", nil, ""}, {"env --split-string a", nil, ""}, {"env -vS a", nil, ""},
		{"env - a", nil, ""}, {"env -- a", nil, ""},
		{"nice -x a", nil, ""}, {"timeout a", nil, ""}, {"timeout 5", nil, ""}, {"timeout -v 5 a", nil, ""},
		{"timeout 5 -x", nil, ""}, {"flock a", nil, ""}, {"flock /l -c a", nil, ""}, {"flock -c a /l", nil, ""},
		{"nohup -a b", nil, ""}, {"stdbuf -x a", nil, ""},
		{"xargs -I a a", nil, ""}, {"xargs -Ia a", nil, ""}, {"xargs -i a", nil, ""}, {"xargs --replace=a a", nil, ""},
		{"xargs -a f b", nil, ""}, {"xargs", nil, ""}, {"xargs -n 1", nil, ""}, {"xargs -I{} {}", nil, ""},
		{"xargs -I{} a{} b", nil, ""}, {"find $X", nil, ""}, {"find *", nil, ""}, {"", nil, ""}, {"#", nil, ""},
		{"a '", nil, ""}, {"a \x00", nil, ""}, {"a \u202e", nil, ""},
	} {
		p := shell.Judge{Home: "/home/anna"}.Parse(tt.command)
		if tt.want == nil {
			if p.Undecidable == "" {
				t.Errorf("Parse(%q): %v; want it to be undecidable", tt.command, calls(p))
			}
			continue
		}
		if diff := cmp.Diff(tt.want, calls(p)); p.Undecidable != "" || diff != "" {
			t.Errorf("Parse(%q): %v, -want +got:\n%s", tt.command, p.Undecidable, diff)
			continue
		}
		if got := p.Render(func(name string) string { return "/x/" + name }); got != tt.render {
			t.Errorf("Render of %q = %q, want %q", tt.command, got, tt.render)
		}
	}
}

// FuzzRender checks that a rendered plan is read as the same plan.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"ls -la | head", `a 'b c' "d" \e $X *.go`, "env LANG=C nice a", "sh -c 'a \"b\"'", `find . -exec a {} \;`,
		"ls | xargs -n 1 a", "a 2>&1 >/dev/null", "TZ='x y' a", "a; b\nc && d || e",
		"busybox sh -c 'a b'", "a ~ {x,y} 'q'\\''r'", "sudo -u root a", "timeout 5 a", "'a b' c", "a \"$X\" ${Y}",
	} {
		f.Add(s)
	}
	j := shell.Judge{Home: "/home/anna"}
	same := func(name string) string { return name }
	f.Fuzz(func(t *testing.T, command string) {
		p := j.Parse(command)
		if p.Undecidable != "" {
			return
		}
		again := p.Render(same)
		if len(again) > 8<<10 || strings.ContainsAny(command, "\n") && len(again) > 4<<10 {
			return // the quotes made it too long to parse
		}
		p2 := j.Parse(again)
		if p2.Undecidable != "" {
			t.Fatalf("%q, rendered as %q: %v", command, again, p2.Undecidable)
		}
		if diff := cmp.Diff(calls(p), calls(p2)); diff != "" {
			t.Fatalf("%q, rendered as %q:\n%s", command, again, diff)
		}
	})
}

// TestDetached tells commands whose last statement the shell does not wait for.
func TestDetached(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"server &":                  true,
		"cd web && server &":        true,
		"a & b &":                   true,
		"server & # a comment":      true,
		"(server) > log 2>&1 &":     true,
		"nohup server >/dev/null &": true,
		"server":                    false,
		"server & curl x":           false,
		"server &\nwait":            false,
		"echo '&'":                  false,
		"(server &)":                false,

		"":   false,
		"if": false,
	} {
		if got := (shell.Judge{}).Parse(command).Detached; got != want {
			t.Errorf("EX-07 %q: %v, want %v", command, got, want)
		}
	}
}
