package approval

import (
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
		{"unknown decision", "a", "perhaps", owner, Pending, chela.CodeInvalid, "allow-once"},
		{"expired is not a decision", "a", "expired", owner, Pending, chela.CodeInvalid, ""},
		{"no principal", "a", "allow-once", chela.Principal{}, Pending, chela.CodeForbidden, ""},
		{"no principal id but scopes", "a", "allow-once", chela.Principal{Scopes: owner.Scopes}, Pending, chela.CodeForbidden, ""},
		{"only the write scope", "a", "allow-once", chela.Principal{ID: "x", Scopes: []chela.Scope{chela.ScopeWrite}}, Pending, chela.CodeForbidden, "operator.approvals"},
		{"unknown id", "zzz", "deny", owner, "", chela.CodeNotFound, ""},
		{"already decided", "done", "deny", owner, AllowOnce, chela.CodeConflict, "ann decided allow-once at 2026-03-01T11:50:00Z"},
		{"already decided the same way", "done", "allow-once", ann, AllowOnce, chela.CodeConflict, "ann decided"},
		{"too late", "late", "allow-once", owner, Expired, chela.CodeConflict, "expired at"},
		{"stopped", "gone", "allow-once", owner, Withdrawn, chela.CodeConflict, "withdrawn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{
				"a":      {ID: "a", Expires: now.Add(time.Minute)},
				"single": {ID: "single", Once: true, Expires: now.Add(time.Minute)},
				"done":   {ID: "done", Expires: now.Add(time.Minute), Decision: AllowOnce, By: "ann", Decided: now.Add(-10 * time.Minute)},
				"late":   {ID: "late", Expires: now},
				"gone":   {ID: "gone", Decision: Withdrawn, Decided: now},
			}
			r, err := Resolve(m, c.who, c.id, c.decision, now)
			if (err != nil) != (c.code != "") || err != nil && (chela.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.message)) {
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
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{"a": {ID: "a", Decision: AllowAlways}, "once": {ID: "once", Decision: AllowOnce}, "session": {ID: "session", Decision: AllowSession}, "waits": {ID: "waits"}}
			_, err := Revoke(m, c.who, c.id)
			if got := m[c.id].Decision; got != c.want || chela.CodeOf(err) != c.code && c.code != "" || c.code == "" && err != nil {
				t.Errorf("%q, %v; want %q, %s", got, err, c.want, c.code)
			}
		})
	}
	if _, err := Revoke(memory{}, owner, "none"); err == nil {
		t.Error("no error for an unknown id")
	}
}
