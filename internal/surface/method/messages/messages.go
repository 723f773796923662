// Package messages implements the methods that act on chats of messaging channels: send,
// poll and message.action. They read the parameters; engine/message carries the actions out.
package messages

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	// Do carries out an action.
	Do    func(context.Context, action.Request) (action.Result, error)
	Files *media.Files // that are sent
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodSend, wire.RoleOperator, chela.ScopeWrite, o.send).
			Ignoring("agentId", "asVoice", "forceDocument", "gifPlayback", "parseMode", "sessionKey", "silent"),
		rpc.New(wire.MethodPoll, wire.RoleOperator, chela.ScopeWrite, o.poll).Ignoring("silent"),
		rpc.New(wire.MethodMessageAction, wire.RoleOperator, chela.ScopeWrite, o.action).
			Ignoring("agentId", "inboundTurnKind", "requesterAccountId", "requesterSenderId", "sessionId",
				"sessionKey", "toolContext"),
	}
}

// maxKey is the length of an idempotency key in bytes.
const maxKey = 256

func (o Options) send(ctx context.Context, p rpc.Peer, in wire.Send) (wire.MessageResult, error) {
	if in.Key == "" {
		return wire.MessageResult{}, errNoKey
	}
	var files []wire.MessageFile
	if len(in.Buffer) > 0 {
		files = append(files, wire.MessageFile{Name: in.Filename, Type: in.Type, Data: in.Buffer})
	}
	media := in.MediaURLs
	if in.MediaURL != "" {
		media = append([]string{in.MediaURL}, media...)
	}
	return o.do(ctx, p, action.Request{
		Action:  action.Send,
		To:      in.To,
		Channel: in.Channel,
		Account: in.Account,
		Thread:  in.Thread,
		Text:    in.Message,
		ReplyTo: in.ReplyTo,
		Key:     in.Key,
	}, media, files)
}

var errNoKey = rpc.Invalid("at /idempotencyKey: must NOT have fewer than 1 characters")

func (o Options) poll(ctx context.Context, p rpc.Peer, in wire.Poll) (wire.MessageResult, error) {
	if in.Key == "" {
		return wire.MessageResult{}, errNoKey
	}
	return o.do(ctx, p, action.Request{
		Action: action.Poll, To: in.To, Channel: in.Channel, Account: in.Account, Thread: in.Thread, Key: in.Key,
		Poll: outbox.Poll{
			Question: in.Question, Options: in.Options, Multiple: in.Most > 1, Public: in.Anonymous != nil && !*in.Anonymous,
			Open: time.Duration(in.Hours)*time.Hour + time.Duration(in.Seconds)*time.Second,
		},
	}, nil, nil)
}

// do carries out a request with files.
func (o Options) do(ctx context.Context, p rpc.Peer, r action.Request, media []string,
	files []wire.MessageFile) (wire.MessageResult, error) {
	if len(r.Key) > maxKey {
		return wire.MessageResult{}, rpc.Invalid("at /idempotencyKey: must NOT have more than 256 characters")
	}
	p.Yield()
	var err error
	if r.Media, err = o.media(media, files, r.Dry); err != nil {
		return wire.MessageResult{}, err
	}
	res, err := o.Do(ctx, r)
	if err != nil {
		return wire.MessageResult{}, err
	}
	out := result(res)
	out.RunID = r.Key
	return out, nil
}

// result returns what became of a request as clients see it.
func result(r action.Result) wire.MessageResult {
	out := wire.MessageResult{
		OK:      !r.Bad() && r.Status != action.Partial,
		Action:  string(r.Action),
		Status:  string(r.Status),
		Text:    r.Text,
		Channel: r.Channel,
		Account: string(r.Account),
		To:      r.To,
		IDs:     r.IDs,
		Thread:  r.Thread,
		DryRun:  r.Status == action.Planned,
	}
	if len(r.IDs) > 0 {
		out.MessageID = r.IDs[0]
	}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, wire.ChannelMessage{
			ID:     m.ID,
			Sender: m.Sender.ID,
			Name:   m.Sender.Name,
			Own:    m.Own,
			Text:   m.Text,
			Time:   wire.At(m.Time),
		})
	}
	for _, e := range r.Entries {
		kind := string(e.Peer.Kind)
		if e.Peer.Kind == chela.Direct {
			kind = "user"
		}
		out.Entries = append(out.Entries, wire.DirectoryEntry{ID: e.Peer.ID, Kind: kind, Name: e.Name, Handle: e.Handle})
	}
	for _, t := range r.Targets {
		out.Targets = append(out.Targets, result(t))
	}
	return out
}
