package runner

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/window"
)

// calibration is the estimated tokens of a request.
type calibration struct {
	base   int // of the system prompt and the tools
	tokens int // of the whole request, as it was last sent
}

// of returns the estimate of a request with a conversation, of which at most so many
// messages of the history are sent.
func (est *calibration) of(msgs []*llm.Message, most int) int {
	return est.base + estimate.Messages(window.History(msgs, most, session.IsSummary)...)
}

// fit returns the conversation that the next model call of a run is sent. It decides
// whether old parts are sent in a shorter form from now on, see window.Prune, and writes
// the decision to the transcript before it has an effect.
func (r *Runner) fit(ctx context.Context, e *Execution, msgs []*llm.Message) ([]*llm.Message, error) {
	est := &e.attempt.estimate
	est.tokens = est.of(msgs, e.profile.MaxHistory)
	w, now := e.window(), time.Now()
	if w.Tokens == 0 {
		return msgs, nil
	}
	cold := e.isCold(now)
	if !cold && !window.MayPrune(w, e.profile.Pruning,
		window.Calibrated(est.tokens, e.meta.Learned.RatioOf(e.profile.Model.Ref())), msgs) {
		return msgs, nil
	}
	if err := r.flush(ctx, e); err != nil { // what the decision is about is in the transcript
		return nil, err
	}
	sent, err := r.cache.Sent(e.run.SessionID, 0, r.loadEntries(ctx, e))
	if err != nil {
		return nil, fmt.Errorf("transcript %s: %w", e.run.SessionID, err)
	}
	prunes := window.Prune(window.Request{
		Sent:    sent,
		Base:    est.base,
		Window:  w,
		Ratio:   e.meta.Learned.RatioOf(e.profile.Model.Ref()),
		Pruning: e.profile.Pruning,
		Cold:    cold,
	})
	if len(prunes) == 0 {
		return msgs, nil
	}
	if err := r.prune(ctx, e, prunes, now); err != nil {
		return nil, err
	}
	if msgs, err = r.messages(ctx, e); err != nil {
		return nil, err
	}
	est.tokens = est.of(msgs, e.profile.MaxHistory)
	return e.withContext(msgs), nil
}

// isCold reports whether the provider's cache of the session has expired, as far as the
// settings say how long it lasts.
func (e *Execution) isCold(now time.Time) bool {
	p, last := e.profile, e.meta.Learned.Last
	after := p.Pruning.Expiry(p.Caches, p.Cache == cacheLong)
	return after > 0 && !last.IsZero() && now.Sub(last) >= after
}

// cacheLong is the Profile.Cache of a prompt that the provider caches for an hour.
const cacheLong = "long"

// prune writes decisions to the transcript.
func (r *Runner) prune(ctx context.Context, e *Execution, prunes []session.Prune, now time.Time) error {
	entries := make([]*session.Entry, len(prunes))
	var what []string
	for i := range prunes {
		p := &prunes[i]
		entries[i] = &session.Entry{
			ID:      uuid.NewString(),
			Kind:    session.KindPrune,
			Time:    now,
			Run:     e.run.ID,
			Prune:   p,
			NanoUSD: -1,
		}
		what = append(what, fmt.Sprintf("%s: %d trimmed, %d cleared, %d without images", p.Cause, len(p.Trim), len(p.Clear),
			len(p.Images)))
	}
	r.o.Step("run.prune")
	err := r.update(ctx, e, store.Ordered,
		func(tx store.Tx) error { return tx.Sessions().Append(e.run.SessionID, entries...) })
	if err != nil {
		return ledger{r, e}.checkStored(ctx, err)
	}
	r.o.Log.Info("old results are shortened", "session", e.run.Session, "run", e.run.ID, "what", strings.Join(what, "; "))
	r.publishStored(e, e.meta, entries...)
	return nil
}

// calibrated returns what is known after a model call whose prompt had real tokens.
func calibrated(l session.Learned, model string, real int64, estimated int) session.Learned {
	l.Ratio = window.Calibrate(l.RatioOf(model), real, estimated)
	l.Model = model
	return l
}

// limited is a model that is sent only the newest messages of the history.
type limited struct {
	llm.Provider
	most int // 0: all
}

func (l limited) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if ms := window.History(req.Messages, l.most, session.IsSummary); len(ms) != len(req.Messages) {
		own := *req
		own.Messages = ms
		req = &own
	}
	return l.Provider.Stream(ctx, req)
}
