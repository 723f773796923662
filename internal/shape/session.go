package shape

import (
	"cmp"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Rows makes session rows.
type Rows struct {
	// Model returns the model that the session's next run asks first.
	Model func(session.Meta) wire.SessionModel
}

// Session returns a session as lists show it, as r knows it.
func (s Rows) Session(r store.Reader, m session.Meta) (wire.Session, error) {
	runs, err := r.Runs().Active(m.Key)
	if err != nil {
		return wire.Session{}, err
	}
	waiting, err := r.Queue().Waiting(m.Key)
	if err != nil {
		return wire.Session{}, err
	}
	return s.Row(m, runs, len(waiting)), nil
}

// Row returns a session of which the active runs and the number of waiting
// messages are known.
func (s Rows) Row(m session.Meta, active []run.Run, waiting int) wire.Session {
	model := s.Model(m)
	row := wire.Session{
		Key: string(m.Key), Kind: Kind(m.Key, m.Address), AgentID: string(cmp.Or(m.Agent, m.Key.Agent())),
		SessionID: m.ID, Label: m.Label, DisplayName: m.Label, Title: m.Title, Channel: m.Address.Channel,
		CreatedAt: wire.At(m.Created), StartedAt: wire.At(m.Started), UpdatedAt: wire.At(m.Updated), ActiveAt: wire.At(m.Active),
		Provider: model.Provider, Model: model.Model, ContextWindow: model.ContextWindow,
		Thinking: m.Think, Verbose: m.Verbose, UsageLine: m.Usage, QueueMode: m.Queue.Mode,
		InputTokens: m.Tokens.Input, OutputTokens: m.Tokens.Output, CacheRead: m.Tokens.CacheRead, CacheWrite: m.Tokens.CacheWrite,
		TotalTokens: m.Context, TotalFresh: m.Context > 0,
		Runs: []string{}, Aborted: m.Aborted, Queued: waiting,
	}
	if m.Priced {
		c := Dollars(m.NanoUSD)
		row.Cost = &c
	}
	for _, r := range active {
		if r.State == run.Suspended {
			row.Status = cmp.Or(row.Status, "waiting")
			continue
		}
		row.Active, row.Status = true, "running"
		row.Runs = append(row.Runs, string(r.ID))
	}
	return row
}

// Entry returns a session as methods that change it return it.
func Entry(m session.Meta) wire.SessionEntry {
	return wire.SessionEntry{
		SessionID: m.ID, Label: m.Label, Model: m.Model, Thinking: m.Think, Verbose: m.Verbose, UsageLine: m.Usage,
		QueueMode: m.Queue.Mode, CreatedAt: wire.At(m.Created), StartedAt: wire.At(m.Started), UpdatedAt: wire.At(m.Updated),
	}
}

// Reply says whether a run ended with something to show.
func Reply(text string, silent bool) *wire.Reply {
	switch {
	case silent:
		return &wire.Reply{Disposition: "silent"}
	case text == "":
		return &wire.Reply{Disposition: "empty"}
	}
	return &wire.Reply{Disposition: "visible", Text: text}
}

// Kind returns what kind of place a session is: direct or group.
func Kind(key chela.SessionKey, a chela.Address) string {
	if a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room || strings.Contains(string(key), ":group:") {
		return "group"
	}
	return "direct"
}
