package spawn

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxHistory limits the history that a fork inherits, in bytes.
const maxHistory = 4 << 20

// history returns the entries with the history that a fork inherits: the messages that
// the model of the requester was sent, with a result for each call. They are copies, so
// that nothing that happens to the requester's transcript later changes them. A
// conversation that is too long is not inherited; the warning says so.
func (s *Spawner) history(ctx context.Context, r subagent.Request, parent session.Meta) (list []*session.Entry,
	warning string, err error) {
	entries, err := store.Get(ctx, s.o.Store, func(rd store.Reader) ([]session.Entry, error) {
		by, err := rd.Runs().Get(r.Run)
		if err != nil {
			return nil, err
		}
		return rd.Sessions().Entries(by.SessionID, 0, 0)
	})
	if err != nil {
		return nil, "", fmt.Errorf("the history of the run that spawns: %w", err)
	}
	messages := session.Compile(withResults(entries))
	limit := s.o.Config.ForkTokens()
	if n := cmp.Or(parent.Context, int64(estimate.Messages(messages...))); limit > 0 && n > limit {
		return nil, fmt.Sprintf("the subagent begins without this conversation, because it has %s tokens and a subagent inherits at most %s (session.parentForkMaxTokens); send it what it has to know",
			humanize.Count(n), humanize.Count(limit)), nil
	}
	list, err = inherited(messages, time.Now())
	return list, "", err
}

// inherited returns the history that a fork inherits.
func inherited(messages []*llm.Message, now time.Time) ([]*session.Entry, error) {
	var out []*session.Entry
	size := 0
	for _, m := range messages {
		size += m.Size()
		out = append(out, &session.Entry{ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Message: m, NanoUSD: -1})
	}
	if size > maxHistory {
		return nil, chela.Errorf(chela.CodeInvalid,
			"context fork: the conversation has %s, at most %s can be inherited; use context isolated, and describe in the task what matters",
			humanize.Bytes(int64(size)), humanize.Bytes(maxHistory))
	}
	return out, nil
}

// withResults adds a result for each call of the last answer. Those of calls that have
// one already are ignored, see session.Compile.
func withResults(entries []session.Entry) []session.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		m := entries[i].Message
		if m == nil || m.Role != llm.RoleAssistant {
			continue
		}
		for _, c := range m.Calls() {
			entries = append(entries, session.Entry{Kind: session.KindMessage, Message: &llm.Message{
				Role: llm.RoleTool, CallID: c.ID, ToolName: c.Name, Parts: []llm.Part{llm.Text(subagent.OpenCall)},
			}})
		}
		break
	}
	return entries
}

// fork gives a child the model and the prompt of the run that spawns it. It returns why
// the child cannot be a fork.
func (s *Spawner) fork(m *session.Meta, parent session.Meta, by run.Run, r subagent.Request) error {
	model := cmp.Or(by.Overrides.Model, parent.Model)
	switch {
	case m.Agent != parent.Agent:
		return chela.Errorf(chela.CodeInvalid,
			"context fork: a fork has the agent of its requester, %q; leave agentId out, or use context isolated", parent.Agent)
	case r.Model != "" && r.Model != model:
		return chela.Errorf(chela.CodeInvalid,
			"context fork: a fork has the model of its requester; leave model out, or use context isolated")
	case s.o.Config.Sandboxed(*m) != s.o.Config.Sandboxed(parent):
		return chela.Errorf(chela.CodeForbidden,
			"context fork: a subagent is sandboxed here and this session is not, so that it would work in another folder; use context isolated")
	}
	f := parent.ForkOf(by)
	m.Fork, m.Model, m.Think, m.Fast, m.Context = &f, model, cmp.Or(by.Overrides.Think, parent.Think),
		cmp.Or(by.Overrides.Fast, parent.Fast), parent.Context
	return nil
}
