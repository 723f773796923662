package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/internal/surface/tui/markdown"
)

// item is a part of the turn that is not printed completely.
type item struct {
	text        string // complete text of a message so far
	shown       int    // number of bytes of text that are printed
	tool        *feed.Tool
	think       bool // text is thinking
	began       time.Time
	out         string // output of a tool so far
	done        bool
	interrupted bool // ended early
	waits       bool // ended without an answer to the question about it, which stays

	stale bool // lines must be rendered again
	lines []string
}

// tail returns the last item if it is a message in progress; otherwise nil.
func (s *screen) tail() *item {
	if n := len(s.live); n > 0 && s.live[n-1].tool == nil && !s.live[n-1].think && !s.live[n-1].done {
		return s.live[n-1]
	}
	return nil
}

// text updates the message in progress.
func (s *screen) text(all string) {
	it := s.tail()
	if it == nil {
		s.endThinking()
		it = &item{}
		s.live = append(s.live, it)
	}
	if !strings.HasPrefix(all, it.text[:it.shown]) {
		s.scroll.add(bare, s.styles.Dim.Paint("the answer was restarted"))
		it.shown = 0
	}
	it.text, it.stale = all, true
	s.flush()
}

// thinking updates the thinking in progress.
func (s *screen) thinking(all string) {
	if n := len(s.live); n > 0 && s.live[n-1].think {
		s.live[n-1].text = all
		return
	}
	s.live = append(s.live, &item{think: true, text: all, began: time.Now()})
}

// endThinking ends the thinking in progress. It is only printed if details are
// shown.
func (s *screen) endThinking() {
	for _, it := range s.live {
		if it.think {
			it.done = true
		}
	}
}

// find returns the item of a tool call; nil if its start was not seen.
func (s *screen) find(id string) *item {
	for _, it := range s.live {
		if it.tool != nil && it.tool.ID == id {
			return it
		}
	}
	return nil
}

func (s *screen) toolStarted(t feed.Tool) {
	s.endThinking()
	s.live = append(s.live, &item{tool: &t, began: time.Now()})
	s.flush()
}

// maxOutput is the maximum number of bytes kept of a running tool's output.
const maxOutput = 16 << 10

func (s *screen) toolOutput(t feed.Tool, text string) {
	if it := s.find(t.ID); it != nil {
		it.out += ansi.Clean(text)
		it.out = it.out[max(len(it.out)-maxOutput, 0):]
	}
}

func (s *screen) toolEnded(t feed.Tool) {
	it := s.find(t.ID)
	if it == nil {
		it = &item{}
		s.live = append(s.live, it)
	}
	it.tool, it.done = &t, true
	s.flush()
}

// textEnded ends the message in progress.
func (s *screen) textEnded() {
	s.endThinking()
	if it := s.tail(); it != nil {
		it.done = true
		s.lastText = it.text
	}
	s.flush()
}

// finish ends all items in progress.
func (s *screen) finish() {
	for _, it := range s.live {
		it.interrupted = !it.done
		it.done = true
	}
	s.flush()
}

// flush prints the complete items before the first incomplete one.
func (s *screen) flush() {
	for len(s.live) > 0 {
		it := s.live[0]
		switch {
		case it.think:
			if it.done && s.detail {
				s.scroll.add(block, s.styles.Dim.Paint(ansi.Wrap(strings.TrimSpace(ansi.Clean(it.text)), s.columns())))
			}
		case it.tool != nil:
			switch {
			case it.waits:
				s.scroll.add(tools, s.waiting(it))
			case it.interrupted:
				s.scroll.add(tools, s.styles.Dim.Paint(ansi.Truncate("■ "+ansi.Line(it.tool.Label), s.columns())))
			case it.done:
				s.printTool(*it.tool)
			}
		default:
			s.printText(it)
		}
		if !it.done {
			return
		}
		s.live = s.live[1:]
	}
}

// printText prints the complete blocks of a message.
func (s *screen) printText(it *item) {
	rest := it.text[it.shown:]
	n := len(rest)
	if !it.done {
		n = markdown.Cut(rest)
	}
	if strings.TrimSpace(rest[:n]) == "" {
		return
	}
	s.scroll.add(block, s.markdown(rest[:n]))
	it.shown += n
	it.stale = true
}

func (s *screen) markdown(text string) string {
	return markdown.Render(text, markdown.Options{Width: s.columns(), Styles: s.styles})
}

// printTool prints a line for a completed tool call, with its output if details
// are shown.
func (s *screen) printTool(t feed.Tool) {
	if t.Name == feed.PlanTool && !t.Failed {
		return // the plan itself is shown
	}
	s.scroll.add(tools, s.toolLine(t))
	if s.detail {
		s.scroll.extend(s.output(t.Output, maxLines))
		return
	}
	if t.Exit != "" {
		lines, more := t.Head(feed.HeadLines)
		if more > 0 {
			lines = append(lines, fmt.Sprintf("… %s; ctrl+o shows the output", humanize.Many(more, "more line")))
		}
		for _, l := range lines {
			s.scroll.extend(s.outputLine(l))
		}
	}
	s.folded = append(s.folded, t)
}

// maxLines is the maximum number of printed lines of tool output.
const maxLines = 40

func (s *screen) toolLine(t feed.Tool) string {
	label, took := ansi.Line(t.Label), ""
	if t.Took >= 100*time.Millisecond {
		took = "  " + elapsed(t.Took)
	}
	if t.Absent {
		return s.styles.Dim.Paint("· " + ansi.Truncate(label+": "+ansi.Line(t.Reason()), s.columns()-2-len(took)) + took)
	}
	if !t.Failed {
		return s.styles.Good.Paint("✓") + " " + ansi.Truncate(label, s.columns()-2-len(took)) + s.styles.Dim.Paint(took)
	}
	lines := strings.Split(ansi.Wrap(label+": "+ansi.Line(t.Reason())+took, s.columns()-2), "\n")
	if len(lines) > maxReason {
		lines = append(lines[:maxReason-1], "…"+took)
	}
	return s.styles.Bad.Paint("✗") + " " + strings.Join(lines, "\n  ")
}

// maxReason is the maximum number of lines that say why a call failed.
const maxReason = 4

// output returns a tool's output with a gutter. If it has more than most lines,
// the middle is left out.
func (s *screen) output(text string, most int) string {
	text = strings.TrimRight(ansi.Clean(text), "\n ")
	if text == "" {
		text = "(no output)"
	}
	lines := strings.Split(text, "\n")
	if n := len(lines); n > most {
		gap := fmt.Sprintf("… %d lines …", n-most+1)
		lines = append(append(lines[:most/2:most/2], gap), lines[n-most+most/2+1:]...)
	}
	for i, l := range lines {
		lines[i] = s.outputLine(l)
	}
	return strings.Join(lines, "\n")
}

func (s *screen) outputLine(l string) string {
	return s.styles.Dim.Paint("  │ " + ansi.Truncate(l, s.columns()-4))
}

// toggleDetail turns details on or off. When they are turned on, it prints the
// tool output of the current turn.
func (s *screen) toggleDetail() {
	s.detail = !s.detail
	if !s.detail {
		s.note = "tool output is hidden"
		return
	}
	s.note = "tool output is shown"
	for _, t := range s.folded {
		s.scroll.add(tools, s.toolLine(t))
		s.scroll.extend(s.output(t.Output, maxLines))
	}
	s.folded = nil
}

// elapsed formats a duration compactly.
func elapsed(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// kind is the kind of a printed text. It determines where empty lines go.
type kind int

const (
	bare  kind = iota + 1 // lines without empty lines between them
	block                 // a message
	tools                 // a line of a tool call
)

// scroll queues the text to print above the drawing.
type scroll struct {
	lines []string
	last  kind // kind of the last text
}

// add queues a text. An empty line separates blocks from everything else.
func (s *scroll) add(k kind, text string) {
	if s.last != 0 && (k != s.last || k == block) {
		s.lines = append(s.lines, "")
	}
	s.last = k
	s.lines = append(s.lines, strings.Split(text, "\n")...)
}

// extend queues a text that continues the last one.
func (s *scroll) extend(text string) { s.lines = append(s.lines, strings.Split(text, "\n")...) }

// take returns the queued lines, none of which is wider than width columns, and empties the
// queue.
func (s *scroll) take(width int) (lines []string) {
	for _, l := range s.lines {
		if ansi.Width(l) > width { // the terminal is narrower than when the line was added
			lines = append(lines, strings.Split(ansi.Wrap(l, width), "\n")...)
			continue
		}
		lines = append(lines, l)
	}
	s.lines = nil
	return lines
}
