// Package lines shows a conversation as lines, for terminals without a screen and
// for pipes.
package lines

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// Printer writes a conversation as lines: answers to out, what happens on the
// way to err.
type Printer struct {
	Out, Err io.Writer
	Styles   ansi.Palette // of Err
	Quiet    bool         // only answers

	shown string // of the message in progress, as it was written
	last  string // the last complete message of the run
}

// text writes what is new of a message that grows.
func (p *Printer) text(all string) {
	all = ansi.Clean(all)
	rest, ok := strings.CutPrefix(all, p.shown)
	if !ok { // it was begun again
		p.Line()
		p.Note("(begins again)")
		rest = all
	}
	if rest == "" {
		return
	}
	fmt.Fprint(p.Out, rest)
	p.shown = all
}

// Line ends the message in progress.
func (p *Printer) Line() {
	if p.shown != "" && !strings.HasSuffix(p.shown, "\n") {
		fmt.Fprintln(p.Out)
	}
	if p.shown != "" {
		p.last, p.shown = p.shown, ""
	}
}

// Note writes a dim line.
func (p *Printer) Note(s string) {
	if p.Quiet {
		return
	}
	p.Line()
	fmt.Fprintln(p.Err, p.Styles.Dim.Paint(s))
}

// Warn writes a line that must be seen.
func (p *Printer) Warn(s string) {
	p.Line()
	fmt.Fprintln(p.Err, p.Styles.Warn.Paint(s))
}

// tool writes a line for a call that has begun or ended.
func (p *Printer) tool(t feed.Tool, ended bool) {
	label := ansi.Line(t.Label)
	switch {
	case !ended:
		p.Note("· " + label)
	case t.Failed:
		p.Note("✗ " + label + ": " + ansi.Line(t.Why()))
	case t.Took >= time.Second:
		p.Note("✓ " + label + " (" + t.Took.Round(100*time.Millisecond).String() + ")")
	}
}

// Step shows what happened.
func (p *Printer) Step(s feed.Step) {
	switch s.Kind {
	case feed.Text:
		p.text(s.Text)
	case feed.Closed:
		p.Line()
	case feed.ToolBegan:
		p.tool(s.Tool, false)
	case feed.ToolEnded:
		p.tool(s.Tool, true)
	case feed.Noticed:
		p.Note(ansi.Line(s.Text))
	case feed.Ended:
		p.end(s.End)
	}
}

// end shows how a run ended.
func (p *Printer) end(e feed.End) {
	if e.State == wire.StateFinal && e.Text != "" && ansi.Clean(e.Text) != p.last {
		p.text(e.Text)
	}
	p.Line()
	p.last = ""
	switch e.State {
	case wire.StateAborted:
		p.Note("stopped")
	case wire.StateError:
		fmt.Fprintln(p.Err, p.Styles.Bad.Paint("✗ "+ansi.Line(e.Error)))
	}
	if e.Footer != "" {
		p.Note(ansi.Line(e.Footer))
	}
}
