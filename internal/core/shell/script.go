package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scriptText is a parsed text of commands.
type scriptText struct {
	file *syntax.File
	word *syntax.Word // the word of another text that holds it, as in sh -c TEXT; nil: the whole command
}

// Render writes a command that is not undecidable so that a shell runs exactly
// its segments. Known words are quoted. A program's name is replaced by the
// result of file, unless that is "".
func (p Plan) Render(file func(name string) string) string {
	for _, s := range p.Segments {
		if name := file(s.Argv[0].Text); name != "" {
			*s.nodes[0] = *quoted(name)
		}
	}
	for _, t := range slices.Backward(p.texts[1:]) {
		*t.word = *quoted(source(t.file))
	}
	return source(p.texts[0].file)
}

// quoted returns a word that every shell reads as the text.
func quoted(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: Quote(text)}}}
}

// Quote quotes a string so that any POSIX shell reads it as one word with
// that value.
func Quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// harmlessRedirect reports whether a redirect opens no file except /dev/null.
func harmlessRedirect(rd *syntax.Redirect) bool {
	if rd.N != nil && strings.Trim(rd.N.Value, "0123456789") != "" || rd.Hdoc != nil {
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

// harmlessAssign reports whether an assignment sets a harmless variable to a
// known value.
func (w *walker) harmlessAssign(a *syntax.Assign) bool {
	if !Harmless(a.Name.Value) || a.Append || a.Naked || a.Array != nil || a.Index != nil || a.Value == nil {
		return false
	}
	x, nodes := w.words(a.Value)
	if len(x) != 1 || !known(x...) {
		return false
	}
	a.Value = nodes[0]
	return true
}

// Harmless reports whether a variable may be set for commands because it
// affects only their language and appearance.
func Harmless(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR",
		"CLICOLOR_FORCE", "COLORTERM",
		"CI", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "DEBIAN_FRONTEND":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}
