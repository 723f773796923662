package chelatest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// pause is a tool that takes two minutes.
type pause struct{}

func (pause) Spec() tool.Spec {
	return tool.Spec{Name: "pause", Description: "Waits.", Effect: tool.Reads,
		Schema: json.RawMessage(`{"type":"object"}`)}
}

func (pause) Run(ctx context.Context, _ tool.Call) (tool.Result, error) {
	select {
	case <-time.After(2 * time.Minute):
		return tool.Text("paused"), nil
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
}

// TestMovedResult deletes the session of a subagent that has a subagent, whose result goes
// to the chat where the work was asked for, and focuses other chats on a subagent.
func TestMovedResult(t *testing.T) {
	ann := chela.Address{Channel: "chat", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
	boss := task(task("hold leaf\nsay done", "label", "leaf"), "label", "boss")
	bob := chela.Address{Channel: "chat", Peer: chela.Peer{Kind: chela.Direct, ID: "bob"}}
	say := func(k *talkers, a chela.Address, text string) {
		k.say("1", a, text)
		time.Sleep(30 * time.Second)
	}
	remove := func(k *talkers, label string) {
		k.view(func(r store.Reader) error {
			open, err := r.Children().Open("")
			for _, c := range open {
				if c.Label == label {
					k.must(wire.MethodSessionsDelete, map[string]any{"key": c.Session}, nil)
				}
			}
			return err
		})
	}
	// begin lets ann write, and deletes the session of the boss.
	begin := func(k *talkers, text string) {
		say(k, ann, text)
		k.waitHeld(k.t, "leaf")
		remove(k, "boss")
	}
	// told checks that a chat gets a result, and that nothing is left.
	told := func(k *talkers, to chela.Address, want string) {
		k.t.Helper()
		time.Sleep(5 * time.Minute)
		if got := k.chat.Texts(to); !slices.Contains(got, want) {
			k.t.Errorf("%s gets %q", to.Peer.ID, got)
		}
		k.view(func(r store.Reader) error {
			active, err := r.Runs().Active("")
			for _, row := range active {
				k.t.Errorf("run %s of %s is %s, waits %q", row.ID, row.Session, row.State, row.Waits)
			}
			return err
		})
	}
	conf := Config{"agents.defaults.subagents": json.RawMessage(`{"maxSpawnDepth": 2}`)}
	talk(t, "D11 while the turn goes on, which then waits", conf, func(_ *testing.T, k *talkers) {
		begin(k, boss+"\npause {}\nsessions_yield {}")
		k.release("leaf")
		told(k, ann, "told leaf ok")
	}, pause{})
	talk(t, "D11 after the turn", conf, func(_ *testing.T, k *talkers) {
		begin(k, boss)
		k.settle()
		k.release("leaf")
		told(k, ann, "told leaf ok")
	})
	both := Config{
		"channels":                  json.RawMessage(`{"chat": {"allowFrom": ["ann", "bob"]}}`),
		"session":                   json.RawMessage(`{"dmScope": "main"}`),
		"agents.defaults.subagents": json.RawMessage(`{"maxSpawnDepth": 2}`),
	}
	talk(t, "D4 after bob was the last who wrote", both, func(_ *testing.T, k *talkers) {
		begin(k, boss)
		k.settle()
		say(k, bob, "say hello")
		k.release("leaf")
		told(k, ann, "told leaf ok")
	})
	talk(t, "D4 after it has ended, and bob was the last who wrote", both, func(_ *testing.T, k *talkers) {
		say(k, ann, task(task("say done", "label", "leaf")+"\npause {}", "label", "boss"))
		say(k, bob, "say hello")
		remove(k, "boss")
		told(k, ann, "told leaf ok")
	}, pause{})
	// focused lets ann start a subagent, bob focus on it, and the subagent end.
	focused := func(k *talkers, then string) {
		say(k, ann, task("hold it\nsay done", "label", "it")+then)
		say(k, bob, "/focus it")
		k.release("it")
		told(k, bob, "told it ok")
	}
	talk(t, "D11 a turn waits for a subagent on which another chat is focused", both, func(_ *testing.T, k *talkers) {
		focused(k, "\nsessions_yield {}")
	})
	talk(t, "D11 a turn would wait for a result that another chat gets", both, func(_ *testing.T, k *talkers) {
		focused(k, "\npause {}\nsessions_yield {}")
	}, pause{})
}
