package deliver_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/deliver"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/runner/runnertest"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// path is everything between a platform and a model (gate, dispatcher, worker) on
// one database.
type path struct {
	t     *testing.T
	file  string
	fake  *channeltest.Fake
	model llm.Provider
	mode  queue.Mode
	mute  bool // the worker does not run
	boots int
	stop  func()
}

func (p *path) start() {
	p.t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(p.t.Context(), sqlite.Options{Path: p.file})
	if err != nil {
		p.t.Fatal(err)
	}
	events := bus.New(log)
	p.boots++
	own, err := leaseholder.New(p.t.Context(), leaseholder.Options{Log: log, Store: db, ID: fmt.Sprint("boot", p.boots)})
	if err != nil {
		p.t.Fatal(err)
	}
	held := acquire(p.t, db, own.ID())
	worker := deliver.New(deliver.Options{
		Log: log, Store: db, Bus: events,
		Track: own.Track, Channel: func(context.Context, string, chela.AccountID) (channel.Instance, error) {
			return channel.Instance{Channel: p.fake, Lease: held, Release: func() {}}, nil
		},
		Limits: func(string) channel.Limits { return channel.Limits{} },
	})
	lanes := new(lane.Lanes)
	lanes.Set("main", 4)
	d := dispatch.New(dispatch.Options{Lanes: lanes, Runner: runner.Options{
		Log: log, Store: db, Bus: events, Owner: own,
		Executor: invoke.New(invoke.Options{Log: log}), Ended: []runner.Ended{worker.Ended},
		Profiles: runnertest.Static{Queue: queue.Policy{Mode: p.mode, Inbound: 2 * time.Second}, Profile: runner.Profile{
			Provider: p.model, Model: llm.Model{Provider: "mock", ID: "m", Context: 1 << 20},
		}},
	}})
	gate := inbound.New(inbound.Options{
		Log: log, Store: db, Bus: events, Live: d.Live, StopRuns: d.StopRuns, Chunks: worker.Chunks,
		Route: (&route.Table{DMScope: route.PerPeer}).Resolve,
		Rules: func(chela.Address) *admission.Rules {
			return &admission.Rules{DM: admission.Open, Allow: []string{admission.Everybody}}
		},
		Access: func(who chela.Principal, _ chela.Inbound) (chela.Principal, error) {
			who.Scopes = []chela.Scope{chela.ScopeWrite}
			return who, nil
		},
	})
	ctx, cancel := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.Run(ctx) })
	wg.Go(func() { _ = p.fake.Run(ctx, gate.Receive) })
	if !p.mute {
		wg.Go(func() { _ = worker.Run(ctx) })
	}
	p.stop = func() {
		cancel()
		wg.Wait()
		if err := db.Close(); err != nil {
			p.t.Error(err)
		}
	}
	synctest.Wait()
}

// acquire takes the lease of the account for an owner.
func acquire(t testing.TB, st store.Store, owner string) (l lease.Lease) {
	t.Helper()
	err := st.Update(t.Context(), store.Ordered, func(tx store.Tx) (err error) {
		l, _, err = tx.Leases().Acquire(lease.Channel("fake", "bot"), owner)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// say delivers a message of a person.
func (p *path) say(id, peer, text string) {
	p.t.Helper()
	if err := p.fake.Say(p.t.Context(), wrote(id, peer, text)); err != nil {
		p.t.Fatal(err)
	}
}

func from(peer string) chela.Address {
	return chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: peer}}
}

func wrote(id, peer, text string) chela.Inbound {
	return chela.Inbound{ID: id, Address: from(peer), Sender: chela.Sender{ID: peer}, Text: text}
}

// echo answers with the last message.
func echo(_ int, r *llm.Request) llmtest.Step {
	return llmtest.Say("re: " + r.Messages[len(r.Messages)-1].PlainText())
}

func onPath(t *testing.T, name string, f func(*testing.T, *path)) {
	t.Run(name, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "chela.db")
		synctest.Test(t, func(t *testing.T) {
			p := &path{t: t, file: file, fake: &channeltest.Fake{}, model: llmtest.ScriptFunc(echo), mode: queue.Followup}
			f(t, p)
			p.stop()
		})
	})
}

func (p *path) sees(peer string, want ...string) {
	p.t.Helper()
	if got := p.fake.Texts(from(peer)); !slices.Equal(got, want) {
		p.t.Errorf("%s sees %q, want %q", peer, got, want)
	}
}

func TestPath(t *testing.T) {
	onPath(t, "a message is answered", func(t *testing.T, p *path) {
		p.model = llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			s := echo(n, r)
			s.Delay = time.Second // an answer that is ready at once may precede the indicator
			return s
		})
		p.start()
		p.say("1", "ann", "hello")
		time.Sleep(time.Minute)
		p.sees("ann", "re: hello")
		if len(p.fake.Calls("typing")) == 0 {
			t.Error("no typing indicator")
		}
	})
	onPath(t, "LANE-08 three messages in a second are one turn", func(t *testing.T, p *path) {
		p.start()
		for i, text := range []string{"one", "two", "three"} {
			p.say(fmt.Sprint(i), "ann", text)
			time.Sleep(400 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		p.sees("ann", "re: three")
	})
	onPath(t, "REC-02 the process ends after the answer was stored and before it is sent", func(t *testing.T, p *path) {
		p.mute = true
		p.start()
		p.say("1", "ann", "hello")
		time.Sleep(time.Minute)
		p.sees("ann")
		p.stop()
		p.mute = false
		for range 2 {
			p.start()
			time.Sleep(time.Minute)
			p.sees("ann", "re: hello")
			p.stop()
		}
		p.start()
	})
	onPath(t, "LOOP-11 NO_REPLY", func(t *testing.T, p *path) {
		p.model = llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("no_reply") })
		p.start()
		p.say("1", "ann", "hello")
		time.Sleep(time.Minute)
		p.sees("ann")
	})
	onPath(t, "CMD-03 commands do not wait, and /stop stops the run", func(t *testing.T, p *path) {
		p.model = llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			s := llmtest.Say("never")
			s.Delay = time.Hour
			return s
		})
		p.start()
		p.say("1", "ann", "hello")
		time.Sleep(5 * time.Second)
		p.say("2", "ann", "/status")
		synctest.Wait()
		if got := p.fake.Texts(from("ann")); len(got) != 1 || !strings.Contains(got[0], "busy") {
			t.Errorf("ann sees %q", got)
		}
		p.say("3", "ann", "/stop")
		time.Sleep(time.Minute)
		if got := p.fake.Texts(from("ann")); len(got) != 2 || got[1] != "Stopped the run in progress." {
			t.Errorf("ann sees %q", got)
		}
	})
	onPath(t, "a message interrupts a run when its debounce time has passed", func(t *testing.T, p *path) {
		p.mode = queue.Interrupt
		p.model = llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			s := echo(n, r)
			if n == 0 {
				s.Delay = time.Hour
			}
			return s
		})
		p.start()
		p.say("1", "ann", "hello")
		time.Sleep(10 * time.Second)
		p.say("2", "ann", "never")
		time.Sleep(time.Second)
		p.say("3", "ann", "mind")
		time.Sleep(1900 * time.Millisecond)
		p.sees("ann")
		time.Sleep(time.Second)
		p.sees("ann", "re: mind")
	})
	onPath(t, "messages delivered one to five times, out of order, over an unreliable connection are answered once",
		func(t *testing.T, p *path) {
			p.start()
			r := rand.New(rand.NewPCG(3, 4))
			faults := []channeltest.Fault{channeltest.Temporary(), channeltest.Cut(), channeltest.Broken(),
				channeltest.Limited(time.Second), {}, {}}
			for range 40 {
				p.fake.Fail(faults[r.IntN(len(faults))])
			}
			want := map[string][]string{}
			for round := range 5 {
				var ins []chela.Inbound
				for i := range 8 {
					peer := []string{"ann", "bob", "eve"}[i%3]
					text := fmt.Sprintf("%d-%d", round, i)
					ins = append(ins, wrote(text, peer, text))
					ins[i].Media = []chela.Media{{Type: "text/plain", Data: []byte("x")}} // messages with attachments are not merged
					want[peer] = append(want[peer], text)
				}
				if err := p.fake.Redeliver(t.Context(), r, ins...); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				p.stop()
				p.start()
			}
			time.Sleep(time.Hour)
			for peer, texts := range want {
				var got []string
				for _, s := range p.fake.Texts(from(peer)) {
					text, _, _ := strings.Cut(strings.TrimPrefix(s, "re: "), "\n")
					got = append(got, text)
				}
				slices.Sort(got)
				if !slices.Equal(got, texts) {
					t.Errorf("%s sees %q, want %q", peer, got, texts)
				}
			}
		})
}
