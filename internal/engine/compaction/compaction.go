package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Limits of a compaction.
const (
	maxCalls  = 20 // of models
	maxChunks = 12 // that are summarized; what precedes them is only listed
	pause     = 500 * time.Millisecond
	literal   = 400 // tokens of the beginning of a turn that is not summarized but repeated
)

// ErrStop is in the chain of errors of Input.Call after which nothing else is tried.
var ErrStop = errors.New("the compaction cannot go on")

// Input is a conversation to be summarized.
type Input struct {
	Plan   compact.Plan
	Config compact.Config
	Hint   string // of the person, for the summary; "": none
	Window int    // of the model that is asked, in tokens

	// Call asks the model; nil: no model is asked. Its errors lead to the next step,
	// except those of ctx and ErrStop.
	Call func(context.Context, *llm.Request) (*llm.Message, error)
	// Request is what each request has besides the system prompt and the message.
	Request llm.Request
}

// Output is a summary.
type Output struct {
	Summary  string // with the facts that were put back
	Step     string // session.StepSummary, StepPartial or StepNote
	Calls    int    // of the model
	Rejected []string
	Exam     compact.Exam
}

// Summarize returns the text that replaces what a plan cuts off. The error is that of
// ctx or ErrStop.
func Summarize(ctx context.Context, in Input) (Output, error) {
	all := append(in.Plan.Old[:len(in.Plan.Old):len(in.Plan.Old)], in.Plan.Prefix...)
	s := summarizer{
		Input: in, facts: compact.Facts(all, in.Plan.Previous, len(in.Plan.Prefix) > 0, in.Config.Identifiers != "off"),
	}
	text := ""
	for _, step := range [...]string{session.StepSummary, session.StepPartial, session.StepNote} {
		var err error
		if text, err = s.step(ctx, step); err == nil {
			s.out.Step = step
			break
		}
		if ctx.Err() != nil {
			return s.out, context.Cause(ctx)
		}
		if errors.Is(err, ErrStop) {
			return s.out, err
		}
		s.out.Rejected = append(s.out.Rejected, step+": "+err.Error())
	}
	s.out.Exam = compact.Take(s.facts, text, in.Config.ExamBytes(in.Window))
	s.out.Summary = compact.Assemble(text, s.out.Exam)
	return s.out, nil
}

// Note returns the shortest text that may replace messages.
func Note(messages int) Output {
	return Output{Summary: compact.Note(messages), Step: session.StepNote}
}

// summarizer is the state of a Summarize.
type summarizer struct {
	Input
	facts []compact.Fact
	out   Output
}

// step carries out a step. Its error says why it failed.
func (s *summarizer) step(ctx context.Context, step string) (string, error) {
	if step == session.StepNote {
		return s.note(), nil
	}
	if s.Call == nil {
		return "", errors.New("no model")
	}
	old, turn := s.texts(s.Plan.Old, step), s.texts(s.Plan.Prefix, step)
	previous, _ := compact.Body(s.Plan.Previous)
	text := previous
	if len(old) > 0 {
		var err error
		if text, err = s.summarize(ctx, step, s.Plan.Old, old, previous, false); err != nil {
			return "", err
		}
	}
	if len(turn) == 0 {
		return text, nil
	}
	begun := strings.Join(turn, "\n\n")
	if estimate.Text(begun) > literal {
		var err error
		if begun, err = s.summarize(ctx, step, s.Plan.Prefix, turn, "", true); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(text + "\n\n## Turn in progress\n\n" + begun), nil
}

// texts renders entries for a step: large messages are only listed.
func (s *summarizer) texts(entries []session.Entry, step string) []string {
	window := s.Window
	if step == session.StepPartial {
		window /= 8
	}
	return compact.RenderWithin(entries, window)
}

// summarize asks for a summary of texts, in as many calls as they need. Each call gets
// the summary of those before it.
func (s *summarizer) summarize(ctx context.Context, step string, of []session.Entry, texts []string, previous string,
	turn bool) (string, error) {
	ratio := compact.ChunkRatio(of, s.Window)
	if step == session.StepPartial {
		ratio /= 2 // what did not fit may fit now
	}
	limit := max(int(ratio*float64(s.Window))-compact.SummaryTokens(s.Window), s.Window/16)
	chunks := compact.Chunks(texts, limit)
	if n := len(chunks) - maxChunks; n > 0 {
		var early []string
		for _, c := range chunks[:n] {
			early = append(early, c...)
		}
		previous = compact.Extract(strings.Join(early, "\n\n"), previous,
			compact.SummaryTokens(s.Window)*estimate.BytesPerToken)
		chunks = chunks[n:]
	}
	for _, chunk := range chunks {
		r := compact.SummaryRequest{Texts: chunk, Previous: previous, Hint: s.Hint, Turn: turn, Config: s.Config}
		source := estimate.Text(previous)
		for _, t := range chunk {
			source += estimate.Text(t)
		}
		facts := s.facts
		if len(chunks) > 1 || turn || len(s.Plan.Prefix) > 0 {
			facts = nil // the chunk may contain none of them
		}
		text, err := s.ask(ctx, r, facts, source)
		if err != nil {
			return "", err
		}
		previous = text
	}
	return previous, nil
}

// ask makes a request until the model answers with a usable summary: once more after
// an error, and as often as configured after a bad answer.
func (s *summarizer) ask(ctx context.Context, r compact.SummaryRequest, facts []compact.Fact,
	source int) (string, error) {
	req := s.Request
	req.System, req.Messages, req.Tools = []llm.Block{{Text: r.System(), Cache: true}}, []*llm.Message{r.Message()}, nil
	failed, bad := 0, 0
	for {
		if s.out.Calls >= maxCalls {
			return "", fmt.Errorf("%d calls were not enough", maxCalls)
		}
		s.out.Calls++
		callCtx, cancel := context.WithTimeoutCause(ctx, s.Config.Timeout(), errTimeout)
		m, err := s.Call(callCtx, &req)
		if err != nil && callCtx.Err() != nil && ctx.Err() == nil {
			err = context.Cause(callCtx)
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(err, ErrStop):
			return "", err
		case err != nil:
			if failed++; failed > 1 || !repeatable(err) {
				return "", err
			}
			if backoff.Sleep(ctx, pause) != nil {
				return "", context.Cause(ctx)
			}
			continue
		}
		if err = compact.Check(m, facts, source); err == nil {
			return strings.TrimSpace(m.PlainText()), nil
		}
		if bad++; bad > s.Config.Retries() {
			return "", err
		}
		s.out.Rejected = append(s.out.Rejected, err.Error())
	}
}

var errTimeout = errors.New("the model did not answer in time")

// repeatable reports whether a request that failed may be made again.
func repeatable(err error) bool {
	switch llm.ClassOf(err) {
	case llm.ClassContext, llm.ClassAuth, llm.ClassBilling, llm.ClassNoModel, llm.ClassFormat:
		return false
	}
	return !errors.Is(err, errTimeout)
}

// note returns the text of the last step: how many messages are gone, the summary
// before them, and what was asked and answered.
func (s *summarizer) note() string {
	texts := compact.RenderWithin(append(s.Plan.Old[:len(s.Plan.Old):len(s.Plan.Old)], s.Plan.Prefix...), s.Window)
	source := 0
	for _, t := range texts {
		source += len(t)
	}
	room := min(compact.SummaryTokens(s.Window)*estimate.BytesPerToken/2, source/4)
	return strings.TrimSpace(compact.Note(s.Plan.Replaced()) + "\n\n" +
		compact.Extract(strings.Join(texts, "\n\n"), s.Plan.Previous, room))
}
