package client

import (
	"cmp"
	"context"
	"crypto/rand"

	"github.com/chela-ai/chela/wire"
)

// Send sends a message to a session and returns the id of the run that answers
// it. The run's chat events end with exactly one final, aborted or error.
func (c *Client) Send(ctx context.Context, session, text string, files ...wire.Attachment) (run string, err error) {
	sent, err := c.Chat(ctx, wire.ChatSend{SessionKey: session, Message: text, Attachments: files})
	return sent.RunID, err
}

// Chat sends a message. The message is delivered exactly once, even if the
// connection is lost: it is sent again with the same idempotency key. An empty
// key is replaced by a generated one.
func (c *Client) Chat(ctx context.Context, p wire.ChatSend) (wire.ChatSent, error) {
	p.IdempotencyKey = cmp.Or(p.IdempotencyKey, rand.Text())
	var sent wire.ChatSent
	err := c.Repeat(ctx, wire.MethodChatSend, p, &sent)
	return sent, err
}

// History returns the newest messages of a session, at most limit (0: 200),
// with the queue and the active run.
func (c *Client) History(ctx context.Context, session string, limit int) (wire.History, error) {
	var h wire.History
	err := c.Repeat(ctx, wire.MethodChatHistory, wire.ChatHistory{SessionKey: session, Limit: limit}, &h)
	return h, err
}

// Abort stops a run of a session. With an empty run it stops the active run and
// clears the queue.
func (c *Client) Abort(ctx context.Context, session, run string) (wire.ChatAborted, error) {
	var a wire.ChatAborted
	err := c.Call(ctx, wire.MethodChatAbort, wire.ChatAbort{SessionKey: session, RunID: run}, &a)
	return a, err
}
