package repl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// Printer writes a conversation as lines: answers to Out, progress messages to
// Err.
type Printer struct {
	Out, Err io.Writer
	Styles   ansi.Palette // styles for Err
	Quiet    bool         // suppress notes

	shown string // the part of the current message that was written
	last  string // the last complete message of the run
	plan  wire.Plan
}

// text writes the new part of a growing message.
func (p *Printer) text(all string) {
	all = ansi.Clean(all)
	rest, ok := strings.CutPrefix(all, p.shown)
	if !ok { // the message was restarted
		p.Line()
		p.Note("(answer restarted)")
		rest = all
	}
	if rest == "" {
		return
	}
	fmt.Fprint(p.Out, rest)
	p.shown = all
}

// Line ends the current message.
func (p *Printer) Line() {
	if p.shown != "" && !strings.HasSuffix(p.shown, "\n") {
		fmt.Fprintln(p.Out)
	}
	if p.shown != "" {
		p.last, p.shown = p.shown, ""
	}
}

// Note writes a line in a dim style, unless Quiet is set.
func (p *Printer) Note(s string) {
	if p.Quiet {
		return
	}
	p.Line()
	fmt.Fprintln(p.Err, p.Styles.Dim.Paint(s))
}

// Warn writes a line in a warning style.
func (p *Printer) Warn(s string) {
	p.Line()
	fmt.Fprintln(p.Err, p.Styles.Warn.Paint(s))
}

// tool writes a line for a call that started or ended.
func (p *Printer) tool(t feed.Tool, ended bool) {
	label := ansi.Line(t.Label)
	switch {
	case t.Name == feed.PlanTool && !t.Failed: // the plan itself is written
	case !ended:
		p.Note("· " + label)
	case t.Absent:
		p.Note("· " + ansi.Line(t.Reason()))
	case t.Failed:
		p.Note("✗ " + label + ": " + ansi.Line(t.Reason()))
		if t.Exit != "" {
			lines, more := t.Head(feed.HeadLines)
			for _, l := range lines {
				p.Note("  │ " + l)
			}
			if more > 0 {
				p.Note("  │ … " + humanize.Many(more, "more line"))
			}
		}
	case t.Took >= time.Second:
		p.Note("✓ " + label + " (" + t.Took.Round(100*time.Millisecond).String() + ")")
	}
}

// Step shows a step.
func (p *Printer) Step(s feed.Step) {
	switch s.Kind {
	case feed.Text:
		p.text(s.Text)
	case feed.TextEnded:
		p.Line()
	case feed.ToolStarted:
		p.tool(s.Tool, false)
	case feed.ToolEnded:
		p.tool(s.Tool, true)
	case feed.PlanChanged:
		p.planChanged(s.Plan)
	case feed.Notice:
		p.Note(ansi.Line(s.Text))
	case feed.RunEnded:
		p.end(s.End)
	}
}

// marks are the states of steps of a plan.
var marks = map[string]string{
	wire.PlanPending:    "[ ]",
	wire.PlanInProgress: "[>]",
	wire.PlanCompleted:  "[x]",
	wire.PlanFailed:     "[!]",
	wire.PlanCancelled:  "[-]",
}

// planChanged writes how much of a plan is done and its steps, or those that changed if
// the plan has the same steps as before.
func (p *Printer) planChanged(next wire.Plan) {
	before := p.plan.Steps
	p.plan = next
	same := slices.EqualFunc(before, next.Steps, func(a, b wire.PlanStep) bool {
		return a.ID == b.ID && a.Step == b.Step && slices.Equal(a.After, b.After)
	})
	var lines []string
	for i, s := range next.Steps {
		if same && before[i].Status == s.Status {
			continue
		}
		title, after := feed.PlanStepText(next, s)
		line := "  " + cmp.Or(marks[s.Status], "[?]") + " " + ansi.Line(title)
		if after != "" {
			line += " (" + ansi.Line(after) + ")"
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 { // nothing changed, or the plan was removed
		return
	}
	p.Note(feed.PlanCount(next))
	for _, l := range lines {
		p.Note(l)
	}
}

// end shows how a run ended.
func (p *Printer) end(e feed.End) {
	if e.State == wire.StateFinal && e.Text != "" && ansi.Clean(e.Text) != p.last {
		p.text(feed.After(p.last, ansi.Clean(e.Text)))
	}
	p.Line()
	p.last = ""
	switch e.State {
	case wire.StateAborted:
		if e.Stop != wire.StopSuperseded {
			p.Note("stopped")
		}
	case wire.StateError:
		fmt.Fprintln(p.Err, p.Styles.Bad.Paint("✗ "+ansi.Line(e.Error)))
		if hint := e.Hint(); hint != "" {
			p.Note("  " + hint)
		}
	}
	if e.Footer != "" {
		p.Note(ansi.Line(e.Footer))
	}
}
