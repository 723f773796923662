// Package wireview converts records to the types of the gateway protocol. Methods and the gateway
// share it, so that a message is the same in the history and in an event.
//
// It decides what a client may see of a record: hidden entries have no message, an answer that
// says nothing is not shown, large pictures are named but not sent. It reads only through the
// readers and functions that it is given, and changes nothing.
package wireview

import (
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/wire"
)

// MaxImage is the maximum size of an image included in a message. Of a larger
// image only the size is shown.
const MaxImage = 512 << 10

// Messages returns the messages of a transcript entry: none if it is hidden,
// two for a slash command and its answer.
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

// Message returns the message of a transcript entry; false if it is hidden.
func Message(e session.Entry) (wire.Message, bool) {
	m := wire.Message{
		Timestamp: wire.At(e.Time),
		Meta:      wire.MessageMeta{ID: e.ID, Seq: e.Seq, RunID: string(e.Run)},
	}
	switch e.Kind {
	case session.KindMessage:
		if e.Message == nil || silent(e.Message, e.Run) {
			return m, false
		}
		if strings.HasPrefix(string(e.Run), session.AutoCompact) {
			return m, false
		}
		if heartbeat.IsRun(e.Run) && (e.Message.Role != llm.RoleAssistant || len(e.Message.Calls()) > 0) {
			return m, false // only the alert is shown
		}
		message(&m, e)
	case session.KindNotice, session.KindCommand:
		m.Role = wire.RoleSystem
		m.Content = wire.TextContent(e.Text)
		m.Meta.Kind = string(e.Kind)
		if e.Message != nil && e.Message.Role == "" {
			m.Content = contents(e.Message.Parts)
			if e.Text != "" {
				m.Content = append(wire.TextContent(e.Text), m.Content...)
			}
		}
	default:
		return m, false
	}
	return m, true
}

// silent reports whether an answer is only the silent reply token.
func silent(m *llm.Message, of chela.RunID) bool {
	return m.Role == llm.RoleAssistant && len(m.Calls()) == 0 && Silent(m.PlainText(), of, true)
}

// message sets the role and the content of a message.
func message(m *wire.Message, e session.Entry) {
	m.Role = string(e.Message.Role)
	m.Content = contents(e.Message.Parts)
	switch e.Message.Role {
	case llm.RoleUser:
		if k := e.Origin.Kind; (e.ItemID == "" || e.Origin.Exchange != "") && k != "" && k != chela.OriginPerson {
			m.Role, m.Meta.Kind = wire.RoleSystem, string(session.KindNotice)
			m.Content = event(m.Content, k)
			return
		}
		for i := range m.Content { // the heading of a file that the person attached stays, its text does not
			m.Content[i].Text = untrusted.Without(m.Content[i].Text, session.DocumentHeading)
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

// event returns what a person is shown of an event for the model. The result of a subagent
// or a job is left out: the model tells it in its own words.
func event(c wire.Contents, from chela.OriginKind) wire.Contents {
	if len(c) == 0 {
		return c
	}
	text := strings.TrimPrefix(c[0].Text, llm.EventPrefix)
	if due, ok := job.ParseDue(text); ok && from == chela.OriginCron {
		text = "⏰ " + due.Text
		if due.Late != "" {
			text += " (late: it was due " + due.Late + ")"
		}
	} else if title, note, _, ok := job.ParseResult(text); ok && from == chela.OriginCron {
		text = strings.TrimSpace(fmt.Sprintf("The scheduled job %q has ended. %s", title, note))
	} else if from == chela.OriginProcess {
		if i := strings.LastIndex(text, "\n\n["); i >= 0 && strings.HasSuffix(text, "]") {
			text = text[:i] // a note for the model
		}
	} else if from == chela.OriginSubagent || from == chela.OriginCron {
		text, _, _ = strings.Cut(text, "\n")
	}
	c[0].Text = untrusted.Plain(text)
	return c
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

// Usage returns the token counts of a call, without the cost.
func Usage(u llm.Usage) wire.Usage {
	return wire.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Total: u.Total()}
}

// Dollars converts nano-dollars to dollars.
func Dollars(nano int64) float64 { return float64(nano) / 1e9 }

// contents returns the visible parts.
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
			out = append(out, wire.Content{
				Type:      wire.ContentCall,
				ID:        p.Call.ID,
				Name:      p.Call.Name,
				Arguments: p.Call.Args,
				Title:     p.Call.Title,
			})
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

// Approval returns a pending approval.
func Approval(r approval.Request) wire.Approval {
	return wire.Approval{ID: r.ID, Request: approvalRequest(r), Created: wire.At(r.Created), Expires: wire.At(r.Expires)}
}

// Resolved returns a resolved approval.
func Resolved(r approval.Request) wire.ApprovalResolved {
	return wire.ApprovalResolved{
		ID: r.ID, Decision: string(r.Decision), By: r.Decider(), Time: wire.At(r.Decided), Request: approvalRequest(r),
	}
}

func approvalRequest(r approval.Request) wire.ApprovalRequest {
	return wire.ApprovalRequest{
		Command:    r.Text,
		Reason:     r.Reason,
		Tool:       r.Tool,
		Once:       r.Once,
		AgentID:    string(r.Session.Agent()),
		SessionKey: string(r.Session),
		RunID:      string(r.Run),
		RootRunID:  string(r.Root),
		AskedKey:   string(r.Asked),
	}
}

// Status returns the protocol's name of a run's outcome.
func Status(outcome chela.Outcome) string {
	switch outcome {
	case chela.OutcomeOK:
		return wire.StatusOK
	case chela.OutcomeTimeout:
		return wire.StatusTimeout
	}
	return wire.StatusError
}

// Silent reports whether s is a token that stands for no answer of a run or, unless whole,
// may become the one that every run may give.
func Silent(s string, of chela.RunID, whole bool) bool {
	if heartbeat.IsRun(of) {
		a := run.AnswerTo(chela.Origin{Kind: chela.OriginHeartbeat})
		return a.Silent(s) || !whole && a.MayBeSilent(s)
	}
	if whole {
		return run.AnswerTo(chela.Origin{Kind: chela.OriginAgent}).Silent(s)
	}
	return run.Answer{}.MayBeSilent(s)
}
