package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// A message is sent, and its answer is read from the events as it comes.
func Example() {
	h := newParrot()
	ctx := context.Background()

	c, err := client.Dial(ctx, client.Options{Dial: h.pipe.Dial, Name: "example"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	run, err := c.Send(ctx, "main", "hello")
	if err != nil {
		log.Fatal(err)
	}
	for e := range c.Events() {
		if e.Name != wire.EventChat {
			continue
		}
		var chat wire.Chat
		if err := e.Decode(&chat); err != nil {
			log.Fatal(err)
		}
		if chat.RunID == run && chat.State == wire.StateFinal {
			fmt.Println(chat.Message.Text())
			return
		}
	}
	// Output: hello yourself
}

// newParrot returns a gateway whose only method answers a message with itself.
func newParrot() *house {
	var h *house
	h = newHouse(rpc.New(wire.MethodChatSend, wire.RoleOperator, chela.ScopeWrite,
		func(_ context.Context, _ rpc.Peer, in wire.ChatSend) (wire.ChatSent, error) {
			h.bus.Publish(chela.Event{
				Run: chela.RunID(in.IdempotencyKey), Session: "agent:main:main", Stream: chela.StreamCommand,
				Text: in.Message + " yourself",
			})
			return wire.ChatSent{RunID: in.IdempotencyKey, Status: wire.StatusStarted}, nil
		}))
	return h
}
