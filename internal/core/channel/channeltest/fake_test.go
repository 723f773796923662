package channeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

func at(id string) chela.Address {
	return chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
}

func TestFake(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]func(*Fake) channel.Channel{
		"all":     func(f *Fake) channel.Channel { return f },
		"editing": func(f *Fake) channel.Channel { return f.Editing() },
		"plain":   func(f *Fake) channel.Channel { return f.Plain() },
	} {
		t.Run(name, func(t *testing.T) {
			Suite(t, func(*testing.T) Harness {
				f := &Fake{Once: true}
				return Harness{Channel: view(f), Address: at("1"), Other: at("2"), Shown: f.Texts, Say: f.Say, Once: true}
			})
		})
	}
	if _, ok := channel.Channel((&Fake{}).Plain()).(channel.Editor); ok {
		t.Error("the plain view is an Editor")
	}
	if _, ok := channel.Channel((&Fake{}).Editing()).(channel.Finder); ok {
		t.Error("the editing view is a Finder")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault Fault
		shown int
	}{
		{"permanent", Permanent(), 0},
		{"temporary", Temporary(), 0},
		{"limited", Limited(time.Second), 0},
		{"broken", Broken(), 0},
		{"cut", Cut(), 1},
		{"lost", Lost(), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f Fake
			ended := make(chan error, 1)
			go func() { ended <- f.Run(t.Context(), nil) }()
			f.mu.Lock()
			open := f.openLocked()
			f.mu.Unlock()
			<-open
			f.Fail(c.fault)
			_, err := f.Send(t.Context(), channel.Part{Key: "k", Address: at("1"), Text: "x"})
			if !errors.Is(err, c.fault.Err) {
				t.Errorf("got %v, want %v", err, c.fault.Err)
			}
			if n := len(f.Messages(at("1"))); n != c.shown {
				t.Errorf("%d messages are visible, want %d", n, c.shown)
			}
			if c.fault.Drop {
				if err := <-ended; err == nil {
					t.Error("Run ended without an error")
				}
			}
		})
	}
}

func TestRedeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Fake
		ctx, cancel := context.WithCancel(t.Context())
		seen := map[string]int{}
		first := []string{}
		go func() {
			_ = f.Run(ctx, func(_ context.Context, in chela.Inbound) error {
				if seen[in.ID]++; seen[in.ID] == 1 {
					first = append(first, in.ID)
				}
				return nil
			})
		}()
		var ins []chela.Inbound
		for i := range 20 {
			ins = append(ins, chela.Inbound{ID: fmt.Sprint(i)})
		}
		if err := f.Redeliver(ctx, rand.New(rand.NewPCG(1, 1)), ins...); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		more, sorted := 0, true
		for i, id := range first {
			if seen[id] > 1 {
				more++
			}
			sorted = sorted && id == fmt.Sprint(i)
		}
		if len(seen) != 20 || more == 0 || sorted {
			t.Errorf("%d messages, %d of them more than once, in order: %v", len(seen), more, sorted)
		}
	})
}
