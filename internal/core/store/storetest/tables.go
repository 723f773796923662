package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
)

const (
	keyA = chela.SessionKey("agent:main:main")
	keyB = chela.SessionKey("agent:ops:telegram:group:-1001")
)

var address = chela.Address{Channel: "telegram", Account: "bot",
	Peer: chela.Peer{Kind: chela.Group, ID: "-1001"}, Thread: "7"}

var origin = chela.Origin{Kind: chela.OriginCron, ID: "job <1>", Address: address}

// overrides has all fields set.
var overrides = run.Overrides{
	Model:     "anthropic/x",
	Think:     "low",
	Verbose:   "full",
	Reasoning: "stream",
	Elevated:  "on",
	Fast:      "auto",
	Exec:      run.Exec{Host: "sandbox", Security: "deny", Ask: "always"},
	Lane:      "cron",
	Timeout:   5 * time.Minute,
	Tools:     run.Tools{Allow: []string{"read", "group:web"}, Deny: []string{"exec"}},
	Prompt:    "Be short.\n\"世界\"",
	Context:   run.ContextFresh,
	Deliver:   run.Delivery{Mode: run.DeliverTo, Address: address, Last: true},
}

// item returns a waiting message.
func item(key chela.SessionKey, n int) queue.Item {
	return queue.Item{
		ID: fmt.Sprintf("item-%d", n), Key: fmt.Sprintf("key-%d", n), Session: key, Kind: queue.Message,
		Principal: chela.Owner("socket"), State: queue.Waiting, Created: at(n), Call: "call-1",
		Origin: origin, Overrides: overrides, Next: n%2 == 1, Skipped: n, Owner: "process-1", Parent: "parent", Root: "root",
		Inbound: chela.Inbound{
			ID:      fmt.Sprint(n),
			Address: address,
			Sender:  chela.Sender{ID: "u1", Name: "Ada <a&b>"},
			Text:    "hello, 世界 \x00 \"<b>\"",
			Media:   []chela.Media{{Name: "a.png", Type: "image/png", Data: []byte{0, 1, 255}}},
			ReplyTo: "3",
			Mode:    "steer",

			Time:      at(n),
			Mentioned: true,
		},
	}
}

func testQueue(t *testing.T, s store.Store) {
	items := []queue.Item{item(keyA, 1), item(keyB, 2), item(keyA, 3)}
	update(t, s, func(tx store.Tx) error {
		for i := range items {
			r, err := tx.Queue().Put(items[i])
			if err != nil {
				return err
			}
			if !r.New || r.Item.Seq <= 0 {
				t.Errorf("receipt of a new item: new %v, seq %d", r.New, r.Item.Seq)
			}
			items[i].Seq = r.Item.Seq
		}
		return nil
	})
	same(t, "waiting of a", get(t, s, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Waiting(keyA) }),
		[]queue.Item{items[0], items[2]})
	same(t, "sessions", get(t, s, func(r store.Reader) ([]chela.SessionKey, error) { return r.Queue().Sessions() }),
		[]chela.SessionKey{keyA, keyB})
	waiting := func(k chela.OriginKind) int {
		return get(t, s, func(r store.Reader) (int, error) { return r.Queue().WaitingOf(k) })
	}
	same(t, "waiting of an origin", []int{waiting(chela.OriginWebhook), waiting(chela.OriginPerson) - waiting("none")},
		[]int{0, waiting(chela.OriginPerson)})
	hooked := item(keyA, 90)
	hooked.Origin = chela.Origin{Kind: chela.OriginWebhook, ID: "x"}
	update(t, s, func(tx store.Tx) error { _, err := tx.Queue().Put(hooked); return err })
	same(t, "waiting of webhooks", waiting(chela.OriginWebhook), 1)
	update(t, s, func(tx store.Tx) error { return tx.Queue().Set(queue.Done, hooked) })
	same(t, "waiting of webhooks after it is done", waiting(chela.OriginWebhook), 0)
	same(t, "by id", get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get("item-2") }), items[1])
	same(t, "by key", get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().ByKey("key-3") }), items[2])

	t.Run("a known key returns its receipt", func(t *testing.T) {
		update(t, s, func(tx store.Tx) error {
			again := item(keyB, 1)
			again.ID, again.Inbound.Text = "other", "other"
			r, err := tx.Queue().Put(again)
			if err != nil {
				return err
			}
			same(t, "receipt", r, queue.Receipt{Item: items[0]})
			return nil
		})
	})
	t.Run("the receipt has the state", func(t *testing.T) { testReceipt(t, s, items) })
	t.Run("a run finishes what it took", func(t *testing.T) { testFinish(t, s) })
	t.Run("a deferred item becomes waiting when it is resolved", func(t *testing.T) { testDeferred(t, s) })
	t.Run("items without a key are all new", func(t *testing.T) {
		update(t, s, func(tx store.Tx) error {
			for n := range 2 {
				it := item(keyB, 10+n)
				it.Key, it.Kind = "", queue.Event
				if r, err := tx.Queue().Put(it); err != nil || !r.New {
					t.Errorf("put: %+v, %v", r, err)
				}
			}
			return nil
		})
	})
	t.Run("unknown items", func(t *testing.T) {
		view(t, s, func(r store.Reader) error {
			_, err := r.Queue().Get("none")
			fails(t, "get", err, chela.ErrNotFound)
			_, err = r.Queue().ByKey("none")
			fails(t, "by key", err, chela.ErrNotFound)
			return nil
		})
		err := s.Update(t.Context(), store.Ordered,
			func(tx store.Tx) error { return tx.Queue().Set(queue.Done, queue.Item{ID: "none"}) })
		fails(t, "set", err, chela.ErrNotFound)
	})
	t.Run("a waiting item is replaced", func(t *testing.T) { testReplace(t, s) })
	t.Run("prune takes old final items only", func(t *testing.T) { testQueuePrune(t, s, items) })
}

func testReplace(t *testing.T, s store.Store) {
	text := item(keyB, 70)
	text.Inbound.Text = `"unread":true`
	first, second := item(keyB, 71), item(keyB, 72)
	first.Inbound.Unread, second.Inbound.Unread = true, true
	unread := func(n int) (ids []string) {
		for _, it := range get(t, s, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Unfinished(n) }) {
			ids = append(ids, it.ID)
		}
		return ids
	}
	update(t, s, func(tx store.Tx) error {
		for _, it := range []*queue.Item{&text, &first, &second} {
			r, err := tx.Queue().Put(*it)
			if err != nil {
				return err
			}
			it.Seq = r.Item.Seq
		}
		return nil
	})
	same(t, "unread", unread(9), []string{first.ID, second.ID})
	same(t, "the first unread", unread(1), []string{first.ID})
	first.Kind, first.State, first.Note, first.Overrides = queue.Command, queue.Done, "a note",
		run.Overrides{Think: "high"}
	first.Result = queue.Result{Outcome: chela.OutcomeOK, Text: "the answer"}
	first.Inbound = chela.Inbound{Text: "/status"}
	replace := func(it queue.Item) (ok bool) {
		update(t, s, func(tx store.Tx) error {
			var err error
			ok, err = tx.Queue().Replace(it)
			return err
		})
		return ok
	}
	same(t, "replaced", replace(first), true)
	same(t, "as stored", get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(first.ID) }), first)
	same(t, "unread after one was replaced", unread(9), []string{second.ID})
	again := first
	again.Note = "other"
	same(t, "an item that does not wait is replaced", replace(again), false)
	update(t, s, func(tx store.Tx) error { return tx.Queue().Set(queue.Done, text, second) })
	same(t, "unread after all are done", unread(9), []string(nil))
}

func testQueuePrune(t *testing.T, s store.Store, items []queue.Item) {
	var more []queue.Item
	for n, state := range []queue.State{queue.Dropped, queue.Cancelled, queue.Deferred, queue.Taken,
		queue.Waiting, queue.Done} {
		it := item(keyB, 50+n)
		it.State, it.Created = state, at(2)
		more = append(more, it)
	}
	more[5].Created = at(3) // not before the time
	update(t, s, func(tx store.Tx) error {
		for _, it := range more {
			if _, err := tx.Queue().Put(it); err != nil {
				return err
			}
		}
		if err := tx.Queue().Set(queue.Done, items[1]); err != nil {
			return err
		}
		n, err := tx.Queue().Prune(at(3))
		same(t, "pruned", n, 3)
		for i, it := range more {
			if _, err := tx.Queue().Get(it.ID); (err == nil) != (i > 1) {
				t.Errorf("the item that is %s: %v", it.State, err)
			}
		}
		return err
	})
	update(t, s, func(tx store.Tx) error {
		r, err := tx.Queue().Put(item(keyB, 2))
		same(t, "a pruned key is new", r.New, true)
		return err
	})
}

// testReceipt takes the first item.
func testReceipt(t *testing.T, s store.Store, items []queue.Item) {
	items[0].Run, items[0].Note = "run-1", "taken by the test"
	take := func(tx store.Tx) (bool, error) { return tx.Queue().Take(queue.Taken, items[0]) }
	for _, want := range []bool{true, false} { // the second time it is no longer waiting
		update(t, s, func(tx store.Tx) error {
			ok, err := take(tx)
			same(t, "take", ok, want)
			return err
		})
	}
	items[0].State = queue.Taken
	update(t, s, func(tx store.Tx) error {
		r, err := tx.Queue().Put(item(keyA, 1))
		same(t, "receipt", r, queue.Receipt{Item: items[0]})
		return err
	})
	same(t, "waiting", get(t, s, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Waiting(keyA) }),
		[]queue.Item{items[2]})
	update(t, s, func(tx store.Tx) error { return errors.Join(tx.Queue().Finish("none"), tx.Queue().Finish("")) })
	same(t, "not finished", get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(items[0].ID) }),
		items[0])
	update(t, s, func(tx store.Tx) error { return tx.Queue().Finish("run-1") })
	items[0].State = queue.Done
	same(t, "finished", get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(items[0].ID) }),
		items[0])
	items[0].State, items[0].Run, items[0].Note, items[0].Skipped = queue.Taken, "run-9", "again", 9
	items[0].Result = queue.Result{Outcome: chela.OutcomeError, Error: "no answer"}
	update(t, s, func(tx store.Tx) error { return tx.Queue().Set(queue.Taken, items[0]) })
	same(t, "set", get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(items[0].ID) }), items[0])
}

// testFinish finishes a run with the id of the item that it took.
func testFinish(t *testing.T, s store.Store) {
	first, waiting, joined, dropped := item(keyB, 40), item(keyB, 41), item(keyB, 42), item(keyB, 43)
	first.ID, first.Run, first.State, waiting.Run = "run-40", "run-40", queue.Taken, "run-40"
	joined.Run, joined.State = "run-40", queue.Taken
	dropped.ID, dropped.Run, dropped.State = "run-43", "run-43", queue.Dropped
	state := func(id string) queue.State {
		return get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(id) }).State
	}
	update(t, s, func(tx store.Tx) error {
		for _, it := range []queue.Item{first, waiting, joined, dropped} {
			if _, err := tx.Queue().Put(it); err != nil {
				return err
			}
		}
		_, err := tx.Queue().Put(queue.Item{ID: first.ID, Key: "another", Session: keyB})
		if chela.CodeOf(err) != chela.CodeConflict {
			t.Errorf("put of a known id: %v", err)
		}
		ok, err := tx.Queue().Take(queue.Taken, waiting, first)
		same(t, "take of an item that is not waiting", ok, false)
		return errors.Join(err, tx.Queue().Set(queue.Waiting, waiting), tx.Queue().Finish("run-40"),
			tx.Queue().Finish("run-43"))
	})
	same(t, "states", []queue.State{state(first.ID), state(waiting.ID), state(joined.ID), state(dropped.ID)},
		[]queue.State{queue.Done, queue.Waiting, queue.Done, queue.Dropped})
	update(t, s, func(tx store.Tx) error { return tx.Queue().Set(queue.Cancelled, waiting) })
}

func testDeferred(t *testing.T, s store.Store) {
	var ids []string
	for n := range 3 {
		it := item(keyB, 20+n)
		it.Kind, it.State = queue.Event, queue.Deferred
		ids = append(ids, it.ID)
		update(t, s, func(tx store.Tx) error { _, err := tx.Queue().Put(it); return err })
	}
	list := func(want ...string) {
		t.Helper()
		var got []string
		for _, it := range append(get(t, s, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Deferred() }),
			get(t, s, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Waiting(keyB) })...) {
			if it.Kind == queue.Event {
				got = append(got, string(it.State)+" "+it.ID)
			}
		}
		same(t, "items", got, want)
	}
	list("owed item-20", "owed item-21", "owed item-22")
	resolve := func(id, text string, want bool) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			resolved, err := queue.Resolve(tx.Queue(), id, text,
				queue.Result{Outcome: chela.OutcomeTimeout, Ended: at(30), Text: "timed out"})
			same(t, "resolve "+id, resolved, want)
			return err
		})
	}
	resolve(ids[0], "the end", true)
	resolve(ids[0], "again", false)
	resolve(ids[1], "", false)
	list("owed item-22", "waiting item-20:told")
	told := get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get("item-20:told") })
	want := item(keyB, 20)
	want.ID, want.Key, want.Kind, want.State, want.Owner = "item-20:told", "key-20:told", queue.Event, queue.Waiting, ""
	want.Seq, want.Created, want.Inbound.Text = told.Seq, at(30), "the end"
	same(t, "told", told, want)
	for id, state := range map[string]queue.State{ids[0]: queue.Done, ids[1]: queue.Cancelled} {
		it := get(t, s, func(r store.Reader) (queue.Item, error) { return r.Queue().Get(id) })
		if r := it.Result; it.State != state || r.Outcome != chela.OutcomeTimeout || !r.Ended.Equal(at(30)) ||
			r.Text != "timed out" {
			t.Errorf("result of %s, %s: %+v", id, it.State, r)
		}
	}
	marked := item(keyB, 23)
	marked.Owner, marked.Inbound.Task = "", true
	plain := item(keyB, 24)
	plain.Owner, plain.Inbound.Text = "", `"task":true`
	update(t, s, func(tx store.Tx) error {
		_, err1 := tx.Queue().Put(marked)
		_, err2 := tx.Queue().Put(plain)
		return errors.Join(err1, err2, tx.Queue().Set(queue.Cancelled, marked, plain))
	})
	background := get(t, s, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Background(3) })
	var got []string
	for _, it := range background {
		got = append(got, it.ID)
	}
	same(t, "in the background, newest first", got, []string{marked.ID, ids[2], ids[1]})
	update(t, s, func(tx store.Tx) error {
		for _, live := range []bool{true, false} {
			items, err := queue.Release(tx.Queue(),
				func(owner string) (bool, error) { return live && owner == "process-1", nil })
			if err != nil {
				return err
			}
			same(t, fmt.Sprintf("released when its owner is alive: %v", live), len(items), map[bool]int{false: 1}[live])
		}
		return nil
	})
	list("waiting item-22", "waiting item-20:told")
	update(t, s, func(tx store.Tx) error {
		return tx.Queue().Set(queue.Done, queue.Item{ID: "item-22"}, queue.Item{ID: "item-20:told"})
	})
}

// meta returns a session with all fields set.
func meta(key chela.SessionKey, n int) session.Meta {
	return session.Meta{
		Key:      key,
		ID:       fmt.Sprintf("transcript-%d", n),
		Previous: "before",
		Agent:    key.Agent(),
		Label:    "Label <&>",
		Title:    "Первые слова",
		Created:  at(0),
		Started:  at(1),
		Updated:  at(n),
		Active:   at(2),
		Answered: at(3),
		Address:  address,
		Category: "work",
		Icon:     "x",
		Color:    "red",
		Pinned:   at(1),
		Read:     at(2),
		Unread:   at(3),
		Model:    "anthropic/x",
		Think:    "low",
		Verbose:  "on",
		Usage:    "full",
		Bounds: session.Bounds{
			Tools:     []run.Tools{{Allow: []string{"read"}}, {Deny: []string{"exec"}}},
			Lane:      "subagent",
			Sandbox:   "all",
			SpawnedBy: keyB,
			Depth:     2,
		},
		Queue: queue.Prefs{Mode: "steer", Debounce: time.Second, Cap: 3, Drop: "old"},
		Plan: plan.Plan{Steps: []plan.Step{{ID: "a", Title: "first", State: plan.Completed},
			{ID: "b", Title: "second", State: plan.InProgress, After: []string{"a"}}}, Updated: at(3)},
		Tokens: llm.Usage{
			Input:      1,
			Output:     2,
			CacheRead:  3,
			CacheWrite: 4,
			Estimated:  true,
		},
		Context:     5,
		NanoUSD:     6,
		Priced:      true,
		Calls:       7,
		Aborted:     true,
		Interrupted: "r1",
	}
}

func testSessions(t *testing.T, s store.Store) {
	a, b := meta(keyA, 1), meta(keyB, 2)
	update(t, s, func(tx store.Tx) error { return errors.Join(tx.Sessions().Put(a), tx.Sessions().Put(b)) })
	same(t, "get", get(t, s, func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(keyA) }), a)
	a.Updated, a.Title = at(5), "changed"
	away := session.Meta{
		Key:      "agent:main:subagent:1",
		ID:       "t-away",
		Agent:    "main",
		Label:    "away",
		Updated:  at(4),
		Archived: at(9),
		Answered: at(9),
	}
	update(t, s, func(tx store.Tx) error {
		return errors.Join(
			tx.Sessions().Put(away),
			tx.Runs().Put(run.Run{ID: "active", Session: keyB, State: run.Running, Started: at(1)}),
			tx.Sessions().Put(a),
		)
	})
	yes, no := true, false
	for _, q := range []struct {
		name string
		q    session.Query
		want []session.Meta
		n    int
	}{
		{"all, newest first", session.Query{}, []session.Meta{a, b}, 2},
		{"of an agent", session.Query{Agent: "ops"}, []session.Meta{b}, 1},
		{"by key", session.Query{Search: "TELEGRAM"}, []session.Meta{b}, 1},
		{"by title in another script", session.Query{Search: "ПЕРВЫЕ"}, []session.Meta{b}, 1},
		{"by label", session.Query{Search: "label <&>"}, []session.Meta{a, b}, 2},
		{"search is not a pattern", session.Query{Search: "%"}, nil, 0},
		{"since", session.Query{Since: at(5)}, []session.Meta{a}, 1},
		{"a page", session.Query{Limit: 1, Offset: 1}, []session.Meta{b}, 2},
		{"the first page", session.Query{Limit: 1}, []session.Meta{a}, 2},
		{"a page of two", session.Query{Archived: session.ArchivedToo, Limit: 2, Offset: 1}, []session.Meta{away, b}, 3},
		{"including archived", session.Query{Archived: session.ArchivedToo}, []session.Meta{a, away, b}, 3},
		{"only archived", session.Query{Archived: session.ArchivedOnly}, []session.Meta{away}, 1},
		{"by the time of the last message", session.Query{Archived: session.ArchivedToo, Order: session.ByActive},
			[]session.Meta{a, b, away}, 3},
		{"by age", session.Query{Archived: session.ArchivedToo, Order: session.ByAge}, []session.Meta{b, away, a}, 3},
		{"a page by age", session.Query{Archived: session.ArchivedToo, Order: session.ByAge, Limit: 1, Offset: 1},
			[]session.Meta{away}, 3},
		{"with messages", session.Query{Archived: session.ArchivedToo, Interacted: true}, []session.Meta{a, b}, 2},
		{"by id", session.Query{ID: b.ID}, []session.Meta{b}, 1},
		{"with a label", session.Query{Label: "Label <&>"}, []session.Meta{a, b}, 2},
		{"with a part of a label", session.Query{Label: "Label"}, nil, 0},
		{"of a category", session.Query{Category: "work", Archived: session.ArchivedToo}, []session.Meta{a, b}, 2},
		{"pinned", session.Query{Pinned: &yes, Archived: session.ArchivedToo}, []session.Meta{a, b}, 2},
		{"not pinned", session.Query{Pinned: &no, Archived: session.ArchivedToo}, []session.Meta{away}, 1},
		{"with a run", session.Query{Running: true}, []session.Meta{b}, 1},
		{"without children", session.Query{Archived: session.ArchivedToo, Without: []chela.KeyKind{chela.KeySubagent}},
			[]session.Meta{a, b}, 2},
	} {
		view(t, s, func(r store.Reader) error {
			list, n, err := r.Sessions().List(q.q)
			same(t, q.name, list, q.want)
			same(t, q.name+": total", n, q.n)
			return err
		})
	}
	view(t, s, func(r store.Reader) error {
		counts, err := r.Sessions().Counts()
		same(t, "sessions of each agent, with archived ones", counts, map[chela.AgentID]int{"main": 2, "ops": 1})
		return err
	})
	t.Run("kinds", func(t *testing.T) {
		keys := []chela.SessionKey{"agent:kinds:main", "agent:kinds:cron:j", "agent:kinds:hook:h",
			"agent:kinds:x:direct:a:cron:b", "cron:old", "agent:kinds:main:subagent:u"}
		for i, k := range keys {
			update(t, s, func(tx store.Tx) error {
				return tx.Sessions().Put(session.Meta{Key: k, ID: fmt.Sprint("kind-", i), Agent: "kinds", Updated: at(i)})
			})
		}
		without := func(kinds ...chela.KeyKind) (left []chela.SessionKey) {
			view(t, s, func(r store.Reader) error {
				list, _, err := r.Sessions().List(session.Query{Agent: "kinds", Without: kinds})
				left = nil
				for _, m := range list {
					left = append(left, m.Key)
				}
				slices.Reverse(left)
				return err
			})
			return left
		}
		same(t, "all", without(), keys)
		same(t, "without cron", without(chela.KeyCron), []chela.SessionKey{keys[0], keys[2], keys[3], keys[5]})
		same(t, "without hooks and subagents", without(chela.KeyHook, chela.KeySubagent),
			[]chela.SessionKey{keys[0], keys[1], keys[3], keys[4]})
		for _, k := range keys {
			update(t, s, func(tx store.Tx) error { return tx.Sessions().Delete(k) })
		}
	})
	t.Run("past", func(t *testing.T) {
		p1 := session.Past{ID: "p1", Started: at(1), Ended: at(2), Reason: "new", Entries: 3}
		p2 := session.Past{ID: "p2", Started: at(2), Ended: at(3), Reason: "daily", Entries: 0}
		update(t, s, func(tx store.Tx) error {
			return errors.Join(tx.Sessions().Archive(keyA, p1), tx.Sessions().Archive(keyA, p2))
		})
		past := func(r store.Reader) ([]session.Past, error) { return r.Sessions().Past(keyA) }
		same(t, "newest first", get(t, s, past), []session.Past{p2, p1})
		p1.Reason, p1.Ended = "undo", at(9)
		update(t, s, func(tx store.Tx) error {
			return errors.Join(tx.Sessions().Unarchive(keyA, "p2"), tx.Sessions().Archive(keyA, p1))
		})
		same(t, "after undo", get(t, s, past), []session.Past{p1})
		same(t, "of another", get(t, s, func(r store.Reader) ([]session.Past, error) { return r.Sessions().Past(keyB) }), nil)
		update(t, s, func(tx store.Tx) error {
			return errors.Join(tx.Sessions().Archive(keyA, p2),
				tx.Sessions().Append("p2", &session.Entry{ID: "old", Kind: session.KindNotice, Time: at(2)}))
		})
		for _, want := range []int{1, 0} {
			update(t, s, func(tx store.Tx) error {
				n, err := tx.Sessions().PrunePast(keyA, at(9))
				same(t, "pruned", n, want)
				return err
			})
		}
		size := func(id string) int64 {
			return get(t, s, func(r store.Reader) (int64, error) { return r.Sessions().Size(id) })
		}
		same(t, "size of a pruned transcript", size("p2"), 0)
		update(t, s, func(tx store.Tx) error {
			return tx.Sessions().Append("sized",
				&session.Entry{ID: "a", Kind: session.KindMessage, Message: llm.User(strings.Repeat("é", 5000))},
				&session.Entry{ID: "b", Kind: session.KindNotice, Text: strings.Repeat("x", 2000)})
		})
		if n := size("sized"); n < 12_000 || n > 13_000 {
			t.Errorf("the size of a transcript with 12,000 bytes is %d", n)
		}
		same(t, "after pruning", get(t, s, past), []session.Past{p1})
		same(t, "entries of a pruned transcript",
			get(t, s, func(r store.Reader) ([]session.Entry, error) { return r.Sessions().Last("p2", 9) }), nil)
	})
	t.Run("unknown sessions and transcripts", func(t *testing.T) {
		view(t, s, func(r store.Reader) error {
			_, err := r.Sessions().Get("none")
			fails(t, "get", err, chela.ErrNotFound)
			return nil
		})
		err := s.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return tx.Sessions().Delete("none") })
		fails(t, "delete", err, chela.ErrNotFound)
	})
}

// entries returns entries of every kind with all fields set.
func entries() []*session.Entry {
	assistant := &llm.Message{
		Role:     llm.RoleAssistant,
		Provider: "anthropic",
		Model:    "m",
		Stop:     llm.StopTools,
		Parts: []llm.Part{
			{Kind: llm.PartThinking, Text: "hm", Signature: "sig", Redacted: "red"},
			llm.Text("a <b> & \"c\""),
			{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{ "path":  "<a>&\u00e9" }`),
				Raw: `{"pa`}},
		},
	}
	result := &llm.Message{
		Role:     llm.RoleTool,
		CallID:   "c1",
		ToolName: "read",
		IsError:  true,
		Parts:    []llm.Part{llm.Text("no such file\n")},
	}
	return []*session.Entry{
		{ID: "e1", Kind: session.KindMessage, Time: at(1), Run: "run-1", Message: llm.User("hello \x00 世界"),
			Sender: chela.Sender{ID: "u1", Name: "Ada"}, ItemID: "item-1", Origin: origin},
		{
			ID: "e2", Kind: session.KindMessage, Time: at(2), Run: "run-1", Message: assistant, NanoUSD: -1, Partial: true,
			Usage: &llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Estimated: true},
		},
		{ID: "e3", Kind: session.KindMessage, Time: at(3), Run: "run-1", Message: result,
			Details: json.RawMessage(`{"lines": [1,2]}`), Cut: true},
		{ID: "e4", Kind: session.KindMessage, Time: at(4), Message: &llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Text("look"), llm.Image("image/png", []byte{0, 255, 7})}}},
		{ID: "e5", Kind: session.KindMessage, Time: at(5), Message: &llm.Message{Role: llm.RoleAssistant},
			Usage: &llm.Usage{}},
		{ID: "e6", Kind: session.KindMessage, Time: at(6), Message: llm.User("")},
		{ID: "e7", Kind: session.KindCut, Time: at(7), First: 3},
		{ID: "e11", Kind: session.KindPrune, Time: at(9), Run: "run-2", Prune: &session.Prune{
			Cause:       session.PruneGuard,
			Trim:        []int64{1, 3},
			Clear:       []int64{2},
			Images:      []int64{4},
			Head:        5,
			Tail:        6,
			Placeholder: "[<cleared>]",
		}},
		{ID: "e8", Kind: session.KindNotice, Time: at(8), Text: "resumed"},
		{ID: "e9", Kind: session.KindCommand, Text: "/status\nok"},
		{ID: "e10", Kind: session.KindVoid, Time: at(9), Run: "run-2", Voids: session.Ref{Entry: "e7", Run: "run-1"}},
	}
}

func testTranscripts(t *testing.T, s store.Store) {
	first := entries()
	update(t, s, func(tx store.Tx) error {
		return errors.Join(
			tx.Sessions().Append("t1", first[:4]...),
			tx.Sessions().Append("t2", &session.Entry{ID: "x", Kind: session.KindNotice}),
			tx.Sessions().Append("t1", first[4:]...),
		)
	})
	var want []session.Entry
	for i, e := range first {
		if e.Seq != int64(i+1) {
			t.Errorf("entry %d: seq %d", i+1, e.Seq)
		}
		want = append(want, *e)
	}
	read := func(id string, after int64, limit int) []session.Entry {
		return get(t, s, func(r store.Reader) ([]session.Entry, error) { return r.Sessions().Entries(id, after, limit) })
	}
	same(t, "all", read("t1", 0, 0), want)
	same(t, "after", read("t1", 7, 0), want[7:])
	same(t, "a page", read("t1", 2, 3), want[2:5])
	same(t, "beyond the end", read("t1", 99, 0), nil)
	same(t, "of an unknown transcript", read("none", 0, 0), nil)
	last := func(n int) []session.Entry {
		return get(t, s, func(r store.Reader) ([]session.Entry, error) { return r.Sessions().Last("t1", n) })
	}
	same(t, "last", last(2), want[9:])
	same(t, "last with a large limit", last(100), want)
	same(t, "last none", last(0), nil)
	count := func(id string) int {
		return get(t, s, func(r store.Reader) (int, error) { return r.Sessions().Count(id) })
	}
	same(t, "count", count("t1"), len(want))
	same(t, "count of an unknown transcript", count("none"), 0)

	t.Run("messages of a single part", func(t *testing.T) {
		call := &llm.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{}`)}
		var want []session.Entry
		for i, p := range []llm.Part{
			{Kind: llm.PartThinking, Text: "hm"}, {Kind: llm.PartText, Text: "x", Signature: "s"},
			{Kind: llm.PartText, Redacted: "r"},
			{Kind: llm.PartText, MIME: "m"}, {Kind: llm.PartText, Data: []byte{1}}, {Kind: llm.PartText, Ref: "f"},
			{Kind: llm.PartText, Call: call},
		} {
			e := session.Entry{ID: fmt.Sprint(i), Kind: session.KindMessage, Time: at(i),
				Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{p}}}
			update(t, s, func(tx store.Tx) error { return tx.Sessions().Append("single", &e) })
			want = append(want, e)
		}
		same(t, "entries", read("single", 0, 0), want)
	})
	t.Run("a session is deleted with its transcripts", func(t *testing.T) {
		var held lease.Lease
		update(t, s, func(tx store.Tx) error {
			m := meta(keyA, 1)
			m.ID = "t1"
			put := item(keyA, 1)
			for n, state := range []queue.State{queue.Deferred, queue.Waiting, queue.Taken, queue.Done, queue.Dropped} {
				it := item(keyA, 2+n)
				it.Kind, it.State, it.Owner = queue.Event, state, "dead"
				if _, err := tx.Queue().Put(it); err != nil {
					return err
				}
			}
			other := item(keyB, 7)
			other.Kind, other.State = queue.Event, queue.Deferred
			if _, err := tx.Queue().Put(other); err != nil {
				return err
			}
			for _, f := range []func() error{
				func() error { return tx.Sessions().Put(m) },
				func() error { return tx.Sessions().Archive(keyA, session.Past{ID: "t2"}) },
				func() error { return tx.Sessions().Append("t3", &session.Entry{ID: "y", Kind: session.KindNotice}) },
				func() error { return tx.Runs().Put(run.Run{ID: "run-1", Session: keyA, State: run.Running}) },
				func() error {
					return tx.Calls().Plan(session.Call{
						ID:       "c",
						Run:      "run-1",
						Session:  keyA,
						Approval: "ap",
						Wire:     llm.ToolCall{Name: "exec", Args: json.RawMessage(`{"a":1}`), Raw: "raw"},
					})
				},
				func() error { return tx.Calls().Close("c", session.Outcome{Ran: `{"a":2}`, Decision: "allowed"}) },
				func() error {
					return tx.Outbox().Put(outbox.Row{Key: "o", Run: "run-1", Session: keyA, State: outbox.Pending})
				},
				func() error { return tx.Approvals().Put(approval.Request{ID: "ap", Session: keyA}) },
				func() error { _, err := tx.Queue().Put(put); return err },
				func() (err error) { held, _, err = tx.Leases().Acquire(lease.Session(keyA), "me"); return err },
			} {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		})
		update(t, s, func(tx store.Tx) error { return tx.Sessions().Delete(keyA) })
		same(t, "left of t1, t2, t3", []int{count("t1"), count("t2"), count("t3")}, []int{0, 0, 1})
		view(t, s, func(r store.Reader) error {
			_, err := r.Sessions().Get(keyA)
			fails(t, "session", err, chela.ErrNotFound)
			_, err = r.Runs().Get("run-1")
			fails(t, "run", err, chela.ErrNotFound)
			c, err := r.Calls().Call("c")
			same(t, "call after the deletion", c, session.Call{
				ID:      "c",
				Run:     "run-1",
				Session: keyA,
				Wire:    llm.ToolCall{Name: "exec"},
				State:   session.Closed,
				Updated: c.Updated,
				Seq:     c.Seq,
				Outcome: session.Outcome{Decision: "allowed"},
			})
			if err != nil {
				return err
			}
			past, err := r.Sessions().Past(keyA)
			same(t, "past transcripts", len(past), 0)
			if err != nil {
				return err
			}
			free, err := r.Leases().Get(lease.Session(keyA))
			same(t, "owner of the lease", free.Owner, "")
			if err != nil {
				return err
			}
			_, err = r.Outbox().Get("o")
			fails(t, "outbox row", err, chela.ErrNotFound)
			_, err = r.Approvals().Get("ap")
			fails(t, "approval", err, chela.ErrNotFound)
			it, err := r.Queue().ByKey("key-1")
			same(t, "item after the deletion", []string{it.ID, string(it.State), it.Inbound.Text},
				[]string{"item-1", "cancelled", ""})
			return err
		})
		// as at the start after a kill: no event may begin a run of the deleted session
		update(t, s, func(tx store.Tx) error {
			released, err := queue.Release(tx.Queue(), func(string) (bool, error) { return false, nil })
			if len(released) != 1 || released[0].ID != "item-7" {
				t.Errorf("released: %+v, want item-7 of the other session", released)
			}
			return err
		})
		view(t, s, func(r store.Reader) error {
			var got []string
			for n := range 6 {
				it, err := r.Queue().Get(fmt.Sprintf("item-%d", 2+n))
				if err != nil {
					return err
				}
				got = append(got, string(it.State)+" "+it.Inbound.Text)
			}
			same(t, "events", got, []string{"cancelled ", "cancelled ", "cancelled ", "done ", "dropped ", "waiting " +
				item(keyB, 7).Inbound.Text})
			waiting, err := r.Queue().Waiting(keyA)
			same(t, "waiting items", len(waiting), 0)
			return err
		})
		err := store.Held(t.Context(), s, held, store.Ordered, func(store.Tx) error { return nil })
		fails(t, "a run in progress", err, chela.ErrFenced)
	})
}

func testCalls(t *testing.T, s store.Store) {
	c1 := session.Call{
		ID:       "run-1/1/0",
		Run:      "run-1",
		Session:  keyA,
		State:    session.Planned,
		Effect:   "acts",
		Approval: "ap-1",
		Updated:  at(1),
		Rights:   []string{"net:example.org", "write:/srv"},
		Wire:     llm.ToolCall{ID: "toolu_1", Name: "exec", Args: json.RawMessage(`{ "a": 1 }`), Raw: "raw"},
	}
	c2, c3 := c1, c1
	c2.ID, c3.ID = "run-1/1/1", "run-1/2/0"
	update(t, s, func(tx store.Tx) error { return tx.Calls().Plan(c2, c1) })
	update(t, s, func(tx store.Tx) error { return tx.Calls().Plan(c3) })
	openCalls := func() []string {
		var ids []string
		for _, c := range get(t, s, func(r store.Reader) ([]session.Call, error) { return r.Calls().Open("run-1") }) {
			ids = append(ids, c.ID)
		}
		return ids
	}
	same(t, "open, in order of planning", openCalls(), []string{c2.ID, c1.ID, c3.ID})
	call := func(id string) session.Call {
		return get(t, s, func(r store.Reader) (session.Call, error) { return r.Calls().Call(id) })
	}
	c1.Seq, c2.Seq, c3.Seq = 2, 1, 3
	same(t, "call", call(c1.ID), c1)

	move := func(id string, to session.CallState, from ...session.CallState) error {
		return s.Update(t.Context(), store.Synced, func(tx store.Tx) error { return tx.Calls().Move(id, to, from...) })
	}
	if err := move(c1.ID, session.Started, session.Planned, session.Approved); err != nil {
		t.Errorf("move: %v", err)
	}
	if err := move(c1.ID, session.Started, session.Planned); chela.CodeOf(err) != chela.CodeConflict {
		t.Errorf("move from another state: %v", err)
	}
	fails(t, "move of an unknown call", move("none", session.Closed), chela.ErrNotFound)
	if err := move(c2.ID, session.Closed); err != nil {
		t.Errorf("move from any: %v", err)
	}
	same(t, "open", openCalls(), []string{c1.ID, c3.ID})
	if err := s.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return tx.Calls().Plan(c1) }); err == nil {
		t.Error("planned twice")
	}
	c3.Detached, c3.State, c3.Updated, c3.Effect, c3.Approval, c3.Rights = true, session.Waiting, at(4), "reads",
		"ap-3", []string{"write:/opt"}
	c3.Wire = llm.ToolCall{ID: "toolu_3", Name: "write", Args: json.RawMessage(`{"b":2}`), Raw: "other"}
	update(t, s, func(tx store.Tx) error { return tx.Calls().Put(c3) })
	detached := func(r store.Reader) ([]session.Call, error) { return r.Calls().OpenDetached(keyA) }
	same(t, "detached", get(t, s, detached), []session.Call{c3})
	update(t, s, func(tx store.Tx) error { return tx.Calls().Move(c3.ID, session.Closed) })
	same(t, "detached and closed", get(t, s, detached), nil)

	o := session.Outcome{
		Who:      "owner",
		Ran:      `{"a":1}`,
		Decision: "allowed",
		Rule:     "default",
		Result:   "ok",
		Took:     time.Second,
	}
	update(t, s, func(tx store.Tx) error { return tx.Calls().Close(c1.ID, o) })
	same(t, "outcome", call(c1.ID).Outcome, o)
	update(t, s, func(tx store.Tx) error { return tx.Calls().Put(c1) })
	same(t, "outcome after another Put", call(c1.ID).Outcome, o)
	err := s.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return tx.Calls().Close("none", o) })
	fails(t, "close of an unknown call", err, chela.ErrNotFound)
	for _, q := range []struct {
		what  string
		query session.CallQuery
		want  []string
	}{
		{"all", session.CallQuery{Limit: 9}, []string{c3.ID, c1.ID, c2.ID}},
		{"the newest", session.CallQuery{Limit: 1}, []string{c3.ID}},
		{"none", session.CallQuery{Limit: -1}, nil},
		{"of another run", session.CallQuery{Run: "run-2", Limit: 9}, nil},
		{"of a tool", session.CallQuery{Tool: "write", Limit: 9}, []string{c3.ID}},
		{"by decision", session.CallQuery{Decision: "denied", Limit: 9}, nil},
		{"by result", session.CallQuery{Result: "error", Limit: 9}, nil},
		{"older ones", session.CallQuery{Before: 3, Limit: 9}, []string{c1.ID, c2.ID}},
		{"by outcome", session.CallQuery{Result: "ok", Decision: "allowed", Tool: "exec", Run: "run-1", Session: keyA,
			Limit: 9}, []string{c1.ID}},
		{"of another session", session.CallQuery{Session: keyB, Limit: 9}, nil},
		{"since a later time", session.CallQuery{Since: time.Now().Add(time.Hour), Limit: 9}, nil},
	} {
		var ids []string
		for _, c := range get(t, s, func(r store.Reader) ([]session.Call, error) { return r.Calls().Recent(q.query) }) {
			ids = append(ids, c.ID)
		}
		same(t, q.what, ids, q.want)
	}
}

func testRuns(t *testing.T, s store.Store) {
	r1 := run.Run{
		ID:        "run-1",
		Session:   keyA,
		SessionID: "t1",
		Agent:     "main",
		Kind:      run.Compact,
		Origin:    origin,
		Parent:    "p",
		Root:      "root",
		Replaces:  "old",
		Waits:     run.WaitsChildren,
		Overrides: overrides,
		Lane:      "main",
		State:     run.Running,
		Principal: chela.Principal{ID: "u", Credential: "token", Scopes: []chela.Scope{chela.ScopeWrite}},
		Address:   address,
		Model:     "a/b",
		Attempts:  2,
		Error:     "e",
		Failure:   run.Empty,
		Text:      "the answer",
		Footer:    "1k tokens",
		Silent:    true,

		Started: at(2),
		Fence:   4,
	}
	r2 := run.Run{ID: "run-2", Session: keyB, State: run.Suspended, Started: at(1)}
	r3 := run.Run{ID: "run-3", Session: keyA, State: run.OK, Started: at(3), Ended: at(4)}
	update(t, s, func(tx store.Tx) error { return each(tx.Runs().Put, r1, r2, r3) })
	same(t, "get", get(t, s, func(r store.Reader) (run.Run, error) { return r.Runs().Get("run-1") }), r1)
	active := func(key chela.SessionKey) []run.Run {
		return get(t, s, func(r store.Reader) ([]run.Run, error) { return r.Runs().Active(key) })
	}
	same(t, "active, oldest first", active(""), []run.Run{r2, r1})
	same(t, "active of a session", active(keyA), []run.Run{r1})
	t.Run("another process asks for a stop", func(t *testing.T) {
		stop := func(id chela.RunID, want bool) {
			t.Helper()
			update(t, s, func(tx store.Tx) error {
				ok, err := tx.Runs().RequestStop(id, "stopped")
				same(t, "run "+string(id)+" is active", ok, want)
				return err
			})
		}
		stop(r1.ID, true)
		stop(r3.ID, false)
		stop("none", false)
		changed := r1
		changed.Stop, changed.Origin, changed.Parent, changed.Root, changed.Replaces, changed.Kind = "",
			chela.Origin{}, "", "", "", run.Turn
		update(t, s, func(tx store.Tx) error { return tx.Runs().Put(changed) })
		r1.Stop = "stopped"
		same(t, "after another Put", get(t, s, func(r store.Reader) (run.Run, error) { return r.Runs().Get(r1.ID) }), r1)
	})
	r1.Waits, r1.Overrides = "", run.Overrides{}
	r1.State, r1.Ended = run.Failed, at(5)
	r1.Lane, r1.Principal, r1.Address = "cron", chela.Owner("socket"), chela.Address{Channel: "webchat"}
	r1.Model, r1.Attempts, r1.Error, r1.Failure, r1.Text, r1.Footer, r1.Silent, r1.Fence = "c/d", 3, "f", run.Limit,
		"another answer", "2k tokens", false, 5
	update(t, s, func(tx store.Tx) error {
		if err := tx.Calls().Plan(session.Call{ID: "old", Run: "run-3", Session: keyA, State: session.Closed},
			session.Call{ID: "new", Run: "run-1", Session: keyA},
			session.Call{ID: "detached", Run: "run-3", Session: keyA, Detached: true},
			session.Call{ID: "alone, old", Run: "none", Session: keyA, State: session.Closed, Updated: at(4)},
			session.Call{ID: "alone, new", Run: "none", Session: keyA, State: session.Closed, Updated: at(6)}); err != nil {
			return err
		}
		for decision, of := range map[approval.Decision]chela.RunID{
			approval.Pending:      "run-3",
			approval.Deny:         "run-3",
			approval.AllowOnce:    "run-1",
			approval.AllowAlways:  "run-3",
			approval.AllowSession: "run-3",
		} {
			if err := tx.Approvals().Put(approval.Request{ID: "of " + string(decision), Session: keyA, Run: of,
				Decision: decision}); err != nil {
				return err
			}
		}
		return tx.Runs().Put(r1)
	})
	same(t, "active after the end", active(""), []run.Run{r2})
	update(t, s, func(tx store.Tx) error {
		n, err := tx.Runs().Prune(at(5))
		same(t, "pruned", n, 1)
		return err
	})
	for _, r := range []run.Run{r1, r2} {
		same(t, "left", get(t, s, func(rd store.Reader) (run.Run, error) { return rd.Runs().Get(r.ID) }), r)
	}
	view(t, s, func(r store.Reader) error {
		_, err := r.Calls().Call("old")
		fails(t, "call of a pruned run", err, chela.ErrNotFound)
		_, err = r.Calls().Call("alone, old")
		fails(t, "call without a run", err, chela.ErrNotFound)
		if _, err := r.Calls().Call("alone, new"); err != nil {
			t.Error(err)
		}
		_, err = r.Runs().Get("run-3")
		fails(t, "pruned run", err, chela.ErrNotFound)
		_, err = r.Approvals().Get("of " + string(approval.Deny))
		fails(t, "approval of a pruned run", err, chela.ErrNotFound)
		for _, left := range []approval.Decision{approval.Pending, approval.AllowOnce, approval.AllowAlways,
			approval.AllowSession} {
			if _, err := r.Approvals().Get("of " + string(left)); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Calls().Call("detached"); err != nil {
			t.Error(err)
		}
		c, err := r.Calls().Call("new")
		same(t, "state of a new call", c.State, session.Planned)
		return err
	})
}

func testApprovals(t *testing.T, s store.Store) {
	request := func(key chela.SessionKey, n int) approval.Request {
		return approval.Request{
			ID:        fmt.Sprintf("ap-%d", n),
			Session:   key,
			Run:       "run-1",
			Call:      "c",
			Tool:      "exec",
			Text:      "rm <x>",
			Reason:    "outside",
			Hash:      "h1",
			Rights:    []string{"write:/srv"},
			Asked:     keyB,
			Requester: chela.Owner("token"),
			Created:   at(n),
			Expires:   at(30 - n),
		}
	}
	a, b, c := request(keyA, 3), request(keyB, 1), request(keyA, 2)
	update(t, s, func(tx store.Tx) error { return each(tx.Approvals().Put, a, b, c) })
	same(t, "get", get(t, s, func(r store.Reader) (approval.Request, error) { return r.Approvals().Get("ap-3") }), a)
	pending := func(key chela.SessionKey) []approval.Request {
		return get(t, s, func(r store.Reader) ([]approval.Request, error) { return r.Approvals().Pending(key) })
	}
	same(t, "pending, oldest first", pending(""), []approval.Request{b, c, a})
	same(t, "pending of a session", pending(keyA), []approval.Request{c, a})
	always := func(agent chela.AgentID, tool string) []approval.Request {
		return get(t, s, func(r store.Reader) ([]approval.Request, error) { return r.Approvals().Always(agent, tool) })
	}
	same(t, "before the decision", len(always("main", "exec")), 0)
	a.Decision, a.By, a.Decided = approval.AllowAlways, "owner", at(5)
	b.Decision, c.Decision = approval.AllowAlways, approval.AllowOnce
	update(t, s, func(tx store.Tx) error { return each(tx.Approvals().Put, a, b, c) })
	same(t, "pending", len(pending("")), 0)
	same(t, "decided", get(t, s, func(r store.Reader) (approval.Request, error) { return r.Approvals().Get("ap-3") }), a)
	same(t, "always, of an agent", always("main", "exec"), []approval.Request{a})
	same(t, "always, of another", always("ops", "exec"), []approval.Request{b})
	same(t, "always, of a prefix of the agent's id", len(always("mai", "exec")), 0)
	same(t, "always, of another tool", len(always("main", "read")), 0)
	same(t, "always, of all", always("", ""), []approval.Request{a, b})
	t.Run("for a session", func(t *testing.T) {
		d := request(keyA, 4)
		d.Decision = approval.AllowSession
		update(t, s, func(tx store.Tx) error { return tx.Approvals().Put(d) })
		standing := func(key chela.SessionKey, tool string) []approval.Request {
			return get(t, s, func(r store.Reader) ([]approval.Request, error) { return r.Approvals().Standing(key, tool) })
		}
		same(t, "in the session", standing(keyA, "exec"), []approval.Request{a, d})
		same(t, "in another session of the agent", standing("agent:main:other", "exec"), []approval.Request{a})
		same(t, "in a session of another agent", standing("agent:ops:main", "exec"), []approval.Request{b})
		same(t, "for another tool", len(standing(keyA, "read")), 0)
		same(t, "always", always("main", "exec"), []approval.Request{a})
		update(t, s, func(tx store.Tx) error {
			_, err := approval.Revoke(tx.Approvals(), chela.Owner("token"), d.ID)
			return err
		})
		same(t, "after the revocation", standing(keyA, "exec"), []approval.Request{a})
	})
	update(t, s, func(tx store.Tx) error {
		_, err := approval.Revoke(tx.Approvals(), chela.Owner("token"), "ap-3")
		return err
	})
	same(t, "always, after the revocation", len(always("main", "exec")), 0)
	view(t, s, func(r store.Reader) error {
		_, err := r.Approvals().Get("none")
		fails(t, "get of an unknown request", err, chela.ErrNotFound)
		return nil
	})
}

// testBlocked moves a started call to Waiting. Calls in other states are refused.
func testBlocked(t *testing.T, s store.Store) {
	c := session.Call{
		ID:      "blocked",
		Run:     "run-2",
		Session: keyA,
		State:   session.Started,
		Effect:  "acts",
		Updated: at(1),
		Wire:    llm.ToolCall{Name: "exec"},
	}
	update(t, s, func(tx store.Tx) error { return tx.Calls().Plan(c) })
	block := func() error {
		return s.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			_, err := session.Block(tx.Calls(), c.ID, "ap-2", []string{"net:example.org"}, at(2), session.Started)
			return err
		})
	}
	if err := block(); err != nil {
		t.Fatal(err)
	}
	got := get(t, s, func(r store.Reader) (session.Call, error) { return r.Calls().Call(c.ID) })
	c.Seq, c.State, c.Approval, c.Rights, c.Updated = got.Seq, session.Waiting, "ap-2", []string{"net:example.org"}, at(2)
	same(t, "the call", got, c)
	for _, c.State = range []session.CallState{session.Approved, session.Started} { // it is planned again with its rights
		from := got.State
		update(t, s, func(tx store.Tx) error { return tx.Calls().Move(c.ID, c.State, from) })
		got = get(t, s, func(r store.Reader) (session.Call, error) { return r.Calls().Call(c.ID) })
		c.Updated = got.Updated
		same(t, "the call, "+string(c.State), got, c)
	}
	for _, state := range []session.CallState{session.Waiting, session.Approved, session.Planned, session.Closed} {
		update(t, s, func(tx store.Tx) error { return tx.Calls().Move(c.ID, state) })
		if err := block(); chela.CodeOf(err) != chela.CodeConflict {
			t.Errorf("a call that is %s: %v", state, err)
		}
	}
	if err := s.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		_, err := session.Block(tx.Calls(), "none", "ap-2", nil, at(2), session.Started)
		return err
	}); !errors.Is(err, chela.ErrNotFound) {
		t.Errorf("unknown call: %v", err)
	}
}

func testOutbox(t *testing.T, s store.Store) {
	part := func(n int, state outbox.State) outbox.Row {
		return outbox.Row{
			Key:      fmt.Sprintf("run-1/%d", n),
			Run:      "run-1",
			Session:  keyA,
			Address:  address,
			ReplyTo:  "9",
			Part:     n,
			Text:     "text <&>",
			Media:    []chela.Media{{Name: "a", Type: "image/png", Data: []byte{1}}},
			State:    state,
			Attempts: 1,

			NotBefore:  at(20 - n),
			PlatformID: "p",
			Error:      "e",
			Created:    at(n),
			Origin:     origin,
			Buttons: [][]chela.Button{{{Label: "Yes <&>", Data: "yes", Style: chela.Danger}},
				{{Label: "Help", URL: "https://a.example"}}},
			Poll: &outbox.Poll{
				Question: "Tea?",
				Options:  []string{"yes", "no"},
				Multiple: true,
				Public:   true,
				Open:     time.Hour,
			},
		}
	}
	rows := []outbox.Row{part(2, outbox.Pending), part(0, outbox.Draft), part(1, outbox.Sent)}
	update(t, s, func(tx store.Tx) error { return tx.Outbox().Put(rows...) })
	ofRun := get(t, s, func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().OfRun("run-1") })
	for i, at := range []int{1, 2, 0} {
		if len(ofRun) != 3 {
			t.Fatalf("of run: %d rows, want 3", len(ofRun))
		}
		rows[at].Seq = ofRun[i].Seq
	}
	same(t, "of run, by part", ofRun, []outbox.Row{rows[1], rows[2], rows[0]})
	if !(rows[0].Seq < rows[1].Seq && rows[1].Seq < rows[2].Seq) {
		t.Errorf("order of writing: %d %d %d", rows[0].Seq, rows[1].Seq, rows[2].Seq)
	}
	sentAs := func(thread, id string) (outbox.Row, error) {
		a := address
		a.Thread = thread
		return store.Get(t.Context(), s, func(r store.Reader) (outbox.Row, error) { return r.Outbox().SentAs(a, id) })
	}
	got, err := sentAs("another", "p")
	same(t, "sent as", got, rows[2])
	fails(t, "sent as", err, nil)
	_, err = sentAs("", "q")
	fails(t, "never sent", err, chela.ErrNotFound)
	openRows := func(n int) []outbox.Row {
		return get(t, s, func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().Open(n) })
	}
	same(t, "open, by seq", openRows(0), rows[:2])
	same(t, "open, limited", openRows(1), rows[:1])
	rows[0].State, rows[0].Text, rows[0].Media, rows[0].Buttons, rows[0].Poll = outbox.Attempted, "changed", nil, nil, nil
	rows[0].Attempts, rows[0].NotBefore, rows[0].PlatformID, rows[0].Error, rows[0].ReplyTo = 2, at(7), "q", "f", "8"
	update(t, s, func(tx store.Tx) error { return tx.Outbox().Put(rows[0]) })
	same(t, "changed, with the same seq", openRows(0), rows[:2])
	undelivered := func(n int) []outbox.Row {
		return get(t, s, func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().Undelivered(n) })
	}
	same(t, "none is undelivered", undelivered(9), nil)
	failed, dismissed := part(4, outbox.Failed), part(5, outbox.Dismissed)
	update(t, s, func(tx store.Tx) error { return tx.Outbox().Put(failed, dismissed) })
	same(t, "undelivered", len(undelivered(9)), 1)
	update(t, s, func(tx store.Tx) error { return tx.Outbox().Delete(failed.Key, dismissed.Key) })
	rows[0].State = outbox.Ambiguous
	update(t, s, func(tx store.Tx) error {
		if err := tx.Outbox().Put(rows[0]); err != nil {
			return err
		}
		n, err := tx.Outbox().Prune(at(2))
		same(t, "pruned", n, 1)
		if err != nil {
			return err
		}
		old := part(3, outbox.Ambiguous)
		old.Created = at(1)
		if err := tx.Outbox().Put(old); err != nil {
			return err
		}
		n, err = tx.Outbox().Prune(at(2))
		same(t, "pruned ambiguous", n, 1)
		if err != nil {
			return err
		}
		return tx.Outbox().Delete("none", rows[1].Key)
	})
	same(t, "open", openRows(0), nil)
	view(t, s, func(r store.Reader) error {
		got, err := r.Outbox().Get(rows[0].Key)
		same(t, "get", got, rows[0])
		_, missing := r.Outbox().Get(rows[1].Key)
		fails(t, "deleted", missing, chela.ErrNotFound)
		return err
	})
}

func testUsage(t *testing.T, s store.Store) {
	same(t, "of a run without usage",
		get(t, s, func(r store.Reader) (usage.Sum, error) { return r.Usage().OfRun("none") }), usage.Sum{})
	day2 := epoch.Add(24 * time.Hour)
	rows := []usage.Row{
		{Run: "r1", Session: keyA, Agent: "main", Provider: "p", Model: "m", Time: at(0),
			Tokens: llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, NanoUSD: 10, Priced: true},
		{Run: "r1", Session: keyA, Agent: "main", Provider: "p", Model: "m", Time: at(1),
			Tokens: llm.Usage{Input: 10, Estimated: true}, NanoUSD: 5, Priced: true},
		{Run: "r2", Session: keyB, Agent: "ops", Provider: "p", Model: "n", Time: at(2), Tokens: llm.Usage{Output: 7}},
		{Run: "r3", Session: keyA, Agent: "main", Provider: "p", Model: "m", Time: day2,
			Tokens: llm.Usage{Input: 1}, Priced: true},
	}
	update(t, s, func(tx store.Tx) error { return each(tx.Usage().Add, rows...) })
	first := usage.Sum{Day: "2026-11-21", Provider: "p", Model: "m", Calls: 2, Tokens: llm.Usage{
		Input:      11,
		Output:     2,
		CacheRead:  3,
		CacheWrite: 4,
		Estimated:  true,
	}, NanoUSD: 15}
	other := usage.Sum{Day: "2026-11-21", Provider: "p", Model: "n", Calls: 1, Tokens: llm.Usage{Output: 7}, Unpriced: 1}
	second := usage.Sum{Day: "2026-11-22", Provider: "p", Model: "m", Calls: 1, Tokens: llm.Usage{Input: 1}}
	sums := func(q usage.Query) []usage.Sum {
		return get(t, s, func(r store.Reader) ([]usage.Sum, error) { return r.Usage().Sums(q) })
	}
	same(t, "all", sums(usage.Query{}), []usage.Sum{first, other, second})
	same(t, "of a session", sums(usage.Query{Session: keyA, Since: at(0)}), []usage.Sum{first, second})
	same(t, "since", sums(usage.Query{Since: day2}), []usage.Sum{second})
	same(t, "until", sums(usage.Query{Until: day2}), []usage.Sum{first, other})
	a, b, c := first, second, other
	a.Session, b.Session, c.Session = keyA, keyA, keyB
	same(t, "by session", sums(usage.Query{BySession: true}), []usage.Sum{a, b, c})
	late := second
	late.Day = "2026-11-23"
	same(t, "of days with an offset", sums(usage.Query{Since: day2, Offset: 16 * time.Hour}), []usage.Sum{late})
	update(t, s, func(tx store.Tx) error {
		for _, it := range []queue.Item{
			{ID: "a1", Key: "a1", Session: "agent:usage:a", Kind: queue.Message, State: queue.Waiting, Created: at(0)},
			{ID: "a2", Key: "a2", Session: "agent:usage:a", Kind: queue.Message, State: queue.Waiting, Created: day2},
			{ID: "a3", Key: "a3", Session: "agent:usage:a", Kind: queue.Event, State: queue.Waiting, Created: at(0)},
			{ID: "a4", Key: "a4", Session: "agent:usage:a", Kind: queue.Message, State: queue.Waiting, Created: at(0)},
		} {
			if _, err := tx.Queue().Put(it); err != nil {
				return err
			}
			if it.ID != "a4" { // it still waits
				if err := tx.Queue().Set(queue.Done, it); err != nil {
					return err
				}
			}
		}
		return tx.Calls().Plan(
			session.Call{ID: "u1", Session: "agent:usage:a", Wire: llm.ToolCall{Name: "look"}, Updated: at(0)},
			session.Call{ID: "u2", Session: "agent:usage:a", Wire: llm.ToolCall{Name: "look"}, Updated: at(1)},
			session.Call{ID: "u3", Session: "agent:usage:a", Wire: llm.ToolCall{Name: "read"}, Updated: day2},
		)
	})
	activity := func(q usage.Query) []usage.Activity {
		q.Session = "agent:usage:a"
		return get(t, s, func(r store.Reader) ([]usage.Activity, error) { return r.Usage().Activity(q) })
	}
	said := usage.Activity{Day: "2026-11-21", Session: "agent:usage:a", Count: 1}
	looked, then, read := said, said, said
	looked.Tool, looked.Count = "look", 2
	then.Day, read.Day, read.Tool = "2026-11-22", "2026-11-22", "read"
	same(t, "activity", activity(usage.Query{}), []usage.Activity{said, looked, then, read})
	same(t, "activity until", activity(usage.Query{Until: day2}), []usage.Activity{said, looked})
	same(t, "activity since", activity(usage.Query{Since: day2}), []usage.Activity{then, read})
	first.Day = ""
	total := get(t, s, func(r store.Reader) (usage.Sum, error) { return r.Usage().OfRun("r1") })
	total.Provider, total.Model = "p", "m" // these fields may be empty in a total
	same(t, "of a run", total, first)
	update(t, s, func(tx store.Tx) error {
		return each(tx.Runs().Put, run.Run{ID: "r1", Session: keyA, State: run.OK, Started: at(0)}, run.Run{
			ID:      "r2",
			Session: keyB,
			Root:    "r1",
			Parent:  "r1",
			State:   run.OK,
			Started: at(1),
		},
			run.Run{ID: "r3", Session: keyA, State: run.OK, Started: day2})
	})
	first.Run, first.Session, other.Run, other.Session, other.Day = "r1", keyA, "r2", keyB, ""
	tree := func(id chela.RunID) []usage.Sum {
		return get(t, s, func(r store.Reader) ([]usage.Sum, error) { return r.Usage().OfTree(id) })
	}
	same(t, "of a tree", tree("r1"), []usage.Sum{first, other})
	same(t, "of a tree of one run", len(tree("r3")), 1)
	same(t, "of a run without a row", tree("none"), nil)
}

func testSettings(t *testing.T, s store.Store) {
	read := func() string { return get(t, s, func(r store.Reader) (string, error) { return r.Setting("a") }) }
	same(t, "none", read(), "")
	long := strings.Repeat("x", 10_000)
	for _, v := range []string{"1", long, ""} {
		update(t, s, func(tx store.Tx) error { return tx.SetSetting("a", v) })
		same(t, "set", read(), v)
	}
}
