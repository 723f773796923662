package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// maxHeld limits the steps that are held until the person presses Enter.
const maxHeld = 512

// background handles an event while no answer is expected, and reports whether a run of
// the session ended or a task changed. Results of background work are told at once,
// unless a person may be typing: their line must not be torn apart, and it is not known
// whether it is empty. Then they are held until the person presses Enter; a bell says so.
func (c *Chat) background(ctx context.Context, e wire.Event) (bool, error) {
	changed := e.Name == wire.EventTask
	if e.Name == client.EventReset {
		c.feed.Reset()
		clear(c.running)
		c.AskPending(ctx)
		changed = true
	}
	for _, s := range c.steps(e) {
		if err := c.approve(ctx, s); err != nil {
			return false, err
		}
		changed = changed || s.Kind == feed.RunEnded
		if s.Kind == feed.RunEnded && s.End.Text == "" && s.End.State != wire.StateError {
			c.printer.Line()
			continue // a message that joined another run, or a silent answer
		}
		if !c.showPrompt {
			c.printer.Step(s)
			continue
		}
		c.hold(s)
		if s.Kind == feed.RunEnded {
			fmt.Fprint(c.printer.Err, "\a")
		}
	}
	return changed, nil
}

// hold keeps a step until [Chat.tellHeld]. Of a growing message only the last state is
// kept.
func (c *Chat) hold(s feed.Step) {
	if n := len(c.held); n > 0 && s.Kind == feed.Text && c.held[n-1].Kind == feed.Text && c.held[n-1].Run == s.Run {
		c.held[n-1] = s
		return
	}
	if len(c.held) == maxHeld {
		c.held = append(c.held[:0], c.held[maxHeld/2:]...)
		c.held[0] = feed.Step{Kind: feed.Notice, Text: "(earlier results are left out; the history has them)"}
	}
	c.held = append(c.held, s)
}

// tellHeld tells what was held.
func (c *Chat) tellHeld() {
	for _, s := range c.held {
		c.printer.Step(s)
	}
	c.held = nil
}

// awaitResults waits until the results of all subagents of the session were told, and
// until no run of the session is in progress.
func (c *Chat) awaitResults(ctx context.Context) error {
	if c.wait <= 0 {
		return nil
	}
	limit := time.NewTimer(c.wait)
	defer limit.Stop()
	seen := map[string]bool{}
	for {
		open, err := c.untold(ctx, seen)
		if err != nil || open+len(c.running) == 0 {
			return err
		}
		for changed := false; !changed; {
			select {
			case e, ok := <-c.client.Events():
				if !ok {
					return c.client.Err()
				}
				if changed, err = c.background(ctx, e); err != nil {
					return err
				}
			case <-limit.C:
				what := "an answer"
				if open > 0 {
					what = humanize.Many(open, "subagent")
				}
				c.printer.Warn(fmt.Sprintf("still running after %v: %s; the session keeps the result", c.wait, what))
				return ErrReported
			case <-c.stop:
				return ErrInterrupted
			case <-ctx.Done():
				return ErrInterrupted
			}
		}
	}
}

// untold returns the number of subagents of the session whose results were not told.
// seen is those that it counted before.
func (c *Chat) untold(ctx context.Context, seen map[string]bool) (int, error) {
	list := map[string]wire.Task{}
	for _, q := range [...]wire.TasksList{ // in this order: a subagent that ends in between is in both
		{SessionKey: c.session, Limit: 100, Status: wire.Strings{wire.TaskQueued, wire.TaskRunning}},
		{SessionKey: c.session, Limit: 100, Status: wire.Strings{wire.TaskCompleted, wire.TaskFailed, wire.TaskTimedOut}},
	} {
		var page wire.TasksPage
		if err := c.client.Repeat(ctx, wire.MethodTasksList, q, &page); err != nil {
			return 0, err
		}
		for _, t := range page.Tasks {
			if t.Kind == string(task.Subagent) && t.SessionKey == c.session {
				list[t.ID] = t
			}
		}
	}
	again := false                // the list may be older than an event that nothing follows
	for queued := true; queued; { // what precedes the list
		select {
		case e, ok := <-c.client.Events():
			if !ok {
				return 0, c.client.Err()
			}
			changed, err := c.background(ctx, e)
			if err != nil {
				return 0, err
			}
			again = again || changed
		default:
			queued = false
		}
	}
	if again {
		return c.untold(ctx, seen)
	}
	n := 0
	for _, t := range slices.SortedFunc(maps.Values(list),
		func(a, b wire.Task) int { return cmp.Compare(a.EndedAt, b.EndedAt) }) {
		open := t.EndedAt == 0 || t.Delivery == wire.DeliveryQueued || t.Delivery == wire.DeliveryPending
		if answer := (subagent.Child{ID: chela.RunID(t.ID)}).AnnounceKey(); !open && seen[t.ID] &&
			t.Delivery == wire.DeliveryDelivered && !c.feed.Ended(answer) {
			told, err := c.missed(ctx, answer)
			if err != nil && !errors.Is(err, ErrReported) {
				return 0, err
			}
			open = !told
		}
		if open {
			seen[t.ID] = true
			n++
		}
	}
	return n, nil
}
