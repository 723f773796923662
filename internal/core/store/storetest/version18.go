package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// Version18 inserts rows into tables of version 18 of SQLite, and of version 1 of
// PostgreSQL: the results of items are notes, or rows of their own, and the steps of
// exchanges are in ids.
const Version18 = `
INSERT INTO item (id, key, session, kind, principal, inbound, call, state, run, note, created, origin, overrides, next, skipped, owner, parent, root) VALUES
 ('cmd', 'cmd', 's', 'command', '{}', '{}', '', 'done', '', 'the "answer"', 1, '{"kind":"person"}', '', 0, 0, '', '', ''),
 ('cmd2', 'cmd2', 's', 'command', '{}', '{}', '', 'cancelled', '', 'revoked', 1, '{"kind":"person"}', '', 0, 0, '', '', ''),
 ('cmd3', 'cmd3', 's', 'command', '{}', '{}', '', 'done', '', 'session deleted', 1, '{"kind":"person"}', '', 0, 0, '', '', ''),
 ('owed:1', 'owed:1', 's', 'event', '{}', '{}', 'c', 'done', '', '{"outcome":"timeout","endedAt":"2026-11-01T02:03:04.5Z","summary":"took <long>"}', 1, '{"kind":"process"}', '', 0, 0, 'p', 'r', 'r'),
 ('owed:2', 'owed:2', 's', 'event', '{}', '{}', 'c', 'cancelled', '', 'session deleted', 1, '{"kind":"process"}', '', 0, 0, 'p', 'r', 'r'),
 ('exchange:11111111-1111-5111-8111-111111111111:0', 'exchange:11111111-1111-5111-8111-111111111111:0', 's', 'message', '{}', '{}', '', 'done', 'exchange:11111111-1111-5111-8111-111111111111:0', '', 1, '{"kind":"agent","id":"agent:a:main"}', '', 0, 0, '', '', ''),
 ('exchange:11111111-1111-5111-8111-111111111111:0:later', 'exchange:11111111-1111-5111-8111-111111111111:0:later', 's', 'message', '{}', '{}', '', 'waiting', '', '', 1, '{"kind":"agent","id":"agent:a:main"}', '', 0, 0, '', '', ''),
 ('exchange:11111111-1111-5111-8111-111111111111:reply', 'exchange:11111111-1111-5111-8111-111111111111:reply', 't', 'event', '{}', '{}', '', 'done', '', '{"status":"ok","reply":"it \u003cis\u003e \"reply\":"}', 1, '{"kind":"agent","id":"s"}', '', 0, 0, '', '', ''),
 ('exchange:11111111-1111-5111-8111-111111111111:12', 'exchange:11111111-1111-5111-8111-111111111111:12', 't', 'message', '{}', '{}', '', 'waiting', '', '', 1, '{"kind":"agent","id":"s"}', '', 0, 0, '', '', ''),
 ('exchange:11111111-1111-5111-8111-111111111111:announce', 'exchange:11111111-1111-5111-8111-111111111111:announce', 's', 'message', '{}', '{}', '', 'waiting', '', '', 1, '{"kind":"agent","id":"t"}', '', 0, 0, '', '', ''),
 ('exchange:22222222-2222-5222-8222-222222222222:0', 'exchange:22222222-2222-5222-8222-222222222222:0', 's', 'message', '{}', '{}', '', 'done', '', '', 1, '{"kind":"agent","id":"t"}', '', 0, 0, '', '', ''),
 ('exchange:22222222-2222-5222-8222-222222222222:reply', 'exchange:22222222-2222-5222-8222-222222222222:reply', 't', 'event', '{}', '{}', '', 'done', '', '{"status":"error","error":"it broke"}', 1, '{"kind":"agent","id":"s"}', '', 0, 0, '', '', ''),
 ('exchange:33333333-3333-5333-8333-333333333333:0', 'exchange:33333333-3333-5333-8333-333333333333:0', 's', 'message', '{}', '{}', '', 'taken', 'r', '', 1, '{"kind":"agent","id":"t"}', '', 0, 0, '', '', ''),
 ('exchange:33333333-3333-5333-8333-333333333333:reply', 'exchange:33333333-3333-5333-8333-333333333333:reply', 't', 'event', '{}', '{}', '', 'done', '', '{"status":"timeout"}', 1, '{"kind":"agent","id":"s"}', '', 0, 0, '', '', ''),
 ('exchange:33333333-3333-5333-8333-333333333333:late', 'exchange:33333333-3333-5333-8333-333333333333:late', 't', 'event', '{}', '{}', '', 'waiting', '', '', 1, '{"kind":"agent","id":"s"}', '', 0, 0, '', '', ''),
 ('exchange:44444444-4444-5444-8444-444444444444:0', 'exchange:44444444-4444-5444-8444-444444444444:0', 's', 'message', '{}', '{}', '', 'waiting', '', '', 1, '{"kind":"person"}', '', 0, 0, '', '', '');
INSERT INTO run (id, session, transcript, agent, origin, lane, state, principal, address, model, attempts, error, text, footer, silent, started, ended, fence, kind, parent, root, replaces, waits, stop, overrides) VALUES
 ('exchange:11111111-1111-5111-8111-111111111111:0', 's', 't', 'main', '{"kind":"agent","id":"agent:a:main"}', 'nested', 'failed', '{}', '{}', 'a/b', 1, 'broken', '', '', 0, 1, 2, 3, 'turn', '', '', '', '', '', '');
INSERT INTO transcript (n, id, created) VALUES (1, 't', 1);
INSERT INTO entry (pos, id, kind, time, run, role, text, flags, item, origin) VALUES
 (4294967297, 'e1', 'message', 1, 'r1', 'user', 'hi', 0, 'exchange:11111111-1111-5111-8111-111111111111:12', '{"kind":"agent","id":"s"}'),
 (4294967298, 'e2', 'message', 1, 'r1', 'user', 'hi', 0, 'm1', '{"kind":"agent","id":"s"}');
`

// CheckVersion18 checks the rows of Version18 after a migration.
func CheckVersion18(t *testing.T, r store.Reader) {
	t.Helper()
	const e1, e2, e3, e4 = "11111111-1111-5111-8111-111111111111", "22222222-2222-5222-8222-222222222222",
		"33333333-3333-5333-8333-333333333333", "44444444-4444-5444-8444-444444444444"
	type meaning struct {
		Exchange string
		Turn     int
		Note     string
		Result   queue.Result
	}
	got := map[string]meaning{}
	for _, id := range [...]string{
		"cmd", "cmd2", "cmd3", "owed:1", "owed:2", "exchange:" + e1 + ":0", "exchange:" + e1 + ":0:later", "exchange:" + e1 +
			":12", "exchange:" + e1 + ":announce",
		"exchange:" + e2 + ":0", "exchange:" + e3 + ":0", "exchange:" + e3 + ":late", "exchange:" + e4 + ":0",
	} {
		it, err := r.Queue().Get(id)
		if err != nil {
			t.Fatal(err)
		}
		got[id] = meaning{it.Origin.Exchange, it.Origin.Turn, it.Note, it.Result}
	}
	same(t, "items", got, map[string]meaning{
		"cmd":  {Result: queue.Result{Outcome: chela.OutcomeOK, Text: `the "answer"`}},
		"cmd2": {Note: "revoked"},
		"cmd3": {Note: queue.SessionDeleted},
		"owed:1": {Result: queue.Result{Outcome: chela.OutcomeTimeout, Ended: time.Date(2026, 11, 1, 2,
			3, 4, 5e8, time.UTC), Text: "took <long>"}},
		"owed:2": {Note: queue.SessionDeleted},
		"exchange:" + e1 + ":0": {Exchange: e1, Result: queue.Result{Outcome: chela.OutcomeOK,
			Text: `it <is> "reply":`}},
		"exchange:" + e1 + ":0:later":  {Exchange: e1},
		"exchange:" + e1 + ":12":       {Exchange: e1, Turn: 12},
		"exchange:" + e1 + ":announce": {Exchange: e1, Turn: -1},
		"exchange:" + e2 + ":0":        {Exchange: e2, Result: queue.Result{Outcome: chela.OutcomeError, Error: "it broke"}},
		"exchange:" + e3 + ":0":        {Exchange: e3, Result: queue.Result{Outcome: chela.OutcomeTimeout}},
		"exchange:" + e3 + ":late":     {}, // an event, which starts a run of its own
		"exchange:" + e4 + ":0":        {}, // a client chose the id
	})
	for _, e := range [...]string{e1, e2, e3} {
		_, err := r.Queue().Get("exchange:" + e + ":reply")
		fails(t, "the row of a reply", err, chela.ErrNotFound)
	}
	v, err1 := r.Runs().Get("exchange:" + e1 + ":0")
	entries, err2 := r.Sessions().Entries("t", 0, 0)
	if err := errors.Join(err1, err2); err != nil || len(entries) != 2 {
		t.Fatal(err, len(entries))
	}
	same(t, "the run", v.Origin, chela.Origin{Kind: chela.OriginAgent, ID: "agent:a:main", Exchange: e1})
	same(t, "its failure", v.Failure, run.Failure(""))
	same(t, "an entry", entries[0].Origin, chela.Origin{Kind: chela.OriginAgent, ID: "s", Exchange: e1, Turn: 12})
	same(t, "another entry", entries[1].Origin, chela.Origin{Kind: chela.OriginAgent, ID: "s"})
}
