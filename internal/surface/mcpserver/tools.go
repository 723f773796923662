package mcpserver

import (
	"context"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Limits of the tools.
const (
	usualConversations, maxConversations = 50, 500
	usualMessages, maxMessages           = 20, 200
	usualWait, maxWait                   = 30 * time.Second, 5 * time.Minute
)

// bounded returns n, or usual if it is 0, at most most.
func bounded[T int | time.Duration](n, usual, most T) T {
	if n <= 0 {
		return usual
	}
	return min(n, most)
}

// add adds a tool. The results of f are the structured content and, as JSON, the text.
func add[In, Out any](m *sdk.Server, name, description string, reads bool, f func(context.Context, In) (Out, error)) {
	t := &sdk.Tool{Name: name, Description: description, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: reads}}
	sdk.AddTool(m, t, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		out, err := f(ctx, in)
		return nil, out, err
	})
}

func (s *server) addTools(m *sdk.Server) {
	add(m, "conversations_list", "List the conversations in chat apps, the newest first.", true, s.list)
	add(m, "conversation_get", "Describe a conversation.", true, s.get)
	add(m, "messages_read", "Read the last messages of a conversation, the oldest of them first.", true, s.read)
	add(m, "events_poll", "Return what happened after a cursor: messages of all conversations, and questions about permissions. The first cursor is 0. missed counts events that are not kept any more.", true, s.poll)
	add(m, "events_wait", "Wait for the next event after a cursor.", true, s.wait)
	add(m, "messages_send", "Write to the chat of a conversation, in the name of the assistant. The text may be Markdown.",
		false, s.send)
	add(m, "permissions_list_open", "List the questions about permissions that wait for a decision.", true, s.pending)
	add(m, "permissions_respond", "Decide a question about a permission: a person should have said so.", false, s.respond)
	s.addFetch(m)
}

// ListIn are the parameters of conversations_list.
type ListIn struct {
	Limit   int    `json:"limit,omitempty" jsonschema:"how many; 50 unless given, at most 500"`
	Search  string `json:"search,omitempty" jsonschema:"part of the key, name or title"`
	Channel string `json:"channel,omitempty" jsonschema:"of this chat app only, such as telegram"`
	Titles  bool   `json:"includeDerivedTitles,omitempty" jsonschema:"has no effect: titles are always included"`
	Last    bool   `json:"includeLastMessage,omitempty" jsonschema:"with the beginning of the last message"`
}

// ListOut is the result of conversations_list.
type ListOut struct {
	Conversations []Conversation `json:"conversations"`
}

func (s *server) list(ctx context.Context, in ListIn) (ListOut, error) {
	out, limit := ListOut{Conversations: []Conversation{}}, bounded(in.Limit, usualConversations, maxConversations)
	for offset := 0; len(out.Conversations) < limit; {
		var page wire.SessionList
		p := wire.SessionsList{Limit: maxConversations, Offset: offset, Search: in.Search, Preview: in.Last}
		if err := s.o.Client.Repeat(ctx, wire.MethodSessionsList, p, &page); err != nil {
			return out, err
		}
		for _, row := range page.Sessions {
			if c, ok := conversation(row); ok && (in.Channel == "" || strings.EqualFold(c.Channel, in.Channel)) &&
				len(out.Conversations) < limit {
				out.Conversations = append(out.Conversations, c)
			}
		}
		if page.Next == nil || *page.Next <= offset {
			break
		}
		offset = *page.Next
	}
	return out, nil
}

// KeyIn names a conversation.
type KeyIn struct {
	Key string `json:"session_key" jsonschema:"sessionKey of the conversation"`
}

// GetOut is the result of conversation_get.
type GetOut struct {
	Conversation Conversation `json:"conversation"`
}

func (s *server) get(ctx context.Context, in KeyIn) (GetOut, error) {
	c, err := s.find(ctx, in.Key)
	return GetOut{c}, err
}

// find returns a conversation.
func (s *server) find(ctx context.Context, key string) (Conversation, error) {
	var out wire.SessionDescribed
	if err := s.o.Client.Repeat(ctx, wire.MethodSessionsDescribe, wire.SessionsDescribe{Key: key}, &out); err != nil {
		return Conversation{}, err
	}
	if out.Session == nil {
		return Conversation{}, errNotFound(key)
	}
	c, ok := conversation(*out.Session)
	if !ok {
		return c, chela.Errorf(chela.CodeInvalid,
			"the session %s has no chat: it is one of the terminal or of another program", key)
	}
	return c, nil
}

// ReadIn are the parameters of messages_read.
type ReadIn struct {
	Key   string `json:"session_key" jsonschema:"sessionKey of the conversation"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many; 20 unless given, at most 200"`
}

// ReadOut is the result of messages_read.
type ReadOut struct {
	Messages []Message `json:"messages"`
}

func (s *server) read(ctx context.Context, in ReadIn) (ReadOut, error) {
	out := ReadOut{Messages: []Message{}}
	all, err := s.history(ctx, in.Key, bounded(in.Limit, usualMessages, maxMessages))
	for _, m := range all {
		out.Messages = append(out.Messages, message(m))
	}
	return out, err
}

// history returns the last n messages of people and the assistant, without those that have no
// text and no attachment.
func (s *server) history(ctx context.Context, key string, n int) (all []wire.Message, err error) {
	if _, err := s.find(ctx, key); err != nil {
		return nil, err
	}
	for offset := 0; len(all) < n; {
		var h wire.History
		if err := s.o.Client.Repeat(ctx, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: key, Limit: maxMessages, Offset: offset}, &h); err != nil {
			return nil, err
		}
		for _, m := range slices.Backward(h.Messages) {
			if v := message(m); (v.Role == "user" || v.Role == "assistant") &&
				(v.Text != "" || len(v.Attachments) > 0) && len(all) < n {
				all = append(all, m)
			}
		}
		if !h.HasMore || h.NextOffset <= offset {
			break
		}
		offset = h.NextOffset
	}
	slices.Reverse(all)
	return all, nil
}

// FetchIn are the parameters of attachments_fetch.
type FetchIn struct {
	Key     string `json:"session_key" jsonschema:"sessionKey of the conversation"`
	Message string `json:"message_id" jsonschema:"id of a message of messages_read"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many messages are looked through; 200 unless given, which is the most"`
}

// FetchOut is the result of attachments_fetch.
type FetchOut struct {
	Attachments []Attachment `json:"attachments"`
}

// addFetch adds attachments_fetch, whose result has the pictures that the gateway gives.
func (s *server) addFetch(m *sdk.Server) {
	t := &sdk.Tool{
		Name:        "attachments_fetch",
		Description: "Return the attachments of a message. Pictures are included unless they are large.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}
	sdk.AddTool(m, t,
		func(ctx context.Context, _ *sdk.CallToolRequest, in FetchIn) (*sdk.CallToolResult, FetchOut, error) {
			out := FetchOut{Attachments: []Attachment{}}
			all, err := s.history(ctx, in.Key, bounded(in.Limit, maxMessages, maxMessages))
			if err != nil {
				return nil, out, err
			}
			i := slices.IndexFunc(all, func(m wire.Message) bool { return m.Meta.ID == in.Message })
			if i < 0 {
				return nil, out, chela.Errorf(chela.CodeNotFound, "the last messages of %s have none with the id %s",
					in.Key, in.Message)
			}
			res := &sdk.CallToolResult{}
			for _, c := range all[i].Content {
				if c.Type == wire.ContentImage && len(c.Data) > 0 {
					res.Content = append(res.Content, &sdk.ImageContent{Data: c.Data, MIMEType: c.MIME})
				}
			}
			if out.Attachments = append(out.Attachments, message(all[i]).Attachments...); len(res.Content) == 0 {
				res = nil
			}
			return res, out, nil
		})
}

// PollIn are the parameters of events_poll.
type PollIn struct {
	After int64  `json:"after_cursor,omitempty" jsonschema:"next_cursor of the call before"`
	Key   string `json:"session_key,omitempty" jsonschema:"of this conversation only"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many; 20 unless given, at most 200"`
}

// PollOut is the result of events_poll and events_wait.
type PollOut struct {
	Events []Event `json:"events"`
	Next   int64   `json:"next_cursor"`
	Missed int64   `json:"missed,omitempty"`
	Note   string  `json:"note,omitempty"`
}

func (p page) out() PollOut {
	out := PollOut{Events: append([]Event{}, p.events...), Next: p.next, Missed: p.missed}
	if p.missed > 0 {
		out.Note = "events after that cursor are not kept; messages_read has all messages"
	}
	return out
}

func (s *server) poll(_ context.Context, in PollIn) (PollOut, error) {
	return s.events.after(in.After, in.Key, bounded(in.Limit, usualMessages, maxMessages)).out(), nil
}

// WaitIn are the parameters of events_wait.
type WaitIn struct {
	After   int64  `json:"after_cursor,omitempty" jsonschema:"next_cursor of the call before"`
	Key     string `json:"session_key,omitempty" jsonschema:"of this conversation only"`
	Timeout int    `json:"timeout_ms,omitempty" jsonschema:"how long; 30000 unless given, at most 300000"`
}

func (s *server) wait(ctx context.Context, in WaitIn) (PollOut, error) {
	limit := bounded(time.Duration(in.Timeout)*time.Millisecond, usualWait, maxWait)
	return s.events.wait(ctx, in.After, in.Key, limit).out(), nil
}

// SendIn are the parameters of messages_send.
type SendIn struct {
	Key  string `json:"session_key" jsonschema:"sessionKey of the conversation"`
	Text string `json:"text"`
}

// SendOut is the result of messages_send.
type SendOut struct {
	Status string   `json:"status"`
	Text   string   `json:"text"`
	IDs    []string `json:"messageIds,omitempty"`
}

func (s *server) send(ctx context.Context, in SendIn) (SendOut, error) {
	if strings.TrimSpace(in.Text) == "" {
		return SendOut{}, chela.Errorf(chela.CodeInvalid, "text is empty")
	}
	c, err := s.find(ctx, in.Key)
	if err != nil {
		return SendOut{}, err
	}
	p := wire.Send{Channel: c.Channel, To: c.To, Account: c.AccountID, Thread: c.ThreadID, Message: in.Text, Key: newKey()}
	var out wire.MessageResult
	if err := s.o.Client.Repeat(ctx, wire.MethodSend, p, &out); err != nil {
		return SendOut{}, err
	}
	return SendOut{Status: out.Status, Text: out.Text, IDs: out.IDs}, nil
}

// PendingOut is the result of permissions_list_open.
type PendingOut struct {
	Approvals []Permission `json:"approvals"`
}

func (s *server) pending(ctx context.Context, _ struct{}) (PendingOut, error) {
	out := PendingOut{Approvals: []Permission{}}
	var all []wire.Approval
	if err := s.o.Client.Repeat(ctx, wire.MethodApprovalList, wire.None{}, &all); err != nil {
		return out, err
	}
	for _, a := range all {
		out.Approvals = append(out.Approvals, permission(a))
	}
	return out, nil
}

// RespondIn are the parameters of permissions_respond.
type RespondIn struct {
	Kind     string `json:"kind,omitempty" jsonschema:"exec, or plugin; has no effect"`
	ID       string `json:"id" jsonschema:"of permissions_list_open"`
	Decision string `json:"decision" jsonschema:"allow-once, allow-always or deny"`
}

// RespondOut is the result of permissions_respond.
type RespondOut struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
}

func (s *server) respond(ctx context.Context, in RespondIn) (RespondOut, error) {
	all := []string{"allow-once", "allow-always", "deny"}
	if !slices.Contains(all, in.Decision) {
		return RespondOut{}, chela.Errorf(chela.CodeInvalid, "decision is %q; want %s", in.Decision, strings.Join(all, ", "))
	}
	err := s.o.Client.Repeat(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: in.ID, Decision: in.Decision}, nil)
	return RespondOut{in.ID, in.Decision}, err
}
