package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/compaction"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Compaction is how the conversations of a profile are compacted.
type Compaction struct {
	compact.Config
	// Model returns a model by name, for the models of the Config; nil: the model of
	// the profile is used.
	Model func(ref string) (llm.Model, llm.Provider, error)
}

// maxCompactions is the number of compactions within a run.
const maxCompactions = 3

// minReplaced is the number of tokens below which messages are not summarized, because
// a summary would not be shorter.
const minReplaced = 256

// maxSections is the size of the sections of AGENTS.md after a summary, in bytes.
const maxSections = 1800

// AutoCompacted tells the person of a compaction that nobody asked for.
const AutoCompacted = "🧹 Auto-compaction complete"

// ErrNothingToCompact says that a compaction would not make the conversation shorter.
var ErrNothingToCompact = chela.Errorf(chela.CodeInvalid, "nothing to compact: the conversation is short already")

// compactions is what a run did about the size of the conversation.
type compactions struct {
	done    int   // compactions
	checked bool  // whether the size was checked before the first call
	passed  bool  // the size is not checked between calls any more
	bytes   int64 // size of the messages at the end of the run, if there is a limit
}

// compact replaces the beginning of the conversation by a summary. reason is one of
// those of package session. It returns the entry with the summary, or
// ErrNothingToCompact. If the context ends, nothing has changed.
func (r *Runner) compact(ctx context.Context, e *Execution, reason, hint string) (*session.Entry, error) {
	durable := context.WithoutCancel(ctx)
	if err := r.flush(durable, e); err != nil {
		return nil, err
	}
	all, err := store.Get(durable, r.o.Store, func(rd store.Reader) ([]session.Entry, error) {
		return rd.Sessions().Entries(e.run.SessionID, 0, 0)
	})
	if err != nil {
		return nil, err
	}
	fixed, err := r.fixedTokens(durable, e)
	if err != nil {
		return nil, err
	}
	window := e.windowTokens()
	limits := e.profile.Compaction.Limits(window, fixed)
	p, ok := compact.NewPlan(all, limits)
	if !ok || reason != session.CompactThreshold {
		p, ok = compact.NewPlan(all, limits.Below(p.Before, e.compactions.done))
	}
	// or else it would be compacted again soon
	if !ok || reason == session.CompactThreshold && p.Before-p.Stays < window/20 {
		return nil, ErrNothingToCompact
	}
	if reason == session.CompactManual && len(p.Old) == 0 && p.Before <= limits.Keep { // there is only one turn
		return nil, ErrNothingToCompact
	}
	op := chela.Operation{ID: uuid.NewString(), Name: "compact"}
	r.o.Bus.Publish(chela.Event{Session: e.run.Session, Stream: chela.StreamOperation, Phase: chela.PhaseStart, Data: op})
	entry, err := r.summarize(ctx, e, p, fixed, reason, hint)
	if op.Completed = err == nil; err != nil {
		op.Reason = oneLine(failureText(err), 200)
	}
	r.o.Bus.Publish(chela.Event{Session: e.run.Session, Stream: chela.StreamOperation, Phase: chela.PhaseEnd, Data: op})
	return entry, err
}

// summarize carries out a plan.
func (r *Runner) summarize(ctx context.Context, e *Execution, p compact.Plan, fixed int,
	reason, hint string) (*session.Entry, error) {
	about := hook.Compaction{
		Context:      e.hookContext(),
		Messages:     len(p.Kept) + p.Replaced(),
		Tokens:       fixed + p.Before,
		TokensBefore: p.Before,
		Address:      e.run.Address,
	}
	r.o.Hooks.BeforeCompaction.Notify(ctx, about)
	r.o.Step("compact.summarize")
	var out compaction.Output
	var model string
	if p.Before-p.Stays >= minReplaced {
		var in compaction.Input
		var err error
		in, model = r.summaryInput(e, p, reason, hint)
		if out, err = compaction.Summarize(ctx, in); err != nil {
			return nil, err
		}
	} else if reason != session.CompactOverflow {
		return nil, ErrNothingToCompact
	}
	extra := r.sections(e)
	out.Summary = r.o.Executor.Redact(out.Summary)
	entry, ok := newCompaction(e, p, out, extra, reason, hint, model)
	if !ok {
		entry, ok = newCompaction(e, p, compaction.Note(p.Replaced()), "", reason, hint, "")
	}
	if !ok && reason == session.CompactOverflow { // nothing is shorter than no summary
		entry, ok = newCompaction(e, p, compaction.Output{}, "", reason, hint, "")
	}
	if !ok {
		return nil, ErrNothingToCompact
	}
	about.Compacted, about.SummaryLength = p.Replaced(), len([]rune(entry.Text))
	about.TokensAfter = session.CompactionOf(*entry).TokensAfter
	if err := r.commitCompaction(ctx, e, p, entry, fixed); err != nil {
		return nil, err
	}
	e.compactions.done++
	r.o.Executor.Compacted(e.run.ID)
	r.o.Hooks.AfterCompaction.Notify(ctx, about)
	r.o.Bus.Publish(chela.Event{Session: e.run.Session, Stream: chela.StreamSession, Phase: chela.PhaseCompacted})
	return entry, nil
}

// summaryInput returns what the summary is made from, and the name of the model.
func (r *Runner) summaryInput(e *Execution, p compact.Plan, reason, hint string) (compaction.Input, string) {
	c := e.profile.Compaction
	m, provider := e.profile.Model, e.profile.Provider
	if c.Config.Model != "" && c.Model != nil {
		own, ownProvider, err := c.Model(c.Config.Model)
		if err != nil {
			r.o.Log.Warn("the model for summaries cannot be used; using that of the session",
				"model", c.Config.Model, "err", err)
		} else {
			m, provider = own, ownProvider
		}
	}
	in := compaction.Input{Plan: p, Config: c.Config, Hint: hint, Window: min(m.Window(), e.windowTokens())}
	// no model is asked without a request
	if reason == session.CompactBudget || reason == session.CompactOverflow && !c.Automatic() {
		return in, ""
	}
	level := llm.Low
	switch {
	case c.Think == "inherit":
		level = e.profile.think(e.meta, e.run)
	case c.Think != "":
		level = llm.Level(c.Think)
	}
	in.Request = llm.Request{Model: m.ID, Thinking: m.Level(level), MaxTokens: compact.SummaryTokens(in.Window),
		Session: e.run.SessionID + ":summary"}
	if in.Request.Thinking != llm.Off { // thinking counts towards the limit
		in.Request.MaxTokens *= 2
	}
	if m.MaxOutput > 0 {
		in.Request.MaxTokens = min(in.Request.MaxTokens, m.MaxOutput)
	}
	in.Call = func(ctx context.Context, req *llm.Request) (*llm.Message, error) {
		msg, err := r.callModel(ctx, e, m, provider, req)
		if stored(err) {
			err = errors.Join(compaction.ErrStop, err)
		}
		return msg, err
	}
	return in, m.Ref()
}

// newCompaction makes the entry of a compaction. It reports whether the conversation
// is shorter with it.
func newCompaction(e *Execution, p compact.Plan, out compaction.Output,
	extra, reason, hint, model string) (*session.Entry, bool) {
	if out.Step == session.StepNote {
		model = ""
	}
	c := session.Compaction{
		Run: e.run.ID, Reason: reason, Hint: humanize.Truncate(oneLine(hint, 2000), 400), Step: out.Step, Model: model,
		TokensBefore: p.Before, Compacted: p.Replaced(), Calls: out.Calls, Rejected: out.Rejected,
		Facts: out.Exam.Facts, Found: out.Exam.Found, Restored: out.Exam.Restored, Left: out.Exam.Left,
	}
	c.Rejected = slices.Clone(c.Rejected[:min(len(c.Rejected), 8)])
	for i, s := range c.Rejected {
		c.Rejected[i] = oneLine(s, 200)
	}
	entry := session.NewCompaction(p.First, out.Summary, extra, c, time.Now())
	c.TokensAfter = p.Stays
	if entry.Message != nil {
		c.TokensAfter += estimate.Messages(entry.Message)
	}
	if c.TokensAfter >= p.Before {
		return nil, false
	}
	return session.NewCompaction(p.First, out.Summary, extra, c, entry.Time), true
}

// commitCompaction stores the entry of a compaction, unless what it was made from has
// changed meanwhile. Then it returns ErrChanged.
func (r *Runner) commitCompaction(ctx context.Context, e *Execution, p compact.Plan,
	entry *session.Entry, fixed int) error {
	if ctx.Err() != nil { // the person stopped it
		return context.Cause(ctx)
	}
	c := session.CompactionOf(*entry)
	text := compactedText(c)
	entries := []*session.Entry{entry, {ID: uuid.NewString(), Kind: session.KindNotice, Time: entry.Time, Run: e.run.ID,
		Text: text, NanoUSD: -1}}
	r.o.Step("compact.commit")
	var meta session.Meta
	err := r.update(ctx, e, store.Synced, func(tx store.Tx) error {
		var err error
		if meta, err = tx.Sessions().Get(e.run.Session); err != nil {
			return err
		}
		newer, err := tx.Sessions().Entries(e.run.SessionID, p.Last, 0)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(newer,
			func(n session.Entry) bool { return n.Kind == session.KindCut || n.Kind == session.KindVoid }) {
			return ErrChanged
		}
		if err := tx.Sessions().Append(e.run.SessionID, entries...); err != nil || meta.ID != e.run.SessionID {
			return err
		}
		if err := e.tellCompaction(tx, entry); err != nil {
			return err
		}
		meta.Compactions++
		meta.Context = int64(fixed + c.TokensAfter)
		meta.EndFork()
		return tx.Sessions().Put(meta)
	})
	if err != nil {
		return err
	}
	r.o.Step("compact.committed")
	r.publishStored(e, meta, entries...)
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseCompaction})
	if e.run.Kind == run.Turn {
		r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: text})
	}
	return nil
}

// compactedText tells the person what a compaction did.
func compactedText(c session.Compaction) string {
	what := "were summarized"
	switch c.Step {
	case session.StepNote:
		what = "could not be summarized and were replaced by a note"
	case "":
		what = "are left out"
	}
	return fmt.Sprintf("🧹 Compacted: %s %s (about %s → %s tokens). They stay in the history; /compact explain shows details, /compact undo restores them.",
		humanize.Many(c.Compacted, "message"), what, humanize.Count(int64(c.TokensBefore)),
		humanize.Count(int64(c.TokensAfter)))
}

// fixedTokens estimates the size of the request of a run without its messages.
func (r *Runner) fixedTokens(ctx context.Context, e *Execution) (int, error) {
	begun := e.open
	open, err := r.openWork(ctx, e)
	if err != nil {
		return 0, err
	}
	e.open = begun // for the attempt
	req := r.request(e, r.o.Executor.For(r.scope(e)).Specs(false), open)
	return estimate.Request(&req), nil
}

// sections returns the sections of AGENTS.md that follow a summary.
func (r *Runner) sections(e *Execution) string {
	names := e.profile.Compaction.SectionNames()
	if len(names) == 0 || e.profile.Files == nil {
		return ""
	}
	files := e.hooked.files
	if files == nil {
		files = r.promptFiles(e)
	}
	for _, f := range files {
		if f.Name == "AGENTS.md" {
			text := strings.TrimSpace(prompt.Sections(f.Text, names))
			if text == "" {
				return ""
			}
			return r.o.Executor.Redact("[From AGENTS.md, which still holds:]\n\n" + humanize.TruncateBytes(text, maxSections))
		}
	}
	return ""
}

// contextTokens estimates the size of the next request of a run: what the last call
// reported, and the messages since.
func (r *Runner) contextTokens(ctx context.Context, e *Execution) (int, error) {
	newest := e.newest
	msgs, err := r.messages(ctx, e)
	if err != nil {
		return 0, err
	}
	e.newest = newest // for the attempt
	if e.meta.Context <= 0 {
		fixed, err := r.fixedTokens(ctx, e)
		return fixed + estimate.Messages(msgs...), err
	}
	return sinceLastCall(e.meta, msgs), nil
}

// sinceLastCall estimates the size of a request: what the last call reported, and the
// messages since.
func sinceLastCall(m session.Meta, msgs []*llm.Message) int {
	since := len(msgs)
	for since > 0 && (msgs[since-1].Role != llm.RoleAssistant || session.IsFailed(msgs[since-1])) {
		since--
	}
	return int(m.Context) + estimate.Messages(msgs[max(since-1, 0):]...)
}

// checkSize compacts the conversation before the first call of a run, if the request
// would be too long. An error of the store is returned; nothing else prevents the call.
func (r *Runner) checkSize(ctx context.Context, e *Execution) error {
	if e.compactions.checked || !e.profile.Compaction.Automatic() {
		return nil
	}
	e.compactions.checked = true
	durable := context.WithoutCancel(ctx)
	n, err := r.contextTokens(durable, e)
	if err != nil || n <= e.profile.Compaction.Threshold(e.windowTokens()) {
		return err
	}
	_, err = r.compact(ctx, e, session.CompactThreshold, "")
	switch {
	case err == nil, ctx.Err() != nil: // the loop reports that ctx has ended
		return nil
	case errors.Is(err, ErrNothingToCompact), errors.Is(err, ErrChanged):
		return nil
	}
	return err
}

// errGrown says that the conversation is too long for the next call of a turn.
var errGrown = errors.New("the conversation has become too long during the turn")

// sized returns a model that is only called with requests below the threshold of a
// compaction, if that is to be checked between the calls of a turn.
func (r *Runner) sized(e *Execution, p llm.Provider) llm.Provider {
	c := e.profile.Compaction
	if !c.MidTurn.Enabled || !c.Automatic() {
		return p
	}
	return sizedModel{p, e}
}

// sizedModel is the result of sized.
type sizedModel struct {
	llm.Provider
	e *Execution
}

// Stream implements llm.Provider.
func (s sizedModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if c := &s.e.compactions; !c.passed && s.e.meta.Context > 0 &&
		sinceLastCall(s.e.meta, req.Messages) > s.e.profile.Compaction.Threshold(s.e.windowTokens()) {
		return unusable{errGrown}.Stream(ctx, req)
	}
	return s.Provider.Stream(ctx, req)
}

// compactGrown compacts a conversation that has become too long during a turn. If that
// fails, the turn goes on without.
func (r *Runner) compactGrown(ctx context.Context, e *Execution) error {
	_, err := r.compact(ctx, e, session.CompactThreshold, "")
	if err != nil || e.compactions.done >= maxCompactions {
		e.compactions.passed = true
	}
	if errors.Is(err, ErrNothingToCompact) || errors.Is(err, ErrChanged) || ctx.Err() != nil {
		return nil
	}
	return err
}

// shrink compacts a conversation that a model refused because of its length. It
// reports whether the call can be repeated.
func (r *Runner) shrink(ctx context.Context, e *Execution) (bool, error) {
	if e.compactions.done >= maxCompactions {
		return false, nil
	}
	_, err := r.compact(ctx, e, session.CompactOverflow, "")
	switch {
	case err == nil || errors.Is(err, ErrChanged):
		if err != nil {
			e.compactions.done++ // so that this ends
		}
		return true, nil
	case ctx.Err() != nil || errors.Is(err, ErrNothingToCompact):
		return false, nil
	}
	return false, err
}

// compactRun carries out a run of kind Compact: one that a person asked for, or one
// that was queued at the end of a run.
func (r *Runner) compactRun(ctx context.Context, e *Execution) error {
	asked := e.run.Origin.Kind == chela.OriginPerson
	hint, err := r.hint(ctx, e)
	if err != nil {
		return err
	}
	reason, due := session.CompactManual, true
	e.run.Text = ""
	if !asked {
		e.run.Silent = true // whatever happens
		reason = session.CompactThreshold
		if due, err = r.beforeCompaction(ctx, e); err != nil {
			return err
		}
	}
	var entry *session.Entry
	if due && ctx.Err() == nil {
		entry, err = r.compact(ctx, e, reason, hint)
	}
	switch {
	case ctx.Err() != nil:
		end, err := aborted(ctx)
		if err != nil {
			return err
		}
		return r.finish(ctx, e, end)
	case errors.Is(err, ErrNothingToCompact), errors.Is(err, ErrChanged):
		e.run.Text = "Nothing was compacted: " + strings.TrimPrefix(err.Error(), "nothing to compact: ") + "."
	case err != nil:
		return err
	case entry != nil && asked:
		e.run.Text = compactedText(session.CompactionOf(*entry))
	case entry != nil:
		e.run.Text = AutoCompacted
	}
	e.attempt.answered = true
	e.run.Silent = e.run.Text == "" || e.run.Overrides.Deliver.Mode == run.DeliverNowhere ||
		!asked && (entry == nil || !e.tellsCompaction())
	return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Done})
}

// tellsCompaction reports whether the person is told of a compaction that nobody asked
// for.
func (e *Execution) tellsCompaction() bool {
	verbose := e.meta.Verbose
	if verbose == "" {
		verbose = e.profile.Verbose
	}
	return e.profile.Compaction.NotifyUser || verbose == "on" || verbose == "full"
}

// tellCompaction sends the person a notice of a compaction during a turn, if they want
// to know.
func (e *Execution) tellCompaction(tx store.Tx, entry *session.Entry) error {
	if e.run.Kind != run.Turn || e.run.Address.Local() || !e.tellsCompaction() {
		return nil
	}
	id := "compaction:" + entry.ID
	tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return tx.Outbox().Put(outbox.Rows(outbox.Row{
		Key: id, Run: chela.RunID(id), Session: e.run.Session, Address: e.run.Address, Created: entry.Time,
	}, AutoCompacted, chunk.Options{})...)
}

// hint returns what the person wrote after /compact.
func (r *Runner) hint(ctx context.Context, e *Execution) (string, error) {
	it, err := store.Get(context.WithoutCancel(ctx), r.o.Store,
		func(rd store.Reader) (queue.Item, error) { return rd.Queue().Get(string(e.run.ID)) })
	if errors.Is(err, chela.ErrNotFound) {
		return "", nil
	}
	if it.Origin.Kind != chela.OriginPerson {
		return "", err
	}
	return strings.TrimSpace(it.Inbound.Text), err
}

// queueCompaction puts a compaction into the queue of the session, in the commit that
// ends a run, if the conversation is long enough for one or for saving notes.
func (e *Execution) queueCompaction(tx store.Tx, meta session.Meta) error {
	if e.run.Kind != run.Turn || e.run.State != run.OK || meta.ID != e.run.SessionID || meta.Isolated ||
		meta.IsChild() || e.profile == nil {
		return nil
	}
	if !e.profile.Compaction.Automatic() {
		return nil
	}
	n := int(meta.Context)
	if p := e.pending; p != nil {
		n = int(p.usage.Tokens.Prompt() + p.usage.Tokens.Output)
	}
	if due, flush := e.overfull(n, e.compactions.bytes); !due && (!flush || flushed(meta)) {
		return nil
	}
	waiting, err := tx.Queue().Waiting(e.run.Session)
	if err != nil || slices.ContainsFunc(waiting, func(it queue.Item) bool { return it.Kind == queue.Compact }) {
		return err
	}
	id := session.AutoCompact + uuid.NewString()
	it := queue.Item{
		ID:        id,
		Key:       id,
		Session:   e.run.Session,
		Kind:      queue.Compact,
		State:     queue.Waiting,
		Created:   e.run.Ended,
		Principal: e.run.Principal,
		Origin:    chela.Origin{Kind: chela.OriginSystem},
	}
	it.Overrides.Model, it.Inbound.Address = e.run.Overrides.Model, e.run.Address // the prompt depends on it
	if err := store.Enqueue(tx, it); err != nil {
		return err
	}
	e.noneWaiting = false
	return nil
}
