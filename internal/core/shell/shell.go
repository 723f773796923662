package shell

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Plan is what a command would do.
type Plan struct {
	Command  string
	Segments []Segment

	// Denied is the reason why the command must never run; "": it may run.
	Denied string
	// Changes is the first reason why the command may do more than read; "":
	// all its programs and options are in the table of those that read.
	Changes string

	// Undecidable is the reason why the command cannot be matched against a list
	// of allowed programs; "": the segments are everything that it runs.
	Undecidable string

	// Program holds the arguments, beginning with the name, of a command that is
	// a single program with known arguments and needs no shell. It is nil if the
	// command needs a shell.
	Program []string

	// Detached reports that the shell does not wait for the last statement ("server &").
	Detached bool

	// Unclear reports that it could be a command that must never run, although
	// it does not look like one: parts of it are known only when it runs.
	Unclear bool

	searches bool // it reads whatever files are below a folder
	home     string
	texts    []scriptText
}

// Segment is one simple command, or the redirects of a compound one.
type Segment struct {
	Depth     int      // nesting: greater than 0 for commands run by a wrapper or a substitution
	Join      string   // operator before it: "|", "&&", …; "": in sequence
	Dir       string   // the folder it runs in; "": not known
	Vars      []string // variables that it sets, as written
	Argv      []Word   // empty if it only sets variables or redirects
	Redirects []Redirect

	Transparent bool // it does nothing but run the segments that follow: a wrapper, or sh -c

	nodes []*syntax.Word // the words of Argv in the parsed text
}

// Redirect is a redirect of a segment.
type Redirect struct {
	Text   string // as written, without the text of a here-document
	File   Word   // the file; the zero Word if it is none
	Writes bool   // it writes the file
}

// Word is an argument of a segment.
type Word struct {
	Text    string // its value; the source if it is not literal
	Literal bool   // the value is known before the command runs
	Glob    bool   // it is a pattern and expands to matching files
}

// Limits of the analysis.
const (
	maxCommand = 8 << 10 // bytes that a person can read
	maxParsed  = 1 << 20 // bytes that are still searched for denied commands
	maxDepth   = 8
	maxSteps   = 4000 // simple commands that are examined
)

// Judge holds the circumstances that a judgement depends on besides the
// command. The zero Judge is ready to use.
type Judge struct {
	Deny []*regexp.Regexp // a command that matches one of them is denied
	Dir  string           // working directory
	Home string           // the person's home folder
}

// Parse returns the plan of a command.
func (j Judge) Parse(command string) Plan {
	w := newWalker(j)
	unreadable := unreadableReason(command)
	w.unknown(unreadable)
	if w.hidden = len(command) > maxParsed; !w.hidden {
		w.parse(command, nil)
	}
	switch {
	case w.steps <= 0:
		w.hide("it has too many parts")
	case len(w.segs) == 0:
		w.unknown("it contains no command")
	}
	w.denyMatching(command)
	p := Plan{
		Command: command, Segments: w.segs, Denied: w.denied, Changes: w.changes, Undecidable: w.undecidable,
		Unclear: w.hidden || w.computed && w.mayDestroy(command), searches: w.searches, home: w.Home, texts: w.texts,
	}
	if unreadable == "" && w.fixed && len(w.texts) > 0 && singleProgram(w.texts[0].file.Stmts) {
		p.Program = texts(w.segs[0].Argv)
	}
	if len(w.texts) > 0 {
		stmts := w.texts[0].file.Stmts
		p.Detached = len(stmts) > 0 && stmts[len(stmts)-1].Background
	}
	return p
}

// Direct reports whether the command needs no sandbox: it is a single program of
// the table, with known arguments, that reads only what it is given.
func (p Plan) Direct() bool {
	return len(p.Program) > 0 && len(p.Segments) == 1 && Reads(p.Segments[0].Argv) && p.Changes == "" && !p.searches
}

// singleProgram reports whether statements are a program with arguments, and
// nothing else.
func singleProgram(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 {
		return false
	}
	s := stmts[0]
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && len(s.Redirs)+len(c.Assigns) == 0 && !s.Background && !s.Coprocess &&
		!s.Disown && !s.Negated
}

// unreadableReason returns a reason if a person could not read the command.
func unreadableReason(command string) string {
	if len(command) > maxCommand {
		return "it is longer than 8 KB"
	}
	if !utf8.ValidString(command) {
		return "it is not valid UTF-8"
	}
	for _, r := range command {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) ||
			unicode.Is(unicode.Zp, r)) {
			return "it contains invisible characters"
		}
	}
	return ""
}

// source returns a node as shell source.
func source(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}
