package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// printer writes a conversation as lines: answers to out, what happens on the
// way to err.
type printer struct {
	out, err io.Writer
	styles   ansi.Palette // of err
	quiet    bool         // only answers

	shown string // of the message in progress, as it was written
	last  string // the last complete message of the run
}

// text writes what is new of a message that grows.
func (p *printer) text(all string) {
	all = ansi.Clean(all)
	rest, ok := strings.CutPrefix(all, p.shown)
	if !ok { // it was begun again
		p.line()
		p.note("(begins again)")
		rest = all
	}
	if rest == "" {
		return
	}
	fmt.Fprint(p.out, rest)
	p.shown = all
}

// line ends the message in progress.
func (p *printer) line() {
	if p.shown != "" && !strings.HasSuffix(p.shown, "\n") {
		fmt.Fprintln(p.out)
	}
	if p.shown != "" {
		p.last, p.shown = p.shown, ""
	}
}

// note writes a dim line.
func (p *printer) note(s string) {
	if p.quiet {
		return
	}
	p.line()
	fmt.Fprintln(p.err, p.styles.Dim.Paint(s))
}

// warn writes a line that must be seen.
func (p *printer) warn(s string) {
	p.line()
	fmt.Fprintln(p.err, p.styles.Warn.Paint(s))
}

// tool writes a line for a call that has begun or ended.
func (p *printer) tool(t feed.Tool, ended bool) {
	label := ansi.Line(t.Label)
	switch {
	case !ended:
		p.note("· " + label)
	case t.Failed:
		p.note("✗ " + label + ": " + ansi.Line(t.Why()))
	case t.Took >= time.Second:
		p.note("✓ " + label + " (" + t.Took.Round(100*time.Millisecond).String() + ")")
	}
}

// step shows what happened.
func (p *printer) step(s feed.Step) {
	switch s.Kind {
	case feed.Text:
		p.text(s.Text)
	case feed.Closed:
		p.line()
	case feed.ToolBegan:
		p.tool(s.Tool, false)
	case feed.ToolEnded:
		p.tool(s.Tool, true)
	case feed.Noticed:
		p.note(ansi.Line(s.Text))
	case feed.Ended:
		p.end(s.End)
	}
}

// end shows how a run ended.
func (p *printer) end(e feed.End) {
	if e.State == wire.StateFinal && e.Text != "" && ansi.Clean(e.Text) != p.last {
		p.text(e.Text)
	}
	p.line()
	p.last = ""
	switch e.State {
	case wire.StateAborted:
		p.note("stopped")
	case wire.StateError:
		fmt.Fprintln(p.err, p.styles.Bad.Paint("✗ "+ansi.Line(e.Error)))
	}
	if e.Footer != "" {
		p.note(ansi.Line(e.Footer))
	}
}
