package shell

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker visits the parts of a command in the order in which they would run.
type walker struct {
	Judge
	segs  []Segment
	depth int
	steps *int // remaining of maxSteps, shared by all variants

	vars        map[string]variable
	aliases     map[string]string
	funcs       map[string]*syntax.Stmt
	cwd         string // "": unknown
	conditional bool   // the current part may not run, may run repeatedly, or runs in another shell
}

func newWalker(j Judge) *walker {
	steps := maxSteps
	j.Home = cmp.Or(j.Home, "~")
	return &walker{
		Judge:   j,
		cwd:     j.Dir,
		steps:   &steps,
		vars:    map[string]variable{},
		aliases: map[string]string{},
		funcs:   map[string]*syntax.Stmt{},
	}
}

// input is the known part of a command's standard input.
type input struct {
	text  string // "": nothing is known
	known bool   // the input is exactly text; otherwise text is only a possible value
}

func (w *walker) add(s Segment) {
	s.Depth = w.depth
	w.segs = append(w.segs, s)
}

// ask adds a segment without arguments that holds the reason why the command
// cannot be judged.
func (w *walker) ask(join, reason string) {
	w.add(Segment{Join: join, Verdict: Ask, Reason: reason})
}

// parse walks the text of a command and returns its statements.
func (w *walker) parse(text string) []*syntax.Stmt {
	f, err := newParser().Parse(strings.NewReader(text), "")
	if err != nil {
		w.ask("", "it cannot be parsed")
		return nil
	}
	w.stmts(f.Stmts)
	return f.Stmts
}

// nested walks a text that a segment runs as a command.
func (w *walker) nested(text string) {
	w.nest(func() { w.parse(text) })
}

// nest runs f for the commands that the last segment runs.
func (w *walker) nest(f func()) {
	if w.depth >= maxDepth {
		w.ask("", "it is nested too deeply")
		return
	}
	w.depth++
	f()
	w.depth--
}

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		w.stmt(s, "", input{})
	}
}

// spend uses one of the remaining steps and reports whether any are left.
func (w *walker) spend() bool {
	*w.steps--
	return *w.steps > 0
}

func (w *walker) stmt(s *syntax.Stmt, join string, in input) {
	if s == nil || !w.spend() {
		return
	}
	r := w.redirects(s.Redirs)
	if r.in.text != "" {
		in = r.in
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		w.call(call, join, r, in)
		return
	}
	if len(r.texts) > 0 {
		w.add(Segment{Join: join, Redirects: r.texts, Verdict: r.verdict, Reason: r.reason})
		join = ""
	}
	if s.Coprocess || s.Disown {
		w.ask(join, "it runs in the background")
	}
	w.command(s.Cmd, join, in)
}

// command walks everything except a simple command.
func (w *walker) command(c syntax.Command, join string, in input) {
	switch c := c.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.binary(c, join, in)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.subshell(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.stmts(c.Cond)
			w.uncertain(func() { w.stmts(c.Then) })
		}
	case *syntax.WhileClause:
		w.loop(func() { w.stmts(c.Cond); w.stmts(c.Do) })
	case *syntax.ForClause:
		w.forClause(c, join)
	case *syntax.CaseClause:
		w.caseClause(c, join)
	case *syntax.FuncDecl:
		w.function(c, join)
	case *syntax.TimeClause:
		w.stmt(c.Stmt, join, in)
	case *syntax.TestClause, *syntax.ArithmCmd:
		w.hazard(c, join, source(c))
	case *syntax.DeclClause:
		w.declare(c, join)
	case *syntax.CoprocClause:
		w.ask(join, "it runs in the background")
		w.subshell(func() { w.stmt(c.Stmt, "", input{}) })
		if call, ok := c.Stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			// the parser puts operands like if=x before the command
			words := call.Args
			for _, a := range call.Assigns {
				words = append(words[:len(words):len(words)], &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: source(a)}}})
			}
			w.subshell(func() { w.call(&syntax.CallExpr{Args: words}, "", redirection{}, input{}) })
		}
	default:
		w.hazard(c, join, source(c))
		w.ask(join, "it uses an unsupported shell form")
	}
}

func (w *walker) binary(c *syntax.BinaryCmd, join string, in input) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		w.stmt(c.X, join, in)
		w.uncertain(func() { w.stmt(c.Y, c.Op.String(), input{}) })
	default: // a pipe: each side is a separate process
		w.subshell(func() { w.stmt(c.X, join, in) })
		var out input
		last := c.X
		if b, ok := last.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe {
			last = b.Y
		}
		out.text, out.known = w.outputOf([]*syntax.Stmt{last}, 0)
		w.subshell(func() { w.stmt(c.Y, c.Op.String(), out) })
	}
}

// subshell walks commands that run in another shell and do not change the
// working directory of this one.
func (w *walker) subshell(f func()) {
	cwd := w.cwd
	w.uncertain(f)
	w.cwd = cwd
}

// loop walks a loop body twice: first to learn its assignments, then with
// that knowledge.
func (w *walker) loop(f func()) {
	w.uncertain(func() {
		n := len(w.segs)
		f()
		w.segs = w.segs[:n]
		f()
	})
}

func (w *walker) forClause(c *syntax.ForClause, join string) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select {
		w.ask(join, "it uses an unsupported shell form")
		w.hazard(c.Loop, join, "")
		w.loop(func() { w.stmts(c.Do) })
		return
	}
	if iter.InPos.IsValid() {
		for _, item := range iter.Items {
			w.hazard(item, "", "")
		}
	}
	for _, item := range w.words(iter.Items) {
		w.uncertain(func() { w.set(iter.Name.Value, item.Text, item.Literal) })
	}
	if len(iter.Items) == 0 {
		w.uncertain(func() { w.set(iter.Name.Value, "", false) })
	}
	w.loop(func() { w.stmts(c.Do) })
}

func (w *walker) caseClause(c *syntax.CaseClause, join string) {
	w.hazard(c.Word, join, "")
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.hazard(p, "", "")
		}
		w.uncertain(func() { w.stmts(item.Stmts) })
	}
}

// function records a function. Its body is judged where it is called.
func (w *walker) function(c *syntax.FuncDecl, join string) {
	if c.Name == nil {
		w.ask(join, "it uses an unsupported shell form")
		w.stmt(c.Body, "", input{})
		return
	}
	name := c.Name.Value
	seg := Segment{Join: join, Argv: []Word{{Text: source(c)}}}
	if bomb(name, c.Body) {
		seg.Verdict, seg.Reason = Deny, "it is a fork bomb"
	} else if w.funcs[name] != nil || w.conditional {
		seg.Verdict, seg.Reason = Ask, "it defines a function more than once or conditionally"
	}
	w.funcs[name] = c.Body
	w.add(seg)
}

// bomb reports whether a function calls itself more than once concurrently.
func bomb(name string, body *syntax.Stmt) bool {
	calls, aside := 0, false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == name {
				calls++
			}
		case *syntax.Stmt:
			aside = aside || n.Background
		case *syntax.BinaryCmd:
			aside = aside || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		}
		return true
	})
	return calls > 1 && aside
}

// declare walks export, local, readonly and similar commands.
func (w *walker) declare(c *syntax.DeclClause, join string) {
	seg := Segment{Join: join, Argv: []Word{{Text: source(c)}}}
	for _, a := range c.Args {
		switch {
		case a.Name == nil || a.Array != nil || a.Index != nil:
			seg.Verdict, seg.Reason = Ask, "it declares variables in an unsupported form"
		case c.Variant.Value == "nameref":
			seg.Verdict, seg.Reason = Ask, "it declares a variable reference"
		case c.Variant.Value != "local" && !Harmless(a.Name.Value):
			seg.Verdict, seg.Reason = Ask, "it sets "+a.Name.Value+" for the commands that follow"
		case special(a.Name.Value):
			seg.Verdict, seg.Reason = Ask, "it sets "+a.Name.Value
		}
		if a.Name != nil && !a.Naked {
			w.assign(a)
		}
	}
	w.add(seg)
	w.hazard(c, "", "")
}

// assign records the value of a variable.
func (w *walker) assign(a *syntax.Assign) {
	name := a.Name.Value
	switch {
	case a.Array != nil || a.Index != nil:
		w.set(name, "", false)
	case a.Value == nil:
		w.set(name, "", !a.Append)
	default:
		value, known := "", false
		if f, ok := w.expand(a.Value, 0); ok {
			value, known = strings.Join(f, " "), w.static(a.Value)
		}
		if value == "" && !known {
			value = source(a.Value) // not empty, but not known
		}
		if v := w.vars[name]; a.Append && len(v.vals) > 0 {
			value, known = v.vals[len(v.vals)-1]+value, known && v.certain
		}
		w.set(name, value, known)
	}
}

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, join string, r redirection, in input) {
	if len(c.Args) == 0 {
		w.assignments(c.Assigns, join, r)
		return
	}
	seg := Segment{Join: join, Redirects: r.texts, Verdict: r.verdict, Reason: r.reason}
	for _, a := range c.Assigns {
		w.uncertain(func() { w.assign(a) })
		seg.Argv = append(seg.Argv, Word{Text: source(a)})
		if !Harmless(a.Name.Value) && !(a.Name.Value == "IFS" && c.Args[0].Lit() == "read") {
			seg.raise(Ask, "it sets "+a.Name.Value+" for a command")
		}
	}
	env := len(seg.Argv)
	words := w.words(c.Args)
	if len(words) == 0 {
		return
	}
	seg.Argv = append(seg.Argv, words...)
	at := len(w.segs)
	w.run(seg, env, in)
	if reason := w.deniedVariant(c.Args, in); reason != "" {
		w.segs[at].raise(Deny, reason)
	}
	for _, n := range c.Assigns {
		w.hazard(n, "", "")
	}
	for _, n := range c.Args {
		w.hazard(n, "", "")
	}
}

// assignments adds a segment for X=1 Y=2.
func (w *walker) assignments(as []*syntax.Assign, join string, r redirection) {
	seg := Segment{Join: join, Redirects: r.texts, Verdict: r.verdict, Reason: r.reason}
	for _, a := range as {
		seg.Argv = append(seg.Argv, Word{Text: source(a)})
		if special(a.Name.Value) {
			seg.raise(Ask, "it sets "+a.Name.Value)
		}
		w.assign(a)
	}
	w.add(seg)
	for _, a := range as {
		w.hazard(a, "", "")
	}
}

// deniedVariant returns a reason if a call is denied in any variant of its
// variables.
func (w *walker) deniedVariant(args []*syntax.Word, in input) string {
	if !slices.ContainsFunc(args, func(a *syntax.Word) bool { return !w.static(a) }) {
		return ""
	}
	for n := range w.variants() {
		if *w.steps <= 0 {
			return ""
		}
		words := w.expandVariant(args, n)
		if len(words) == 0 {
			continue
		}
		probe := *w
		probe.segs = nil
		probe.vars, probe.aliases, probe.funcs = maps.Clone(w.vars), maps.Clone(w.aliases), maps.Clone(w.funcs)
		if !probe.spend() {
			return ""
		}
		probe.run(Segment{Argv: words}, 0, in)
		for _, s := range probe.segs {
			if s.Verdict == Deny {
				return s.Reason + ", judging by the possible values of its variables"
			}
		}
	}
	return ""
}

// raise makes the verdict of a segment at least v.
func (s *Segment) raise(v Verdict, reason string) {
	if v > s.Verdict {
		s.Verdict, s.Reason = v, reason
	}
}

// chdir tracks a cd command.
func (w *walker) chdir(args []Word) {
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		w.cwd = w.Home
	case !args[0].Literal || args[0].Text == "-":
		w.cwd = ""
	default:
		w.cwd = w.join(args[0].Text)
	}
}

// join returns the absolute path of a word, as far as it is known.
func (w *walker) join(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return path.Join(w.Home, p[1:])
	}
	if path.IsAbs(p) || strings.HasPrefix(p, "~") {
		return path.Clean(p)
	}
	return path.Join(w.cwd, p)
}
