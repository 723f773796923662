package chelatest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// day is the model of a day. It answers "re N" to the message "N …", fails while it is
// out of service, and counts what its answers cost.
type day struct {
	*llmtest.Script
	mu       sync.Mutex
	out      int  // calls that fail because the service is out
	overflow bool // the next call is too long
	used     llm.Usage
	answered map[string]int
}

func newDay() *day {
	d := &day{answered: map[string]int{}}
	d.Script = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.out > 0:
			d.out--
			return llmtest.Step{Fault: llmtest.Fault{Status: 503, Message: "overloaded", RetryAfter: "0.01"}}
		case d.overflow:
			d.overflow = false
			return llmtest.Status(400, "prompt is too long: 250000 tokens")
		}
		if isSummary(r) {
			s := llmtest.Say(goodSummary + " The first one was 0 is the number of this message.")
			s.Usage = &llm.Usage{Input: 1000, Output: 100}
			d.used = d.used.Add(*s.Usage)
			return s
		}
		var said []string
		for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role == llm.RoleUser; i-- {
			n, _, _ := strings.Cut(r.Messages[i].PlainText(), " ")
			said = append(said, n)
			d.answered[n]++
		}
		slices.Reverse(said)
		s := llmtest.Say("re " + strings.Join(said, " "))
		s.Usage = &llm.Usage{Input: int64(100 * len(r.Messages)), Output: 10}
		d.used = d.used.Add(*s.Usage)
		return s
	})
	return d
}

// set changes the state of the service.
func (d *day) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func TestDay(t *testing.T) {
	t.Parallel()
	t.Run("E2E-03 a day with outages, restarts and a cut is one transcript, without losses or duplicates",
		func(t *testing.T) {
			t.Parallel()
			const messages = 200
			model, fake := newDay(), &channeltest.Fake{}
			var st store.Store
			options := Options{
				Dir: t.TempDir(), Model: model, Channels: map[string]channel.Channel{"talk": fake},
				Config: Config{
					"channels": json.RawMessage(`{"talk": {"allowFrom": ["ann"]}}`),
					"messages": json.RawMessage(`{"queue": {"mode": "followup"}}`),
					"models": json.RawMessage(
						`{"providers": {"mock": {"models": [{"id": "m", "cost": {"input": 3, "output": 15}}]}}}`),
				},
				Wrap: func(s store.Store) store.Store { st = s; return s },
			}
			g := Start(t, options)
			c := g.Client()
			a := chela.Address{Channel: "talk", Account: "default", Peer: direct("ann")}
			for n := range messages {
				switch n {
				case 30, 90, 150: // an outage, which retries end
					model.set(func() { model.out = 2 })
				case 60, 130:
					c.Close()
					g.Stop()
					g = Start(t, options)
					c = g.Client()
				case 110:
					model.set(func() { model.overflow = true })
				}
				text := fmt.Sprintf("%d is the number of this message", n)
				if n%2 == 0 {
					if end := c.Ask("main", text); end.Text != fmt.Sprint("re ", n) {
						t.Fatalf("%d: %s %q %s", n, end.State, end.Text, end.Error)
					}
					continue
				}
				in := chela.Inbound{ID: fmt.Sprint(n), Address: a, Sender: chela.Sender{ID: "ann"}, Text: text}
				for range 1 + n%3/2 { // platforms deliver some messages twice
					if err := fake.Say(t.Context(), in); err != nil {
						t.Fatal(err)
					}
				}
				waittest.Until(t, fmt.Sprintf("an answer to message %d", n), func() bool { return len(fake.Texts(a)) > n/2 })
			}

			var want []string
			var sent []string
			for n := range messages {
				want = append(want, fmt.Sprintf("user: %d is the number of this message", n), fmt.Sprint("assistant: re ", n))
				if n%2 == 1 {
					sent = append(sent, fmt.Sprint("re ", n))
				}
			}
			if got := fake.Texts(a); !slices.Equal(got, sent) {
				t.Errorf("the channel shows %q", got)
			}
			var exported wire.SessionExported
			c.must(wire.MethodSessionsExport, wire.SessionKey{Key: "main"}, &exported)
			var transcript []string
			cuts := 0
			for line := range strings.Lines(exported.JSONL) {
				var e struct {
					Type    string       `json:"type"`
					Message wire.Message `json:"message"`
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				switch e.Type {
				case "message":
					transcript = append(transcript, e.Message.Role+": "+e.Message.Text())
				case "compaction":
					cuts++
				}
			}
			if !slices.Equal(transcript, want) || cuts != 1 {
				t.Errorf("%d cuts; the transcript is %q", cuts, transcript)
			}
			var list wire.SessionList
			c.must(wire.MethodSessionsList, wire.SessionsList{}, &list)
			if len(list.Sessions) != 1 {
				t.Errorf("%d sessions", len(list.Sessions))
			}
			model.set(func() {
				for n, times := range model.answered {
					if times != 1 {
						t.Errorf("message %s was answered %d times", n, times)
					}
				}
				scripted := (float64(model.used.Input)*3 + float64(model.used.Output)*15) / 1e6
				sums, err := store.Get(t.Context(), st,
					func(r store.Reader) ([]usage.Sum, error) { return r.Usage().Sums(usage.Query{}) })
				if err != nil {
					t.Fatal(err)
				}
				var nano int64
				for _, s := range sums {
					nano += s.NanoUSD
				}
				cost := -1.0
				if row := c.describe("main"); row.Cost != nil {
					cost = *row.Cost
				}
				if math.Abs(cost-scripted) > scripted/100 || math.Abs(float64(nano)/1e9-scripted) > scripted/100 {
					t.Errorf("cost %f and %f, want %f", cost, float64(nano)/1e9, scripted)
				}
			})
		})
}
