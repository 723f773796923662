package client

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chela-ai/chela/wire"
)

// Events that the client itself puts among those of the gateway; their payload
// is an [Outage].
const (
	// EventLost says that the connection was lost and the client connects again,
	// and then, with Attempt, that it could not.
	EventLost = "client.lost"
	// EventResumed says that there is a connection again; what was missed
	// follows, and nothing else is missing.
	EventResumed = "client.resumed"
	// EventReset says that events may be missing before it, because the gateway
	// was started again, too much was missed, or events were read too late. Who
	// shows something reads the history. Subscriptions are in effect again.
	EventReset = "client.reset"
)

// Outage is the payload of the events of the client itself.
type Outage struct {
	Reason  string `json:"reason,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // to connect again, that failed
	Missed  int    `json:"missed,omitempty"`  // events that follow
}

// Events returns the events, in order. The channel is closed when the client
// ends.
func (c *Client) Events() <-chan wire.Event { return c.events }

// take takes an event of the gateway.
func (c *Client) take(e wire.Event) {
	if e.Cursor > 0 {
		c.mu.Lock()
		c.cursor = e.Cursor
		c.mu.Unlock()
	}
	c.put(e)
}

// put hands out an event. When too many wait to be read it is left out, and
// the last one that waits says so.
func (c *Client) put(e wire.Event) {
	c.emu.Lock()
	defer c.emu.Unlock()
	switch {
	case len(c.events) < c.o.Buffer:
		c.gap = false
		c.events <- e
	case !c.gap:
		c.gap = true
		c.events <- own(EventReset, Outage{Reason: "events were read too late"})
	}
}

// tell hands out an event of the client's own.
func (c *Client) tell(name string, o Outage) { c.put(own(name, o)) }

func own(name string, o Outage) wire.Event {
	b, err := wire.Encode(o)
	if err != nil {
		panic(err) // a string and a number
	}
	return wire.Event{Type: wire.TypeEvent, Name: name, Payload: b}
}

// subscriptions is what the client asked to be told of.
type subscriptions struct {
	all      bool
	sessions map[string]json.RawMessage // parameters by session key
}

// note remembers what a call that succeeded subscribed to.
func (c *Client) note(method string, params any, r wire.Response) {
	if !r.OK {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch method {
	case wire.MethodSessionsSubscribe, wire.MethodSessionsUnsubscribe:
		c.subs.all = method == wire.MethodSessionsSubscribe
	case wire.MethodSessionsMessagesSubscribe, wire.MethodSessionsMessagesUnsubscribe:
		var of struct {
			Key string `json:"key"`
		}
		p, err := wire.Encode(params)
		if err != nil || json.Unmarshal(r.Payload, &of) != nil || of.Key == "" {
			return
		}
		if method == wire.MethodSessionsMessagesSubscribe {
			c.subs.sessions[of.Key] = p
		} else {
			delete(c.subs.sessions, of.Key)
		}
	}
}

// subscribe subscribes over a new connection to what the client subscribed to
// before.
func (c *Client) subscribe(ctx context.Context, l *link) error {
	c.mu.Lock()
	all := c.subs.all
	var sessions []json.RawMessage
	for _, p := range c.subs.sessions {
		sessions = append(sessions, p)
	}
	c.mu.Unlock()
	if all {
		if _, err := l.call(ctx, wire.MethodSessionsSubscribe, nil, nil); err != nil {
			return err
		}
	}
	for p := range slices.Values(sessions) { // one that is refused now is of a session that is gone
		if _, err := l.call(ctx, wire.MethodSessionsMessagesSubscribe, p, nil); err != nil {
			return err
		}
	}
	return nil
}
