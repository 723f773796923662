package tui

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// newInput returns the input field for messages.
func newInput(p ansi.Palette) textarea.Model {
	in := textarea.New()
	in.Prompt = ""
	in.SetPromptFunc(2, func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return p.Accent.Paint("›") + " "
		}
		return "  "
	})
	in.Placeholder = "message, or / for commands"
	in.ShowLineNumbers = false
	in.CharLimit = 0
	in.MaxHeight, in.MaxContentHeight = 6, 10_000
	in.DynamicHeight = true
	in.SetVirtualCursor(false)
	in.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("shift+enter", "alt+enter", "ctrl+j"))
	plain := lipgloss.NewStyle()
	state := textarea.StyleState{
		Base:        plain,
		Text:        plain,
		CursorLine:  plain,
		Prompt:      plain,
		EndOfBuffer: plain,
		Placeholder: plain.Faint(p.Dim != ""),
		Selection:   plain.Reverse(true),
	}
	in.SetStyles(textarea.Styles{Focused: state, Blurred: state})
	return in
}

// tab stands for a tab in the input field, which would replace it by spaces. It is a
// private character of Unicode's last plane, one column wide, that nothing else uses.
const tab = "\U0010ff09"

// pasted returns pasted text as the input field takes it.
func pasted(text string) string {
	return ansi.Clean(strings.ReplaceAll(strings.ReplaceAll(text, tab, ""), "\t", tab))
}

// value returns what the input has.
func (s *screen) value() string { return strings.ReplaceAll(s.input.Value(), tab, "\t") }

// setValue replaces what the input has.
func (s *screen) setValue(text string) {
	s.input.SetValue(strings.ReplaceAll(text, "\t", tab))
	s.input.MoveToEnd()
}

// trim returns text without empty lines and spaces around it. The first of several lines
// keeps its indentation, like the others.
func trim(text string) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	for {
		line, rest, more := strings.Cut(text, "\n")
		if first := strings.TrimSpace(line); !more || first != "" {
			if !more || strings.ContainsRune("/!", rune(first[0])) {
				return strings.TrimSpace(text)
			}
			return text
		}
		text = rest
	}
}

// key handles a key press.
func (s *screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if cmd, ok := s.answer(name); ok {
		return cmd
	}
	if name != "ctrl+c" {
		s.note, s.interruptedAt = "", time.Time{}
	}
	switch name {
	case "ctrl+c":
		return s.interrupt()
	case "ctrl+d":
		if s.input.Value() == "" {
			return s.quit(nil)
		}
	case "esc":
		if s.menu.open() {
			s.menu.close()
			return nil
		}
		if s.inProgress() && !s.lost {
			return s.abort()
		}
		return nil
	case "ctrl+o":
		s.toggleDetail()
		return nil
	case "ctrl+l":
		s.canvas.clear()
		return nil
	case "tab":
		s.complete()
		return nil
	case "enter":
		return s.enter()
	case "up", "down":
		if s.move(name) {
			return nil
		}
	}
	return s.edit(k)
}

// interrupt clears the input, or stops the run in progress. If there is neither,
// or if it is called again within two seconds, it quits.
func (s *screen) interrupt() tea.Cmd {
	switch {
	case s.quits():
		return s.quit(nil)
	case s.input.Value() != "":
		s.input.Reset()
		s.menu.close()
		return nil
	case s.inProgress() && !s.lost:
		s.interruptedAt = time.Now()
		return s.abort()
	}
	return s.quit(nil)
}

// quits reports whether the next ctrl+c quits, because it follows another one.
func (s *screen) quits() bool { return time.Since(s.interruptedAt) < 2*time.Second }

// edit passes a key press or a paste to the input.
func (s *screen) edit(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	before := s.input.Value()
	s.input, cmd = s.input.Update(msg)
	if v := s.input.Value(); v != before {
		s.menu.update(s.value(), s.commands)
		s.history.reset()
	}
	return cmd
}

// enter sends the input, or completes the selected command.
func (s *screen) enter() tea.Cmd {
	if c, ok := s.menu.selection(); ok && "/"+c.Name != strings.TrimSpace(s.input.Value()) {
		s.complete()
		if c.AcceptsArgs {
			return nil
		}
	}
	text := trim(s.value())
	if text == "" {
		return nil
	}
	s.input.Reset()
	s.menu.close()
	s.history.add(text)
	switch text {
	case "/quit", "/exit", "／quit", "／exit":
		return s.quit(nil)
	}
	return s.send(text)
}

// complete puts the selected command into the input.
func (s *screen) complete() {
	c, ok := s.menu.selection()
	if !ok {
		return
	}
	text := "/" + c.Name
	if c.AcceptsArgs {
		text += " "
	}
	s.setValue(text)
	s.menu.close()
}

// move moves the menu selection or, at the edges of the input, goes through the
// input history. It reports false if the cursor should move instead.
func (s *screen) move(name string) bool {
	step := 1
	if name == "up" {
		step = -1
	}
	if s.menu.open() {
		s.menu.move(step)
		return true
	}
	info := s.input.LineInfo()
	if step < 0 && (s.input.Line() > 0 || info.RowOffset > 0) ||
		step > 0 && (s.input.Line() < s.input.LineCount()-1 || info.RowOffset < info.Height-1) {
		return false
	}
	if text, ok := s.history.move(step, s.value()); ok {
		s.setValue(text)
	}
	return true
}

// history is the input history.
type history struct {
	file  string // "": the history is not saved
	lines []string
	pos   int    // position in lines; len(lines) is the current input
	draft string // the current input, while an older line is shown
}

// maxHistory is the maximum number of lines that are loaded.
const maxHistory = 500

// openHistory reads a history file: one JSON string per line.
func openHistory(file string) history {
	h := history{file: file}
	if file == "" {
		return h
	}
	f, err := os.Open(file)
	if err != nil {
		return h
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for err == nil {
		var line []byte
		line, err = in.ReadBytes('\n')
		var s string
		if json.Unmarshal(line, &s) == nil {
			h.lines = append(h.lines, s)
			h.lines = h.lines[max(len(h.lines)-maxHistory, 0):]
		}
	}
	h.pos = len(h.lines)
	return h
}

// add appends a line and saves it, if possible.
func (h *history) add(s string) {
	if n := len(h.lines); n == 0 || h.lines[n-1] != s {
		h.lines = append(h.lines, s)
		h.save(s)
	}
	h.pos, h.draft = len(h.lines), ""
}

// save appends a line to the file.
func (h *history) save(s string) {
	if h.file == "" {
		return
	}
	b, err := json.Marshal(s)
	if err != nil || os.MkdirAll(filepath.Dir(h.file), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > 0 {
		last := []byte{0}
		if _, err := f.ReadAt(last, end-1); err == nil && last[0] != '\n' {
			b = append([]byte{'\n'}, b...) // the last line was not written whole
		}
	}
	_, _ = f.Write(append(b, '\n')) // losing history is acceptable
}

// move returns the line step lines after the one that is shown.
func (h *history) move(step int, shown string) (string, bool) {
	to := h.pos + step
	if to < 0 || to > len(h.lines) {
		return "", false
	}
	if h.pos == len(h.lines) {
		h.draft = shown
	}
	h.pos = to
	if to == len(h.lines) {
		return h.draft, true
	}
	return h.lines[to], true
}

// reset makes the shown line the current input, because it was edited.
func (h *history) reset() { h.pos = len(h.lines) }
