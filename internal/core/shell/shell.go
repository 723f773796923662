package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Verdict is the result of judging a command.
type Verdict int

// The verdicts, in increasing strictness.
const (
	ReadOnly Verdict = iota // it only reads
	Ask                     // a person must approve it
	Deny                    // it must never run
)

// String returns "read-only", "ask" or "deny".
func (v Verdict) String() string {
	return [...]string{"read-only", "ask", "deny"}[min(max(v, 0), 2)]
}

// Plan is what a command would do.
type Plan struct {
	Command  string
	Segments []Segment
	Verdict  Verdict
	Reasons  []string // reasons for the verdict; empty for ReadOnly

	// Program holds the arguments, beginning with the name, of a command that is
	// a single program with known arguments and needs no shell. It is nil if the
	// command needs a shell.
	Program []string
}

// Segment is one simple command, or the redirects of a compound one.
type Segment struct {
	Depth     int    // nesting: greater than 0 for commands run by a wrapper, a substitution or a function
	Join      string // operator before it: "|", "&&", …; "": in sequence
	Argv      []Word
	Redirects []string // as written
	Verdict   Verdict
	Reason    string // for the verdict
}

// Word is an argument of a segment.
type Word struct {
	Text    string // its value; the source if it is not literal
	Literal bool   // the value is known before the command runs
	Glob    bool   // it is a pattern and expands to matching files
}

// Limits of the analysis. A command that exceeds them is Ask.
const (
	maxCommand = 8 << 10 // bytes
	maxParsed  = 1 << 20 // bytes that are still searched for denied commands
	maxDepth   = 8
	maxSteps   = 4000 // simple commands that are examined, in all variants
)

// Judge holds the circumstances that a judgement depends on besides the
// command. The zero Judge is ready to use.
type Judge struct {
	Deny      []*regexp.Regexp // a command that matches one of them is denied
	Dir       string           // working directory
	Workspace string           // a folder that is never private
	Home      string           // the person's home folder
}

// Parse judges a command.
func (j Judge) Parse(command string) Plan {
	w := newWalker(j)
	p := Plan{Command: command}
	reason := unreadableReason(command)
	if reason != "" {
		w.add(Segment{Verdict: Ask, Reason: reason})
	}
	if len(command) <= maxParsed {
		f := w.parse(command)
		if reason == "" {
			p.Program = w.singleProgram(f)
		}
	}
	if *w.steps <= 0 {
		w.add(Segment{Verdict: Ask, Reason: "it has too many parts"})
	}
	if len(w.segs) == 0 {
		w.add(Segment{Verdict: Ask, Reason: "it contains no command"})
	}
	p.Segments = w.segs
	for _, re := range j.Deny {
		if re.MatchString(command) {
			p.Verdict, p.Reasons = Deny, []string{"it matches the denied pattern " + re.String()}
			return p
		}
	}
	for _, s := range p.Segments {
		if s.Verdict > p.Verdict {
			p.Verdict, p.Reasons = s.Verdict, nil
		}
		if s.Verdict == p.Verdict && s.Reason != "" && !slices.Contains(p.Reasons, s.Reason) {
			p.Reasons = append(p.Reasons, s.Reason)
		}
	}
	return p
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
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
			return "it contains invisible characters"
		}
	}
	return ""
}

// newParser returns a parser. A parser parses one text.
func newParser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// source returns a node as shell source.
func source(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}
