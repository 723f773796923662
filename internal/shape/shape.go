// Package shape shows the nouns in the shapes of the gateway protocol. Methods
// and the gateway share it, so that a message looks the same in the history
// and in an event.
package shape

import (
	"strings"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/wire"
)

// MaxImage bounds the data of an image that is shown inline; of a larger one
// only the size is.
const MaxImage = 512 << 10

// Messages returns an entry of a transcript as clients show it: none when it is
// not shown, two for a slash command and its answer.
func Messages(e session.Entry) []wire.Message {
	m, ok := Message(e)
	if !ok {
		return nil
	}
	word, reply, split := strings.Cut(e.Text, "\n")
	if e.Kind != session.KindCommand || e.ItemID == "" || !split {
		return []wire.Message{m}
	}
	asked := m
	asked.Role, asked.Content, asked.IdempotencyKey = wire.RoleUser, wire.TextContent(word), e.ItemID+":user"
	asked.Meta.ID, asked.Meta.IdempotencyKey = e.ID+":command", asked.IdempotencyKey
	m.Role, m.Content = wire.RoleAssistant, wire.TextContent(reply)
	return []wire.Message{asked, m}
}

// Message returns an entry of a transcript; false for entries that are not
// shown.
func Message(e session.Entry) (wire.Message, bool) {
	m := wire.Message{
		Timestamp: wire.At(e.Time),
		Meta:      wire.MessageMeta{ID: e.ID, Seq: e.Seq, RunID: string(e.Run)},
	}
	switch e.Kind {
	case session.KindMessage:
		if e.Message == nil || silent(e.Message) {
			return m, false
		}
		message(&m, e)
	case session.KindNotice, session.KindCommand:
		m.Role = wire.RoleSystem
		m.Content = wire.TextContent(e.Text)
		m.Meta.Kind = string(e.Kind)
	default:
		return m, false
	}
	return m, true
}

// silent reports whether a model said nothing, and nothing else.
func silent(m *llm.Message) bool {
	return m.Role == llm.RoleAssistant && len(m.Calls()) == 0 && Silent(m.PlainText(), true)
}

// message fills in what was said.
func message(m *wire.Message, e session.Entry) {
	m.Role = string(e.Message.Role)
	m.Content = contents(e.Message.Parts)
	switch e.Message.Role {
	case llm.RoleUser:
		if e.ItemID == "" && strings.HasPrefix(e.Message.PlainText(), "[System") { // Chela's own words to the model
			m.Role, m.Meta.Kind = wire.RoleSystem, string(session.KindNotice)
			return
		}
		if e.ItemID != "" {
			m.IdempotencyKey = e.ItemID + ":user"
			m.Meta.IdempotencyKey = m.IdempotencyKey
		}
	case llm.RoleAssistant:
		m.Provider, m.Model = e.Message.Provider, e.Message.Model
		m.StopReason = string(e.Message.Stop)
		m.Usage = usageOf(e)
		if e.Partial {
			m.Abort = &wire.Abort{Aborted: true, Origin: "rpc", RunID: string(e.Run)}
		}
	case llm.RoleTool:
		m.ToolCallID, m.ToolName, m.IsError = e.Message.CallID, e.Message.ToolName, e.Message.IsError
		m.Details = e.Details
		m.Meta.Truncated = e.Cut
	}
}

func usageOf(e session.Entry) *wire.Usage {
	if e.Usage == nil {
		return nil
	}
	u := Usage(*e.Usage)
	if e.NanoUSD >= 0 {
		u.Cost = &wire.Cost{Total: Dollars(e.NanoUSD)}
	}
	return &u
}

// Usage returns the tokens of a call, without a cost.
func Usage(u llm.Usage) wire.Usage {
	return wire.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Total: u.Total()}
}

// Dollars returns billionths of a dollar in dollars.
func Dollars(nano int64) float64 { return float64(nano) / 1e9 }

// contents returns the parts that people see.
func contents(parts []llm.Part) wire.Contents {
	out := make(wire.Contents, 0, len(parts))
	for _, p := range parts {
		switch p.Kind {
		case llm.PartText:
			out = append(out, wire.Content{Type: wire.ContentText, Text: p.Text})
		case llm.PartThinking:
			if p.Text != "" {
				out = append(out, wire.Content{Type: wire.ContentThinking, Thinking: p.Text})
			}
		case llm.PartCall:
			out = append(out, wire.Content{Type: wire.ContentCall, ID: p.Call.ID, Name: p.Call.Name, Arguments: p.Call.Args})
		case llm.PartImage:
			c := wire.Content{Type: wire.ContentImage, MIME: p.MIME, Bytes: p.Size()}
			if len(p.Data) <= MaxImage && len(p.Data) > 0 {
				c.Data, c.Bytes = p.Data, 0
			}
			out = append(out, c)
		}
	}
	return out
}

// Approval returns a request that waits for a person.
func Approval(r approval.Request) wire.Approval {
	return wire.Approval{ID: r.ID, Request: approvalRequest(r), Created: wire.At(r.Created), Expires: wire.At(r.Expires)}
}

// Resolved returns a request that was decided.
func Resolved(r approval.Request) wire.ApprovalResolved {
	return wire.ApprovalResolved{
		ID: r.ID, Decision: string(r.Decision), By: r.Decider(), Time: wire.At(r.Decided), Request: approvalRequest(r),
	}
}

func approvalRequest(r approval.Request) wire.ApprovalRequest {
	return wire.ApprovalRequest{
		Command: r.Text, Reason: r.Reason, Tool: r.Tool, Once: r.Once,
		AgentID: string(r.Session.Agent()), SessionKey: string(r.Session), RunID: string(r.Run),
	}
}

// Status returns how a run ended, in the words of the protocol.
func Status(outcome string) string {
	switch outcome {
	case "ok":
		return wire.StatusOK
	case "timeout":
		return wire.StatusTimeout
	}
	return wire.StatusError
}

// Silent reports whether s is, or may still become, the token by which a model
// says nothing. Whole says that s is all of the text.
func Silent(s string, whole bool) bool {
	s = strings.TrimSpace(s)
	if len(s) > len(silence) || whole && len(s) < len(silence) {
		return false
	}
	return strings.EqualFold(s, silence[:len(s)])
}

const silence = "NO_REPLY"
