package table

import (
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
)

// calls is the table of tool calls.
type calls struct{ c *Tables }

var _ session.Calls = calls{}

const (
	callColumns = "n, id, run, session, wire, name, args, raw, state, effect, approval, detached, updated, who, ran, decision, rule, outcome, took, rights"
	callIntact  = "intact(" + callColumns + ", crc)"
)

func (t calls) list(where string, args ...any) ([]session.Call, error) {
	return Collect(t.c, scanCall, "SELECT "+callColumns+", "+callIntact+" FROM call WHERE "+where, args...)
}

func scanCall(r *Row) (session.Call, error) {
	c := session.Call{Seq: r.Int(), ID: r.Text(), Run: chela.RunID(r.Text()), Session: chela.SessionKey(r.Text())}
	c.Wire.ID, c.Wire.Name, c.Wire.Args, c.Wire.Raw = r.Text(), r.Text(), raw(r.Text()), r.Text()
	c.State, c.Effect, c.Approval = session.CallState(r.Text()), r.Text(), r.Text()
	c.Detached, c.Updated = r.Bool(), r.Time()
	c.Outcome = session.Outcome{
		Who:      r.Text(),
		Ran:      r.Text(),
		Decision: session.Decision(r.Text()),
		Rule:     r.Text(),
		Result:   session.Result(r.Text()),
		Took:     time.Duration(r.Int()),
	}
	return c, decodeSet(r.Text(), &c.Rights)
}

// Call returns a call.
func (t calls) Call(id string) (session.Call, error) {
	return get(t.list, "tool call", "id = ?", id)
}

// Open returns the calls of a run that are not Closed, in order.
func (t calls) Open(id chela.RunID) ([]session.Call, error) {
	return t.list("run = ? AND state <> 'closed' ORDER BY n", str(id))
}

// OpenDetached returns the detached calls of a session that are not Closed.
func (t calls) OpenDetached(key chela.SessionKey) ([]session.Call, error) {
	return t.list("session = ? AND detached AND state <> 'closed' ORDER BY n", str(key))
}

// Recent returns the newest calls that match a query.
func (t calls) Recent(q session.CallQuery) ([]session.Call, error) {
	where, args := "updated >= ?", []any{q.Since}
	for _, f := range [...]struct {
		on   bool
		cond string
		arg  any
	}{
		{q.Before > 0, "n < ?", q.Before}, {q.Session != "", "session = ?", str(q.Session)},
		{q.Run != "", "run = ?", str(q.Run)},
		{q.Tool != "", "name = ?", q.Tool}, {q.Decision != "", "decision = ?", string(q.Decision)},
		{q.Result != "", "outcome = ?", string(q.Result)},
	} {
		if f.on {
			where, args = where+" AND "+f.cond, append(args, f.arg)
		}
	}
	return t.list(where+" ORDER BY n DESC LIMIT ?", append(args, max(q.Limit, 0))...)
}

const insertCall = `INSERT INTO call (id, run, session, wire, name, args, raw, state, effect, approval, detached, updated, rights,
who, ran, decision, rule, outcome, took) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', '', '', '', 0) `

func (t calls) insert(sql string, c session.Call) (int, error) {
	rights, err := encodeSet(c.Rights, len(c.Rights) == 0)
	if err != nil {
		return 0, err
	}
	return t.c.Exec(sql, c.ID, str(c.Run), str(c.Session), c.Wire.ID, c.Wire.Name, Optional(c.Wire.Args), c.Wire.Raw,
		str(c.State), c.Effect, c.Approval, c.Detached, c.Updated, rights)
}

// Plan stores new calls.
func (t calls) Plan(list ...session.Call) error {
	for _, c := range list {
		if c.State == "" {
			c.State = session.Planned
		}
		n, err := t.insert(insertCall+"ON CONFLICT DO NOTHING", c)
		if err != nil {
			return err
		}
		if n == 0 {
			return chela.Errorf(chela.CodeConflict, "tool call %s: was planned before", c.ID)
		}
	}
	return nil
}

// Move changes a call's state.
func (t calls) Move(id string, to session.CallState, from ...session.CallState) error {
	c, err := t.Call(id)
	if err != nil {
		return err
	}
	if len(from) > 0 && !slices.Contains(from, c.State) {
		return chela.Errorf(chela.CodeConflict, "tool call %s: is %s, want one of %v", id, c.State, from)
	}
	_, err = t.c.Exec("UPDATE call SET state = ?, updated = ? WHERE id = ?", str(to), time.Now(), id)
	return err
}

// Close stores the outcome of a call.
func (t calls) Close(id string, o session.Outcome) error {
	n, err := t.c.Exec("UPDATE call SET state = 'closed', updated = ?, who = ?, ran = ?, decision = ?, rule = ?, outcome = ?, took = ? WHERE id = ? AND "+callIntact,
		time.Now(), o.Who, o.Ran, string(o.Decision), o.Rule, string(o.Result), int64(o.Took), id)
	if err == nil && n == 0 {
		err = fmt.Errorf("tool call %s: %w", id, chela.ErrNotFound)
	}
	return err
}

// Put stores a call by its id, without its outcome.
func (t calls) Put(c session.Call) error {
	_, err := t.insert(insertCall+`ON CONFLICT (id) DO UPDATE SET run = excluded.run, session = excluded.session,
wire = excluded.wire, name = excluded.name, args = excluded.args, raw = excluded.raw, state = excluded.state,
effect = excluded.effect, approval = excluded.approval, detached = excluded.detached, updated = excluded.updated, rights = excluded.rights WHERE `+callIntact, c)
	return err
}
