package approvals_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// called is the result of a call.
type called struct {
	got wire.ApprovalDecided
	err error
}

func TestAsk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, decision, want string }{
		{"allowed", wire.AllowOnce, wire.AllowOnce}, {"always", wire.AllowAlways, wire.AllowAlways},
		{"denied", wire.Deny, wire.Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := methodtest.New(t, llmtest.NewScript())
			asker := h.Dial(client.Options{Scopes: []string{"operator.approvals"}})
			defer asker.Close()
			done := make(chan called, 2)
			go func() {
				var c called
				c.err = asker.Call(t.Context(), wire.MethodApprovalAsk, wire.ApprovalAsk{
					ID:      "mine",
					Argv:    []string{"rm", "a b", "it's"},
					Dir:     "/tmp",
					Node:    "n1",
					Env:     map[string]string{"B": "2", "A": "1"},
					Warning: "it deletes",
				}, &c.got)
				done <- c
			}()
			var asked wire.Approval
			for e := range h.Events() {
				if e.Name == wire.EventApprovalRequested {
					if err := e.Decode(&asked); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			if want := `rm 'a b' 'it'\''s'` + "\nin /tmp\non node n1\nwith A=1\nwith B=2"; asked.ID != "mine" ||
				asked.Request.Command != want || asked.Request.Reason != "it deletes" {
				t.Errorf("requested %+v, want %q", asked, want)
			}
			go func() {
				var c called
				c.err = h.Call(t.Context(), wire.MethodApprovalWait, wire.ApprovalID{ID: "mine"}, &c.got)
				done <- c
			}()
			// The connection can make other calls meanwhile.
			var list []wire.Approval
			if err := asker.Call(t.Context(), wire.MethodApprovalList, nil, &list); err != nil || len(list) != 1 {
				t.Fatalf("pending: %+v, %v", list, err)
			}
			if err := asker.Call(t.Context(), wire.MethodApprovalAsk, wire.ApprovalAsk{ID: "mine", Command: "ls"}, nil); err ==
				nil || !strings.Contains(err.Error(), "already pending") {
				t.Errorf("the same id again: %v", err)
			}
			shown := methodtest.Do[wire.ApprovalShown](t, h, wire.MethodApprovalGet, wire.ApprovalID{ID: "mine"})
			if shown.Command != asked.Request.Command || len(shown.Allowed) != 3 || shown.AgentID != "main" ||
				shown.Approval != asked {
				t.Errorf("shown %+v", shown)
			}
			methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: "mine", Decision: tt.decision})
			for range 2 {
				if c := <-done; c.err != nil || c.got.ID != "mine" || c.got.Decision == nil || *c.got.Decision != tt.want {
					t.Errorf("got %+v, %v; want %s", c.got, c.err, tt.want)
				}
			}
			err := h.Call(t.Context(), wire.MethodApprovalGet, wire.ApprovalID{ID: "mine"}, nil)
			if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.ApprovalNotFound {
				t.Errorf("a resolved approval is shown: %v", err)
			}
			late := methodtest.Do[wire.ApprovalDecided](t, h, wire.MethodApprovalWait, wire.ApprovalID{ID: "mine"})
			if late.Decision == nil || *late.Decision != tt.want {
				t.Errorf("waiting afterwards: %+v", late)
			}
		})
	}
}

// TestAskInvisibleCharacters requests approval of invisible characters, which must be shown
// escaped.
func TestAskInvisibleCharacters(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	go h.Call(t.Context(), wire.MethodApprovalAsk, wire.ApprovalAsk{ID: "mine", Command: "rm \u202ex\x1b[2J",
		Warning: "\u200bhm", TimeoutMs: waittest.Limit.Milliseconds()}, nil)
	for e := range h.Events() {
		var asked wire.Approval
		if e.Name != wire.EventApprovalRequested {
			continue
		}
		if err := e.Decode(&asked); err != nil || asked.Request.Command != `rm \u202ex\x1b[2J` ||
			asked.Request.Reason != `\u200bhm` {
			t.Errorf("requested %+v, %v", asked, err)
		}
		break
	}
	methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: "mine", Decision: wire.Deny})
}

func TestAskInTime(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[wire.ApprovalDecided](t, h, wire.MethodApprovalAsk,
		wire.ApprovalAsk{Command: "ls", TimeoutMs: 30})
	if got.Decision != nil || got.ID == "" {
		t.Errorf("not decided: %+v", got)
	}
	asked := methodtest.Do[wire.ApprovalAsked](t, h, wire.MethodApprovalAsk,
		wire.ApprovalAsk{ID: "two", Command: "ls", TimeoutMs: 60_000, TwoPhase: true})
	if asked.Status != wire.StatusAccepted || asked.ID != "two" ||
		asked.Expires.Time().Sub(asked.Created.Time()) != time.Minute {
		t.Errorf("accepted: %+v", asked)
	}
	if err := h.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: got.ID, Decision: wire.AllowOnce},
		nil); err == nil {
		t.Error("an expired approval was resolved")
	}
	reader := h.Dial(client.Options{Scopes: []string{"operator.write"}})
	defer reader.Close()
	err := reader.Call(t.Context(), wire.MethodApprovalAsk, wire.ApprovalAsk{Command: "ls"}, nil)
	if we, ok := errors.AsType[*wire.Error](err); !ok || we.Detail() != wire.DetailMissingScope {
		t.Errorf("requested without the scope: %v", err)
	}
	for in, want := range map[string]wire.ApprovalAsk{
		"command is required":       {},
		"display limit":             {Command: strings.Repeat("x", 20_000)},
		"at /id":                    {ID: "a b", Command: "ls"},
		"at /timeoutMs":             {Command: "ls", TimeoutMs: -1},
		`unknown agent id "nope"`:   {Command: "ls", AgentID: "nope"},
		"approval expired or not f": {},
	} {
		method, params := wire.MethodApprovalAsk, any(want)
		if strings.HasPrefix(in, "approval") {
			method, params = wire.MethodApprovalWait, wire.ApprovalID{ID: "none"}
		}
		if err := h.Call(t.Context(), method, params, nil); err == nil || !strings.Contains(err.Error(), in) {
			t.Errorf("%s: %v, want %q", method, err, in)
		}
	}
}
