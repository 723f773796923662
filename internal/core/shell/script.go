package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Script is a command that consists only of programs with their arguments,
// run in sequence or joined by |, && and ||. It lists everything the command
// would run, so it can be matched against a list of allowed programs, and
// [Script.Render] can write it again with resolved program paths.
type Script struct {
	Steps     []Step
	Redirects bool // it has redirects; they open no file except /dev/null
}

// Step is one simple command of a script.
type Step struct {
	Join     string // operator before it: ";", "|", "&&" or "||"; "" for the first
	Assigns  []Word // harmless variables, NAME=value
	Words    []Word
	Calls    []Call  // at least one, the outermost first
	Text     *Script // script that a shell in this step runs; nil: none
	TextAt   int     // index of the word that is Text, as in sh -c TEXT; 0: none
	ReadOnly bool

	redirects []string
}

// Call is one program that a step runs.
type Call struct {
	At          int    // index of the word that names it
	Argv        []Word // its arguments, beginning with its name
	Transparent bool   // it only runs the next call, or Text
}

// Undecidable is the reason why a command is not a [Script].
type Undecidable string

func (u Undecidable) Error() string { return string(u) }

// Script reads a command as a list of programs. It returns an [Undecidable]
// error for everything it cannot be sure about: commands that compute a
// command, have more than one possible expansion, open a file or run in the
// background.
func (j Judge) Script(command string) (Script, error) {
	if reason := unreadableReason(command); reason != "" {
		return Script{}, Undecidable(reason)
	}
	return newWalker(j).script(command, 0)
}

func (w *walker) script(text string, depth int) (Script, error) {
	if depth > maxDepth {
		return Script{}, Undecidable("it is nested too deeply")
	}
	f, err := newParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return Script{}, Undecidable("it cannot be parsed")
	}
	var s Script
	for _, st := range f.Stmts {
		join := ";"
		if len(s.Steps) == 0 {
			join = ""
		}
		if err := w.statement(&s, st, join, depth); err != nil {
			return Script{}, err
		}
	}
	if len(s.Steps) == 0 {
		return s, Undecidable("it contains no command")
	}
	return s, nil
}

// statement adds the steps of a statement.
func (w *walker) statement(s *Script, st *syntax.Stmt, join string, depth int) error {
	if !w.spend() {
		return Undecidable("it has too many parts")
	}
	if st.Background || st.Coprocess || st.Disown || st.Negated {
		return Undecidable("it uses an unsupported shell form")
	}
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op == syntax.PipeAll || len(st.Redirs) > 0 {
			return Undecidable("it redirects")
		}
		if err := w.statement(s, c.X, join, depth); err != nil {
			return err
		}
		return w.statement(s, c.Y, c.Op.String(), depth)
	case *syntax.CallExpr:
		step, err := w.step(c, depth)
		if err != nil {
			return err
		}
		step.Join = join
		for _, rd := range st.Redirs {
			if !w.harmlessRedirect(rd) {
				return Undecidable("it redirects")
			}
			step.redirects = append(step.redirects, redirectText(rd))
			s.Redirects = true
		}
		s.Redirects = s.Redirects || step.Text != nil && step.Text.Redirects
		s.Steps = append(s.Steps, step)
		return nil
	}
	return Undecidable("it uses an unsupported shell form")
}

// singleProgram returns the arguments of a command that consists of a single
// program, if all of them are known, and nil otherwise.
func (w *walker) singleProgram(stmts []*syntax.Stmt) []string {
	if len(stmts) != 1 {
		return nil
	}
	st := stmts[0]
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(st.Redirs)+len(c.Assigns) > 0 || st.Background || st.Coprocess || st.Disown || st.Negated {
		return nil
	}
	argv := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		x, err := w.word(a)
		if err != nil || !x.Literal || strings.ContainsRune(x.Text, 0) {
			return nil
		}
		argv = append(argv, x.Text)
	}
	return argv
}

// harmlessRedirect reports whether a redirect opens no file except /dev/null.
func (w *walker) harmlessRedirect(rd *syntax.Redirect) bool {
	if rd.N != nil && strings.Trim(rd.N.Value, "0123456789") != "" || rd.Word == nil || rd.Hdoc != nil {
		return false
	}
	to := rd.Word.Lit()
	switch rd.Op {
	case syntax.DplOut, syntax.DplIn:
		return to != "" && strings.Trim(to, "0123456789") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrAll, syntax.AppAll:
		return to == "/dev/null"
	}
	return false
}

// step reads a simple command.
func (w *walker) step(c *syntax.CallExpr, depth int) (Step, error) {
	var s Step
	if len(c.Args) == 0 {
		return s, Undecidable("it sets variables")
	}
	for _, a := range c.Assigns {
		if !Harmless(a.Name.Value) || a.Append || a.Naked || a.Array != nil || a.Index != nil || a.Value == nil {
			return s, Undecidable("it sets " + a.Name.Value + " for a command")
		}
		value, err := w.word(a.Value)
		if err != nil || !value.Literal {
			return s, Undecidable("it sets " + a.Name.Value + " for a command")
		}
		s.Assigns = append(s.Assigns, Word{Text: a.Name.Value + "=" + value.Text, Literal: true})
	}
	for _, a := range c.Args {
		x, err := w.word(a)
		if err != nil {
			return s, err
		}
		s.Words = append(s.Words, x)
	}
	if err := w.calls(&s, 0, len(s.Words), depth); err != nil {
		return s, err
	}
	before := len(w.segs)
	w.call(c, "", redirection{}, input{})
	s.ReadOnly = true
	for _, seg := range w.segs[before:] {
		s.ReadOnly = s.ReadOnly && seg.Verdict == ReadOnly
	}
	return s, nil
}

// word returns the value of a word, or its source if the value is not known
// before it runs. A word that may run something is undecidable.
func (w *walker) word(word *syntax.Word) (Word, error) {
	fixed := true
	braces, lists := false, false // braces that contain a list or a sequence are expanded
	for i, p := range word.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			braces = braces || strings.Contains(lit.Value, "{")
			lists = lists || strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, "..")
			fixed = fixed && !(i == 0 && strings.HasPrefix(lit.Value, "~")) && !strings.ContainsAny(lit.Value, "*?[]")
			continue
		}
		ok, known := plainPart(p)
		if !ok {
			return Word{}, Undecidable("a part of it is computed")
		}
		fixed = fixed && known
	}
	if fixed && !(braces && lists) {
		if f, ok := w.expand(word, 0); ok && len(f) == 1 {
			return Word{Text: f[0], Literal: true}, nil
		}
	}
	return Word{Text: source(word)}, nil
}

// plainPart reports whether a part of a word runs nothing, and whether its
// value is known.
func plainPart(p syntax.WordPart) (ok, known bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		return true, true
	case *syntax.SglQuoted:
		return !p.Dollar, true
	case *syntax.DblQuoted:
		if p.Dollar {
			return false, false
		}
		known = true
		for _, q := range p.Parts {
			ok, k := plainPart(q)
			if !ok {
				return false, false
			}
			known = known && k
		}
		return true, known
	case *syntax.ParamExp:
		return p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil, false
	}
	return false, false
}

// calls adds the programs that are named by the words from at to end of a
// step.
func (w *walker) calls(s *Step, at, end, depth int) error {
	argv := s.Words[at:end]
	if len(argv) == 0 || !argv[0].Literal || argv[0].Text == "" {
		return Undecidable("a command name is computed")
	}
	if len(s.Calls) >= maxDepth {
		return Undecidable("it is nested too deeply")
	}
	base := path.Base(argv[0].Text)
	call := Call{At: at, Argv: argv}
	switch base {
	case shells[0], shells[1], shells[2], shells[3]:
		return w.shellCall(s, call, argv[1:], depth)
	case "busybox", "toybox":
		if len(argv) < 3 || !slices.Contains(shells[:], argv[1].Text) {
			return Undecidable(base + " combines many programs")
		}
		return w.shellCall(s, call, argv[2:], depth)
	case "env", "nice", "nohup", "timeout", "gtimeout", "stdbuf", "flock":
		call.Transparent = true
		return w.wrapperCalls(s, call, base, end, depth)
	case "xargs":
		return w.wrapperCalls(s, call, base, end, depth)
	case "find":
		s.Calls = append(s.Calls, call)
		return w.findExecs(s, at, depth)
	case "eval", "source", ".", "trap", "alias":
		return Undecidable(Escape(base) + " runs commands that cannot be matched")
	}
	if _, ok := wrapperOf(base); ok {
		return Undecidable("the command that " + Escape(base) + " runs cannot be matched")
	}
	s.Calls = append(s.Calls, call)
	return nil
}

// wrapperCalls adds a wrapper and the programs that it runs.
func (w *walker) wrapperCalls(s *Step, call Call, base string, end, depth int) error {
	n, ok := wrapperPrefix(base, call.Argv[1:])
	if !ok {
		return Undecidable("the command that " + Escape(base) + " runs is not known")
	}
	s.Calls = append(s.Calls, call)
	from := len(s.Calls)
	if err := w.calls(s, call.At+1+n, end, depth); err != nil {
		return err
	}
	if base != "xargs" {
		return nil
	}
	if s.Text != nil {
		return Undecidable("it runs a script with unknown arguments")
	}
	for i := from; i < len(s.Calls); i++ { // the added arguments are not known
		c := &s.Calls[i]
		if strings.ContainsAny(c.Argv[0].Text, "{}%") {
			return Undecidable("a command name is computed")
		}
		c.Argv = append(c.Argv[:len(c.Argv):len(c.Argv)], Word{Text: "…"})
		for k, x := range c.Argv[1:] {
			c.Argv[k+1].Literal = x.Literal && !strings.ContainsAny(x.Text, "{}%")
		}
	}
	return nil
}

// shells are the shells whose scripts are followed.
var shells = [...]string{"sh", "bash", "dash", "ash"}

// findExecs adds the programs that find runs for each file.
func (w *walker) findExecs(s *Step, at, depth int) error {
	for _, x := range s.Words[at:] {
		if !x.Literal && x.Text != "{}" {
			return Undecidable("the arguments of find are not known")
		}
	}
	for i := at + 1; i < len(s.Words); i++ {
		switch s.Words[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		end := i + 1
		for end < len(s.Words) && s.Words[end].Text != ";" && s.Words[end].Text != "+" {
			end++
		}
		n := len(s.Calls)
		if err := w.calls(s, i+1, end, depth); err != nil {
			return err
		}
		if s.Text != nil {
			return Undecidable("it runs a script for each file")
		}
		for k := n; k < len(s.Calls); k++ {
			argv := append([]Word(nil), s.Calls[k].Argv...)
			for a := range argv {
				argv[a].Literal = argv[a].Literal && !strings.Contains(argv[a].Text, "{}")
			}
			s.Calls[k].Argv = argv
			if !argv[0].Literal {
				return Undecidable("a command name is computed")
			}
		}
		i = end
	}
	return nil
}

// shellCall adds a shell and the script that it runs.
func (w *walker) shellCall(s *Step, call Call, args []Word, depth int) error {
	i, found := 0, false
	for ; i < len(args) && args[i].Literal && strings.HasPrefix(args[i].Text, "-") && len(args[i].Text) > 1; i++ {
		letters := args[i].Text[1:]
		if strings.Trim(letters, "ceux") != "" {
			return Undecidable("it starts a shell with options")
		}
		if strings.Contains(letters, "c") {
			found = true
			i++
			break
		}
	}
	switch {
	case !found:
		return Undecidable("it runs a script file or its input")
	case len(args) != i+1 || !args[i].Literal:
		return Undecidable("it runs an unknown script")
	}
	inner, err := w.script(args[i].Text, depth+1)
	if err != nil {
		return err
	}
	call.Transparent = true
	s.Calls = append(s.Calls, call)
	s.Text, s.TextAt = &inner, len(s.Words)-1
	return nil
}

// Render writes the script so that a shell runs exactly its steps. Known
// words are quoted. A program's name is replaced by the result of file,
// unless that is "".
func (s Script) Render(file func(name string) string) string {
	var b strings.Builder
	for _, st := range s.Steps {
		switch st.Join {
		case "":
		case ";":
			b.WriteString("; ")
		default:
			b.WriteString(" " + st.Join + " ")
		}
		st.render(&b, file)
	}
	return b.String()
}

func (s Step) render(b *strings.Builder, file func(name string) string) {
	names := map[int]string{}
	for _, c := range s.Calls {
		names[c.At] = file(s.Words[c.At].Text)
	}
	for _, a := range s.Assigns {
		n, value, _ := strings.Cut(a.Text, "=")
		b.WriteString(n + "=" + Quote(value) + " ")
	}
	for i, x := range s.Words {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case s.Text != nil && i == s.TextAt:
			b.WriteString(Quote(s.Text.Render(file)))
		case names[i] != "":
			b.WriteString(Quote(names[i]))
		case x.Literal:
			b.WriteString(Quote(x.Text))
		default:
			b.WriteString(x.Text)
		}
	}
	for _, r := range s.redirects {
		b.WriteString(" " + r)
	}
}

// Quote quotes a string so that any POSIX shell reads it as one word with
// that value.
func Quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
