package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// pendingTable is a table with pending requests.
type pendingTable struct {
	memory
	pending []Request
}

func (t pendingTable) Pending(chela.SessionKey) ([]Request, error) { return t.pending, nil }

func TestAsk(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := chela.Owner("token")
	m := memory{}
	// Fields that only a run may set are ignored in a request of a client.
	r, err := Ask(m, owner, Request{
		Text: "ls", Tool: "exec", Hash: "h", Run: "r", Call: "c", Session: "agent:main:main", Decision: AllowAlways, By: "me",
		Requester: chela.Principal{ID: "x"}, Expires: now.Add(48 * time.Hour),
	}, now)
	if err != nil || r.Tool != ToolClient || r.Run != "" || r.Call != "" || r.Hash == "h" || r.Decision != Pending ||
		r.By != "" || r.Requester.ID != "owner" {
		t.Errorf("request %+v, %v", r, err)
	}
	if r.ID == "" || r.Session != "agent:main:main" || !r.Expires.Equal(now.Add(Lifetime)) || m[r.ID].Text != "ls" {
		t.Errorf("stored %+v", m)
	}
	if r, err := Ask(m, owner, Request{ID: "mine", Text: "ls", Expires: now.Add(time.Second)}, now); err != nil ||
		r.ID != "mine" || !r.Expires.Equal(now.Add(time.Second)) {
		t.Errorf("with an id and a time: %+v, %v", r, err)
	}
	if r, err := Ask(m, owner, Request{Text: "a\x1b", Reason: "b\r"}, now); err != nil ||
		r.Text != `a\x1b` || r.Reason != `b\r` {
		t.Errorf("control characters: %+v, %v", r, err)
	}
	full := pendingTable{memory: memory{}}
	for range 64 {
		full.pending = append(full.pending, Request{Tool: ToolClient})
	}
	few := pendingTable{memory: memory{}, pending: append([]Request{{Tool: "exec"}}, full.pending[1:]...)}
	for name, tt := range map[string]struct {
		t    Table
		who  chela.Principal
		r    Request
		code chela.Code
	}{
		"no principal": {m, chela.Principal{}, Request{Text: "ls"}, chela.CodeForbidden},
		"missing scope": {m, chela.Principal{ID: "x", Scopes: []chela.Scope{chela.ScopeWrite}},
			Request{Text: "ls"}, chela.CodeForbidden},
		"no text":                     {m, owner, Request{}, chela.CodeInvalid},
		"text too long":               {m, owner, Request{Text: strings.Repeat("x", 17<<10)}, chela.CodeInvalid},
		"long text":                   {m, owner, Request{Text: strings.Repeat("x", 16<<10-1), Reason: "y"}, ""},
		"text and reason too long":    {m, owner, Request{Text: strings.Repeat("x", 16<<10), Reason: "y"}, chela.CodeInvalid},
		"id in use":                   {m, owner, Request{ID: "mine", Text: "ls"}, chela.CodeConflict},
		"too many pending":            {full, owner, Request{Text: "ls"}, chela.CodeFull},
		"many pending of other tools": {few, owner, Request{Text: "ls"}, ""},
		"no expiry":                   {m, owner, Request{ID: "other", Text: "ls"}, ""},
	} {
		if _, err := Ask(tt.t, tt.who, tt.r, now); (err == nil) != (tt.code == "") ||
			err != nil && chela.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
}
