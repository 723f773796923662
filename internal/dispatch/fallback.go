package dispatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/agent"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
)

// notice returns what the person is told of how an answer came about; nil:
// nothing.
func (j *job) notice(by string, ev agent.Event, now time.Time) *session.Entry {
	text := strings.TrimSpace(j.replaced(by, ev.Tried) + "\n" + ev.Note)
	if text == "" {
		return nil
	}
	return &session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Run: j.r.ID, Text: text, NanoUSD: -1}
}

// replaced says that another model answers from now on, or that the chosen one
// does again; "": nothing changed, or several people read it, whom it is no
// concern of.
func (j *job) replaced(by string, tried []llm.Attempt) string {
	if by == j.meta.Fallback || j.r.Address.Peer.Kind == chela.Group {
		return ""
	}
	chosen := j.p.Model.Ref()
	text := fmt.Sprintf("↪️ Model Fallback cleared: %s (was %s)", chosen, j.meta.Fallback)
	if by != "" {
		why := "it did not answer"
		if len(tried) > 0 {
			why = wording.Reason(tried[0].Err)
		}
		text = fmt.Sprintf("↪️ Model Fallback: %s (selected %s; %s)", by, chosen, why)
	}
	return text
}

// told gives the notice of a message that was stored to those who watch.
func (c *Conductor) told(j *job, h *held) {
	if h.notice != nil {
		c.publish(j, chela.Event{Stream: chela.StreamNotice, Text: h.notice.Text})
	}
}
