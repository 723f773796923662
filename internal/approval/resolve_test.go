package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// memory is the table for these tests.
type memory map[string]Request

func (m memory) Get(id string) (Request, error) {
	r, ok := m[id]
	if !ok {
		return r, chela.ErrNotFound
	}
	return r, nil
}
func (m memory) Pending(chela.SessionKey) ([]Request, error)     { return nil, nil }
func (m memory) Always(chela.AgentID, string) ([]Request, error) { return nil, nil }
func (m memory) Decided(string, int) ([]Request, error)          { return nil, nil }
func (m memory) Put(r Request) error                             { m[r.ID] = r; return nil }

func TestResolve(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := chela.Owner("process")
	ann := chela.Principal{ID: "ann", Scopes: []chela.Scope{chela.ScopeApprovals}}
	for _, c := range []struct {
		name, id, decision string
		who                chela.Principal
		want               Decision // as it is stored afterwards
		code               chela.Code
		says               string
	}{
		{"once", "a", "allow-once", ann, AllowOnce, "", ""},
		{"always", "a", "allow-always", owner, AllowAlways, "", ""},
		{"deny", "a", "deny", owner, Deny, "", ""},
		{"yes", "a", "Yes ", owner, AllowOnce, "", ""},
		{"no", "a", "no", owner, Deny, "", ""},
		{"short always", "a", "always", owner, AllowAlways, "", ""},
		{"AP-15 always of one that holds once", "single", "allow-always", owner, AllowOnce, "", ""},
		{"a word nobody knows", "a", "perhaps", owner, Pending, chela.CodeInvalid, "allow-once"},
		{"expired is no answer", "a", "expired", owner, Pending, chela.CodeInvalid, ""},
		{"nobody", "a", "allow-once", chela.Principal{}, Pending, chela.CodeForbidden, ""},
		{"nobody with scopes", "a", "allow-once", chela.Principal{Scopes: owner.Scopes}, Pending, chela.CodeForbidden, ""},
		{"who may only write", "a", "allow-once", chela.Principal{ID: "x", Scopes: []chela.Scope{chela.ScopeWrite}}, Pending, chela.CodeForbidden, "operator.approvals"},
		{"unknown", "zzz", "deny", owner, "", chela.CodeNotFound, ""},
		{"decided by another", "done", "deny", owner, AllowOnce, chela.CodeConflict, "ann decided allow-once at 2026-03-01T11:50:00Z"},
		{"decided the same way", "done", "allow-once", ann, AllowOnce, chela.CodeConflict, "ann decided"},
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
			if (err != nil) != (c.code != "") || err != nil && (chela.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("got error %v, want %s %q", err, c.code, c.says)
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
		{"an approver may not", "a", approver, AllowAlways, chela.CodeForbidden},
		{"nobody may not", "a", chela.Principal{}, AllowAlways, chela.CodeForbidden},
		{"allowed once", "once", owner, AllowOnce, chela.CodeConflict},
		{"waits", "waits", owner, Pending, chela.CodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{"a": {ID: "a", Decision: AllowAlways}, "once": {ID: "once", Decision: AllowOnce}, "waits": {ID: "waits"}}
			_, err := Revoke(m, c.who, c.id)
			if got := m[c.id].Decision; got != c.want || chela.CodeOf(err) != c.code && c.code != "" || c.code == "" && err != nil {
				t.Errorf("%q, %v; want %q, %s", got, err, c.want, c.code)
			}
		})
	}
	if _, err := Revoke(memory{}, owner, "none"); err == nil {
		t.Error("what is not there was taken back")
	}
}
