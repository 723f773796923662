package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// wordModel is a model that says a number of words, one after the other.
type wordModel struct {
	words int
	gap   time.Duration
}

// Stream implements llm.Provider.
func (c wordModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		asked := r.Messages[len(r.Messages)-1].PlainText()
		asked = asked[strings.LastIndexByte(asked, ' ')+1:]
		var text strings.Builder
		for i := range c.words {
			word := fmt.Sprintf("%s.%d ", asked, i)
			text.WriteString(word)
			if !yield(llm.Event{Kind: llm.TextDelta, Text: word}, nil) {
				return
			}
			select {
			case <-time.After(c.gap):
			case <-ctx.Done():
				yield(llm.Event{}, ctx.Err())
				return
			}
		}
		yield(llm.Event{Kind: llm.Done, Message: &llm.Message{
			Role:     llm.RoleAssistant,
			Parts:    []llm.Part{llm.Text(text.String())},
			Provider: "mock",
			Model:    r.Model,
			Stop:     llm.StopEnd,
		}}, nil)
	}
}

// limitedConn is a connection that breaks after a number of bytes.
type limitedConn struct {
	net.Conn
	left int
}

func (f *limitedConn) Read(p []byte) (int, error) {
	if f.left <= 0 {
		f.Conn.Close()
		return 0, net.ErrClosed
	}
	n, err := f.Conn.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// eventRecorder is a client, and the events that it has received.
type eventRecorder struct {
	c      *client.Client
	cuts   int               // remaining
	grown  map[string]string // text of each run, assembled from deltas
	final  map[string]string
	stored map[string][]string // messages by session, as "seq role text"
	again  int                 // number of reconnects
	fault  string
}

// watch connects a client to a gateway whose connections break at random
// points.
func watch(g *Gateway, rnd *rand.Rand, cuts int, sessions []string) (*eventRecorder, error) {
	s := &eventRecorder{cuts: cuts, grown: map[string]string{}, final: map[string]string{}, stored: map[string][]string{}}
	o := client.Options{
		Delay: func(int, error) time.Duration { return time.Duration(rnd.IntN(30)) * time.Millisecond },
		Dial: func(ctx context.Context) (net.Conn, error) {
			c, err := g.Dial(ctx)
			if err != nil || s.cuts == 0 {
				return c, err
			}
			s.cuts--
			return &limitedConn{c, 5_000 + rnd.IntN(50_000)}, nil
		},
	}
	var err error
	for s.c == nil && s.cuts >= 0 {
		was := s.cuts
		if s.c, err = client.Dial(context.Background(), o); err != nil && was == 0 {
			return nil, err
		}
	}
	s.cuts = cuts // from here on
	for _, key := range sessions {
		// It is safe to subscribe twice.
		if err := s.c.Repeat(context.Background(), wire.MethodSessionsMessagesSubscribe,
			wire.SessionKey{Key: key}, nil); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// follow handles events until the answers of the given number of runs are
// complete and stored.
func (s *eventRecorder) follow(runs int) {
	for len(s.final) < runs || s.messages() < 2*runs {
		select {
		case e, ok := <-s.c.Events():
			if !ok {
				s.fault = fmt.Sprint("the client ended: ", s.c.Err())
				return
			}
			s.take(e)
		case <-time.After(waittest.Limit):
			s.fault = fmt.Sprintf("no more events: %d of %d runs ended, %d messages", len(s.final), runs, s.messages())
		}
		if s.fault != "" {
			return
		}
	}
}

func (s *eventRecorder) messages() int {
	n := 0
	for _, m := range s.stored {
		n += len(m)
	}
	return n
}

func (s *eventRecorder) take(e wire.Event) {
	switch e.Name {
	case client.EventResumed:
		s.again++
	case client.EventReset:
		s.fault = "events are missing: " + string(e.Payload)
	case wire.EventSessionMessage:
		var m wire.SessionMessage
		if err := e.Decode(&m); err != nil {
			s.fault = err.Error()
			return
		}
		s.stored[m.SessionKey] = append(s.stored[m.SessionKey], line(m.Message))
	case wire.EventChat:
		var c wire.Chat
		if err := e.Decode(&c); err != nil {
			s.fault = err.Error()
			return
		}
		s.chat(c)
	}
}

func line(m wire.Message) string { return m.Role + " " + m.Text() }

func (s *eventRecorder) chat(c wire.Chat) {
	switch {
	case c.State == wire.StateDelta && s.final[c.RunID] != "":
		s.fault = "text after the end of run " + c.RunID
	case c.State == wire.StateDelta && c.Replace:
		s.grown[c.RunID] = c.Delta
	case c.State == wire.StateDelta:
		s.grown[c.RunID] += c.Delta
	case s.final[c.RunID] != "":
		s.fault = "run " + c.RunID + " ended twice"
	default:
		s.final[c.RunID] = c.Message.Text()
	}
}

// TestCuts has 60 clients (with `make kill`, 1,000) follow streaming sessions while
// their connections break at random points, and compares the final state of each client.
func TestCuts(t *testing.T) {
	n, cuts, rounds := 60, 3, 2
	if thorough() {
		n = 1000
	}
	sessions := []string{"agent:main:a", "agent:main:b", "agent:main:c"}
	g := Start(t, Options{Model: wordModel{30, 15 * time.Millisecond}, Config: Config{
		"agents.defaults": json.RawMessage(`{"maxConcurrent": 8, "skipBootstrap": true}`),
	}})
	seed := randomSeed(t)
	all := make([]*eventRecorder, n)
	errs := make(chan error, n)
	room := make(chan struct{}, 64)
	for i := range all {
		room <- struct{}{}
		go func() {
			defer func() { <-room }()
			var err error
			all[i], err = watch(g, rand.New(rand.NewPCG(seed, uint64(i))), cuts, sessions)
			errs <- err
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	var following sync.WaitGroup
	for _, s := range all {
		following.Go(func() { s.follow(rounds * len(sessions)) })
	}
	talker := g.Client()
	for round := range rounds {
		var runs []string
		for i, key := range sessions {
			runs = append(runs, talker.Send(key, fmt.Sprintf("say %d-%d", round, i)))
		}
		for _, run := range runs {
			var w wire.AgentWaited
			talker.must(wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: waittest.Limit.Milliseconds()}, &w)
		}
	}
	following.Wait()
	again := 0
	t.Run("R23 the final state of each client is the history", func(t *testing.T) {
		want := map[string][]string{}
		for _, key := range sessions {
			h, err := talker.History(t.Context(), key, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range h.Messages {
				want[key] = append(want[key], line(m))
			}
		}
		for i, s := range all {
			again += s.again
			if s.fault != "" {
				t.Errorf("client %d: %s", i, s.fault)
				continue
			}
			if diff := cmp.Diff(want, s.stored); diff != "" {
				t.Fatalf("client %d: messages (-history +client):\n%s", i, diff)
			}
			if diff := cmp.Diff(s.final, s.grown); diff != "" {
				t.Fatalf("client %d: text (-answers +deltas):\n%s", i, diff)
			}
		}
	})
	t.Logf("%d clients reconnected %d times", n, again)
	if thorough() && again < n {
		t.Errorf("clients reconnected %d times: the test cuts no connections", again)
	}
	var closing sync.WaitGroup
	for _, s := range all {
		closing.Go(func() { s.c.Close() })
	}
	closing.Wait()
}
