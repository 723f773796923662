package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hazard walks the commands that a node runs while it is expanded
// (substitutions). It adds a segment for expansions that may evaluate the
// content of a variable, as the shell's arithmetic does. If text is not
// empty, it always adds a segment.
func (w *walker) hazard(node syntax.Node, join, text string) {
	seg := Segment{Join: join}
	if text != "" {
		seg.Argv = []Word{{Text: text}}
	}
	var inner [][]*syntax.Stmt
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			inner = append(inner, n.Stmts)
			return false
		case *syntax.ProcSubst:
			inner = append(inner, n.Stmts)
			return false
		case *syntax.Stmt: // a body, which is walked separately
			return false
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				w.set(n.Param.Value, "", false)
			}
			if reason := expansionRisk(n); reason != "" {
				seg.raise(Ask, reason)
			}
		case *syntax.ArithmExp:
			if !numeric(n.X) {
				seg.raise(Ask, "it evaluates variables as arithmetic")
			}
		case *syntax.ArithmCmd:
			if !numeric(n.X) {
				seg.raise(Ask, "it evaluates variables as arithmetic")
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				seg.raise(Ask, "it tests a variable whose name is computed")
			}
		case *syntax.BinaryTest:
			if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && !(number(n.X) && number(n.Y)) {
				seg.raise(Ask, "it evaluates variables as arithmetic")
			}
		case *syntax.DblQuoted:
			if n.Dollar {
				seg.raise(Ask, "it contains a translated string")
			}
		}
		return true
	})
	if text != "" || seg.Verdict > ReadOnly {
		w.add(seg)
	}
	for _, stmts := range inner {
		w.nest(func() { w.subshell(func() { w.stmts(stmts) }) })
	}
}

// expansionRisk returns a reason if a parameter expansion may do more than
// yield a value.
func expansionRisk(p *syntax.ParamExp) string {
	switch {
	case p.Excl:
		return "it uses an indirect variable reference"
	case p.Slice != nil:
		if !numeric(p.Slice.Offset) || p.Slice.Length != nil && !numeric(p.Slice.Length) {
			return "it evaluates variables as arithmetic"
		}
	case p.Index != nil && !index(p.Index):
		return "it evaluates variables as arithmetic"
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		return "it uses an unsupported form of expansion"
	case p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) && special(p.Param.Value):
		return "it sets " + p.Param.Value
	}
	return ""
}

// index reports whether an array index is a number, @ or *.
func index(x syntax.ArithmExpr) bool {
	if word, ok := x.(*syntax.Word); ok && (word.Lit() == "@" || word.Lit() == "*") {
		return true
	}
	return numeric(x)
}

// numeric reports whether an arithmetic expression contains only numbers.
func numeric(x syntax.ArithmExpr) bool {
	if x == nil {
		return true
	}
	ok := true
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			ok = ok && number(n)
			return false
		}
		return ok
	})
	return ok
}

// number reports whether a node is a word that is a decimal number.
func number(n syntax.Node) bool {
	word, ok := n.(*syntax.Word)
	if !ok {
		return false
	}
	lit := word.Lit()
	return lit != "" && strings.Trim(lit, "0123456789") == ""
}

// Harmless reports whether a variable may be set for commands because it
// affects only their language and appearance.
func Harmless(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM",
		"CI", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "DEBIAN_FRONTEND":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// special reports whether the shell, or a command that inherits the variable,
// acts on it, or whether the shell sets it.
func special(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "IFS", "CDPATH", "ENV", "PWD", "OLDPWD", "GLOBIGNORE", "POSIXLY_CORRECT",
		"PROMPT_COMMAND", "PS4", "SHELLOPTS", "OPTIND", "EXECIGNORE", "FIGNORE", "TIMEFORMAT", "GCONV_PATH", "PAGER", "FUNCNEST",
		"_", "REPLY", "OPTARG", "MAPFILE", "COPROC", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "DIRSTACK", "FUNCNAME", "PIPESTATUS", "GROUPS", "UID", "EUID", "PPID":
		return true
	}
	return slices.ContainsFunc([]string{"BASH", "LD_", "DYLD_", "GIT_", "CHELA_", "OPENCLAW_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}
