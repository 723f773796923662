package wireview

import (
	"cmp"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/wire"
)

// Rows builds session rows.
type Rows struct {
	// Model returns the model of the session's next run.
	Model func(session.Meta) wire.SessionModel
	// Show loads the pictures of messages.
	Show Show
	// Subagents returns the settings of the subagents of an agent; nil: rows do not
	// say what a session may do with subagents.
	Subagents func(chela.AgentID) subagent.Config
	// Sends reports whether what a session says is sent to a chat; nil:
	// [session.SendAlways].
	Sends func(session.Meta, chela.Address) bool
}

// Session returns the row of a session, reading its runs and queue from r.
func (s Rows) Session(r store.Reader, m session.Meta) (wire.Session, error) {
	runs, err := r.Runs().Active(m.Key)
	if err != nil {
		return wire.Session{}, err
	}
	waiting, err := r.Queue().Waiting(m.Key)
	if err != nil {
		return wire.Session{}, err
	}
	return s.Row(m, runs, queue.Messages(waiting)), nil
}

// Row returns the row of a session with its active runs and number of queued
// messages.
func (s Rows) Row(m session.Meta, active []run.Run, waiting int) wire.Session {
	model := s.Model(m)
	row := wire.Session{
		Key:         string(m.Key),
		Kind:        Kind(m.Key, m.Address),
		AgentID:     string(cmp.Or(m.Agent, m.Key.Agent())),
		SessionID:   m.ID,
		Label:       m.Label,
		DisplayName: m.Label,
		Title:       m.Title,
		Channel:     m.Address.Channel,
		AccountID:   string(m.Address.Account),
		Category:    m.Category,
		Icon:        m.Icon,
		Color:       m.Color,
		Main:        m.Key == chela.MainSession(m.Key.Agent()),
		Background:  background(m.Key),
		CreatedAt:   wire.At(m.Created),
		SinceAt:     wire.At(m.Started),
		UpdatedAt:   wire.At(m.Updated),
		ActiveAt:    wire.At(m.Active),
		AnsweredAt:  wire.At(m.Answered),
		ReadAt:      wire.At(m.Read),
		UnreadAt:    wire.At(m.Unread),
		Unread:      unread(m),
		Archived:    !m.Archived.IsZero(),
		ArchivedAt:  wire.At(m.Archived),
		Pinned:      !m.Pinned.IsZero(),

		PinnedAt:      wire.At(m.Pinned),
		Provider:      model.Provider,
		Model:         model.Model,
		ContextWindow: model.ContextWindow,
		Levels:        model.Levels,
		Options:       model.Options,
		Default:       model.Default,
		Thinking:      m.Think,
		Fast:          llm.Fast(m.Fast).Wire(),
		Verbose:       m.Verbose,
		UsageLine:     m.Usage,
		QueueMode:     m.Queue.Mode,
		InputTokens:   m.Tokens.Input,
		OutputTokens:  m.Tokens.Output,
		CacheRead:     m.Tokens.CacheRead,

		CacheWrite:  m.Tokens.CacheWrite,
		TotalTokens: m.Context,
		TotalFresh:  m.Context > 0,
		Runs:        []string{},
		Aborted:     m.Aborted,
		Queued:      waiting,
	}
	row.ChatType, row.SessionExec = row.Kind, execOf(m)
	if row.Main {
		row.Class = chela.MainKey
	}
	if !m.Address.Local() {
		row.SendPolicy = sendAction(s.sends(m))
		row.Delivery = delivery(m.Address)
	}
	if m.Model != "" {
		row.Override = "user"
	}
	if m.Priced {
		c := Dollars(m.NanoUSD)
		row.Cost = &c
	}
	row.SpawnedBy, row.SpawnDepth = string(m.Bounds.SpawnedBy), m.Depth()
	if s.Subagents != nil {
		role := s.Subagents(cmp.Or(m.Agent, m.Key.Agent())).RoleAt(m.Depth())
		row.ControlScope = role.ControlScope()
		if role != subagent.Main { // which the protocol does not know as a role
			row.Role = string(role)
		}
	}
	for _, r := range active {
		if r.State == run.Suspended {
			row.Waiting = true
			continue
		}
		row.Active, row.Status, row.StartedAt = true, string(run.Running), wire.At(r.Started)
		row.Runs = append(row.Runs, string(r.ID))
	}
	return row
}

func (s Rows) sends(m session.Meta) bool {
	if s.Sends == nil {
		return session.SendAlways(m, m.Address)
	}
	return s.Sends(m, m.Address)
}

// sendAction returns the protocol's word for whether answers are sent.
func sendAction(sends bool) string {
	if sends {
		return "allow"
	}
	return "deny"
}

// unread reports whether there is an answer that no person has read.
func unread(m session.Meta) bool { return !m.Unread.IsZero() || m.Answered.After(m.Read) }

// background reports whether the session is one without a person.
func background(key chela.SessionKey) bool {
	switch key.Kind() {
	case chela.KeySubagent, chela.KeyCron, chela.KeyHook:
		return true
	}
	return false
}

// SessionModel returns the model of a session; think is the default level.
func SessionModel(m llm.Model, think llm.Level) wire.SessionModel {
	out := wire.SessionModel{
		Provider:      m.Provider,
		Model:         m.ID,
		ContextWindow: int64(m.Context),
		Levels:        Levels(m),
		Default:       string(cmp.Or(think, llm.Off)),
	}
	for _, l := range out.Levels {
		out.Options = append(out.Options, l.Label)
	}
	return out
}

// Entry returns a session as returned by methods that change it.
func Entry(m session.Meta) wire.SessionEntry {
	send := ""
	if m.Send != "" {
		send = sendAction(m.Send != session.SendOff)
	}
	return wire.SessionEntry{
		SendPolicy:  send,
		SessionID:   m.ID,
		Label:       m.Label,
		Category:    m.Category,
		Icon:        m.Icon,
		Color:       m.Color,
		Model:       m.Model,
		Thinking:    m.Think,
		Fast:        llm.Fast(m.Fast).Wire(),
		Verbose:     m.Verbose,
		UsageLine:   m.Usage,
		QueueMode:   m.Queue.Mode,
		CreatedAt:   wire.At(m.Created),
		SinceAt:     wire.At(m.Started),
		UpdatedAt:   wire.At(m.Updated),
		ArchivedAt:  wire.At(m.Archived),
		PinnedAt:    wire.At(m.Pinned),
		ReadAt:      wire.At(m.Read),
		UnreadAt:    wire.At(m.Unread),
		Compactions: m.Compactions,
		SessionExec: execOf(m),
	}
}

// execOf returns the restrictions of the commands of a session.
func execOf(m session.Meta) wire.SessionExec {
	return wire.SessionExec{ExecHost: m.Exec.Host, ExecSecurity: m.Exec.Security, ExecAsk: m.Exec.Ask}
}

// Reply says whether a run ended with visible output.
func Reply(text string, silent bool) *wire.Reply {
	switch {
	case silent:
		return &wire.Reply{Disposition: "silent"}
	case text == "":
		return &wire.Reply{Disposition: "empty"}
	}
	return &wire.Reply{Disposition: "visible", Text: text}
}

// delivery returns the chat of an address.
func delivery(a chela.Address) *wire.DeliveryContext {
	to := a.Peer.ID
	if a.Peer.Kind != "" {
		to = string(a.Peer.Kind) + ":" + to
	}
	return &wire.DeliveryContext{Channel: a.Channel, To: to, AccountID: string(a.Account), ThreadID: a.Thread}
}

// Kind returns the kind of conversation: direct or group.
func Kind(key chela.SessionKey, a chela.Address) string {
	if a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room || key.Kind() == chela.KeyGroup {
		return "group"
	}
	return "direct"
}

// ByShortID returns the sessions whose keys end in a UUID with the prefix
// short, 8 to 32 hexadecimal digits.
func ByShortID(r session.Reader, agent chela.AgentID, short string) ([]session.Meta, error) {
	short = strings.ToLower(short)
	if len(short) < 8 || len(short) > 32 || strings.Trim(short, "0123456789abcdef") != "" {
		return nil, wire.Errorf(wire.InvalidRequest, "shortId must be 8-32 hexadecimal characters")
	}
	list, _, err := r.List(session.Query{Agent: agent, Search: short[:8], Archived: session.ArchivedToo, Limit: 1000})
	var out []session.Meta
	for _, m := range list {
		key := string(m.Key)
		tail := key[max(0, len(key)-36):]
		if strings.Count(tail, "-") == 4 && strings.HasPrefix(strings.ReplaceAll(tail, "-", ""), short) {
			out = append(out, m)
		}
	}
	return out, err
}
