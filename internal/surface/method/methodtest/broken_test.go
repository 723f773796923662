package methodtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

var errBroken = errors.New("broken disk")

// unreliable is a store in which one statement that a method reads with fails, or
// one of its commits.
type unreliable struct {
	store.Store
	mu     sync.Mutex
	left   int // statements before the one that fails
	failed bool
}

// fail makes the next statement after n others fail.
func (u *unreliable) fail(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left, u.failed = n, false
}

func (u *unreliable) hasFailed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failed
}

// next returns the error of the next statement.
func (u *unreliable) next(ctx context.Context) error {
	if chela.PrincipalFrom(ctx).ID != "somebody" {
		return nil // not of the call
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left--; u.left != -1 {
		return nil
	}
	u.failed = true
	return errBroken
}

// View is View of a context that each statement checks.
func (u *unreliable) View(ctx context.Context, f func(store.Reader) error) error {
	return u.Store.View(checked{ctx, u}, f)
}

func (u *unreliable) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if err := u.next(ctx); err != nil {
		return err
	}
	return u.Store.Update(ctx, s, f)
}

type checked struct {
	context.Context
	u *unreliable
}

func (c checked) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	return c.u.next(c.Context)
}

// TestBrokenStore makes each statement that a method reads with fail once, and each
// of its commits. The method answers with an error: an incomplete answer would look
// complete.
func TestBrokenStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	u := &unreliable{Store: db, left: -1}
	h := methodtest.On(t, u, path, llmtest.NewScript(llmtest.Say("hello")), writer{func() {}})
	request, other, now := "", "", time.Now()
	admit := func(tx store.Tx, id string) string {
		a, err := pairing.Admit(tx.Devices(),
			pairing.Identity{ID: id, Key: "key", Role: wire.RoleOperator, Scopes: []chela.Scope{chela.ScopeRead}},
			pairing.Proof{Authority: []chela.Scope{chela.ScopeAdmin}}, now)
		if err != nil {
			t.Error(err)
		}
		return a.Requested.ID
	}
	h.Put(func(tx store.Tx) error {
		request, other = admit(tx, "phone"), admit(tx, "tablet")
		q := approval.Request{Session: "agent:main:one", Created: now, Expires: now.Add(time.Hour), Text: "ls", Tool: "exec"}
		waiting, decided := q, q
		waiting.ID, decided.ID, decided.Decision, decided.Decided = "waiting", "decided", approval.Deny, now
		return errors.Join(tx.Approvals().Put(waiting), tx.Approvals().Put(decided))
	})
	log := `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}` + "\n"
	for n := range 40 {
		log += `{"type":"message","message":{"role":"` + []string{"user", "assistant"}[n%2] + `","content":"` +
			strings.Repeat("word ", 500) + `"}}` + "\n"
	}
	quoted, _ := json.Marshal(log)
	methodtest.Do[wire.None](t, h, wire.MethodChatSend,
		json.RawMessage(`{"sessionKey":"one","message":"hi","idempotencyKey":"r1"}`))
	h.End("r1")

	// sessions.compact is not here: it waits for a run, which is repeated after an error.
	c := dialAs(t, h, wire.RoleOperator, []chela.Scope{chela.ScopeAdmin})
	for _, call := range strings.Split(strings.TrimSpace(`
sessions.create {"key":"two"}
sessions.import {"key":"long","jsonl":LOG}
sessions.list {"includeLastMessage":true}
sessions.describe {"key":"one","includeLastMessage":true}
sessions.preview {"keys":["one","long"]}
sessions.resolve {"key":"one"}
sessions.resolve {"sessionId":"x","allowMissing":true}
sessions.resolve {"shortId":"00000000","allowMissing":true}
sessions.resolve {"reference":{"key":"none","slug":"none"},"allowMissing":true}
sessions.search {"query":"hello","scope":{}}
sessions.search {"query":"hello","sessionKeys":["one","long"]}
sessions.export {"key":"one"}
sessions.get {"key":"one"}
sessions.usage {}
sessions.usage.logs {"key":"agent:main:one"}
sessions.usage.timeseries {"key":"agent:main:one"}
sessions.files.list {"sessionKey":"one"}
chat.history {"sessionKey":"one","inputRunIds":["r1","none"]}
chat.history {"sessionKey":"new","inputRunIds":["none"]}
chat.history {"sessionKey":"one","cursor":"x:1"}
chat.startup {"sessionKey":"one"}
chat.message.get {"sessionKey":"one","messageId":"x"}
chat.inject {"sessionKey":"one","message":"note"}
chat.send {"sessionKey":"one","message":"/think high","idempotencyKey":"r2"}
chat.abort {"sessionKey":"one"}
agent.wait {"runId":"r1"}
sessions.patch {"key":"one","label":"y"}
sessions.resolve {"label":"y"}
sessions.reset {"key":"one"}
sessions.delete {"key":"long"}
usage.cost {}
tools.calls {}
tools.invoke {"name":"edit"}
status {}
exec.approval.list {}
exec.approval.get {"id":"waiting"}
exec.approval.waitDecision {"id":"decided"}
exec.approval.resolve {"id":"waiting","decision":"deny"}
approval.get {"id":"decided"}
approval.history {}
system-event {"text":"rain"}
wake {"mode":"next-heartbeat","text":"rain"}
device.pair.list {}
device.pair.approve {"requestId":"REQUEST"}
device.pair.rename {"deviceId":"phone","label":"x"}
device.token.rotate {"deviceId":"phone","role":"operator"}
device.pair.reject {"requestId":"OTHER"}
device.pair.setupCode {"publicUrl":"wss://example.org"}
device.pair.setupStatus {"setupId":"x"}
node.list {}
node.pair.list {}
`), "\n") {
		method, params, _ := strings.Cut(call, " ")
		params = strings.NewReplacer("REQUEST", request, "OTHER", other, "LOG", string(quoted)).Replace(params)
		for n := range 200 {
			u.fail(n)
			err := c.Call(t.Context(), method, json.RawMessage(params), nil)
			if !u.hasFailed() {
				if err != nil || n == 0 {
					t.Errorf("%s, with %d statements: %v", call, n, err)
				}
				break
			}
			if err == nil {
				t.Errorf("%s succeeded, although statement %d failed", call, n)
			}
		}
	}
}
