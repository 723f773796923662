package client_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Send a message and read its streamed answer from the events.
func Example() {
	h := newEchoGateway()
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

// The connection is lost during an answer. The client reconnects and receives
// the rest.
func Example_outage() {
	h := newEchoGateway()
	ctx := context.Background()
	l := &line{gateway: h}
	c, err := client.Dial(ctx, client.Options{
		Dial: l.dial, Delay: func(int, error) time.Duration { return time.Millisecond },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	h.begins("run")
	h.says("run", "one ")
	l.cut(nil) // the gateway is unreachable
	h.says("run", "two")
	l.cut(h)
	h.ends("run", "one two")

	for e := range c.Events() {
		switch e.Name {
		case client.EventLost:
			var o client.Outage
			if e.Decode(&o) == nil && o.Attempt == 0 {
				fmt.Println("connection lost")
			}
		case client.EventResumed:
			fmt.Println("reconnected, nothing is missing")
		case client.EventReset:
			fmt.Println("reconnected: read the history")
		case wire.EventChat:
			var chat wire.Chat
			if e.Decode(&chat) == nil && chat.State == wire.StateFinal {
				fmt.Println(chat.Message.Text())
				return
			}
		}
	}
	// Output:
	// connection lost
	// reconnected, nothing is missing
	// one two
}

// A device is a client with its own key, which the caller stores. Its access
// can be revoked without changing the gateway's token.
func ExampleDeviceID() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // in real code: random, loaded from a file
	fmt.Println(client.DeviceID(key))

	_, err := client.Dial(context.Background(), client.Options{URL: "ws://gateway.example.com:18789", Key: key})
	fmt.Println(err)
	// Output:
	// 139e3940e64b5491722088d9a0d741628fc826e09475d341a780acde3c4b8070
	// connect to gateway: refusing to send a credential without encryption
}

// newEchoGateway returns a gateway whose only method answers with its input.
func newEchoGateway() *testGateway {
	var h *testGateway
	h = newTestGateway(rpc.New(wire.MethodChatSend, wire.RoleOperator, chela.ScopeWrite,
		func(_ context.Context, _ rpc.Peer, in wire.ChatSend) (wire.ChatSent, error) {
			h.bus.Publish(chela.Event{
				Run: chela.RunID(in.IdempotencyKey), Session: "agent:main:main", Stream: chela.StreamCommand,
				Text: in.Message + " yourself",
			})
			return wire.ChatSent{RunID: in.IdempotencyKey, Status: wire.StatusStarted}, nil
		}))
	return h
}
