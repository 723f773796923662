package llmtest

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Collected is a complete answer.
type Collected struct {
	Message *llm.Message // nil if the stream ended with Err
	Usage   llm.Usage    // with Err: as reported by the service
	Err     error
	Events  []llm.Event
}

// Text returns the streamed text.
func (c *Collected) Text() string {
	var b strings.Builder
	for _, e := range c.Events {
		if e.Kind == llm.TextDelta {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// Collect calls p and reads the complete stream. The error is a violation of
// the contract of [llm.Provider].
func Collect(ctx context.Context, p llm.Provider, r *llm.Request) (*Collected, error) {
	c := &Collected{}
	calls := map[int]string{} // arguments by index
	ended := 0
	for e, err := range p.Stream(ctx, r) {
		switch {
		case ended > 0:
			return c, fmt.Errorf("event after the end: %+v, %w", e, err)
		case err != nil:
			c.Err, c.Usage = err, e.Usage
			ended++
			continue
		case e.Kind == llm.Done:
			c.Message, c.Usage = e.Message, e.Usage
			ended++
		case e.Kind == llm.CallStart:
			if _, ok := calls[e.Index]; ok || e.Call == nil || e.Call.ID == "" || e.Call.Name == "" {
				return c, fmt.Errorf("call %d starts twice, or has no id or name", e.Index)
			}
			calls[e.Index] = ""
		case e.Kind == llm.CallDelta:
			if _, ok := calls[e.Index]; !ok {
				return c, fmt.Errorf("arguments of call %d before its start", e.Index)
			}
			calls[e.Index] += e.Text
		}
		c.Events = append(c.Events, e)
	}
	if ended != 1 {
		return c, fmt.Errorf("the stream ended %d times", ended)
	}
	if c.Message == nil {
		return c, nil
	}
	return c, c.check(calls)
}

// check compares the message with the streamed deltas.
func (c *Collected) check(calls map[int]string) error {
	m := c.Message
	if m.Role != llm.RoleAssistant || m.Stop == "" || m.Provider == "" || m.Model == "" {
		return fmt.Errorf("the message lacks role, stop, provider or model: %+v", m)
	}
	if got := m.PlainText(); got != c.Text() {
		return fmt.Errorf("the message says %q, the deltas %q", got, c.Text())
	}
	got := m.Calls()
	if len(got) != len(calls) {
		return fmt.Errorf("the message has %d calls, the deltas %d", len(got), len(calls))
	}
	for i, k := range got {
		args := cmp.Or(strings.TrimSpace(calls[i]), "{}")
		if k.Raw != "" && k.Raw != calls[i] || k.Raw == "" && string(k.Args) != args {
			return fmt.Errorf("call %d has arguments %s (%q), the deltas %q", i, k.Args, k.Raw, args)
		}
	}
	return nil
}
