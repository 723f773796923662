package shell

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker visits the parts of a command in the order in which they would run.
type walker struct {
	Judge
	segs    []Segment
	denied  string // Plan.Denied
	changes string // Plan.Changes
	texts   []scriptText

	undecidable string // Plan.Undecidable
	fixed       bool   // the words have the same values in every shell

	depth    int
	steps    int    // remaining of maxSteps
	cwd      string // "": unknown
	computed bool   // words, or the input of a command, are known only when it runs
	hidden   bool   // so is a command
	searches bool
	piped    bool // the current part reads the output of another command
}

func newWalker(j Judge) *walker {
	j.Home = cmp.Or(j.Home, "~")
	return &walker{Judge: j, cwd: j.Dir, steps: maxSteps, fixed: true}
}

// deny records a reason why the command must never run, unless it is "".
func (w *walker) deny(reason string) {
	w.denied = cmp.Or(w.denied, reason)
	w.mayChange(reason)
}

// denyMatching denies a command that matches one of the configured patterns.
func (w *walker) denyMatching(command string) {
	for _, re := range w.Deny {
		if re.MatchString(command) {
			w.deny("it matches the denied pattern " + re.String())
		}
	}
}

// mayChange records a reason why the command may do more than read.
func (w *walker) mayChange(reason string) { w.changes = cmp.Or(w.changes, reason) }

// undecided records a reason why the command cannot be matched.
func (w *walker) undecided(reason string) { w.undecidable = cmp.Or(w.undecidable, reason) }

// unknown records a reason why nothing is known about a part of the command.
func (w *walker) unknown(reason string) {
	w.mayChange(reason)
	w.undecided(reason)
}

// hide records that a command is known only when it runs.
func (w *walker) hide(reason string) {
	w.hidden = true
	w.unknown(reason)
}

// parse walks the text of a command. word holds it, if it is the text of a
// script.
func (w *walker) parse(text string, word *syntax.Word) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		w.hide("it cannot be parsed")
		return
	}
	w.texts = append(w.texts, scriptText{f, word})
	for _, s := range f.Stmts {
		w.stmt(s, "")
	}
}

// nested walks a text that a segment runs as a command.
func (w *walker) nested(text string, word *syntax.Word) {
	w.nest(func() { w.parse(text, word) })
}

// nest runs f for the commands that the last segment runs.
func (w *walker) nest(f func()) {
	if w.depth >= maxDepth {
		w.hide("it is nested too deeply")
		return
	}
	w.depth++
	f()
	w.depth--
}

// subshell runs f for commands that do not change the working directory of
// this shell.
func (w *walker) subshell(f func()) {
	cwd := w.cwd
	f()
	w.cwd = cwd
}

func (w *walker) stmt(s *syntax.Stmt, join string) {
	if w.steps--; w.steps <= 0 {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		w.unknown("it runs in the background")
	}
	call, simple := s.Cmd.(*syntax.CallExpr)
	if list, ok := s.Cmd.(*syntax.BinaryCmd); s.Negated || !simple && (!ok || list.Op == syntax.PipeAll) {
		w.undecided("it uses an unsupported shell form")
	}
	seg, input := Segment{Join: join}, ""
	for _, rd := range s.Redirs {
		seg.Redirects = append(seg.Redirects, w.redirect(rd))
		input += w.document(rd)
	}
	if simple {
		w.call(call, seg, input)
	} else {
		if len(seg.Redirects) > 0 {
			w.add(seg)
			join = ""
		}
		w.command(s.Cmd, join)
	}
	for _, rd := range s.Redirs {
		w.parts(rd)
	}
}

func (w *walker) add(s Segment) {
	s.Depth, s.Dir = w.depth, w.cwd
	w.segs = append(w.segs, s)
}

// command walks everything except a simple command.
func (w *walker) command(c syntax.Command, join string) {
	switch c := c.(type) {
	case nil:
		return
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			w.stmt(c.X, join)
			w.stmt(c.Y, c.Op.String())
			return
		}
		w.subshell(func() { w.stmt(c.X, join) })
		was := w.piped
		w.piped = true
		w.subshell(func() { w.stmt(c.Y, c.Op.String()) })
		w.piped = was
		return
	case *syntax.Subshell:
		w.subshell(func() { w.parts(c) })
		return
	case *syntax.FuncDecl:
		if c.Name != nil && bomb(c.Name.Value, c.Body) {
			w.deny("it is a fork bomb")
		}
		w.computed = true
		w.nest(func() { w.parts(c) })
		return
	case *syntax.CoprocClause:
		w.computed = true
		w.mayChange("it runs in the background")
	}
	w.parts(c)
}

// parts walks the statements inside a node, including those that run while
// its words are expanded (substitutions).
func (w *walker) parts(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if n == node {
			return true
		}
		switch n := n.(type) {
		case *syntax.Stmt:
			w.stmt(n, "")
			return false
		case *syntax.CmdSubst, *syntax.ProcSubst:
			w.nest(func() { w.subshell(func() { w.parts(n) }) })
			return false
		}
		return true
	})
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

// call walks a simple command. input is the known part of its standard input.
func (w *walker) call(c *syntax.CallExpr, seg Segment, input string) {
	for _, a := range c.Assigns {
		seg.Vars = append(seg.Vars, source(a))
		if !w.harmlessAssign(a) || len(c.Args) == 0 {
			w.undecided("it sets " + a.Name.Value)
		}
	}
	if seg.Argv, seg.nodes = w.words(c.Args...); len(seg.Argv) > 0 {
		w.run(seg, input)
	} else {
		w.add(seg)
	}
	c.Args = seg.nodes
	w.parts(c)
}

// run adds a simple command, and the commands it runs.
func (w *walker) run(seg Segment, input string) {
	argv := seg.Argv
	at := len(w.segs)
	w.add(seg)
	if name := argv[0]; !known(name) || name.Text == "" || name.Text[0] == '-' {
		w.hide("a command name is computed")
		return
	}
	w.denyMatching(strings.Join(texts(argv), " "))
	if reason := w.deniedReason(argv); reason != "" {
		w.deny(reason)
		return
	}
	base := path.Base(argv[0].Text)
	runs, transparent := w.runsCommand(base, seg, input)
	if runs {
		if w.segs[at].Transparent = transparent; !transparent {
			w.undecided("the command that " + Escape(base) + " runs cannot be matched")
		}
		return
	}
	reason, searches := reads(argv)
	w.searches = w.searches || searches
	if reason == "" {
		return
	}
	w.mayChange(reason)
	if takesText(base) {
		return
	}
	for i := 1; i < min(len(argv), 32); i++ { // it may be an unknown wrapper
		w.deny(w.deniedReason(argv[i:]))
	}
}

// takesText reports whether the arguments of a command are usually text and
// may mention commands.
func takesText(name string) bool {
	switch name {
	case "git", "gh", "echo", "printf", "grep", "rg", "man", "say", "chela":
		return true
	}
	return false
}

// runsCommand follows a command that runs another one, and reports whether it
// does nothing else. It returns false for other commands.
func (w *walker) runsCommand(base string, seg Segment, input string) (runs, transparent bool) {
	args, nodes := seg.Argv[1:], seg.nodes[min(1, len(seg.nodes)):]
	switch base {
	case "cd", "pushd", "popd":
		w.chdir(base, args)
		return false, false
	case "alias":
		w.hide("it defines an alias")
		return false, false
	case "eval", "trap":
		if base == "trap" && len(args) > 1 {
			args = args[:1]
		}
		if !known(args...) {
			w.hide("a command is computed")
		}
		w.nested(strings.Join(texts(args), " "), nil)
		return true, false
	case "source", ".":
		w.script(args)
		return true, false
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash":
		if !posix(base) {
			w.mayChange(base + " may change files")
		}
		return true, w.shell(args, nodes, input) && posix(base)
	case "busybox", "toybox":
		if len(args) > 0 && posix(args[0].Text) {
			return true, w.shell(args[1:], nodes[min(1, len(nodes)):], input)
		}
	case "find":
		return w.find(args), false
	}
	wr, ok := wrappers()[base]
	if !ok || base == "command" && len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V") {
		return false, false
	}
	u := wr.unwrap(args)
	for _, text := range u.runs {
		w.nested(text, nil)
	}
	inner := Segment{Argv: args[u.at:], nodes: nodes[min(u.at, len(nodes)):]}
	switch {
	case len(inner.Argv) == 0:
		w.undecided("the command that " + base + " runs is not known")
		return len(u.runs) > 0, false
	case base == "watch":
		w.nested(strings.Join(texts(inner.Argv), " "), nil)
		return true, false
	case base == "xargs" || base == "gxargs" || base == "parallel":
		w.computed = true
		inner.Argv = append(slices.Clip(inner.Argv), Word{Text: "…"})
	}
	if !wr.transparent && !strings.HasSuffix(base, "xargs") {
		w.mayChange(base + " may change files")
	}
	w.nest(func() { w.run(inner, input) })
	return true, u.exact
}

// posix reports whether a shell reads its script as this package does.
func posix(name string) bool { return slices.Contains([]string{"sh", "bash", "dash", "ash"}, name) }

// script records that a script is run whose content is not looked at.
func (w *walker) script(args []Word) {
	if len(args) > 0 && (strings.HasPrefix(args[0].Text, "<(") || strings.HasPrefix(path.Clean(args[0].Text), "/dev/")) {
		w.hidden = true // the script is the output of a command
	}
	w.mayChange("it runs a script")
}

// shell follows sh -c TEXT, and a script in a here-document. It reports
// whether the text is all that the shell runs.
func (w *walker) shell(args []Word, nodes []*syntax.Word, input string) (exact bool) {
	i, found, exact := 0, false, true
	for all := texts(args); i < len(args) && args[i].Literal && (isOption(all[i]) || strings.HasPrefix(all[i], "+")); {
		opt := options{valued: "oO", long: "rcfile= init-file="}.next(all[i:])
		exact = exact && !found && all[i][0] == '-' && strings.Trim(opt.name, "ceux") == ""
		found = found || all[i][0] == '-' && !strings.HasPrefix(opt.name, "--") && strings.Contains(opt.name, "c")
		i += opt.size
	}
	rest := args[i:]
	switch {
	case found && len(rest) > 0 && rest[0].Literal:
		w.computed = w.computed || len(rest) > 1
		var word *syntax.Word
		if exact = exact && len(rest) == 1 && i < len(nodes) && !rest[0].Glob; exact {
			word = nodes[i]
		}
		w.subshell(func() { w.nested(rest[0].Text, word) })
		return exact
	case len(rest) == 0 && input != "":
		w.subshell(func() { w.nested(input, nil) })
	case len(rest) == 0 && w.piped, found:
		w.hide("a command is computed")
	default:
		w.script(rest)
	}
	return false
}

// find follows -exec and similar options.
func (w *walker) find(args []Word) (runs bool) {
	for i, a := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a.Text) {
			continue
		}
		runs = true
		inner := slices.Clone(args[i+1:])
		if end := slices.IndexFunc(inner, func(x Word) bool { return x.Text == ";" || x.Text == "+" }); end >= 0 {
			inner = inner[:end]
		}
		for k := range inner {
			inner[k].Literal = inner[k].Literal && inner[k].Text != "{}"
		}
		if len(inner) > 0 {
			w.nest(func() { w.run(Segment{Argv: inner}, "") })
		}
	}
	if runs {
		w.mayChange("find runs a command")
	} else if !known(args...) {
		w.undecided("the arguments of find are not known")
	}
	return runs
}

// chdir tracks a change of the working directory.
func (w *walker) chdir(base string, args []Word) {
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		args = args[1:]
	}
	switch {
	case base == "popd":
		w.cwd = ""
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

// redirect returns a redirect and judges it.
func (w *walker) redirect(rd *syntax.Redirect) Redirect {
	r := Redirect{Text: rd.Op.String() + source(rd.Word)}
	if rd.N != nil {
		r.Text = rd.N.Value + r.Text
	}
	if !harmlessRedirect(rd) {
		w.undecided("it redirects")
	}
	to, _ := w.words(rd.Word)
	duplicates := rd.Op == syntax.DplIn || rd.Op == syntax.DplOut
	if rd.Hdoc != nil || rd.Op == syntax.WordHdoc || len(to) != 1 ||
		duplicates && strings.Trim(to[0].Text, "0123456789-") == "" {
		return r // it opens no file
	}
	r.File, r.Writes = to[0], rd.Op != syntax.RdrIn && rd.Op != syntax.DplIn
	if r.Writes && diskDevice(r.File.Text) {
		w.deny("it writes to a disk device")
	}
	if r.Writes && r.File.Text != "/dev/null" {
		w.mayChange("it redirects with " + Escape(r.Text))
	}
	return r
}

// document returns the text of a here-document or a here-string, as far as it
// is known.
func (w *walker) document(rd *syntax.Redirect) string {
	switch {
	case rd.Op == syntax.WordHdoc:
		words, _ := w.words(rd.Word)
		return strings.Join(texts(words), " ") + "\n"
	case rd.Hdoc != nil:
		var b strings.Builder
		for _, p := range rd.Hdoc.Parts {
			lit, ok := p.(*syntax.Lit)
			if !ok || strings.Contains(lit.Value, `\`) { // the meaning of a backslash depends on the delimiter
				w.computed = true
				break
			}
			b.WriteString(lit.Value)
		}
		return b.String()
	}
	return ""
}
