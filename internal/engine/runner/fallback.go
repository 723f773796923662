package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// notice returns an entry that tells the person how an answer was obtained; nil
// when there is nothing to tell.
func (e *Execution) notice(by string, ev agent.Event, now time.Time) *session.Entry {
	text := strings.TrimSpace(e.fallbackText(by, ev.Tried) + "\n" + ev.Note)
	if text == "" {
		return nil
	}
	return &session.Entry{
		ID:      uuid.NewString(),
		Kind:    session.KindNotice,
		Time:    now,
		Run:     e.run.ID,
		Text:    text,
		NanoUSD: -1,
	}
}

// fallbackText says that another model answers from now on, or that the selected
// one does again. It is empty when nothing changed, and in groups.
func (e *Execution) fallbackText(by string, tried []llm.Attempt) string {
	if by == e.meta.Fallback || e.run.Address.Peer.Kind == chela.Group {
		return ""
	}
	selected := e.profile.Model.Ref()
	if by == "" {
		return fmt.Sprintf("↪️ Model Fallback cleared: %s (was %s)", selected, e.meta.Fallback)
	}
	why := "it did not answer"
	if len(tried) > 0 {
		why = reasonText(tried[0].Err)
	}
	return fmt.Sprintf("↪️ Model Fallback: %s (selected %s; %s)", by, selected, why)
}

// publishNotice sends the notice of a stored message to observers.
func (r *Runner) publishNotice(e *Execution, p *pendingMessage) {
	if p.notice != nil {
		r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: p.notice.Text})
	}
}
