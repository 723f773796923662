package tui

import (
	"context"
	"slices"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// screen is the state of the terminal.
type screen struct {
	o      Options
	ctx    context.Context // of the calls that the screen makes
	client *client.Client
	feed   *feed.Feed
	styles ansi.Palette
	failed error // why the screen was left

	width, height int

	scroll  scroll
	drawing drawing
	live    []*item           // what is not printed yet, in order
	active  string            // run in progress
	since   time.Time         // when it began
	waits   bool              // it waits for a decision
	sent    []message         // own messages that no run has taken yet
	last    string            // text of the last complete message of the run
	detail  bool              // output of tools is shown
	folded  []feed.Tool       // of this turn, whose output was not shown
	session *wire.Session     // nil: not known yet
	model   wire.SessionModel // of a session that does not exist yet
	id      string            // session id that the scrollback shows

	asked  []wire.Approval
	pinged time.Time // when the question was shown

	input    textarea.Model
	history  history
	menu     menu
	commands []wire.Command

	joined  bool // the history is there
	lost    bool // the connection
	spins   bool // a tick is on its way
	frame   int  // of the spinner
	typed   time.Time
	stopped time.Time // of the last ctrl+c
	note    string    // short-lived line below the input
	leaving bool
	sending bool // an own message is on its way
}

// message is a message of this screen's person.
type message struct {
	run, text string
	files     []wire.Attachment
	taken     bool // the gateway has it
}

func newScreen(ctx context.Context, o Options) *screen {
	s := &screen{
		o: o, ctx: ctx, client: o.Client, feed: feed.New(o.Session), styles: o.Styles, width: 80, height: 24,
		input: newInput(o.Styles), history: openHistory(o.History),
	}
	s.scroll.busy = true // until the screen is drawn
	for _, l := range o.Lines {
		s.scroll.add(bare, l)
	}
	s.drawing.give(s.draw(), s.height-s.room())
	return s
}

// Init begins to follow the session.
func (s *screen) Init() tea.Cmd {
	return tea.Batch(s.input.Focus(), s.attach())
}

// Update takes a message.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmds := []tea.Cmd{s.handle(msg)}
	cmds = append(cmds, s.drawing.give(s.draw(), s.height-s.room()))
	if s.leaving && s.scroll.empty() && s.drawing.still() {
		return s, tea.Sequence(append(cmds, tea.Quit)...)
	}
	cmds = append(cmds, s.scroll.flush(s.room(), s.width), s.spin())
	return s, tea.Batch(slices.DeleteFunc(cmds, func(c tea.Cmd) bool { return c == nil })...)
}

func (s *screen) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return s.key(msg)
	case tea.PasteMsg:
		return s.edit(tea.PasteMsg{Content: ansi.Clean(msg.Content)})
	case drawn:
		s.scroll.busy = false
	case printed:
		s.scroll.busy = false
		s.drawing.printed()
	case settled:
		s.drawing.settle()
	case tick:
		s.spins = false
		s.frame++
	case attached:
		return s.join(msg)
	case events:
		return s.events(msg)
	case sent:
		return s.settle(msg)
	case resolved:
		s.decided(msg)
	case failed:
		s.note = ansi.Line(msg.err.Error())
	default:
		return s.edit(msg)
	}
	return nil
}

func (s *screen) resize(width, height int) {
	s.width, s.height = max(width, 4), max(height, 3)
	s.input.MaxHeight = max(min(8, s.height/4), 1)
	s.input.SetWidth(s.width)
	for _, it := range s.live {
		it.stale = true
	}
}

// columns is the width of what is shown: lines that are too long are hard to
// read.
func (s *screen) columns() int { return min(s.width, 110) }

// room is how many lines may be printed at once. The rest of the screen is for
// what is drawn again: both together never exceed it, since then the drawing
// would get into the scrollback.
func (s *screen) room() int { return max(s.height/3, 1) }

// busy reports whether an answer is awaited.
func (s *screen) busy() bool { return s.active != "" && !s.waits || len(s.sent) > 0 && s.active == "" }

// turn reports whether there is something to stop.
func (s *screen) turn() bool { return s.active != "" || len(s.sent) > 0 }

// leave ends the screen when everything is printed.
func (s *screen) leave(err error) tea.Cmd {
	s.leaving, s.failed = true, err
	s.finish()
	return nil
}
