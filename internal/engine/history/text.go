package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of texts.
const (
	maxShown     = 40   // steps
	maxShownDiff = 1500 // bytes of a difference
)

// Text returns the plan for people. Times are in zone; private says that only the owner
// reads it, otherwise no content is quoted. yes is what to type to carry it out; if it is empty, the
// caller asks in its own words.
func (p Plan) Text(zone *time.Location, private bool, yes string) string {
	if len(p.Steps) == 0 {
		return p.nothing()
	}
	var b strings.Builder
	possible := p.Possible()
	if possible > 0 {
		what := "Undo "
		if p.Undo {
			what = "Take back the last undo, "
		}
		fmt.Fprintf(&b, "%s%s:\n", what, humanize.Many(possible, "change"))
	}
	n := 0
	for _, s := range p.Steps {
		if s.Refused == "" {
			if n++; n <= maxShown {
				fmt.Fprintf(&b, "%d. %s\n", n, s.line(zone))
			}
		}
	}
	if n > maxShown {
		fmt.Fprintf(&b, "and %d more\n", n-maxShown)
	}
	if n > 0 {
		b.WriteByte('\n')
	}
	if len(p.Not) > 0 {
		fmt.Fprintf(&b, "Not undone, because it cannot be: %s.\n\n", strings.Join(p.Not, ", "))
	}
	for _, s := range p.Steps {
		if s.Refused != "" {
			b.WriteString(s.refusal(private))
		}
	}
	if len(p.Steps) > n {
		b.WriteByte('\n')
	}
	switch {
	case possible == 0:
		b.WriteString("Nothing of it can be undone.")
	case yes != "":
		fmt.Fprintf(&b, "%s carries it out, within %d minutes.", yes, int(PlanTime.Minutes()))
	}
	return strings.TrimRight(b.String(), "\n")
}

func (p Plan) nothing() string {
	switch {
	case p.Undo:
		return "There is no undo to take back."
	case !p.Since.IsZero():
		return "Nothing was changed since then, or it is undone."
	}
	return "There is nothing to undo: no file, setting or job was changed here, or it is undone. Commands and messages cannot be undone."
}

// line describes a step.
func (s Step) line(zone *time.Location) string {
	first := s.Changes[0]
	size := ""
	switch {
	case s.Already:
		return fmt.Sprintf("%s: it is already as before", s.Name)
	case s.Diff.Text != "" && !s.Diff.Binary:
		size = " (" + s.Diff.Size() + ")"
	}
	what := "restore" + size
	switch {
	case !s.To.Exists && s.Kind == journal.Config:
		what = "empty it"
	case !s.To.Exists:
		what = "delete" + size
	case !s.From.Exists:
		what = "bring back" + size
	}
	by := first.Tool
	if first.Found() {
		by = "a command, or by you"
	}
	line := fmt.Sprintf("%s: %s, changed %s by %s", s.Name, what, first.Time.In(zone).Format("15:04"), by)
	if n := len(s.Changes); n > 1 {
		line += fmt.Sprintf(" (%d changes)", n)
	}
	return line
}

// refusal says why a step is not possible.
func (s Step) refusal(private bool) string {
	text := fmt.Sprintf("- Not possible: %s: %s.\n", s.Name, s.Refused)
	if diff := s.Conflict.Text; diff != "" && private {
		text += chunk.Fenced(strings.TrimSpace(humanize.TruncateBytes(diff, maxShownDiff))) + "\n"
	}
	return text
}

// Report says what became of the steps of a plan.
func Report(out []Outcome) string {
	var b strings.Builder
	done := 0
	for _, o := range out {
		if o.Err == nil {
			done++
		}
	}
	if done > 0 {
		fmt.Fprintf(&b, "Undone: %s.\n\n", humanize.Many(done, "change"))
	}
	for i, o := range out {
		switch {
		case o.Err != nil:
			fmt.Fprintf(&b, "- Not undone: %s: %v.\n", o.Name, o.Err)
		case i < maxShown:
			fmt.Fprintf(&b, "- %s\n", o.done())
		}
	}
	return strings.TrimSpace(b.String())
}

// done says what a step did.
func (s Step) done() string {
	switch {
	case s.Already:
		return s.Name + " was already as before"
	case !s.To.Exists && s.Kind != journal.Config:
		return s.Name + " is deleted"
	case !s.From.Exists:
		return s.Name + " is back"
	}
	return s.Name + " is restored"
}
