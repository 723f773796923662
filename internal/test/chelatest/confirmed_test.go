package chelatest

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// commits is a store that notes how the latest commit was made.
type commits struct {
	store.Store
	mu     sync.Mutex
	n      int
	latest store.Sync
}

func (c *commits) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	err := c.Store.Update(ctx, s, f)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.latest = s
	return err
}

// since returns the number of commits since n, and how the latest one was made.
func (c *commits) since(n int) (int, store.Sync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n - n, c.latest
}

// TestConfirmed calls methods that change something while nothing else happens. What a
// method confirms has to survive a power loss, so its last commit is synced.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, chat, st := newFamily(), new(channeltest.Fake), new(commits)
		g := Start(t, Options{
			Model: f, Config: Config{"channels": json.RawMessage(`{"chat": {"allowFrom": ["ann"]}}`)},
			Channels: map[string]channel.Channel{"chat": chat.Plain()},
			Wrap:     func(s store.Store) store.Store { st.Store = s; return st },
		})
		c := g.Client()
		ann := chela.Address{Channel: "chat", Account: "default", Peer: direct("ann")}
		chat.Fail(channeltest.Permanent(), channeltest.Permanent())
		for _, id := range []string{"1", "2"} {
			if err := chat.Say(t.Context(),
				chela.Inbound{ID: id, Address: ann, Sender: chela.Sender{ID: "ann"}, Text: "say hello " + id}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		blocked := c.tasks()
		if len(blocked) != 2 {
			t.Fatalf("blocked: %+v", blocked)
		}
		c.Ask("work", "say plan")
		c.Ask("gone", "say plan")
		c.Ask("main", task("hang", "label", "one"))
		daily := json.RawMessage(`{"name":"x","schedule":{"kind":"every","everyMs":86400000},"payload":{"kind":"agentTurn","message":"say hi"},"sessionTarget":"isolated","delivery":{"mode":"none"}}`)
		var job struct {
			ID string `json:"id"`
		}
		c.must(wire.MethodCronAdd, daily, &job)
		now := time.Now()
		err := st.Store.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			phone := pairing.Device{
				ID:       "phone",
				Created:  now,
				Approved: now,
				Grants: []pairing.Grant{{Role: wire.RoleOperator, Scopes: []chela.Scope{chela.ScopeRead}, Created: now,
					Generation: 1}},
				Generation: 1,
			}
			if err := tx.Devices().PutDevice(phone); err != nil {
				return err
			}
			if err := tx.Devices().PutRequest(pairing.Request{
				ID:     "pad",
				Device: "pad",
				Role:   wire.RoleOperator,
				Scopes: []chela.Scope{chela.ScopeRead},
				Time:   now.Add(time.Hour),
			}); err != nil {
				return err
			}
			_, err := approval.Ask(tx.Approvals(), chela.Principal{ID: "owner", Scopes: []chela.Scope{chela.ScopeAdmin}},
				approval.Request{ID: "asked", Session: "agent:main:main", Text: "ls"}, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []struct {
			method string
			params any
		}{
			{wire.MethodTasksDismiss, wire.TaskIDs{IDs: []string{blocked[0].ID}}},
			{wire.MethodTasksRetry, wire.TaskIDs{IDs: []string{blocked[1].ID}}},
			{wire.MethodTasksCancel, wire.TaskCancel{ID: c.taskWhere("running", labeled("one", wire.TaskRunning)).ID}},
			{wire.MethodChatInject, wire.ChatInject{SessionKey: "work", Message: "a note"}},
			{wire.MethodSessionsCreate, wire.SessionsCreate{Key: "new"}},
			{wire.MethodSessionsPatch, wire.SessionsPatch{Key: "work", Label: wire.Some("desk")}},
			{wire.MethodSessionsReset, wire.SessionsReset{Key: "work"}},
			{wire.MethodSessionsDelete, wire.SessionsDelete{Key: "gone"}},
			{wire.MethodDevicePairRename, map[string]string{"deviceId": "phone", "label": "mine"}},
			{wire.MethodDeviceTokenRotate, wire.DeviceRotate{ID: "phone", Role: wire.RoleOperator}},
			{wire.MethodDeviceTokenRevoke, wire.DeviceRole{ID: "phone", Role: wire.RoleOperator}},
			{wire.MethodDevicePairRemove, wire.DeviceID{ID: "phone"}},
			{wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: "pad"}},
			{wire.MethodApprovalResolve, wire.ApprovalResolve{ID: "asked", Decision: wire.Deny}},
			{wire.MethodCronAdd, daily},
			{wire.MethodCronRemove, map[string]string{"jobId": job.ID}},
		} {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			before, _ := st.since(0)
			c.must(call.method, call.params, nil)
			if n, last := st.since(before); n == 0 || last != store.Synced {
				t.Errorf("%s: %d commits, the last one synced: %t", call.method, n, last)
			}
		}
		c.Close()
		g.Stop()
	})
}
