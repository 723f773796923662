package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
)

const (
	maxParallel = 8               // calls of a group that run at the same time
	grace       = 5 * time.Second // for tools that ignore their cancellation
)

// execute executes the calls of one message in order. It returns the End event if
// the run ends. A message that arrives cancels the calls that have not started.
func (l *loop) execute(ctx context.Context, calls []llm.ToolCall,
	steering func(context.Context) ([]*llm.Message, *Event)) *Event {
	run, over := calls, []llm.ToolCall(nil)
	if n := l.req.MaxCalls - l.calls; l.req.MaxCalls > 0 && n < len(calls) {
		run, over = calls[:max(n, 0)], calls[max(n, 0):]
	}
	var steered []*llm.Message
	for len(run) > 0 {
		ms, end := steering(ctx)
		if end != nil {
			return end
		}
		if len(ms) > 0 {
			l.skip(run, skippedBy(ms))
			steered = ms
			break
		}
		n := l.next(run)
		if l.withheld(run[0]) {
			l.skip(run[:n], WithheldText)
		} else if end := l.group(ctx, run[:n]); end != nil {
			if end.Reason == Stopped {
				l.skip(run[n:], NotRunText)
				l.skip(over, NotRunText)
			}
			return end
		}
		run = run[n:]
	}
	l.skip(over, OverLimitText)
	l.take(steered)
	l.rounds++
	l.closing = l.atLimit()
	if l.yielded && len(steered) == 0 {
		return &Event{Kind: End, Reason: Yielded}
	}
	l.yielded = false // what arrived comes first
	return nil
}

// skippedBy returns the result of calls that messages cancelled.
func skippedBy(ms []*llm.Message) string {
	for _, m := range ms {
		if !strings.HasPrefix(m.PlainText(), llm.EventPrefix) {
			return SkippedText
		}
	}
	return OvertakenText
}

// atLimit reports whether the run may call no more tools.
func (l *loop) atLimit() bool {
	return l.req.MaxRounds > 0 && l.rounds >= l.req.MaxRounds ||
		l.req.MaxCalls > 0 && l.calls >= l.req.MaxCalls
}

// next returns the number of calls, from the first, that form one group.
func (l *loop) next(calls []llm.ToolCall) int {
	single := func(c llm.ToolCall) bool {
		return l.withheld(c) || !l.req.Tools.Parallel(c)
	}
	if single(calls[0]) {
		return 1
	}
	if i := slices.IndexFunc(calls, single); i > 0 {
		return i
	}
	return len(calls)
}

// withheld reports whether the tool of c was withheld from the model call because
// it does not only read.
func (l *loop) withheld(c llm.ToolCall) bool {
	return l.readOnly && !slices.ContainsFunc(l.current, func(s llm.ToolSpec) bool { return s.Name == c.Name })
}

// skip yields results for calls that are not executed.
func (l *loop) skip(calls []llm.ToolCall, text string) {
	for _, c := range calls {
		l.answer(&Event{Call: c, Skipped: true}, tool.Result{Content: []llm.Part{llm.Text(text)}, IsError: true})
	}
}

// answer yields the result of e.Call and adds it to the next model call.
func (l *loop) answer(e *Event, r tool.Result) {
	if len(r.Content) == 0 {
		r.Content = []llm.Part{llm.Text("(no output)")}
	}
	e.Kind, e.Details = ToolEnd, r.Details
	if r.Args != nil {
		e.Call.Args, e.Ran = r.Args, r.Args
	}
	e.Result = &llm.Message{
		Role: llm.RoleTool, CallID: e.Call.ID, ToolName: e.Call.Name, Parts: r.Content, IsError: r.IsError,
	}
	l.addResult(e.Result)
	l.emit(e)
}

// addResult adds a result to the messages. It replaces the placeholder of a call
// that was open at the start.
func (l *loop) addResult(r *llm.Message) {
	for i := len(l.msgs) - 1; i >= 0 && l.msgs[i].Role != llm.RoleAssistant; i-- {
		if m := l.msgs[i]; m.Role == llm.RoleTool && m.CallID == r.CallID {
			l.msgs[i] = r
			return
		}
	}
	l.msgs = append(l.msgs, r)
}

// report is sent to the loop by the goroutine of a call.
type report struct {
	call   int
	delta  string // new output, unless ended
	ended  bool
	result tool.Result
	err    error
	took   time.Duration
}

// group is a list of calls that run in parallel. A sequential call is a group of
// one.
type group struct {
	l       *loop
	calls   []llm.ToolCall
	reports chan report
	over    chan struct{} // closed when reports are no longer received

	ended   []*report // by call; nil: it runs or has not started
	started int
	running int
	yielded int // calls whose end was yielded
	reason  Reason
	err     error
}

// group runs calls and yields their results in order. It returns the End event if
// one of them ends the run.
func (l *loop) group(ctx context.Context, calls []llm.ToolCall) *Event {
	g := &group{
		l: l, calls: calls, ended: make([]*report, len(calls)),
		reports: make(chan report), over: make(chan struct{}),
	}
	defer close(g.over)
	g.wait(ctx)
	switch {
	case g.reason == Aborted:
		return aborted(ctx)
	case g.reason == Stopped:
		l.skip(calls[g.started:], NotRunText)
	case g.reason == "":
		return nil
	}
	return &Event{Kind: End, Reason: g.reason, Err: g.err}
}

// wait starts the calls. It returns when all started calls have ended or were
// abandoned.
func (g *group) wait(ctx context.Context) {
	done, late := ctx.Done(), (<-chan time.Time)(nil)
	for g.start(ctx); g.running > 0; g.start(ctx) {
		select {
		case r := <-g.reports:
			g.take(ctx, r)
		case <-done:
			done, late = nil, time.After(grace)
		case <-late:
			g.reason = Aborted
			g.flush(true)
			return
		}
	}
}

// start starts calls up to the limit.
func (g *group) start(ctx context.Context) {
	for g.started < len(g.calls) && g.running < maxParallel && g.reason != Stopped && g.reason != Failed {
		if ctx.Err() != nil {
			g.reason = Aborted
			return
		}
		i := g.started
		g.l.emit(&Event{Kind: ToolStart, Call: g.calls[i]})
		if ctx.Err() != nil {
			g.reason = Aborted
			return
		}
		g.started++
		g.running++
		g.l.calls++
		go g.run(ctx, i)
	}
}

// run executes one call on its own goroutine.
func (g *group) run(ctx context.Context, i int) {
	begun := time.Now()
	r := report{call: i, ended: true}
	defer func() {
		if p := recover(); p != nil {
			r.err = nil
			r.result = tool.Result{Content: []llm.Part{llm.Text(fmt.Sprintf("the tool crashed: %v", p))}, IsError: true}
		}
		r.took = time.Since(begun)
		g.send(r)
	}()
	r.result, r.err = g.l.req.Tools.Invoke(ctx, g.calls[i], func(s string) { g.send(report{call: i, delta: s}) })
}

// send sends r to the loop, which ignores it if it has abandoned the call.
func (g *group) send(r report) {
	select {
	case g.reports <- r:
	case <-g.over:
	}
}

// take processes a report.
func (g *group) take(ctx context.Context, r report) {
	if !r.ended {
		if g.ended[r.call] == nil {
			g.l.emit(&Event{Kind: ToolUpdate, Call: g.calls[r.call], Delta: r.delta})
		}
		return
	}
	g.running--
	g.ended[r.call] = &r
	switch {
	case r.err == nil:
		g.l.yielded = g.l.yielded || r.result.Yield
	case errors.Is(r.err, tool.ErrStop):
		g.end(Stopped, r.err)
	case errors.Is(r.err, tool.ErrSuspended):
		g.end(Suspended, nil)
	case ctx.Err() != nil:
		g.end(Aborted, nil)
	default:
		g.end(Failed, r.err)
	}
	g.flush(false)
}

// end records that the run ends after this group. The most severe of several
// reasons applies.
func (g *group) end(why Reason, err error) {
	severity := []Reason{"", Suspended, Stopped, Failed, Aborted}
	if slices.Index(severity, why) > slices.Index(severity, g.reason) {
		g.reason, g.err = why, err
	}
}

// flush yields the results that are next in order. If all is set, it skips calls
// that have not ended.
func (g *group) flush(all bool) {
	for ; g.yielded < g.started; g.yielded++ {
		r := g.ended[g.yielded]
		switch {
		case r == nil && !all:
			return
		case r == nil:
		case r.err == nil, errors.Is(r.err, tool.ErrStop):
			g.l.answer(&Event{Call: g.calls[g.yielded], Duration: r.took}, r.result)
		}
	}
}
