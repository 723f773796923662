package tui

import (
	"context"
	"slices"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// screen is the model of the terminal user interface. Only the goroutine of the program uses it,
// in Init, Update and View; commands run on other goroutines and return messages.
type screen struct {
	o      Options
	ctx    context.Context // for calls
	client *client.Client
	feed   *feed.Feed
	styles ansi.Palette
	failed error // error that ended the screen

	width, height int

	scroll    scroll
	canvas    canvas
	view      tea.View          // what the canvas shows
	live      []*item           // items that are not printed yet, in order
	active    string            // run in progress
	startedAt time.Time         // start of the run in progress
	suspended bool              // the run waits for an approval
	sent      []message         // messages that no run has accepted yet
	lastText  string            // last complete message of the run
	detail    bool              // tool output is shown
	folded    []feed.Tool       // tool calls of this turn whose output was not shown
	plan      wire.Plan         // open plan of the session; without steps: there is none
	subagents map[string]bool   // open subagents of the session, by task
	session   *wire.Session     // nil: not known yet
	model     wire.SessionModel // model of a session that does not exist yet

	asked []wire.Approval // pending approvals
	told  map[string]bool // approvals that were printed, by id
	turning

	input    textarea.Model
	history  history
	menu     menu
	commands []wire.Command

	joined        bool      // the history is loaded
	lost          bool      // the connection is lost
	ticking       bool      // a tick is scheduled
	frame         int       // frame of the spinner
	interruptedAt time.Time // time of the last ctrl+c
	stopping      bool      // the end of what is in progress was asked for
	note          string    // temporary line below the input
	quitting      bool
	sending       bool // a message is being sent
}

// message is a message sent from this screen.
type message struct {
	run, text string
	files     []wire.Attachment
	taken     bool // accepted by the gateway
}

func newScreen(ctx context.Context, o Options) *screen {
	s := &screen{
		o: o, ctx: ctx, client: o.Client, feed: feed.New(o.Session), styles: o.Styles, width: 80, height: 24,
		input: newInput(o.Styles), history: openHistory(o.History), subagents: map[string]bool{}, told: map[string]bool{},
	}
	s.canvas.out, s.canvas.reflows = o.Out, o.Getenv == nil || reflows(o.Getenv)
	if w, h, ok := size(o.Out); ok {
		s.resize(w, h)
	}
	for _, l := range o.Lines {
		s.scroll.add(bare, l)
	}
	s.show()
	return s
}

// Init starts to follow the session.
func (s *screen) Init() tea.Cmd {
	return tea.Batch(s.input.Focus(), s.attach())
}

// Update handles a message.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmds := []tea.Cmd{s.handle(msg)}
	if s.show(); s.quitting || s.canvas.err != nil {
		return s, tea.Quit
	}
	cmds = append(cmds, s.tick())
	return s, tea.Batch(slices.DeleteFunc(cmds, func(c tea.Cmd) bool { return c == nil })...)
}

// show prints the queued lines and draws what still changes.
func (s *screen) show() {
	if w, h, ok := size(s.o.Out); ok && (w != s.canvas.width || h != s.canvas.height) {
		s.resize(w, h) // its message is on the way
	}
	lines := s.scroll.take(s.width)
	s.view = s.draw()
	s.canvas.show(lines, s.view)
}

func (s *screen) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return s.key(msg)
	case tea.PasteMsg:
		s.turning = turning{}
		cmd := s.edit(tea.PasteMsg{Content: pasted(msg.Content)})
		s.menu.close() // Enter sends what was pasted as it is
		return cmd
	case tickMsg:
		s.ticking = false
		s.frame++
	case attached:
		return s.join(msg)
	case events:
		return s.handleEvents(msg)
	case sent:
		return s.sendResult(msg)
	case resolved:
		s.resolveResult(msg)
	case failed:
		s.stopping = false
		s.note = ansi.Line(msg.err.Error())
	default:
		return s.edit(msg)
	}
	return nil
}

func (s *screen) resize(width, height int) {
	if width == 0 || height == 0 {
		return // it is not known
	}
	s.width, s.height = max(width, 4), max(height, 3)
	s.canvas.resize(s.width, s.height)
	s.input.MaxHeight = max(min(8, s.height/4), 1)
	s.input.SetWidth(s.width)
	for _, it := range s.live {
		it.stale = true
	}
}

// columns returns the width of printed text. It is limited, because long lines
// are hard to read.
func (s *screen) columns() int { return min(s.width, 110) }

// room returns how many lines of the screen are left to printed text.
func (s *screen) room() int { return max(s.height/3, 1) }

// busy reports whether an answer is expected.
func (s *screen) busy() bool {
	return s.active != "" && !s.suspended || len(s.sent) > 0 && s.active == ""
}

// inProgress reports whether there is a run or message to stop.
func (s *screen) inProgress() bool { return s.active != "" || len(s.sent) > 0 }

// quit ends the screen.
func (s *screen) quit(err error) tea.Cmd {
	s.quitting, s.failed = true, err
	s.finish()
	return nil
}
