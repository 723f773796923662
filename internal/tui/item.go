package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/feed"
	"github.com/chela-ai/chela/internal/tui/markdown"
)

// item is a part of the turn that is not printed to its end.
type item struct {
	text  string // of a message
	shown int    // bytes of text that are printed
	tool  *feed.Tool
	think bool // the text is thinking
	began time.Time
	out   string // of a tool, so far
	done  bool
	cut   bool // it was ended before its own end

	stale bool // lines are to be made again
	lines []string
}

// tail is the last item when it is a message in progress; nil: there is none.
func (s *screen) tail() *item {
	if n := len(s.live); n > 0 && s.live[n-1].tool == nil && !s.live[n-1].think && !s.live[n-1].done {
		return s.live[n-1]
	}
	return nil
}

// text takes all of the message so far.
func (s *screen) text(all string) {
	it := s.tail()
	if it == nil {
		s.endThinking()
		it = &item{}
		s.live = append(s.live, it)
	}
	if !strings.HasPrefix(all, it.text[:it.shown]) {
		s.scroll.add(bare, s.styles.Dim.Paint("the answer begins again"))
		it.shown = 0
	}
	it.text, it.stale = all, true
	s.flush()
}

func (s *screen) thinking(all string) {
	if n := len(s.live); n > 0 && s.live[n-1].think {
		s.live[n-1].text = all
		return
	}
	s.live = append(s.live, &item{think: true, text: all, began: time.Now()})
}

// endThinking ends the thinking in progress: it is kept only when details are
// shown.
func (s *screen) endThinking() {
	for _, it := range s.live {
		if it.think {
			it.done = true
		}
	}
}

// find returns the item of a call; nil: it was not seen to begin.
func (s *screen) find(id string) *item {
	for _, it := range s.live {
		if it.tool != nil && it.tool.ID == id {
			return it
		}
	}
	return nil
}

func (s *screen) toolBegan(t feed.Tool) {
	s.endThinking()
	s.live = append(s.live, &item{tool: &t, began: time.Now()})
	s.flush()
}

// maxOutput bounds what is kept of a running tool's output.
const maxOutput = 16 << 10

func (s *screen) toolWrote(t feed.Tool, text string) {
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

// closed ends the message in progress.
func (s *screen) closed() {
	s.endThinking()
	if it := s.tail(); it != nil {
		it.done = true
		s.last = it.text
	}
	s.flush()
}

// finish ends everything that is in progress.
func (s *screen) finish() {
	for _, it := range s.live {
		it.cut = !it.done
		it.done = true
	}
	s.flush()
}

// flush prints what is complete, up to the first item that is not.
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
			case it.cut:
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

// printTool prints a line for a call that has ended, with its output when
// details are shown.
func (s *screen) printTool(t feed.Tool) {
	s.scroll.add(tools, s.toolLine(t))
	if s.detail {
		s.scroll.more(s.output(t.Output, maxLines))
		return
	}
	s.folded = append(s.folded, t)
}

// maxLines bounds the output of a tool that is printed.
const maxLines = 40

func (s *screen) toolLine(t feed.Tool) string {
	label, took := ansi.Line(t.Label), ""
	if t.Took >= 100*time.Millisecond {
		took = "  " + elapsed(t.Took)
	}
	if !t.Failed {
		return s.styles.Good.Paint("✓") + " " + ansi.Truncate(label, s.columns()-2-len(took)) + s.styles.Dim.Paint(took)
	}
	return s.styles.Bad.Paint("✗") + " " + ansi.Truncate(label+": "+ansi.Line(t.Why()), s.columns()-2-len(took)) + s.styles.Dim.Paint(took)
}

// output returns a tool's output with a gutter: its beginning and its end when
// it is long.
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
		lines[i] = s.styles.Dim.Paint("  │ " + ansi.Truncate(l, s.columns()-4))
	}
	return strings.Join(lines, "\n")
}

// unfold turns details on or off; turned on, it shows those of this turn.
func (s *screen) unfold() {
	s.detail = !s.detail
	if !s.detail {
		s.note = "output of tools is folded"
		return
	}
	s.note = "output of tools is shown"
	for _, t := range s.folded {
		s.scroll.add(tools, s.toolLine(t))
		s.scroll.more(s.output(t.Output, maxLines))
	}
	s.folded = nil
}

// elapsed returns a duration as it is read at a glance.
func elapsed(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}
