package tui

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// own is the session of the tested screens.
const own = "agent:main:main"

// alone returns a screen without a gateway: its commands are not executed.
func alone(t *testing.T) *screen {
	t.Helper()
	s := newScreen(t.Context(), Options{Session: own})
	s.joined = true
	s.feed.ID = "s"
	s.input.Focus()
	return s
}

// allText returns what the screen has printed and what it draws.
func (s *screen) allText() string {
	if all := strings.Join(s.scroll.lines, "\n") + s.draw().Content; strings.Contains(all, "\x1b[2J") {
		return "text that was not cleaned: " + all
	}
	return strings.Join(s.scroll.lines, "\n") + "\n" + ansi.Clean(s.draw().Content)
}

// press presses the keys with the given names.
func press(s *screen, names ...string) (cmd tea.Cmd) {
	for _, n := range names {
		k := map[string]tea.Key{
			"enter":  {Code: tea.KeyEnter},
			"esc":    {Code: tea.KeyEscape},
			"up":     {Code: tea.KeyUp},
			"down":   {Code: tea.KeyDown},
			"tab":    {Code: tea.KeyTab},
			"ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
			"ctrl+d": {Code: 'd', Mod: tea.ModCtrl},

			"ctrl+o": {Code: 'o', Mod: tea.ModCtrl},
			"ctrl+j": {Code: 'j', Mod: tea.ModCtrl},
			"left":   {Code: tea.KeyLeft},
		}[n]
		if k.Code == 0 {
			k = tea.Key{Code: []rune(n)[0], Text: n}
		}
		cmd = s.handle(tea.KeyPressMsg(k))
	}
	return cmd
}

func approval(id, session string) wire.Approval {
	return wire.Approval{ID: id, Request: wire.ApprovalRequest{Command: "do " + id, SessionKey: session}}
}

func TestAnswer(t *testing.T) {
	const other = "agent:main:other"
	for _, tt := range []struct {
		name  string
		of    string // session of the question
		act   func(s *screen)
		keys  string // names of keys
		sent  bool   // a decision
		input string
	}{
		{"letters are text", own, nil, "a l s o", false, "also"},
		{"y and n are text", own, nil, "y n", false, "yn"},
		{"tab turns to the question, y allows once", own, nil, "tab y", true, ""},
		{"tab turns to the question, n denies", own, nil, "tab n", true, ""},
		{"always needs enter", own, nil, "tab a", false, ""},
		{"always with enter", own, nil, "tab a enter", true, ""},
		{"the session needs enter", own, nil, "tab s", false, ""},
		{"the session with enter", own, nil, "tab s enter", true, ""},
		{"always twice is not enough", own, nil, "tab a a", false, "a"},
		{"esc takes a choice back", own, nil, "tab a esc enter", false, ""},
		{"esc takes a choice back, another is made", own, nil, "tab a esc y", true, ""},
		{"esc turns back", own, nil, "tab esc y", false, "y"},
		{"tab turns back", own, nil, "tab tab y", false, "y"},
		{"enter alone decides nothing", own, nil, "tab enter y", false, "y"},
		{"any other key turns back", own, nil, "tab x y", false, "xy"},
		{"of another session, once needs enter", other, nil, "tab y", false, ""},
		{"of another session, once with enter", other, nil, "tab y enter", true, ""},
		{"of another session, no needs enter", other, nil, "tab n", false, ""},
		{"of another session, no with enter", other, nil, "tab n enter", true, ""},
		{"with text in the input, tab does not turn", own, nil, "x tab y", false, "xy"},
		{"a question that takes the first place is not answered", other,
			func(s *screen) { press(s, "tab"); s.ask(approval("b", own)) }, "y", false, "y"},
		{"the next question is not answered", own,
			func(s *screen) { s.ask(approval("b", own)); press(s, "tab"); s.withdraw("a") }, "y", false, "y"},
		{"a question that comes last changes nothing", own, func(s *screen) { press(s, "tab"); s.ask(approval("b", other)) },
			"y", true, ""},
		{"a later question that is withdrawn changes nothing", own,
			func(s *screen) { s.ask(approval("b", other)); press(s, "tab"); s.withdraw("b") }, "y", true, ""},
		{"pasted text turns back", own, func(s *screen) { press(s, "tab"); s.handle(tea.PasteMsg{Content: "x"}) },
			"y", false, "xy"},
		{"the connection is lost", own, func(s *screen) { s.lost = true }, "tab y", false, "y"},
		{"the connection was lost", own, func(s *screen) {
			press(s, "tab")
			s.handle(events{list: []wire.Event{{Name: client.EventLost}, {Name: client.EventResumed}}})
		}, "y", false, "y"},
		{"an action that can only be allowed once, session", own, func(s *screen) { s.asked[0].Request.Once = true },
			"tab s enter", false, ""},
		{"an action that can only be allowed once, always", own, func(s *screen) { s.asked[0].Request.Once = true },
			"tab a enter", false, ""},
		{"an action that can only be allowed once, no", own, func(s *screen) { s.asked[0].Request.Once = true },
			"tab n", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := alone(t)
			s.ask(approval("a", tt.of))
			if tt.act != nil {
				tt.act(s)
			}
			s.joined = false // so that no message is sent
			decided := false
			for _, k := range strings.Fields(tt.keys) {
				decided = press(s, k) != nil && s.input.Value() == "" && len(s.sent) == 0 || decided
			}
			if decided != tt.sent || s.input.Value() != tt.input && len(s.sent) == 0 {
				t.Errorf("decided %v, want %v; input %q, want %q", decided, tt.sent, s.input.Value(), tt.input)
			}
		})
	}
}

// TestLongInput checks that a long text is kept whole in a small input field.
func TestLongInput(t *testing.T) {
	s := alone(t)
	s.handle(tea.WindowSizeMsg{Width: 80, Height: 24})
	text := strings.TrimSpace(strings.Repeat("line\n", 300))
	s.handle(tea.PasteMsg{Content: text})
	if got := s.input.Value(); got != text {
		t.Errorf("%d bytes of %d are left", len(got), len(text))
	}
	if h := s.input.Height(); h != 6 {
		t.Errorf("the input has %d rows, want 6", h)
	}
}

// TestTabs pastes lines with tabs, sends them and takes them out of the history.
func TestTabs(t *testing.T) {
	for _, tt := range []struct{ name, pasted, sent, shown string }{
		{"a makefile", "all: x\n\tgo build\n\t\tdone\n", "all: x\n\tgo build\n\t\tdone", "› all: x\n   go build\n    done"},
		{"an indented part of a file", "\n  \n\tgo build\n\tgo test\n", "\tgo build\n\tgo test", "   go build\n   go test\n"},
		{"columns", "a\tb", "a\tb", "› a b"},
		{"one indented line", "\tgo build", "go build", "›  go build"},
		{"an indented command", "\n /new a\n\tb", "/new a\n\tb", "   /new a\n   b\n"},
		{"nothing", " \t\n\t", "", "›"},
		{"the character that stands for a tab", "a" + tab + "b\x1b[2J", "ab", "› ab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := alone(t)
			s.handle(tea.WindowSizeMsg{Width: 80, Height: 24})
			s.joined = false // so that it stays
			s.handle(tea.PasteMsg{Content: tt.pasted})
			if all := regexp.MustCompile(" +\n").ReplaceAllString(s.allText(), "\n"); !strings.Contains(all, tt.shown) ||
				strings.Contains(all, tab) {
				t.Errorf("shown %q, want %q in it", all, tt.shown)
			}
			for _, from := range []string{"the paste", "the history"} {
				s.sent = nil
				press(s, "enter")
				var got string
				for _, m := range s.sent {
					got += m.text
				}
				if got != tt.sent {
					t.Errorf("sent from %s: %q, want %q", from, got, tt.sent)
				}
				press(s, "up")
			}
		})
	}
}

func TestQuestions(t *testing.T) {
	s := alone(t)
	if s.question() != "" {
		t.Errorf("without a question: %q", s.question())
	}
	long := approval("a", "agent:main:\x1b[2Jother")
	long.Request.Reason, long.Request.Command = "it\nchanges \x1b[2Jfiles", "\n do \x1b[2Ja\nand b\n"
	s.ask(long)
	s.ask(long) // again, in the list after a reconnect
	b := approval("b", own)
	b.Request.Tool = "ex\x1b[2Jec"
	for _, a := range []wire.Approval{approval("d", "agent:main:x"), b, approval("c", own)} {
		s.ask(a)
	}
	var order string
	for _, a := range s.asked {
		order += a.ID
	}
	if order != "bcad" {
		t.Errorf("asked in the order %s, want those of this session first", order)
	}
	want := `? a tool needs approval in session agent:main:other
  it changes files
┃
┃  do a
┃ and b

? a tool needs approval in session agent:main:x
┃ do d

? exec needs approval
┃ do b

? a tool needs approval
┃ do c`
	var got []string
	for _, l := range s.scroll.lines {
		if strings.Contains(l, "\x1b[2J") {
			t.Errorf("%q is printed", l)
		}
		got = append(got, strings.TrimRight(ansi.Clean(l), " "))
	}
	if d := cmp.Diff(want, strings.Join(got, "\n")); d != "" {
		t.Errorf("printed (-want +got)\n%s", d)
	}
	for _, want := range []string{
		"? allow (1 of 4): do b\n  tab to answer",
		"? allow (1 of 3): do c\n  tab to answer",
		"? allow (1 of 2) in another session: do a …\n  tab to answer",
		"? allow in another session: do d\n  tab to answer",
	} {
		if got := ansi.Clean(s.question()); got != want {
			t.Errorf("question %q, want %q", got, want)
		}
		if len(s.asked) == 1 {
			s.input.SetValue("x")
			if !strings.HasSuffix(s.question(), "\n  clear the input, then tab to answer") {
				t.Errorf("with a draft: %q", s.question())
			}
		}
		s.withdraw(s.asked[0].ID)
	}
	once := approval("e", own)
	once.Request.Once = true
	s.input.Reset()
	s.ask(once)
	press(s, "tab")
	if got := s.question(); got != "? allow: do e\n  y once  n no  esc back" {
		t.Errorf("an action that can only be allowed once: %q", got)
	}
	s.withdraw("e")
	s.ask(approval("f", own))
	press(s, "tab")
	if got := s.question(); got != "? allow: do f\n  y once  s session  a always  n no  esc back" {
		t.Errorf("turned to the question: %q", got)
	}
	press(s, "a")
	if got := s.question(); got != "? allow: do f\n  enter allow it always  esc back" {
		t.Errorf("a choice: %q", got)
	}
	t.Run("a question that is asked again after a reconnect is printed once", func(t *testing.T) {
		s := alone(t)
		s.client = &client.Client{}
		for range 3 {
			s.join(attached{approvals: []wire.Approval{approval("a", own)}, history: wire.History{SessionID: "s"}})
		}
		if n := strings.Count(strings.Join(s.scroll.lines, "\n"), "┃ do a"); n != 1 || len(s.asked) != 1 {
			t.Errorf("printed %d times, %d questions", n, len(s.asked))
		}
	})
}

func TestDecisions(t *testing.T) {
	for decision, want := range map[string]string{
		wire.AllowOnce:       "✓ allowed once: do a",
		wire.AllowSession:    "✓ allowed for this session: do a",
		wire.AllowAlways:     "✓ allowed always: do a",
		wire.Deny:            "✗ denied: do a",
		wire.ApprovalExpired: "✗ expired without an answer: do a",

		wire.ApprovalWithdrawn: "✗ withdrawn, the run was stopped: do a",
		"la\x1b[2Jter":         "later: do a",
	} {
		s := alone(t)
		a := approval("a", own)
		a.Request.Command = "\ndo \x1b[2Ja\nand b"
		s.ask(a)
		s.ask(approval("b", own))
		s.scroll.lines = nil
		// an action that is not asked about
		s.step(feed.Step{Kind: feed.ApprovalResolved, Approval: approval("x", own), Text: decision})
		s.step(feed.Step{Kind: feed.ApprovalResolved, Approval: a, Text: decision})
		if got := strings.TrimSpace(strings.Join(s.scroll.lines, "\n")); got != want ||
			len(s.asked) != 1 || s.asked[0].ID != "b" {
			t.Errorf("%s: printed %q, want %q; asked %v", decision, got, want, s.asked)
		}
	}
	t.Run("yes only allows actions of this session", func(t *testing.T) {
		s := alone(t)
		s.o.Yes = true
		if cmd := s.ask(approval("a", own)); cmd == nil || len(s.asked) != 0 {
			t.Errorf("of this session: asked %v", s.asked)
		}
		if cmd := s.ask(approval("b", "agent:main:other")); cmd != nil || len(s.asked) != 1 {
			t.Errorf("of another session: asked %v", s.asked)
		}
	})
	t.Run("a refused decision ends the question, a lost one does not", func(t *testing.T) {
		for _, tt := range []struct {
			err  error
			left int
		}{{nil, 1}, {errors.New("lost"), 1}, {&wire.Error{Message: "decided by x"}, 0}} {
			s := alone(t)
			s.ask(approval("a", own))
			s.handle(resolved{"a", tt.err})
			if note := s.note != ""; len(s.asked) != tt.left || note != (tt.err != nil) {
				t.Errorf("%v: %d questions, note %q", tt.err, len(s.asked), s.note)
			}
		}
	})
}

func TestStopAndQuit(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before        func(s *screen)
		keys          []string
		stopped, left bool
	}{
		{"ctrl+c without a run", func(*screen) {}, []string{"ctrl+c"}, false, true},
		{"ctrl+c with a draft", func(s *screen) { press(s, "/") }, []string{"ctrl+c"}, false, false},
		{"ctrl+c during a run", func(s *screen) { s.active = "r" }, []string{"ctrl+c"}, true, false},
		{"ctrl+c with a message on its way", func(s *screen) { s.sent = []message{{}} }, []string{"ctrl+c"}, true, false},
		{"ctrl+c during a run without a connection", func(s *screen) { s.active, s.lost = "r", true },
			[]string{"ctrl+c"}, false, true},
		{"ctrl+c twice during a run", func(s *screen) { s.active = "r" }, []string{"ctrl+c", "ctrl+c"}, false, true},
		{"ctrl+c twice with another key between", func(s *screen) { s.active = "r" },
			[]string{"ctrl+c", "left", "ctrl+c"}, true, false},
		{"ctrl+c two seconds later",
			func(s *screen) { s.active = "r"; press(s, "ctrl+c"); s.stopping = false; time.Sleep(2 * time.Second) },
			[]string{"ctrl+c"}, true, false},
		{"esc during a run", func(s *screen) { s.active = "r" }, []string{"esc"}, true, false},
		{"esc during a run without a connection", func(s *screen) { s.active, s.lost = "r", true },
			[]string{"esc"}, false, false},
		{"esc closes the menu first", func(s *screen) { s.active = "r"; press(s, "/") }, []string{"esc"}, false, false},
		{"esc with the menu closed", func(s *screen) { s.active = "r"; press(s, "/", "esc") }, []string{"esc"}, true, false},
		{"esc without a run", func(*screen) {}, []string{"esc"}, false, false},
		{"ctrl+d", func(*screen) {}, []string{"ctrl+d"}, false, true},
		{"ctrl+d with a draft", func(s *screen) { press(s, "x") }, []string{"ctrl+d"}, false, false},
		{"/exit", func(s *screen) { s.input.SetValue("/exit ") }, []string{"enter"}, false, true},
		{"/exit with a wide slash", func(s *screen) { s.input.SetValue("／exit") }, []string{"enter"}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := alone(t)
				s.commands = ownCommands()
				tt.before(s)
				press(s, tt.keys...)
				if stopped := s.stopping; s.quitting != tt.left || !tt.left && stopped != tt.stopped {
					t.Errorf("stopped %v, want %v; left %v, want %v", stopped, tt.stopped, s.quitting, tt.left)
				}
				if s.input.Value() != "" && tt.keys[0] == "ctrl+c" || s.menu.open() {
					t.Errorf("input %q, menu open %v", s.input.Value(), s.menu.open())
				}
			})
		})
	}
}

// TestStoppingLine reads the line below the input while a run stops, and after its end.
func TestStoppingLine(t *testing.T) {
	const again = "ctrl+c again"
	ends := func(s *screen) {
		s.step(feed.Step{Kind: feed.RunEnded, Run: "r", End: feed.End{State: wire.StateAborted}})
	}
	for _, tt := range []struct {
		name          string
		act           func(s *screen)
		begins, never string
	}{
		{"esc", func(s *screen) { press(s, "esc") }, "stopping · ", again},
		{"ctrl+c", func(s *screen) { press(s, "ctrl+c") }, "stopping; press ctrl+c again to quit", "ready"},
		{"two seconds after ctrl+c", func(s *screen) { press(s, "ctrl+c"); time.Sleep(2 * time.Second) },
			"stopping · ", again},
		{"another key after ctrl+c", func(s *screen) { press(s, "ctrl+c", "left") }, "stopping · ", again},
		{"esc, then the end", func(s *screen) { press(s, "esc"); ends(s) }, "ready · ", "stopping"},
		{"ctrl+c, then the end", func(s *screen) { press(s, "ctrl+c"); ends(s) }, "ready · ", "stopping"},
		{"the next message", func(s *screen) { press(s, "esc"); ends(s); s.send("on"); s.runStarted("x") },
			"answering · ", "stopping"},
		{"a run that follows", func(s *screen) { press(s, "esc"); s.runStarted("x") }, "answering · ", "stopping"},
		{"a message that was not taken", func(s *screen) {
			ends(s)
			s.sent = []message{{run: "m"}}
			press(s, "esc")
			s.step(feed.Step{Kind: feed.RunEnded, Run: "m", End: feed.End{State: wire.StateAborted}})
		}, "ready · ", "stopping"},
		{"the gateway refuses", func(s *screen) { press(s, "esc"); s.handle(failed{errors.New("no such run")}) },
			"no such run", "stopping"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := alone(t)
				s.joined = false // so that no message is sent
				s.runStarted("r")
				tt.act(s)
				if got := ansi.Clean(s.footer()); !strings.HasPrefix(got, tt.begins) || strings.Contains(got, tt.never) {
					t.Errorf("the line is %q, want %q and not %q", got, tt.begins, tt.never)
				}
			})
		})
	}
}

func TestMenu(t *testing.T) {
	s := alone(t)
	s.commands = []wire.Command{
		{Name: "new", Aliases: []string{"/new"}}, {Name: "status", Aliases: []string{"/status", "/info"}},
		{Name: "think", AcceptsArgs: true, Description: "how\x1b[2J much"},
	}
	for i := range 7 {
		s.commands = append(s.commands, wire.Command{Name: "x" + strconv.Itoa(i)})
	}
	for _, tt := range []struct {
		input string
		keys  []string
		names string // names in the menu
		want  string // input
	}{
		{"/", nil, "new status think x0 x1 x2", "/"},
		{"/N", nil, "new", "/N"},
		{"/in", []string{"tab"}, "", "/status"},
		{"/th", []string{"tab"}, "", "/think "},
		{"/th", []string{"enter"}, "", "/think "},
		{"/think", []string{"enter"}, "", ""},
		{"/x", []string{"down", "down", "tab"}, "", "/x2"},
		{"/x", []string{"up", "up", "tab"}, "", "/x5"},
		{"/x", []string{"up"}, "x1 x2 x3 x4 x5 x6", "/x"},
		{"/x", []string{"up", "down", "tab"}, "", "/x0"},
		{"/x", []string{"down", "down", "down", "down"}, "x1 x2 x3 x4 x5 x6", "/x"},
		{"/x", []string{"esc", "tab"}, "", "/x"},
		{"/new ", nil, "", "/new "},
		{"new", nil, "", "new"},
		{"/none", []string{"tab"}, "", "/none"},
		{"/in", []string{"enter"}, "", ""},
		{"/in", []string{"enter", "up"}, "", "/status"}, // what was sent
		{"/new", []string{"enter", "up"}, "", "/new"},
	} {
		s.input.Reset()
		s.history = history{}
		s.edit(tea.PasteMsg{Content: tt.input})
		press(s, tt.keys...)
		var names []string
		for i, l := range s.menu.view(s.styles, 80) {
			name, selected := strings.CutPrefix(l, "› /")
			if selected != strings.HasPrefix(l, "› /"+s.menu.matches[s.menu.selected].Name) ||
				selected && !slices.Contains(tt.keys, "up") && tt.keys == nil && i != 0 {
				t.Errorf("%q %v: line %q", tt.input, tt.keys, l)
			}
			names = append(names, strings.Fields(strings.TrimPrefix(name, "  /"))[0])
		}
		if got := strings.Join(names, " "); got != tt.names || s.input.Value() != tt.want {
			t.Errorf("%q %v: menu %q, want %q; input %q, want %q", tt.input, tt.keys, got, tt.names, s.input.Value(), tt.want)
		}
	}
	s.input.Reset()
	s.edit(tea.PasteMsg{Content: "/t"})
	if got, want := strings.Join(s.menu.view(s.styles, 23), "\n"), "› /think        how…"; got != want {
		t.Errorf("menu %q, want %q", got, want)
	}
}

func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "history")
	h := openHistory(file)
	if _, ok := h.move(-1, ""); ok {
		t.Error("an empty history has a line")
	}
	for _, l := range []string{"a", "b\nc", "b\nc", "d"} {
		h.add(l)
	}
	moves := func(h *history, steps ...int) (got []string) {
		for _, step := range steps {
			l, ok := h.move(step, "draft")
			if !ok {
				l = "none"
			}
			got = append(got, l)
		}
		return got
	}
	want := []string{"d", "b\nc", "a", "none", "b\nc", "d", "draft", "none"}
	for name, h := range map[string]history{"the same": h, "a later one": openHistory(file)} {
		if got := moves(&h, -1, -1, -1, -1, 1, 1, 1, 1); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		moves(&h, -1, -1)
		h.reset() // the line was edited
		if got := moves(&h, -1); got[0] != "d" {
			t.Errorf("%s: after an edit: %q", name, got)
		}
		h.add("e")
		if got := moves(&h, -1, 1); got[0] != "e" || got[1] != "draft" {
			t.Errorf("%s: after another message: %q", name, got)
		}
	}
	lines := "not JSON\n"
	for i := range maxHistory + 1 {
		lines += strconv.Quote(strconv.Itoa(i)) + "\n"
	}
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := openHistory(file); len(h.lines) != maxHistory || h.lines[0] != "1" || h.pos != maxHistory {
		t.Errorf("%d lines, the first %q", len(h.lines), h.lines[0])
	}
	t.Run("lines before and after a very long one are kept", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "history")
		long := strings.Repeat("x", 3<<20)
		for h := openHistory(file); len(h.lines) < 3; {
			h.add([]string{"before", long, "after"}[len(h.lines)])
		}
		if h := openHistory(file); !slices.Equal(h.lines, []string{"before", long, "after"}) {
			t.Errorf("%d lines are left", len(h.lines))
		}
	})
	t.Run("a line that was not written whole does not take the next one with it", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(file, []byte("\"one\"\n\"tw"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := openHistory(file)
		h.add("three")
		if h := openHistory(file); !slices.Equal(h.lines, []string{"one", "three"}) {
			t.Errorf("lines %q", h.lines)
		}
	})
}

func TestCursorMovesBeforeHistory(t *testing.T) {
	s := alone(t)
	s.history.lines, s.history.pos = []string{"old"}, 1
	press(s, "a", "ctrl+j", "b", "up", "x")
	if got := s.input.Value(); got != "ax\nb" {
		t.Errorf("up in the second line: %q", got)
	}
	press(s, "down", "y")
	if got := s.input.Value(); got != "ax\nby" {
		t.Errorf("down in the first line: %q", got)
	}
	press(s, "down")
	if got := s.input.Value(); got != "ax\nby" {
		t.Errorf("down in the last line: %q", got)
	}
	press(s, "up", "up")
	if got := s.input.Value(); got != "old" {
		t.Errorf("up in the first line: %q", got)
	}
	press(s, "down", "z")
	if got := s.input.Value(); got != "ax\nbyz" {
		t.Errorf("back: %q", got)
	}
	press(s, "up", "up", "left", "w") // edits the old line
	if got := s.input.Value(); got != "olwd" {
		t.Errorf("an edited line: %q", got)
	}
	press(s, "up", "down")
	if got := s.input.Value(); got != "olwd" {
		t.Errorf("back to the edited line: %q", got)
	}
}

func TestLinesAroundTheInput(t *testing.T) {
	cost := 0.5
	for _, tt := range []struct {
		name           string
		set            func(s *screen)
		header, footer string
	}{
		{"a new session", func(s *screen) { s.model = wire.SessionModel{Provider: "p", Model: "m"} }, "── main · p/m ─",
			"ready · ctrl+o details · ctrl+c quit"},
		{"another agent", func(s *screen) { s.feed.Session = "agent:ops:x" }, "── agent:ops:x ─", "ready"},
		{"a session with a model of its own", func(s *screen) {
			s.model = wire.SessionModel{Provider: "p", Model: "m"}
			s.session = &wire.Session{
				Label:         "La\x1b[2Jbel",
				Provider:      "q",
				Model:         "n",
				TotalTokens:   1500,
				ContextWindow: 6000,
				Cost:          &cost,
			}
		}, "── Label · q/n ─", "ready · context 1.5k/6k (25%) · $0.5000 · ctrl+o"},
		{"a session with the default model", func(s *screen) {
			s.model = wire.SessionModel{Provider: "p", Model: "m"}
			s.session = &wire.Session{TotalTokens: 20, Cost: new(float64)}
		}, "── main · p/m ─", "ready · context 20 · ctrl+o"},
		{"an empty session", func(s *screen) { s.session = &wire.Session{ContextWindow: 6000, Cost: &cost} },
			"── main ─", "ready · ctrl+o"},
		{"subagents", func(s *screen) {
			for _, id := range []string{"a", "b", "c"} {
				s.subagentChanged(wire.Task{ID: id, Kind: "subagent", SessionKey: s.feed.Session})
			}
			s.subagentChanged(wire.Task{ID: "b", Kind: "subagent", SessionKey: s.feed.Session, EndedAt: 1})
			s.subagentChanged(wire.Task{ID: "d", Kind: "subagent", SessionKey: "agent:main:other"})
			s.subagentChanged(wire.Task{ID: "e", Kind: "command", SessionKey: s.feed.Session})
		}, "", "ready · 2 subagents at work · ctrl+o"},
		{"a run", func(s *screen) { s.active = "r" }, "", "answering · ctrl+o details · ctrl+c stop"},
		{"a message on its way", func(s *screen) { s.sent = []message{{}} }, "", "answering · ctrl+o details · ctrl+c stop"},
		{"a run that waits", func(s *screen) { s.active, s.suspended = "r", true }, "",
			"waiting for approval · ctrl+o details · ctrl+c stop"},
		{"a question of another session", func(s *screen) { s.asked = []wire.Approval{{}} }, "",
			"a question waits · ctrl+o details · ctrl+c quit"},
		{"no connection", func(s *screen) { s.active, s.lost = "r", true }, "", "disconnected · ctrl+o"},
		{"a note", func(s *screen) { s.lost, s.note = true, "note" }, "", "note"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := alone(t)
			tt.set(s)
			lines := strings.Split(ansi.Clean(s.draw().Content), "\n")
			i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "── ") })
			if !strings.HasPrefix(lines[i], tt.header) || ansi.Width(lines[i]) != maxRule {
				t.Errorf("header %q, want %q", lines[i], tt.header)
			}
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, tt.footer) {
				t.Errorf("footer %q, want %q", last, tt.footer)
			}
		})
	}
}

func TestQuit(t *testing.T) {
	s := alone(t)
	s.step(feed.Step{Kind: feed.RunStarted, Run: "r"})
	s.step(feed.Step{Kind: feed.Text, Run: "r", Text: "begin"})
	s.handle(failed{errors.New("no\x1b[2J such run")})
	if s.note != "no such run" {
		t.Errorf("note %q", s.note)
	}
	want := errors.New("the gateway refused")
	s.quit(want)
	if left, err := s.Left(); !left || !errors.Is(err, want) || strings.Join(s.scroll.lines, "\n") != "begin" {
		t.Errorf("quit %v, %v, printed %q", left, err, s.scroll.lines)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1540 * time.Millisecond:        "1.5s",
		10 * time.Second:               "10s",
		59900 * time.Millisecond:       "59s",
		time.Minute:                    "1m00s",
		61*time.Minute + 5*time.Second: "61m05s",
	} {
		if got := elapsed(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestToolOutput(t *testing.T) {
	s := alone(t)
	for _, tt := range []struct {
		in   string
		most int
		want string
	}{
		{"1\n2\n3\n4\n\n", 4, "1 2 3 4"}, {"1\n2\n3\n4\n5", 4, "1 2 … 2 lines … 5"},
		{"1\n2\n3\n4\n5\n6", 5, "1 2 … 2 lines … 5 6"},
		{" \n", 4, "(no output)"}, {"a\x1b[2Jb", 4, "ab"},
	} {
		got := strings.ReplaceAll(strings.TrimPrefix(s.output(tt.in, tt.most), "  │ "), "\n  │ ", " ")
		if got != tt.want {
			t.Errorf("%q in %d lines: %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
}

// TestTurn shows a run with every kind of step.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t)
		tool := func(id string) feed.Tool { return feed.Tool{ID: id, Label: "call\x1b[2J " + id} }
		ended := func(id, output string, failed bool) feed.Tool {
			c := tool(id)
			c.Output, c.Failed, c.Took = output, failed, 1500*time.Millisecond
			return c
		}
		shows := func(when string, want ...string) { // !text: not shown
			t.Helper()
			all := s.allText()
			for _, w := range want {
				text, not := strings.CutPrefix(w, "!")
				if strings.Contains(all, text) == not {
					t.Errorf("%s: %q\n%s", when, w, all)
				}
			}
		}
		steps := func(list ...feed.Step) {
			for _, st := range list {
				st.Run = "r"
				s.step(st)
			}
		}
		steps(feed.Step{Kind: feed.RunStarted}, feed.Step{Kind: feed.Thinking, Text: "why "},
			feed.Step{Kind: feed.Thinking, Text: "why \x1b[2Jnot"})
		time.Sleep(2 * time.Second)
		shows("thinking", "✻ thinking  2.0s  why not", "working  2.0s  esc to stop")
		steps(feed.Step{Kind: feed.Text, Text: "I look\n\nand"})
		shows("text", "I look\n", "and", "!thinking", "!why not")
		steps(feed.Step{Kind: feed.Text, Text: "I look\n\nand see"}, feed.Step{Kind: feed.TextEnded},
			feed.Step{Kind: feed.ToolStarted, Tool: tool("a")}, feed.Step{Kind: feed.ToolStarted, Tool: tool("b")})
		time.Sleep(3 * time.Second)
		shows("tools", "and see\n", " call a  3.0s", " call b  3.0s", "!restarted", "working  5.0s")
		steps(feed.Step{Kind: feed.ToolOutput, Tool: tool("b"), Text: "out\x1b[2Jput\n"})
		shows("folded output", "!output")
		press(s, "ctrl+o")
		shows("shown output", "  │ output", "tool output is shown")
		steps(feed.Step{Kind: feed.ToolEnded, Tool: ended("b", "all output", false)})
		shows("the second call ended first", "✓ call b  1.5s\n", " call a")
		steps(feed.Step{Kind: feed.Suspended})
		shows("suspended", "? call a", "!working")
		steps(feed.Step{Kind: feed.RunStarted})
		shows("resumed", "working  5.0s", "!? call a")
		steps(feed.Step{Kind: feed.ToolEnded, Tool: ended("a", `{"error": "no\u001b[2J a\nb"}`, true)},
			feed.Step{Kind: feed.ToolEnded, Tool: ended("c", "unseen", false)})
		shows("ended", "✗ call a: no a b  1.5s\n", "  │ all output", "✓ call c  1.5s\n  │ unseen")
		press(s, "ctrl+o")
		steps(feed.Step{Kind: feed.ToolEnded, Tool: ended("d", "later", false)},
			feed.Step{Kind: feed.Notice, Text: " a no\x1b[2Jtice\n"})
		shows("hidden", "✓ call d", "!later", "tool output is hidden", "\na notice\n")
		press(s, "ctrl+o", "ctrl+o", "ctrl+o")
		if n := strings.Count(s.allText(), "  │ later"); n != 1 {
			t.Errorf("output shown %d times", n)
		}
		steps(feed.Step{Kind: feed.Thinking, Text: "a second thought"}, feed.Step{Kind: feed.ToolStarted, Tool: tool("e")},
			feed.Step{Kind: feed.Text, Text: "So "},
			feed.Step{Kind: feed.RunEnded, End: feed.End{State: wire.StateAborted, Footer: "12 tok\x1b[2Jens"}})
		press(s, "left")
		shows("stopped", "\na second thought\n", "■ call e\n", "\nSo\n", "\n\n■ stopped\n12 tokens\n", "ready",
			"!working", "!thinking")
		steps(feed.Step{Kind: feed.RunStarted}, feed.Step{Kind: feed.Text, Text: "old"},
			feed.Step{Kind: feed.Text, Text: "old\n\nand\n\nmore"}, feed.Step{Kind: feed.Text, Text: "other"})
		shows("restarted", "the answer was restarted\n", "other")
	})
}

func TestRunEnded(t *testing.T) {
	question := wire.Approval{ID: "q",
		Request: wire.ApprovalRequest{Tool: "exec", Command: "make", SessionKey: own, RunID: "r"}}
	for _, tt := range []struct {
		name   string
		before []feed.Step
		run    string
		end    feed.End
		want   string
	}{
		{"an answer that was not streamed", nil, "r", feed.End{State: wire.StateFinal, Text: "all"}, "all"},
		{"an answer that is on the screen", []feed.Step{{Kind: feed.Text, Text: "all"}, {Kind: feed.TextEnded}}, "r",
			feed.End{State: wire.StateFinal, Text: "all"}, "all"},
		{"an answer that grew", []feed.Step{{Kind: feed.Text, Text: "al"}}, "r",
			feed.End{State: wire.StateFinal, Text: "all"}, "all"},
		{"an answer after another message", []feed.Step{{Kind: feed.Text, Text: "I look"}, {Kind: feed.TextEnded}}, "r",
			feed.End{State: wire.StateFinal, Text: "all"}, "I look\n\nall"},
		{"a stopped run", nil, "r", feed.End{State: wire.StateAborted, Text: "none"}, "■ stopped"},
		{"a run that was replaced while it waited", []feed.Step{{Kind: feed.Text, Text: "I wait"}, {Kind: feed.TextEnded}},
			"r", feed.End{State: wire.StateAborted, Stop: wire.StopSuperseded}, "I wait"},
		{"a run that was replaced while it wrote", []feed.Step{{Kind: feed.RunStarted}, {Kind: feed.Text, Text: "I wr"}}, "r",
			feed.End{State: wire.StateAborted, Stop: wire.StopSuperseded}, "I wr\n\n■ replaced by the next message"},
		{"a run that was replaced while its call waited for an approval",
			[]feed.Step{{Kind: feed.ToolStarted, Tool: feed.Tool{ID: "t", Label: "exec make"}}, {Kind: feed.Suspended},
				{Kind: feed.ApprovalRequested, Approval: question}, {Kind: feed.RunStarted}}, "r",
			feed.End{State: wire.StateAborted, Stop: wire.StopSuperseded},
			"? exec needs approval\n┃ make\n\n? exec make\n\nthe next message is answered first; the question stays open"},
		{"a run that was replaced during a call",
			[]feed.Step{{Kind: feed.ToolStarted, Tool: feed.Tool{ID: "t", Label: "exec make"}}, {Kind: feed.RunStarted}}, "r",
			feed.End{State: wire.StateAborted, Stop: wire.StopSuperseded}, "■ exec make\n\n■ replaced by the next message"},
		{"the answer of a command during a call",
			[]feed.Step{{Kind: feed.ToolStarted, Tool: feed.Tool{ID: "t", Label: "exec make"}}, {Kind: feed.RunStarted}}, "x",
			feed.End{State: wire.StateFinal, Text: "ok"}, "ok"},
		{"the answer of a command during an answer", []feed.Step{{Kind: feed.RunStarted}, {Kind: feed.Text, Text: "I wr"}},
			"x", feed.End{State: wire.StateFinal, Text: "ok"}, "ok"},
		{"a failed run", nil, "r", feed.End{State: wire.StateError, Error: "no\x1b[2J quota", Model: "p/m"},
			"✗ p/m: no quota\n  the failed message is not run again: /retry sends it, /model chooses a model"},
		{"an error that names its model", nil, "r", feed.End{State: wire.StateError, Error: "p/m has no quota", Model: "p/m"},
			"✗ p/m has no quota\n  the failed message is not run again: /retry sends it, /model chooses a model"},
		{"an error without a model", nil, "r", feed.End{State: wire.StateError, Error: "no quota"},
			"✗ no quota\n  the failed message is not run again: /retry sends it, /model chooses a model"},
		{"a limit", nil, "r", feed.End{State: wire.StateError, Error: "limit", Stop: wire.StopLimit}, "✗ limit"},
		{"a message that was merged into the run", nil, "x", feed.End{State: wire.StateFinal}, ""},
		{"an error of another run", nil, "x", feed.End{State: wire.StateError, Error: "no"},
			"✗ no\n  the failed message is not run again: /retry sends it, /model chooses a model"},
		{"the answer of a command during the run", nil, "x", feed.End{State: wire.StateFinal, Text: "ok"}, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := alone(t)
			s.sent = []message{{run: "other"}, {run: "r"}}
			s.step(feed.Step{Kind: feed.RunStarted, Run: "r"})
			s.sent = append(s.sent, message{run: tt.run})
			s.suspended = true
			for _, st := range tt.before {
				st.Run = "r"
				s.step(st)
			}
			s.step(feed.Step{Kind: feed.RunEnded, Run: tt.run, End: tt.end})
			if got := strings.Join(s.scroll.lines, "\n"); got != tt.want {
				t.Errorf("printed %q, want %q", got, tt.want)
			}
			if len(s.sent) != 1 || s.sent[0].run != "other" {
				t.Errorf("left to send: %+v", s.sent)
			}
			if ended := s.active == ""; ended != (tt.run == "r") || ended && (s.lastText != "" || s.suspended) {
				t.Errorf("the run has ended: %v; last text %q", ended, s.lastText)
			}
		})
	}
}

func TestSend(t *testing.T) {
	s := alone(t)
	runs := func() (runs []string) {
		for _, m := range s.sent {
			runs = append(runs, m.text)
		}
		return runs
	}
	s.joined = false
	if s.send("a") != nil {
		t.Error("sent before the history was loaded")
	}
	s.joined, s.lost = true, true
	if s.transmit() != nil {
		t.Error("sent without a connection")
	}
	s.lost = false
	if s.transmit() == nil || s.transmit() != nil || s.send("b") != nil {
		t.Error("not sent one after the other")
	}
	a, b := s.sent[0].run, s.sent[1].run
	if !s.feed.Owns(a) || !s.feed.Owns(b) || a == b {
		t.Error("own messages are not known")
	}
	if s.handle(sent{run: a}) == nil || !s.sent[0].taken || s.sent[1].taken {
		t.Errorf("after the first message was accepted: %+v", s.sent)
	}
	if s.handle(sent{run: b, err: errors.New("closed")}) != nil || !slices.Equal(runs(), []string{"a", "b"}) {
		t.Errorf("after the client was closed: %q", runs())
	}
	if s.transmit() == nil {
		t.Error("the second message is not sent again")
	}
	if s.handle(sent{run: b, err: &wire.Error{Message: "too\x1b[2J long"}}) != nil ||
		!slices.Equal(runs(), []string{"a"}) {
		t.Errorf("after the second message was refused: %q", runs())
	}
	s.step(feed.Step{Kind: feed.RunStarted, Run: a})
	if len(s.sent) != 0 {
		t.Errorf("after the run began: %q", runs())
	}
	s.sending = true // so that nothing is sent
	s.startedAt = time.Time{}
	if s.send("c"); !s.startedAt.IsZero() {
		t.Error("a message during a run restarted its clock")
	}
	s.sent, s.sending = nil, false
	if s.send("/image none.png") != nil || len(s.sent) != 0 {
		t.Errorf("after a picture that is not there: %q", runs())
	}
	s.userMessage(strings.Repeat("wi\x1b[2Jde ", 30))
	want := "❯ a\n\n❯ b\n\n✗ not sent: too long\n\n❯ c\n\n✗ not sent: picture none.png: no such file\n\n❯ " +
		strings.Repeat("wide ", 14) + "wide\n  " + strings.Repeat("wide ", 14) + "wide "
	if d := cmp.Diff(want, strings.Join(s.scroll.lines, "\n")); d != "" {
		t.Errorf("printed (-want +got)\n%s", d)
	}
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t)
		shows := func(want string) {
			t.Helper()
			lines := strings.Split(s.draw().Content, "\n")
			if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, s.spinner()) }); i < 0 ||
				lines[i] != s.spinner()+" "+want {
				t.Errorf("want %q\n%s", want, strings.Join(lines, "\n"))
			}
		}
		time.Sleep(time.Hour)
		s.send("a")
		time.Sleep(time.Second)
		s.send("b")
		shows("waiting  1.0s  esc to stop")
		s.step(feed.Step{Kind: feed.RunStarted, Run: s.sent[0].run})
		time.Sleep(2 * time.Second)
		shows("working  2.0s  esc to stop  1 queued")
		s.step(feed.Step{Kind: feed.RunStarted, Run: s.active}) // resumed
		s.handle(events{list: []wire.Event{{Name: client.EventLost}}})
		shows("connecting  2.0s  esc to stop  1 queued")
		if s.tick() == nil || s.tick() != nil {
			t.Error("not one tick at a time")
		}
		s.handle(tickMsg{})
		if s.frame != 1 || s.tick() == nil {
			t.Errorf("frame %d after a tick", s.frame)
		}
		s.ticking, s.suspended = false, true
		if s.tick() != nil {
			t.Error("a tick while the run waits")
		}
	})
}

func TestCursor(t *testing.T) {
	s := alone(t)
	s.commands = []wire.Command{{Name: "a"}, {Name: "b"}}
	at := func(when string) {
		t.Helper()
		v := s.draw()
		line := strings.Split(v.Content, "\n")[v.Cursor.Y]
		if want := "  |"; !strings.HasPrefix(line+"|", want) && !strings.HasPrefix(line, "› ") &&
			!strings.HasPrefix(line, "  end") {
			t.Errorf("%s: the cursor is in line %q of\n%s", when, line, v.Content)
		}
	}
	at("empty")
	press(s, "/")
	at("menu")
	press(s, "esc")
	s.ask(approval("a", own))
	at("question")
	s.step(feed.Step{Kind: feed.RunStarted, Run: "r"})
	s.step(feed.Step{Kind: feed.ToolStarted, Run: "r", Tool: feed.Tool{ID: "c", Label: "call"}})
	at("a run")
	s.input.SetValue("begin\nend")
	at("two lines")
}

// message returns a stored message.
func stored(seq int64, role, run, text string, more ...wire.Content) wire.Message {
	m := wire.Message{Role: role, Content: append(wire.TextContent(text), more...),
		Meta: wire.MessageMeta{Seq: seq, RunID: run}}
	if role == wire.RoleUser {
		m.IdempotencyKey = run + ":user"
	}
	return m
}

func TestShowHistory(t *testing.T) {
	call := wire.Content{Type: wire.ContentCall, ID: "c", Name: "read", Arguments: []byte(`{"path": "a.go"}`)}
	open := wire.Content{Type: wire.ContentCall, ID: "d", Name: "read", Arguments: []byte(`{"path": "b.go"}`)}
	result := stored(3, wire.RoleToolResult, "r", `{"error": "gone"}`)
	result.ToolCallID, result.IsError = "c", true
	turn := []wire.Message{stored(1, wire.RoleUser, "r", "he\x1b[2Jllo"),
		stored(2, wire.RoleAssistant, "r", "I **look**", call, open), result}
	command := []wire.Message{stored(2, wire.RoleUser, "c", "/x"), stored(2, wire.RoleAssistant, "", "an answer")}
	for _, tt := range []struct {
		name    string
		before  func(s *screen)
		history wire.History
		printed string
		drawn   string // in the drawing
		active  string
	}{
		{"a turn", nil, wire.History{SessionID: "s", Messages: append(turn[:3:3], stored(4, wire.RoleAssistant, "r", "So"),
			stored(5, wire.RoleSystem, "", "a notice"))},
			"❯ hello\n\nI look\n\n✗ read a.go: gone\n\nSo\n\na notice", "ready", ""},
		{"earlier messages", nil, wire.History{SessionID: "s", HasMore: true, NextOffset: 7, Messages: turn[:1]},
			"… 7 earlier entries\n\n❯ hello", "ready", ""},
		{"what is on the screen already", func(s *screen) { s.feed.Seq = 1 }, wire.History{SessionID: "s", HasMore: true,
			NextOffset: 7, Messages: turn}, "I look\n\n✗ read a.go: gone", "ready", ""},
		{"another transcript", func(s *screen) { s.feed.ID, s.feed.Seq = "old", 9 },
			wire.History{SessionID: "s", Messages: turn[:1]}, "❯ hello", "ready", ""},
		{"a command and its answer", nil, wire.History{SessionID: "s", Messages: command}, "❯ /x\n\nan answer", "ready", ""},
		{"an own command", func(s *screen) { s.feed.Own("c") },
			wire.History{SessionID: "s", Messages: append(command[:2:2], stored(3, wire.RoleAssistant, "q", "next"))},
			"next", "ready", ""},
		{"a command that is on the screen already", func(s *screen) { s.feed.Seq = 2 },
			wire.History{SessionID: "s", Messages: command}, "", "", ""},
		{"an own message", func(s *screen) { s.feed.Own("r"); s.sent = []message{{run: "x"}, {run: "r"}} },
			wire.History{SessionID: "s", Messages: turn[:1]}, "", "", ""},
		{"a run in progress", func(s *screen) { s.active, s.suspended = "old", true },
			wire.History{SessionID: "s", Messages: turn[:1],
				InFlight: &wire.InFlight{RunID: "r", Text: "I begin\n\nto", Seq: 7}},
			"❯ hello\n\nI begin", "\nto\n", "r"},
		{"a run in progress without text", nil, wire.History{SessionID: "s", Messages: turn[:1],
			InFlight: &wire.InFlight{RunID: "r"}}, "❯ hello", "answering", "r"},
		{"a run in progress whose text is stored", nil, wire.History{SessionID: "s", Messages: turn[:2],
			InFlight: &wire.InFlight{RunID: "r", Text: "I **look**"}}, "❯ hello\n\nI look", "answering", "r"},
		{"the rest of a message that was interrupted", func(s *screen) {
			s.feed.Seq = 1
			s.step(feed.Step{Kind: feed.RunStarted, Run: "r"})
			s.step(feed.Step{Kind: feed.Text, Run: "r", Text: "So\n\nit"})
		}, wire.History{SessionID: "s", Messages: []wire.Message{turn[0], stored(2, wire.RoleAssistant, "r", "So\n\nit is"),
			stored(3, wire.RoleAssistant, "q", "next")}}, "So\n\nit is\n\nnext", "ready", ""},
		{"the rest of a message that is in progress", func(s *screen) {
			s.feed.Seq = 1
			s.step(feed.Step{Kind: feed.RunStarted, Run: "r"})
			s.step(feed.Step{Kind: feed.Text, Run: "r", Text: "So\n\nit"})
		}, wire.History{SessionID: "s", Messages: turn[:1], InFlight: &wire.InFlight{RunID: "r", Text: "So\n\nit is",
			Seq: 9}}, "So", "\nit is\n", "r"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := alone(t)
			if tt.before != nil {
				tt.before(s)
			}
			tt.history.Defaults, tt.history.Info = &wire.SessionModel{Provider: "p", Model: "m"}, &wire.Session{Label: "label"}
			s.showHistory(tt.history)
			if d := cmp.Diff(tt.printed, strings.Join(s.scroll.lines, "\n")); d != "" {
				t.Errorf("printed (-want +got)\n%s", d)
			}
			if v := s.draw().Content; !strings.Contains(v, tt.drawn) || !strings.Contains(v, "label · p/m") ||
				s.active != tt.active || s.suspended {
				t.Errorf("active %q, drawn\n%s", s.active, v)
			}
			if last := tt.history.Messages[len(tt.history.Messages)-1].Meta.Seq; s.feed.Seq != last || s.feed.ID != "s" {
				t.Errorf("shown up to %d of %s, want %d", s.feed.Seq, s.feed.ID, last)
			}
			if len(s.sent) > 0 && (len(s.sent) != 1 || s.sent[0].run != "x") {
				t.Errorf("left to send: %+v", s.sent)
			}
		})
	}
	t.Run("a command with the same answer follows", func(t *testing.T) {
		s := alone(t)
		s.showHistory(wire.History{SessionID: "s", Messages: command})
		s.step(feed.Step{Kind: feed.Text, Run: "d", Text: "an answer"})
		s.step(feed.Step{Kind: feed.TextEnded, Run: "d"})
		if got := strings.Join(s.scroll.lines, "\n"); got != "❯ /x\n\nan answer\n\nan answer" {
			t.Errorf("%q", got)
		}
	})
	t.Run("late events", func(t *testing.T) {
		s := alone(t)
		s.showHistory(wire.History{SessionID: "s", Messages: append(turn[:3:3], stored(4, wire.RoleAssistant, "r", "So")),
			InFlight: &wire.InFlight{RunID: "q", Text: "Now", Seq: 5}})
		late := func(run string, seq int64, text string) wire.Event {
			b, err := wire.Encode(wire.Chat{
				RunID:      run,
				SessionKey: own,
				Seq:        seq,
				State:      wire.StateDelta,
				Message:    &wire.Message{Content: wire.TextContent(text)},
			})
			if err != nil {
				t.Fatal(err)
			}
			return wire.Event{Name: wire.EventChat, Payload: b}
		}
		for _, e := range []wire.Event{late("r", 9, "late"), late("q", 5, "late"), late("q", 6, "Now it is")} {
			for _, st := range s.feed.Steps(e) {
				s.step(st)
			}
		}
		if all := s.allText(); strings.Contains(all, "late") || !strings.Contains(all, "\nNow it is\n") {
			t.Errorf("shown\n%s", all)
		}
	})
}

func TestConnection(t *testing.T) {
	s := alone(t)
	outage := func(o client.Outage) events {
		b, err := wire.Encode(o)
		if err != nil {
			t.Fatal(err)
		}
		return events{list: []wire.Event{{Name: client.EventLost, Payload: b}}}
	}
	s.handle(outage(client.Outage{Reason: "first"}))
	if !s.lost || s.note != "" {
		t.Errorf("lost %v, note %q", s.lost, s.note)
	}
	s.handle(outage(client.Outage{Reason: "re\x1b[2Jfused", Attempt: 1}))
	if s.note != "refused" {
		t.Errorf("note %q", s.note)
	}
	s.handle(events{list: []wire.Event{{Name: client.EventResumed}}})
	s.handle(events{list: []wire.Event{{Name: client.EventResumed}}})
	if got := strings.Join(s.scroll.lines, "\n"); s.lost || s.note != "" ||
		got != "connection lost; reconnecting\nreconnected" {
		t.Errorf("lost %v, note %q, printed %q", s.lost, s.note, got)
	}
}
