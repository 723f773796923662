package agent

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// ErrEmpty says that the model answered twice with neither text nor calls.
var ErrEmpty = chela.Errorf(chela.CodeUnavailable, "the model answered with nothing")

// maxCut is the number of cut answers in a row, with tool calls, after which a run ends.
const maxCut = 3

// cutOff returns the error of a model that was cut off too often. It got another request
// after each of its calls.
func cutOff(why llm.StopReason) error {
	if why == llm.StopRefusal {
		return chela.Errorf(chela.CodeUnavailable,
			"the service of the model ended its answer %d times in a row because of its content, so no tool was run; say it in other words", maxCut)
	}
	return chela.Errorf(chela.CodeUnavailable,
		"the model reached its output limit %d times in a row before its tool calls were complete; ask for smaller steps, or raise maxTokens of the model", maxCut)
}

// noText returns the error of an answer that was cut before it had any text.
func noText(why llm.StopReason) error {
	if why == llm.StopRefusal {
		return chela.Errorf(chela.CodeUnavailable, "the service of the model refused to answer")
	}
	return chela.Errorf(chela.CodeUnavailable,
		"the model reached its output limit before it answered; choose a lower thinking level, or raise maxTokens of the model")
}

// errNoAnswer says that a stream ended with neither a message nor an error, which
// violates its contract.
var errNoAnswer = chela.Errorf(chela.CodeUnavailable, "the model's stream ended without an answer")

// Run executes a request. The loop runs on the caller's goroutine; only tools have
// their own. When ctx ends, the run ends with reason [Aborted]: running tools are
// cancelled, and Run waits for them for at most five seconds. Breaking out of the
// range loop does the same without further events.
func Run(ctx context.Context, r *Request) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		l := &loop{
			req: r, yield: yield, cancel: cancel, msgs: slices.Clone(r.Prompt.Messages),
			rounds: r.EarlierRounds, calls: r.EarlierCalls,
		}
		l.closing = l.atLimit()
		l.emit(l.run(ctx))
	}
}

// loop is the state of one Run.
type loop struct {
	req    *Request
	yield  func(Event) bool
	cancel context.CancelFunc
	left   bool // the caller broke out of the range loop; yield must not be called again

	msgs    []*llm.Message // messages of the next model call
	round   int            // model calls so far
	rounds  int            // rounds of tool calls so far, including earlier ones
	calls   int            // calls executed so far, including earlier ones
	closing bool           // a limit is reached: the next model call is the last
	cut     int            // answers in a row that the service cut, with calls
	yielded bool           // a call asked to wait for the children of the run

	specs    []llm.ToolSpec // all tools; nil: not requested yet
	current  []llm.ToolSpec // tools of the present model call
	readOnly bool           // current contains only tools that read
}

// emit yields e to the caller. If the caller breaks out of its loop, everything is
// cancelled and the loop ends as if it had been aborted.
func (l *loop) emit(e *Event) {
	if l.left {
		return
	}
	e.Round = l.round
	if !l.yield(*e) {
		l.left = true
		l.cancel()
	}
}

// run returns the End event.
func (l *loop) run(ctx context.Context) *Event {
	switch open := l.req.Open; {
	case len(open) == 0:
	case l.lastStop().Cut():
		l.refuse(open, l.lastStop())
	default:
		if end := l.execute(ctx, l.req.Open, noSteering); end != nil {
			return end
		}
	}
	for {
		if end := l.steer(ctx); end != nil {
			return end
		}
		if end := l.fit(ctx); end != nil {
			return end
		}
		m, end := l.ask(ctx)
		if end != nil {
			return end
		}
		calls := m.Calls()
		switch {
		case len(calls) == 0:
			return &Event{Kind: End, Reason: Done}
		case l.req.Tools == nil:
			return l.close(m, calls, NoToolsText)
		case l.closing:
			return l.close(m, calls, OverLimitText)
		case m.Stop.Cut():
			if l.refuse(calls, m.Stop); l.cut >= maxCut {
				return failed(cutOff(m.Stop))
			}
			continue
		}
		l.cut = 0
		if end := l.execute(ctx, calls, l.steering); end != nil {
			return end
		}
	}
}

// refuse answers the calls of a message that was cut. None of them is executed: what
// the model meant is not known.
func (l *loop) refuse(calls []llm.ToolCall, why llm.StopReason) {
	text := CutText
	if why == llm.StopRefusal {
		text = RefusedText
	}
	l.skip(calls, text)
	l.cut++
	l.rounds++
	l.closing = l.atLimit()
}

// lastStop returns the stop reason of the last answer.
func (l *loop) lastStop() llm.StopReason {
	for _, m := range slices.Backward(l.msgs) {
		if m.Role == llm.RoleAssistant {
			return m.Stop
		}
	}
	return ""
}

// close ends a run whose model requests tools although it got none.
func (l *loop) close(m *llm.Message, calls []llm.ToolCall, why string) *Event {
	l.skip(calls, why)
	if strings.TrimSpace(m.PlainText()) == "" {
		return failed(ErrEmpty)
	}
	return &Event{Kind: End, Reason: Done}
}

// steer adds the messages that arrived to the run.
func (l *loop) steer(ctx context.Context) *Event {
	ms, end := l.steering(ctx)
	if end == nil {
		l.take(ms)
	}
	return end
}

// steering returns the messages that arrived.
func (l *loop) steering(ctx context.Context) ([]*llm.Message, *Event) {
	if ctx.Err() != nil {
		return nil, aborted(ctx)
	}
	if l.req.Steer == nil {
		return nil, nil
	}
	ms, err := l.req.Steer(ctx)
	switch {
	case err == nil:
		return ms, nil
	case ctx.Err() != nil:
		return nil, aborted(ctx)
	}
	return nil, failed(err)
}

// noSteering replaces steering for open calls. They precede the messages that may
// have arrived since, so that these do not cancel them.
func noSteering(ctx context.Context) ([]*llm.Message, *Event) {
	if ctx.Err() != nil {
		return nil, aborted(ctx)
	}
	return nil, nil
}

// take appends messages to the run.
func (l *loop) take(ms []*llm.Message) {
	if len(ms) == 0 {
		return
	}
	l.msgs = append(l.msgs, ms...)
	l.emit(&Event{Kind: Steered, Messages: ms})
}

// fit lets the request's Fit change the conversation.
func (l *loop) fit(ctx context.Context) *Event {
	if l.req.Fit == nil {
		return nil
	}
	ms, err := l.req.Fit(ctx, l.msgs)
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case err != nil:
		return failed(err)
	}
	l.msgs = ms
	return nil
}

// ask makes one model call and returns its message, or the End event. An empty
// answer is requested once more.
func (l *loop) ask(ctx context.Context) (*llm.Message, *Event) {
	req := l.request()
	l.round++
	if t, ok := l.req.Tools.(Turner); ok {
		t.Turn()
	}
	l.emit(&Event{Kind: TurnStart})
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return nil, aborted(ctx)
		}
		done, end := l.stream(ctx, req)
		if end != nil {
			return nil, end
		}
		if !empty(done.Message) {
			l.msgs = append(l.msgs, done.Message)
			l.emit(&Event{
				Kind:    Assistant,
				Message: done.Message,
				Usage:   done.Usage,
				By:      done.By,
				Tried:   done.Tried,
				Note:    done.Note,
			})
			return done.Message, nil
		}
		l.emit(&Event{Kind: Restarted, Usage: done.Usage, By: done.By})
		if why := done.Message.Stop; why.Cut() {
			return nil, failed(noText(why))
		}
		if try > 0 {
			return nil, failed(ErrEmpty)
		}
	}
}

// request returns the request of the next model call. The note of the last call at
// a limit is in the request only, not in the conversation.
func (l *loop) request() *llm.Request {
	req := l.req.Prompt
	req.Messages, req.Tools = l.msgs, nil
	l.readOnly, l.current = false, nil
	switch {
	case l.closing:
		req.Messages = append(slices.Clip(l.msgs), llm.User(llm.LimitText))
	case l.req.Tools == nil:
	case l.req.ReadOnlyFirst && l.round == 0:
		l.readOnly = true
		req.Tools = l.req.Tools.Specs(true)
	default:
		if l.specs == nil {
			l.specs = l.req.Tools.Specs(false)
		}
		req.Tools = l.specs
	}
	l.current = req.Tools
	return &req
}

// stream reads one answer. It returns the Done event, or the End event of the run.
// The text of an aborted answer is yielded.
func (l *loop) stream(ctx context.Context, req *llm.Request) (llm.Event, *Event) {
	var text strings.Builder
	for e, err := range l.req.Model.Stream(ctx, req) {
		switch {
		case err != nil && ctx.Err() == nil:
			l.spent(e)
			return e, failed(err)
		case err != nil || l.left:
			l.partial(text.String(), e)
			return e, aborted(ctx)
		}
		switch e.Kind {
		case llm.TextDelta:
			text.WriteString(e.Text)
			l.emit(&Event{Kind: Text, Delta: e.Text})
		case llm.ThinkingDelta:
			l.emit(&Event{Kind: Thinking, Delta: e.Text})
		case llm.Restart:
			text.Reset()
			l.emit(&Event{Kind: Restarted})
		case llm.Spent:
			l.spent(e)
		case llm.Done:
			if e.Message == nil {
				return e, failed(errNoAnswer)
			}
			e.Message = l.distinct(e.Message)
			return e, nil
		}
	}
	if ctx.Err() != nil {
		l.partial(text.String(), llm.Event{})
		return llm.Event{}, aborted(ctx)
	}
	return llm.Event{}, failed(errNoAnswer)
}

// distinct returns the message with other ids for calls whose ids occur in the
// conversation already. Some services repeat ids in each turn, and others reject such a
// conversation.
func (l *loop) distinct(m *llm.Message) *llm.Message {
	calls := m.Calls()
	if len(calls) == 0 {
		return m
	}
	earlier, used := map[string]bool{}, map[string]bool{}
	for _, old := range l.msgs {
		for i := range old.Parts {
			if c := old.Parts[i].Call; c != nil {
				earlier[c.ID], used[c.ID] = true, true
			}
		}
	}
	repeated := false
	for _, c := range calls {
		repeated = repeated || earlier[c.ID]
		used[c.ID] = true
	}
	if !repeated {
		return m
	}
	own := &llm.Message{Role: m.Role, Parts: slices.Clone(m.Parts), Provider: m.Provider, Model: m.Model, Stop: m.Stop}
	for i := range own.Parts {
		c := own.Parts[i].Call
		if c == nil || !earlier[c.ID] {
			continue
		}
		call := *c
		for n := 2; used[call.ID]; n++ {
			call.ID = c.ID + "-" + strconv.Itoa(n)
		}
		used[call.ID] = true
		own.Parts[i].Call = &call
	}
	return own
}

// spent yields the usage of a model call without an answer.
func (l *loop) spent(e llm.Event) {
	if e.Usage.Total() > 0 {
		l.emit(&Event{Kind: Spent, Usage: e.Usage, By: e.By})
	}
}

// partial yields the text that had arrived when the run was aborted, with the
// usage of the model call as far as it is known.
func (l *loop) partial(text string, e llm.Event) {
	if strings.TrimSpace(text) == "" {
		l.spent(e)
		return
	}
	l.emit(&Event{Kind: Assistant, Partial: true, Usage: e.Usage, By: e.By, Message: &llm.Message{
		Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(text)}, Model: l.req.Prompt.Model, Stop: llm.StopAborted,
	}})
}

// empty reports whether m has neither text nor calls.
func empty(m *llm.Message) bool {
	return len(m.Calls()) == 0 && strings.TrimSpace(m.PlainText()) == ""
}

func failed(err error) *Event { return &Event{Kind: End, Reason: Failed, Err: err} }

func aborted(ctx context.Context) *Event {
	return &Event{Kind: End, Reason: Aborted, Err: context.Cause(ctx)}
}
