package shell

import "regexp"

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
}

// Segment is one simple command.
type Segment struct {
	Depth     int    // of nesting: 1 for what a wrapper or a substitution runs
	Join      string // how it follows the segment before: "|", "&&", ";" …
	Argv      []Word
	Redirects []string // as written
	Verdict   Verdict
	Reason    string
}

// Word is an argument of a segment.
type Word struct {
	Text    string // its value; the source when it is not literal
	Literal bool   // the value is known
}

// Parse judges a command. A command that one of the patterns matches is
// denied, whatever else is said of it.
func Parse(command string, deny ...*regexp.Regexp) Plan {
	p := Plan{Command: command, Verdict: Ask, Reasons: []string{"not known to be read-only"}}
	return p
}
