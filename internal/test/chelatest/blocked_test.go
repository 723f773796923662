package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// caged is a tool that is blocked until its call has the right to use the network.
type caged struct {
	mu   sync.Mutex
	runs []string // "id rights" of each run
}

func (*caged) Spec() tool.Spec {
	return tool.Spec{
		Name: "fetch", Label: "Fetch", Description: "Fetches a page.", Effect: tool.Acts,
		Schema: json.RawMessage(`{"type": "object", "properties": {"url": {"type": "string"}}}`),
	}
}

// Plan implements tool.Planner.
func (*caged) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	with := strings.Join(c.Rights, ",")
	return tool.Plan{Effect: tool.Acts, Text: "fetch " + string(c.Args) + " with " + with,
		Hash: "h" + with + string(c.Args)}, nil
}

func (f *caged) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, c.ID+" "+strings.Join(c.Rights, ","))
	if !slices.Contains(c.Rights, "net:example.org") {
		return tool.Result{}, &tool.Blocked{Rights: []string{"net:example.org"}, Again: true}
	}
	return tool.Text("fetched"), nil
}

// take returns the runs since the last call: the id of their call, which must be
// the same, and the rights of each.
func (f *caged) take(t *testing.T) (call string, rights []string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		id, with, _ := strings.Cut(r, " ")
		if call != "" && id != call {
			t.Errorf("runs of several calls: %q", f.runs)
		}
		call, rights = id, append(rights, with)
	}
	f.runs = nil
	return call, rights
}

// TestBlocked has the sandbox block a call on a host, and decides about the right
// that it lacks.
func TestBlocked(t *testing.T) {
	person := chela.Address{Channel: "chat", Account: "home", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
	var st store.Store
	// with runs f with a gateway of two agents and a channel.
	with := func(name string, f func(t *testing.T, fetch *caged, chat *channeltest.Fake, c *Client)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fetch, chat := new(caged), new(channeltest.Fake)
				g := Start(t, Options{
					Model: uses(), Tools: []tool.Tool{fetch}, Channels: map[string]channel.Channel{"chat": chat},
					Wrap: func(s store.Store) store.Store { st = s; return s },
					Config: Config{
						"channels": json.RawMessage(`{"chat": {"allowFrom": ["p"]}}`),
						"agents": json.RawMessage(
							`{"list": [{"id": "main", "default": true}, {"id": "ops"}], "defaults": {"model": "mock/m"}}`),
					},
				})
				c := g.Client()
				f(t, fetch, chat, c)
				c.Close()
				g.Stop()
			})
		})
	}
	// asked has a session fetch, and expects a request for the missing right.
	asked := func(t *testing.T, c *Client, fetch *caged, session string) (chela.RunID, approval.Request) {
		t.Helper()
		id := chela.RunID(c.Send(session, `fetch {"url":"x"}`))
		synctest.Wait()
		return id, blocked(t, st, fetch, id)
	}
	// repeated expects that the run ends after the call ran again, once.
	repeated := func(t *testing.T, c *Client, fetch *caged, id chela.RunID, q approval.Request) {
		t.Helper()
		end := c.Await(string(id))
		call, rights := fetch.take(t)
		if end.Text != "fetched" || call != q.Call || !slices.Equal(rights, []string{"net:example.org"}) {
			t.Errorf("%s %q %s; call %s ran with %q, want %s", end.State, end.Text, end.Error, call, rights, q.Call)
		}
	}
	// unasked expects that a session fetches without a request.
	unasked := func(t *testing.T, c *Client, fetch *caged, session string) {
		t.Helper()
		end := c.Ask(session, `fetch {"url":"x"}`)
		if _, rights := fetch.take(t); end.Text != "fetched" || !slices.Equal(rights, []string{"", "net:example.org"}) {
			t.Errorf("%s in %s: %q %s, ran with %q", end.State, session, end.Text, end.Error, rights)
		}
	}
	with("allowed once", func(t *testing.T, fetch *caged, _ *channeltest.Fake, c *Client) {
		for range 2 { // the decision is not remembered
			id, q := asked(t, c, fetch, "main")
			if shown := c.question(); shown.ID != q.ID || !strings.Contains(shown.Request.Command, "with net:example.org") {
				t.Errorf("shown %+v", shown.Request)
			}
			c.decide(q.ID, wire.AllowOnce)
			repeated(t, c, fetch, id, q)
		}
	})
	with("allowed for the session", func(t *testing.T, fetch *caged, _ *channeltest.Fake, c *Client) {
		id, q := asked(t, c, fetch, "main")
		c.Ask("main", "/approve session")
		repeated(t, c, fetch, id, q)
		unasked(t, c, fetch, "main")
		asked(t, c, fetch, "other")
		asked(t, c, fetch, "agent:ops:main")
	})
	with("allowed always, for the agent", func(t *testing.T, fetch *caged, _ *channeltest.Fake, c *Client) {
		id, q := asked(t, c, fetch, "main")
		c.decide(q.ID, wire.AllowAlways)
		repeated(t, c, fetch, id, q)
		unasked(t, c, fetch, "main")
		unasked(t, c, fetch, "other")
		asked(t, c, fetch, "agent:ops:main")
	})
	with("a child asks in the chat of its root", func(t *testing.T, fetch *caged, chat *channeltest.Fake, c *Client) {
		say := func(id, text string) {
			t.Helper()
			in := chela.Inbound{ID: id, Address: person, Sender: chela.Sender{ID: "p"}, Text: text, Time: time.Now()}
			if err := chat.Say(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		say("1", `ls {"path":"."}`)
		said := len(chat.Texts(person))
		root, err := store.Get(t.Context(), st, func(r store.Reader) (session.Meta, error) {
			list, _, err := r.Sessions().List(session.Query{})
			return list[0], err
		})
		if err != nil {
			t.Fatal(err)
		}
		child := chela.SessionKey("agent:main:subagent:1")
		spawn := func(id chela.RunID) approval.Request {
			t.Helper()
			err := st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
				rootRun := run.Run{
					ID:        "root-" + id,
					Session:   root.Key,
					SessionID: root.ID,
					State:     run.OK,
					Started:   time.Now(),
					Ended:     time.Now(),
				}
				if err := tx.Runs().Put(rootRun); err != nil {
					return err
				}
				tx.Wake(store.Topic{Kind: store.TopicQueue, Session: child})
				_, err := tx.Queue().Put(queue.Item{
					ID: string(id), Key: string(id), Session: child, Kind: queue.Message, State: queue.Waiting, Created: time.Now(),
					Origin: chela.Origin{Kind: chela.OriginSubagent, ID: string(root.Key)}, Parent: rootRun.ID, Root: rootRun.ID,
					Principal: chela.Owner("spawn"), Inbound: chela.Inbound{Text: `fetch {"url":"x"}`},
				})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return blocked(t, st, fetch, id)
		}
		ended := func(id chela.RunID, q approval.Request) {
			t.Helper()
			synctest.Wait()
			r, err := store.Get(t.Context(), st, func(rd store.Reader) (run.Run, error) { return rd.Runs().Get(id) })
			call, rights := fetch.take(t)
			if err != nil || r.State != run.OK || r.Text != "fetched" || call != q.Call ||
				!slices.Equal(rights, []string{"net:example.org"}) {
				t.Errorf("run %s is %s: %q %s, %v; ran with %q", id, r.State, r.Text, r.Error, err, rights)
			}
		}
		q := spawn("one")
		if q.Asked != root.Key || q.Session != child {
			t.Errorf("requested in %s for %s", q.Asked, q.Session)
		}
		shown := chat.Texts(person)[said:]
		if len(shown) != 1 || !strings.Contains(shown[0], "/approve "+q.ID) ||
			!strings.Contains(shown[0], "with net:example.org") {
			t.Fatalf("shown in the chat: %q", shown)
		}
		say("2", "/approve allow-once") // the sender may write, not decide
		if q, err := store.Get(t.Context(), st, func(r store.Reader) (approval.Request, error) {
			return r.Approvals().Get(q.ID)
		}); err != nil || q.Decision != approval.Pending {
			t.Errorf("decided %q by %s, %v", q.Decision, q.By, err)
		}
		c.Ask(string(root.Key), "/approve allow-always") // without an id: the one that this chat was asked about
		ended("one", q)
		unasked(t, c, fetch, "agent:main:subagent:2")
		asked(t, c, fetch, "agent:ops:subagent:1")
	})
}

// blocked checks that a run is suspended because its call was blocked, and
// returns the request about the call.
func blocked(t *testing.T, st store.Store, fetch *caged, id chela.RunID) (q approval.Request) {
	t.Helper()
	call, rights := fetch.take(t)
	if !slices.Equal(rights, []string{""}) {
		t.Errorf("ran with %q, want one run without rights", rights)
	}
	err := st.View(t.Context(), func(r store.Reader) error {
		row, err := r.Runs().Get(id)
		if err != nil {
			return err
		}
		pending, err := r.Approvals().Pending(row.Session)
		if err != nil || len(pending) != 1 {
			return fmt.Errorf("%d requests: %w", len(pending), err)
		}
		q = pending[0]
		k, err := r.Calls().Call(q.Call)
		if row.State != run.Suspended || row.Waits != run.WaitsApproval || k.State != session.Waiting ||
			!slices.Equal(k.Rights, q.Rights) {
			t.Errorf("run is %s, its call %s with %q", row.State, k.State, k.Rights)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if q.Call != call || q.Run != id || !slices.Equal(q.Rights, []string{"net:example.org"}) ||
		q.Hash != `hnet:example.org{"url":"x"}` {
		t.Errorf("requested %+v for call %s", q, call)
	}
	return q
}
