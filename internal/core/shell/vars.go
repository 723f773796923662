package shell

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// variable holds the known values of a shell variable: every value it may
// have been assigned, in order. If it is certain, its value is the last one.
type variable struct {
	vals    []string
	certain bool // its value is the last of vals
}

// maxVals is the number of values of a variable that are tracked.
const maxVals = 8

// set records that a variable may have been assigned a value.
func (w *walker) set(name, value string, known bool) {
	v := w.vars[name]
	if len(value) > maxCommand { // values could double with each assignment
		value, known = "…", false
	}
	v.certain = known && !w.conditional
	if len(v.vals) < maxVals && (known || len(v.vals) == 0) {
		v.vals = append(slices.Clip(v.vals), value)
	} else if known {
		v.certain = false
	}
	w.vars[name] = v
}

// uncertain walks commands that may not run, or that run in another shell.
// They know the current state, but what they change is not certain
// afterwards.
func (w *walker) uncertain(f func()) {
	was := w.conditional
	w.conditional = true
	f()
	w.conditional = was
}

// bind sets the positional parameters while f runs.
func (w *walker) bind(args []Word, f func()) {
	old := w.vars
	w.vars = maps.Clone(w.vars)
	defer func() {
		maps.DeleteFunc(w.vars, func(name string, _ variable) bool { return positional(name) })
		for name, v := range old {
			if positional(name) {
				w.vars[name] = v
			}
		}
	}()
	all := make([]string, 0, len(args))
	for i, a := range args {
		w.vars[strconv.Itoa(i+1)] = variable{[]string{a.Text}, a.Literal && !a.Glob}
		all = append(all, a.Text)
	}
	w.vars["@"] = variable{vals: []string{strings.Join(all, " ")}}
	w.vars["*"] = w.vars["@"]
	f()
}

func positional(name string) bool { return strings.Trim(name, "0123456789@*") == "" }

// variant is one choice of values for the variables of a command.
type variant struct {
	w *walker
	n int // index of the value; missing values are empty
}

// Get implements expand.Environ.
func (r variant) Get(name string) expand.Variable {
	str := func(s string) expand.Variable {
		return expand.Variable{Set: true, Kind: expand.String, Str: s}
	}
	switch {
	case name == "HOME":
		return str(r.w.Home)
	case strings.HasPrefix(name, "HOME "): // ~user
		return str("~" + name[5:])
	case name == "PWD":
		return str(r.w.cwd)
	case name == "IFS":
		return str(" \t\n")
	}
	v, ok := r.w.vars[name]
	switch {
	case !ok:
		return expand.Variable{}
	case v.certain:
		return str(v.vals[len(v.vals)-1])
	case len(v.vals) > 0:
		return str(v.vals[min(r.n, len(v.vals)-1)])
	}
	return expand.Variable{}
}

// Each implements expand.Environ.
func (r variant) Each(func(string, expand.Variable) bool) {}

// variants returns the number of variants to examine.
func (w *walker) variants() int {
	n := 0
	for _, v := range w.vars {
		if !v.certain {
			n = max(n, len(v.vals))
		}
	}
	return max(n, 1)
}

// expand returns the values of a word in one variant, or false.
func (w *walker) expand(word *syntax.Word, n int) ([]string, bool) {
	if text := word.Lit(); text != "" && Quote(text) == text {
		return []string{text}, true
	}
	if !w.bounded(word) {
		return nil, false
	}
	cfg := &expand.Config{
		Env: variant{w, n},
		CmdSubst: func(out io.Writer, c *syntax.CmdSubst) error {
			s, _ := w.outputOf(c.Stmts, n)
			_, err := io.WriteString(out, s)
			return err
		},
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "/dev/fd/63", nil },
	}
	fields, err := expand.Fields(cfg, word)
	if err != nil || len(fields) > 256 {
		return nil, false
	}
	return fields, true
}

// bounded reports whether expanding a word is cheap, has no effect and needs
// nothing that is unavailable.
func (w *walker) bounded(word *syntax.Word) bool {
	ok := true
	braces := 1
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			return false
		case *syntax.ArithmExp, *syntax.ArithmCmd:
			ok = false
		case *syntax.ParamExp:
			if n.Excl || n.Index != nil || n.Slice != nil || n.Names != 0 {
				ok = false
			}
		case *syntax.Lit:
			// {1..999999} and {a,b}{a,b}… grow without bound
			braces *= 1 + strings.Count(n.Value, ",")
			if sequence().MatchString(n.Value) || braces > 256 {
				ok = false
			}
		}
		return ok
	})
	return ok
}

// sequence matches {1..9}.
var sequence = lazyRegexp(`\{[^{},]*\.\.[^{},]*\}`)

// outputOf returns the output of commands if it can be predicted: echo or
// printf with known words.
func (w *walker) outputOf(stmts []*syntax.Stmt, n int) (string, bool) {
	if len(stmts) != 1 || len(stmts[0].Redirs) > 0 {
		return "", false
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 || w.depth >= maxDepth {
		return "", false
	}
	if *w.steps--; *w.steps <= 0 {
		return "", false
	}
	w.depth++
	defer func() { w.depth-- }()
	var argv []string
	known := true
	for _, word := range call.Args {
		f, ok := w.expand(word, n)
		known = known && ok && w.static(word)
		argv = append(argv, f...)
	}
	if len(argv) == 0 || w.funcs[argv[0]] != nil || w.aliases[argv[0]] != "" {
		return "", false
	}
	switch argv[0] {
	case "echo":
		args := argv[1:]
		for len(args) > 0 && (args[0] == "-n" || args[0] == "-e" || args[0] == "-ne") {
			args = args[1:]
			known = false
		}
		text := strings.Join(args, " ") + "\n"
		return text, known && !strings.Contains(text, `\`) // shells differ in how they treat backslashes
	case "printf":
		if len(argv) < 2 {
			return "", false
		}
		s, _, err := expand.Format(&expand.Config{}, argv[1], argv[2:])
		return s, known && err == nil
	}
	return "", false
}

// static reports whether the value of a word is known before the command
// runs.
func (w *walker) static(word *syntax.Word) bool {
	return w.bounded(word) && w.staticParts(word.Parts)
}

func (w *walker) staticParts(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted, *syntax.ProcSubst, *syntax.ExtGlob:
		case *syntax.DblQuoted:
			if p.Dollar || !w.staticParts(p.Parts) {
				return false
			}
		case *syntax.ParamExp:
			if p.Exp != nil || p.Repl != nil || p.Length || !w.certain(p.Param) {
				return false
			}
		case *syntax.CmdSubst:
			if _, ok := w.outputOf(p.Stmts, 0); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (w *walker) certain(name *syntax.Lit) bool {
	if name == nil {
		return false
	}
	return name.Value == "HOME" || w.vars[name.Value].certain
}

// words returns the arguments that the words expand to in the first variant.
// A word that is not known is returned as source.
func (w *walker) words(words []*syntax.Word) []Word {
	var out []Word
	for _, word := range words {
		fields, ok := w.expand(word, 0)
		if !ok || !w.static(word) {
			out = append(out, Word{Text: source(word)})
			continue
		}
		glob := globs(word)
		for _, f := range fields {
			out = append(out, Word{f, true, glob && pattern(f)})
		}
	}
	return out
}

// expandVariant returns the arguments in one variant, as if all of it were
// known.
func (w *walker) expandVariant(words []*syntax.Word, n int) []Word {
	var out []Word
	for _, word := range words {
		fields, ok := w.expand(word, n)
		if !ok {
			fields = []string{source(word)}
		}
		for _, f := range fields {
			out = append(out, Word{f, true, globs(word) && pattern(f)})
		}
	}
	return out
}

// pattern reports whether a string contains pattern characters. A lone [ is
// the name of a command.
func pattern(s string) bool { return strings.ContainsAny(s, "*?[") && s != "[" }

// globs reports whether an unquoted part of the word may be a file name
// pattern.
func globs(word *syntax.Word) bool {
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if pattern(p.Value) {
				return true
			}
		case *syntax.ExtGlob, *syntax.ParamExp, *syntax.CmdSubst:
			return true
		}
	}
	return false
}
