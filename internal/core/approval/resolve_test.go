package approval

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// memory is an in-memory table.
type memory map[string]Request

func (m memory) Get(id string) (Request, error) {
	r, ok := m[id]
	if !ok {
		return r, chela.ErrNotFound
	}
	return r, nil
}
func (m memory) Pending(chela.SessionKey) ([]Request, error)          { return nil, nil }
func (m memory) Always(chela.AgentID, string) ([]Request, error)      { return nil, nil }
func (m memory) Standing(chela.SessionKey, string) ([]Request, error) { return nil, nil }
func (m memory) Decided(string, int) ([]Request, error)               { return nil, nil }
func (m memory) Put(r Request) error                                  { m[r.ID] = r; return nil }

func TestResolve(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := chela.Owner("process")
	ann := chela.Principal{ID: "ann", Scopes: []chela.Scope{chela.ScopeApprovals}}
	for _, c := range []struct {
		name, id, decision string
		who                chela.Principal
		want               Decision // as stored afterwards
		code               chela.Code
		message            string
	}{
		{"once", "a", "allow-once", ann, AllowOnce, "", ""},
		{"always", "a", "allow-always", owner, AllowAlways, "", ""},
		{"for the session", "a", "allow-session", owner, AllowSession, "", ""},
		{"short for the session", "a", "session", owner, AllowSession, "", ""},
		{"session for a request with Once", "single", "session", owner, AllowOnce, "", ""},
		{"deny", "a", "deny", owner, Deny, "", ""},
		{"yes", "a", "Yes ", owner, AllowOnce, "", ""},
		{"no", "a", "no", owner, Deny, "", ""},
		{"short always", "a", "always", owner, AllowAlways, "", ""},
		{"AP-15 always for a request with Once", "single", "allow-always", owner, AllowOnce, "", ""},
		{"deny for a request with Once", "single", "deny", owner, Deny, "", ""},
		{"a request without an end", "ever", "y", owner, AllowOnce, "", ""},
		{"unknown decision", "a", "perhaps", owner, Pending, chela.CodeInvalid, "allow-once"},
		{"expired is not a decision", "a", "expired", owner, Pending, chela.CodeInvalid, ""},
		{"no principal", "a", "allow-once", chela.Principal{}, Pending, chela.CodeForbidden, ""},
		{"no principal id but scopes", "a", "allow-once", chela.Principal{Scopes: owner.Scopes}, Pending,
			chela.CodeForbidden, ""},
		{"only the write scope", "a", "allow-once", chela.Principal{ID: "x", Scopes: []chela.Scope{chela.ScopeWrite}},
			Pending, chela.CodeForbidden, "operator.approvals"},
		{"unknown id", "zzz", "deny", owner, "", chela.CodeNotFound, ""},
		{"already decided", "done", "deny", owner, AllowOnce, chela.CodeConflict,
			"ann decided allow-once at 2026-03-01T11:50:00Z"},
		{"already decided the same way", "done", "allow-once", ann, AllowOnce, chela.CodeConflict, "ann decided"},
		{"already decided on a device", "device", "deny", owner, AllowOnce, chela.CodeConflict,
			"ann (device 0123456789ab) decided"},
		{"too late", "late", "allow-once", owner, Expired, chela.CodeConflict, "expired at"},
		{"long expired", "expired", "allow-once", owner, Expired, chela.CodeConflict, "expired at 2026-03-01T11:00:00Z"},
		{"stopped", "gone", "allow-once", owner, Withdrawn, chela.CodeConflict, "approval gone: withdrawn at"},
		{"revoked", "revoked", "allow-once", owner, Revoked, chela.CodeConflict,
			"ann allowed it at 2026-03-01T12:00:00Z, and the permission was revoked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{
				"a":      {ID: "a", Expires: now.Add(time.Minute)},
				"single": {ID: "single", Once: true, Expires: now.Add(time.Minute)},
				"done": {ID: "done", Expires: now.Add(time.Minute), Decision: AllowOnce, By: "ann",
					Decided: now.Add(-10 * time.Minute)},
				"device": {ID: "device", Expires: now.Add(time.Minute), Decision: AllowOnce, By: "ann",
					Via: "device:0123456789abcdef", Decided: now},
				"late": {ID: "late", Expires: now},
				"gone": {ID: "gone", Decision: Withdrawn, Decided: now},
				"ever": {ID: "ever"},

				"expired": {ID: "expired", Expires: now.Add(-time.Hour), Decision: Expired, By: "expiry", Decided: now},
				"revoked": {ID: "revoked", Decision: Revoked, By: "ann", Decided: now},
			}
			r, err := Resolve(m, c.who, c.id, c.decision, now)
			if (err != nil) != (c.code != "") ||
				err != nil && (chela.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.message)) {
				t.Fatalf("got error %v, want %s %q", err, c.code, c.message)
			}
			if got := m[c.id].Decision; got != c.want {
				t.Errorf("stored %q, want %q", got, c.want)
			}
			if err == nil && (r.Decision != c.want || r.By != c.who.ID || r.Decided != now) {
				t.Errorf("got %+v", r)
			}
			if c.name == "too late" && (r.Decision != Expired || r.Decided != now) {
				t.Errorf("got %+v, want it expired now", r)
			}
		})
	}
}

func TestParseDecision(t *testing.T) {
	t.Parallel()
	for want, words := range map[Decision]string{
		AllowOnce:    "allow-once allow once yes y OK approve",
		AllowSession: "allow-session session",
		AllowAlways:  "allow-always Always",
		Deny:         "deny no N reject",
		Pending:      "expired withdrawn revoked never",
	} {
		for _, w := range strings.Fields(words) {
			if got, ok := ParseDecision(w); got != want || ok != (want != Pending) {
				t.Errorf("%s: %q, %v", w, got, ok)
			}
		}
	}
	for d, want := range map[Decision][2]bool{ // it allows, and later calls too
		AllowOnce: {true, false}, AllowSession: {true, true}, AllowAlways: {true, true},
		Pending: {}, Deny: {}, Expired: {}, Withdrawn: {}, Revoked: {},
	} {
		if got := [2]bool{d.Allows(), d.Standing()}; got != want {
			t.Errorf("%q: %v", d, got)
		}
	}
}

// broken is a table that cannot be read or written.
type broken struct {
	memory
	list, read, write error
}

func (b broken) Get(id string) (Request, error) {
	if b.read != nil {
		return Request{ID: id, Decision: AllowAlways}, b.read
	}
	return b.memory.Get(id)
}
func (b broken) Pending(chela.SessionKey) ([]Request, error)          { return nil, b.list }
func (b broken) Standing(chela.SessionKey, string) ([]Request, error) { return nil, b.list }
func (b broken) Put(Request) error                                    { return b.write }

func TestBrokenTable(t *testing.T) {
	t.Parallel()
	now, owner, disk := time.Now(), chela.Owner("token"), errors.New("disk I/O error")
	m := memory{"a": {ID: "a"}, "always": {ID: "always", Decision: AllowAlways}}
	for name, b := range map[string]broken{
		"list and read": {m, disk, disk, nil},
		"read":          {m, nil, disk, nil},
		"write":         {m, nil, nil, disk},
	} {
		_, asked := Ask(b, owner, Request{Text: "ls"}, now)
		r, resolved := Resolve(b, owner, "a", "allow-once", now)
		_, revoked := Revoke(b, owner, "always")
		for what, err := range map[string]error{"Ask": asked, "Resolve": resolved, "Revoke": revoked} {
			if !errors.Is(err, disk) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if r.Decision.Allows() {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if _, err := HasStanding(broken{list: disk}, "agent:main:main", "exec", ""); !errors.Is(err, disk) {
		t.Error(err)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	owner := chela.Owner("token")
	approver := chela.Principal{ID: "ann", Scopes: []chela.Scope{chela.ScopeApprovals}}
	for _, c := range []struct {
		name, id string
		who      chela.Principal
		want     Decision
		code     chela.Code
	}{
		{"the owner", "a", owner, Revoked, ""},
		{"the owner, of a session", "session", owner, Revoked, ""},
		{"an approver is refused", "a", approver, AllowAlways, chela.CodeForbidden},
		{"no principal", "a", chela.Principal{}, AllowAlways, chela.CodeForbidden},
		{"allowed once", "once", owner, AllowOnce, chela.CodeConflict},
		{"pending", "waits", owner, Pending, chela.CodeConflict},
		{"no principal id but scopes", "a", chela.Principal{Scopes: owner.Scopes}, AllowAlways, chela.CodeForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{"a": {ID: "a", Decision: AllowAlways}, "once": {ID: "once", Decision: AllowOnce},
				"session": {ID: "session", Decision: AllowSession}, "waits": {ID: "waits"}}
			_, err := Revoke(m, c.who, c.id)
			if got := m[c.id].Decision; got != c.want || chela.CodeOf(err) != c.code && c.code != "" ||
				c.code == "" && err != nil {
				t.Errorf("%q, %v; want %q, %s", got, err, c.want, c.code)
			}
		})
	}
	if _, err := Revoke(memory{}, owner, "none"); !errors.Is(err, chela.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}
