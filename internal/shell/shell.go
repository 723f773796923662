package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Verdict is what is to be done with a command.
type Verdict int

// The verdicts, rising.
const (
	ReadOnly Verdict = iota // it only reads
	Ask                     // a person should see it
	Deny                    // it is never run
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
	Reasons  []string // for the verdict, none for ReadOnly

	// Program is the arguments, its name first, of a command that is one program
	// and needs no shell: all of them are known. Nil: it needs one.
	Program []string
}

// Segment is one simple command, or the redirects of a compound one.
type Segment struct {
	Depth     int    // 0; more for what a wrapper, a substitution or a function runs
	Join      string // how it follows what is before it: "|", "&&", …; "": in turn
	Argv      []Word
	Redirects []string // as written
	Verdict   Verdict
	Reason    string // for the verdict
}

// Word is an argument of a segment.
type Word struct {
	Text    string // its value; the source when it is not literal
	Literal bool   // the value is known before the command runs
	Glob    bool   // it stands for the files that match
}

// Limits of what is judged; beyond them a command is Ask.
const (
	maxCommand = 8 << 10 // bytes
	maxParsed  = 1 << 20 // bytes that are still looked at for what is denied
	maxDepth   = 8
	maxSteps   = 4000 // simple commands that are looked at, in all readings
)

// Judge is what a judgement depends on beside the command. The zero Judge is
// ready.
type Judge struct {
	Deny      []*regexp.Regexp // commands that one of them matches are denied, whatever else is said of them
	Dir       string           // where commands start
	Workspace string           // a folder that is not private, wherever it is
	Home      string           // the person's home folder
}

// Parse judges a command without knowing where it runs.
func Parse(command string) Plan { return Judge{}.Parse(command) }

// Parse judges a command.
func (j Judge) Parse(command string) Plan {
	w := newWalker(j)
	p := Plan{Command: command}
	reason := unreadable(command)
	if reason != "" {
		w.add(Segment{Verdict: Ask, Reason: reason})
	}
	if len(command) <= maxParsed {
		f := w.parse(command)
		if reason == "" {
			p.Program = w.program(f)
		}
	}
	if *w.steps <= 0 {
		w.add(Segment{Verdict: Ask, Reason: "it has too many parts"})
	}
	if len(w.segs) == 0 {
		w.add(Segment{Verdict: Ask, Reason: "there is no command in it"})
	}
	p.Segments = w.segs
	for _, re := range j.Deny {
		if re.MatchString(command) {
			p.Verdict, p.Reasons = Deny, []string{"it matches the pattern " + re.String()}
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

// unreadable says why a person could not see what a command is.
func unreadable(command string) string {
	if len(command) > maxCommand {
		return "it is longer than 8 KB"
	}
	if !utf8.ValidString(command) {
		return "it is no UTF-8"
	}
	for _, r := range command {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
			return "it has characters that cannot be seen"
		}
	}
	return ""
}

// newParser returns a parser; one is needed for each text.
func newParser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// source writes a node as it is in the text.
func source(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}
