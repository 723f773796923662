package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// asked is a table in which many requests wait.
type asked struct {
	memory
	waiting []Request
}

func (a asked) Pending(chela.SessionKey) ([]Request, error) { return a.waiting, nil }

func TestAsk(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := chela.Owner("token")
	m := memory{}
	// What a client says that only a run may say is not taken.
	r, err := Ask(m, owner, Request{
		Text: "ls", Tool: "exec", Hash: "h", Run: "r", Call: "c", Session: "agent:main:main", Decision: AllowAlways, By: "me",
		Requester: chela.Principal{ID: "x"}, Expires: now.Add(48 * time.Hour),
	}, now)
	if err != nil || r.Tool != ToolOutside || r.Run != "" || r.Call != "" || r.Hash == "h" || r.Decision != Pending || r.By != "" || r.Requester.ID != "owner" {
		t.Errorf("asked %+v, %v", r, err)
	}
	if r.ID == "" || r.Session != "agent:main:main" || !r.Expires.Equal(now.Add(Lifetime)) || m[r.ID].Text != "ls" {
		t.Errorf("stored %+v", m)
	}
	if r, err := Ask(m, owner, Request{ID: "mine", Text: "ls", Expires: now.Add(time.Second)}, now); err != nil || r.ID != "mine" || !r.Expires.Equal(now.Add(time.Second)) {
		t.Errorf("with an id and a time: %+v, %v", r, err)
	}
	full := asked{memory: memory{}}
	for range 64 {
		full.waiting = append(full.waiting, Request{Tool: ToolOutside})
	}
	few := asked{memory: memory{}, waiting: append([]Request{{Tool: "exec"}}, full.waiting[1:]...)}
	for name, tt := range map[string]struct {
		t    Table
		who  chela.Principal
		r    Request
		code chela.Code
	}{
		"nobody":           {m, chela.Principal{}, Request{Text: "ls"}, chela.CodeForbidden},
		"who may not":      {m, chela.Principal{ID: "x", Scopes: []chela.Scope{chela.ScopeWrite}}, Request{Text: "ls"}, chela.CodeForbidden},
		"nothing":          {m, owner, Request{}, chela.CodeInvalid},
		"too long":         {m, owner, Request{Text: strings.Repeat("x", 17<<10)}, chela.CodeInvalid},
		"an id that is":    {m, owner, Request{ID: "mine", Text: "ls"}, chela.CodeConflict},
		"too many":         {full, owner, Request{Text: "ls"}, chela.CodeFull},
		"many, of others":  {few, owner, Request{Text: "ls"}, ""},
		"an id of no time": {m, owner, Request{ID: "other", Text: "ls"}, ""},
	} {
		if _, err := Ask(tt.t, tt.who, tt.r, now); (err == nil) != (tt.code == "") || err != nil && chela.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
}
