package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// run judges a simple command and the commands it runs. The first env words
// of the segment are assignments. The segment is always added.
func (w *walker) run(seg Segment, env int, in input) {
	argv := seg.Argv[env:]
	at := len(w.segs)
	w.add(seg)
	raise := func(v Verdict, reason string) { w.segs[at].raise(v, reason) }

	name := argv[0]
	if !name.Literal || name.Glob {
		raise(Ask, "a command name is computed")
		return
	}
	for _, re := range w.Deny {
		if re.MatchString(join(argv)) {
			raise(Deny, "it matches the denied pattern "+re.String())
		}
	}
	if body := w.funcs[name.Text]; body != nil {
		w.bind(argv[1:], func() { w.nest(func() { w.stmt(body, "", in) }) })
		return
	}
	if text, ok := w.aliases[name.Text]; ok {
		w.nested(text + " " + quote(argv[1:]))
		return
	}
	if reason := w.denied(argv); reason != "" {
		raise(Deny, reason)
		return
	}
	if v, reason, ok := w.runsCommand(path.Base(name.Text), argv[1:], in); ok {
		if v == ReadOnly && program(name.Text) == "" {
			v, reason = Ask, Escape(name.Text)+" may change files"
		}
		raise(v, reason)
		return
	}
	if reason := w.judge(argv); reason != "" {
		raise(Ask, reason)
		if reason := w.deniedArguments(argv); reason != "" && !takesTextArguments(path.Base(name.Text)) {
			raise(Deny, reason)
		}
	}
}

// deniedArguments returns a reason if the arguments of an unknown command
// contain a denied command: the unknown command may be a wrapper.
func (w *walker) deniedArguments(argv []Word) string {
	for i := 1; i < len(argv); i++ {
		if reason := w.denied(argv[i:]); reason != "" {
			return reason
		}
	}
	return ""
}

// takesTextArguments reports whether the arguments of a command are usually
// text and may mention commands.
func takesTextArguments(name string) bool {
	switch name {
	case "git", "gh", "echo", "printf", "grep", "man", "say", "chela", "alias":
		return true
	}
	return false
}

// runsCommand follows a command that runs another command, or that affects
// how later commands are read. It returns false for other commands.
func (w *walker) runsCommand(base string, args []Word, in input) (Verdict, string, bool) {
	switch base {
	case "cd", "pushd", "popd", "read":
		w.trackBuiltin(base, args)
		return ReadOnly, "", false
	case "alias":
		w.trackBuiltin(base, args)
		return Ask, "it defines an alias", true
	case "eval":
		if !literal(args) {
			return Ask, "it evaluates unknown text", true
		}
		w.nested(join(args))
		return ReadOnly, "", true
	case "source", ".":
		return Ask, "it runs a script file", true
	case "trap":
		if len(args) > 0 && literal(args[:1]) {
			w.nested(args[0].Text)
		}
		return Ask, "it sets a trap", true
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash":
		v, reason := w.shell(args, in)
		if v == ReadOnly && base != "sh" && base != "bash" && base != "dash" && base != "ash" {
			v, reason = Ask, "it runs a script in an unsupported shell"
		}
		return v, reason, true
	case "xargs":
		v, reason := w.xargs(args, in)
		return v, reason, true
	case "find":
		return w.find(args)
	}
	return w.wrapped(base, args, in)
}

// trackBuiltin records how a builtin changes the state of the shell.
func (w *walker) trackBuiltin(base string, args []Word) {
	switch base {
	case "popd":
		w.cwd = ""
		return
	case "cd", "pushd":
		w.chdir(args)
		return
	}
	for _, a := range args {
		name, text, ok := strings.Cut(a.Text, "=")
		switch {
		case base == "alias" && ok:
			w.aliases[name] = text
		case base == "read" && syntax.ValidName(name):
			w.set(name, "", false)
		}
	}
}

// wrapped follows a wrapper.
func (w *walker) wrapped(base string, args []Word, in input) (Verdict, string, bool) {
	wr, ok := wrapperOf(base)
	asks := base == "command" && len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && strings.ContainsAny(args[0].Text, "vV")
	if !ok || asks || base == "env" && len(args) == 0 {
		return ReadOnly, "", false
	}
	inner, reason := wr.unwrap(w, args)
	switch {
	case base == "watch":
		w.nested(join(inner))
	case len(inner) > 0:
		w.nest(func() { w.run(Segment{Argv: inner}, 0, in) })
	}
	switch {
	case reason != "":
	case !wr.plain:
		reason = "it runs a command through " + base
	case len(inner) == 0:
		reason = base + " may change files"
	default:
		return ReadOnly, "", true
	}
	return Ask, reason, true
}

// shell follows sh -c TEXT, or a script on the standard input.
func (w *walker) shell(args []Word, in input) (Verdict, string) {
	text, found, unclear := "", false, false
	i := 0
	for ; i < len(args) && literal(args[i:i+1]) && len(args[i].Text) > 1 && strings.ContainsAny(args[i].Text[:1], "-+"); i++ {
		a := args[i].Text
		switch {
		case a == "--":
		case strings.HasPrefix(a, "--"):
			unclear = true
			if a == "--rcfile" || a == "--init-file" {
				i++
			}
		default:
			found = found || a[0] == '-' && strings.Contains(a, "c")
			unclear = unclear || strings.Trim(a[1:], "ceux") != ""
			if strings.HasSuffix(a, "o") || strings.HasSuffix(a, "O") {
				unclear = unclear || i+1 >= len(args) || args[i+1].Text != "pipefail"
				i++
			}
		}
	}
	rest := args[min(i, len(args)):]
	switch {
	case found && len(rest) > 0:
		if !literal(rest[:1]) {
			return Ask, "it runs an unknown script"
		}
		text, rest = rest[0].Text, rest[1:]
	case len(rest) == 0 && in.text != "":
		text, unclear = in.text, unclear || !in.known
	case len(rest) == 0:
		return Ask, "it runs an unknown script"
	default:
		return Ask, "it runs a script file"
	}
	w.subshell(func() {
		old := w.vars
		w.vars = uncertain(old)
		var params []Word
		if len(rest) > 1 {
			params = rest[1:]
		}
		w.bind(params, func() { w.nested(text) })
		w.vars = old
	})
	if unclear {
		return Ask, "it starts a shell with options or with an unknown script"
	}
	return ReadOnly, ""
}

// uncertain returns the variables with all values marked as uncertain:
// another shell has only the exported ones.
func uncertain(vars map[string]variable) map[string]variable {
	out := make(map[string]variable, len(vars))
	for name, v := range vars {
		out[name] = variable{vals: v.vals}
	}
	return out
}

// xargs follows a command that gets further arguments from its input.
func (w *walker) xargs(args []Word, in input) (Verdict, string) {
	wr, _ := wrapperOf("xargs")
	inner, reason := wr.unwrap(w, args)
	if len(inner) == 0 {
		inner = []Word{{Text: "echo", Literal: true}}
	}
	if in.text != "" {
		more := inner[:len(inner):len(inner)]
		for _, f := range strings.Fields(in.text) {
			more = append(more, Word{Text: f, Literal: true})
		}
		w.nest(func() { w.run(Segment{Argv: more}, 0, input{}) })
	} else {
		w.nest(func() { w.run(Segment{Argv: append(inner[:len(inner):len(inner)], Word{Text: "…"})}, 0, input{}) })
	}
	// Even if the input is known, how xargs splits it is not.
	if reason == "" && (!readOnlyWithAnyArgs(inner) || mayReplaceName(args, inner[0].Text)) {
		reason = "it runs a command with unknown arguments"
	}
	if reason != "" {
		return Ask, reason
	}
	return ReadOnly, ""
}

// mayReplaceName reports whether xargs may replace a part of a command's
// name.
func mayReplaceName(args []Word, name string) bool {
	for i, a := range args {
		switch {
		case a.Text == name: // the options end here
			return strings.ContainsAny(name, "{}%")
		case a.Text == "-i" || a.Text == "--replace" || a.Text == "-I{}" || a.Text == "-I%":
		case a.Text == "-I" && i+1 < len(args) && (args[i+1].Text == "{}" || args[i+1].Text == "%"):
		case strings.HasPrefix(a.Text, "--r"), len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' && strings.ContainsAny(a.Text, "IiJ"):
			return true
		}
	}
	return false
}

// readOnlyWithAnyArgs reports whether a command only reads, whatever further
// arguments it gets.
func readOnlyWithAnyArgs(argv []Word) bool {
	if !literal(argv[:1]) {
		return false
	}
	r, ok := ruleOf(program(argv[0].Text))
	return ok && r.allowsUnknownArgs()
}

// find follows -exec and similar options.
func (w *walker) find(args []Word) (Verdict, string, bool) {
	acts := false
	for i, a := range args {
		switch a.Text {
		case "-exec", "-execdir", "-ok", "-okdir":
			acts = true
			var inner []Word
			for _, b := range args[i+1:] {
				if b.Text == ";" || b.Text == "+" {
					break
				}
				if b.Text == "{}" {
					b = Word{Text: "{}"}
				}
				inner = append(inner, b)
			}
			if len(inner) == 0 {
				return Ask, "it runs an unknown command", true
			}
			w.nest(func() { w.run(Segment{Argv: inner}, 0, input{}) })
			if !readOnlyWithAnyArgs(inner) {
				return Ask, "it runs a command for each file", true
			}
		}
	}
	if !acts {
		return ReadOnly, "", false
	}
	var rest []Word
	for _, a := range args {
		if !strings.HasPrefix(a.Text, "-exec") && !strings.HasPrefix(a.Text, "-ok") {
			rest = append(rest, a)
		}
	}
	if reason := w.judge(append([]Word{{Text: "find", Literal: true}}, rest...)); reason != "" {
		return Ask, reason, true
	}
	return ReadOnly, "", true
}

func literal(words []Word) bool {
	return !slices.ContainsFunc(words, func(x Word) bool { return !x.Literal })
}

func join(words []Word) string { return strings.Join(texts(words), " ") }

// quote writes words so that a shell parses the same words.
func quote(words []Word) string {
	var b strings.Builder
	for i, x := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(x.quoted())
	}
	return b.String()
}

func (x Word) quoted() string {
	if !x.Literal || x.Glob {
		return x.Text
	}
	q, err := syntax.Quote(x.Text, syntax.LangBash)
	if err != nil {
		return x.Text
	}
	return q
}

// program returns the name by which the table knows a command, or "" if the
// path is not in a system program folder.
func program(name string) string {
	dir, base := path.Split(name)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/":
		return base
	}
	return ""
}
