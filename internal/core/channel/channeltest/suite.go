package channeltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// Harness is a channel under test together with its platform.
type Harness struct {
	Channel channel.Channel
	Address chela.Address // of a chat that exists
	Other   chela.Address // of another chat

	// Shown returns the visible texts at an address, oldest first.
	Shown func(chela.Address) []string
	// Say delivers a message of a person, and returns once the channel
	// has advanced its cursor.
	Say func(context.Context, chela.Inbound) error
	// Once says that sending one key repeatedly creates one message.
	Once bool
}

// Suite runs the conformance tests of channel.Channel. open returns a new channel
// on a new platform.
func Suite(t *testing.T, open func(*testing.T) Harness) {
	each(t, func(t *testing.T, f func(*testing.T, Harness)) { f(t, open(t)) })
}

// Bubble is [Suite] in synctest bubbles, for a platform that is reached without the
// network.
func Bubble(t *testing.T, open func(*testing.T) Harness) {
	each(t, func(t *testing.T, f func(*testing.T, Harness)) {
		synctest.Test(t, func(t *testing.T) { f(t, open(t)) })
	})
}

func each(t *testing.T, run func(*testing.T, func(*testing.T, Harness))) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, Harness)
	}{
		{"send", testSend},
		{"send ends with its context", testCancelled},
		{"addresses in parallel", testSideBySide},
		{"one key", testOnce},
		{"edit", testEdit},
		{"delete", testDelete},
		{"find", testFind},
		{"typing", testTyping},
		{"receive", testReceive},
		{"receive again until it is accepted", testRepeat},
		{"run ends with its context", testRunEnds},
	} {
		t.Run(c.name, func(t *testing.T) { run(t, c.f) })
	}
}

// send sends a text and fails the test if it was not accepted.
func send(t *testing.T, h Harness, a chela.Address, key, text string) channel.Receipt {
	t.Helper()
	r, err := h.Channel.Send(t.Context(), channel.Part{Key: key, Address: a, Text: text})
	if err != nil {
		t.Fatalf("send %q: %v", text, err)
	}
	if r.ID == "" {
		t.Fatalf("send %q: the receipt has no id", text)
	}
	return r
}

func shown(t *testing.T, h Harness, a chela.Address, want ...string) {
	t.Helper()
	if got := h.Shown(a); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("visible texts: %q, want %q", got, want)
	}
}

func testSend(t *testing.T, h Harness) {
	a := send(t, h, h.Address, "r:0", "one")
	b := send(t, h, h.Address, "r:1", "two: <b>&amp; 汉字 😀")
	if a.ID == b.ID {
		t.Errorf("two messages have the same id %s", a.ID)
	}
	shown(t, h, h.Address, "one", "two: <b>&amp; 汉字 😀")
	shown(t, h, h.Other)
}

func testCancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Channel.Send(ctx, channel.Part{Key: "r:0", Address: h.Address, Text: "one"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	shown(t, h, h.Address)
}

func testSideBySide(t *testing.T, h Harness) {
	var wg sync.WaitGroup
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint("n", i))
	}
	for _, a := range [...]chela.Address{h.Address, h.Other} {
		wg.Go(func() {
			for i, text := range want {
				_, err := h.Channel.Send(t.Context(), channel.Part{Key: fmt.Sprint(a.Peer.ID, i), Address: a, Text: text})
				if err != nil {
					t.Errorf("send: %v", err)
				}
			}
		})
	}
	wg.Wait()
	shown(t, h, h.Address, want...)
	shown(t, h, h.Other, want...)
}

func testOnce(t *testing.T, h Harness) {
	if !h.Once {
		t.Skip("the platform does not support keys")
	}
	a := send(t, h, h.Address, "r:0", "one")
	b := send(t, h, h.Address, "r:0", "one")
	if a.ID != b.ID {
		t.Errorf("one key created two messages, %s and %s", a.ID, b.ID)
	}
	shown(t, h, h.Address, "one")
}

func testEdit(t *testing.T, h Harness) {
	e, ok := channel.As[channel.Editor](h.Channel)
	if !ok {
		t.Skip("not an Editor")
	}
	r := send(t, h, h.Address, "r:0", "one")
	send(t, h, h.Address, "r:1", "two")
	if err := e.Edit(t.Context(), h.Address, r.ID, "changed"); err != nil {
		t.Fatal(err)
	}
	shown(t, h, h.Address, "changed", "two")
	if err := e.Edit(t.Context(), h.Address, "no-such-message", "x"); !errors.Is(err, channel.ErrGone) {
		t.Errorf("edit of an unknown message: got %v, want ErrGone", err)
	}
}

func testDelete(t *testing.T, h Harness) {
	d, ok := channel.As[channel.Deleter](h.Channel)
	if !ok {
		t.Skip("not a Deleter")
	}
	r := send(t, h, h.Address, "r:0", "one")
	if err := d.Delete(t.Context(), h.Address, r.ID); err != nil {
		t.Fatal(err)
	}
	shown(t, h, h.Address)
	if e, ok := channel.As[channel.Editor](h.Channel); ok {
		if err := e.Edit(t.Context(), h.Address, r.ID, "x"); !errors.Is(err, channel.ErrGone) {
			t.Errorf("edit of a deleted message: got %v, want ErrGone", err)
		}
	}
}

func testFind(t *testing.T, h Harness) {
	f, ok := channel.As[channel.Finder](h.Channel)
	if !ok {
		t.Skip("not a Finder")
	}
	r := send(t, h, h.Address, "r:0", "one")
	got, ok, err := f.Find(t.Context(), h.Address, "r:0")
	if err != nil || !ok || got.ID != r.ID {
		t.Errorf("got %+v, %v, %v, want %s", got, ok, err, r.ID)
	}
	if _, ok, err := f.Find(t.Context(), h.Address, "r:1"); ok || err != nil {
		t.Errorf("find an unknown key: got %v, %v", ok, err)
	}
	if _, ok, err := f.Find(t.Context(), h.Other, "r:0"); ok || err != nil {
		t.Errorf("find at another address: got %v, %v", ok, err)
	}
}

func testTyping(t *testing.T, h Harness) {
	ty, ok := channel.As[channel.Typer](h.Channel)
	if !ok {
		t.Skip("not a Typer")
	}
	if err := ty.Typing(t.Context(), h.Address); err != nil {
		t.Error(err)
	}
	shown(t, h, h.Address)
}

// running runs the channel with the sink until the test ends.
func running(t *testing.T, h Harness, s channel.Sink) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Channel.Run(ctx, s)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func testReceive(t *testing.T, h Harness) {
	got := make(chan chela.Inbound, 10)
	running(t, h, func(_ context.Context, in chela.Inbound) error { got <- in; return nil })
	want := chela.Inbound{ID: "1", Address: h.Address, Sender: chela.Sender{ID: "7", Name: "Ann"}, Text: "hello 汉字"}
	if err := h.Say(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	in := <-got
	if in.ID == "" || in.Address != want.Address || in.Sender.ID != want.Sender.ID || in.Text != want.Text {
		t.Errorf("got %+v, want %+v", in, want)
	}
	if in.Session != "" {
		t.Errorf("the channel set the session to %s, want none", in.Session)
	}
}

func testRepeat(t *testing.T, h Harness) {
	var tries []string
	var mu sync.Mutex
	running(t, h, func(_ context.Context, in chela.Inbound) error {
		mu.Lock()
		defer mu.Unlock()
		tries = append(tries, in.ID)
		if len(tries) < 3 {
			return chela.ErrFull
		}
		return nil
	})
	in := chela.Inbound{ID: "1", Address: h.Address, Sender: chela.Sender{ID: "7"}, Text: "hello"}
	if err := h.Say(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(tries) != 3 || tries[0] != tries[2] {
		t.Errorf("delivered as %q, want three times with the same id", tries)
	}
}

func testRunEnds(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Channel.Run(ctx, func(context.Context, chela.Inbound) error { return nil }) }()
	cancel()
	t.Logf("Run ended: %v", waittest.For(t, "the end of Run after its context ended", done)) // any error is allowed
}
