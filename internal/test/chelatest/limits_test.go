package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

func TestSubagentLimits(t *testing.T) {
	t.Parallel()
	t.Run("SUB-23 each limit out of its range is an error that names the range, and its ends are accepted",
		func(t *testing.T) {
			t.Parallel()
			for key, span := range map[string][2]int{
				"maxSpawnDepth":       {1, 5},
				"maxChildrenPerAgent": {1, 20},
				"maxConcurrent":       {1, 256},
				"runTimeoutSeconds":   {0, 2_592_000},
				"archiveAfterMinutes": {0, 525_600},
				"maxToolRounds":       {0, 10_000},
				"announceTimeoutMs":   {1000, 3_600_000},
			} {
				for path, conf := range map[string]func(settings string) Config{
					"agents.defaults.subagents.": subagents,
					"agents.list[0].subagents.": func(s string) Config {
						return section("agents.list", `[{"id": "main", "subagents": `+s+`}]`)
					},
					"agents.entries.ops.subagents.": func(s string) Config {
						return section("agents.entries", `{"ops": {"subagents": `+s+`}}`)
					},
				} {
					for _, v := range [...]int{span[0] - 1, span[1] + 1} {
						if v < 0 && (strings.HasSuffix(key, "Seconds") || strings.HasSuffix(key, "Ms")) {
							continue // not a duration at all
						}
						_, err := TryStart(t, Options{Model: llmtest.NewScript(), Config: conf(fmt.Sprintf(`{%q: %d}`, key, v))})
						want := fmt.Sprintf("%s%s: %d is out of range, it must be between %d and %d", path, key, v, span[0], span[1])
						if err == nil || !strings.Contains(err.Error(), want) {
							t.Errorf("%s: %v, want %s", key, err, want)
						}
					}
				}
				for _, v := range span {
					g, err := TryStart(t, Options{Model: llmtest.NewScript(), Config: subagents(fmt.Sprintf(`{%q: %d}`, key, v))})
					if err != nil {
						t.Errorf("%s: %d: %v", key, v, err)
						continue
					}
					g.Stop()
				}
			}
		})
	t.Run("announceTimeoutMs limits an attempt to send the answer that reports a result", func(t *testing.T) {
		synctest.Test(t, announceTimeout)
	})
}

// stuck is a platform that answers no calls once it is stuck.
type stuck struct {
	*channeltest.Fake
	on    chan struct{} // closed: it is stuck
	ended chan time.Duration
}

func (s *stuck) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	select {
	case <-s.on:
	default:
		return s.Fake.Send(ctx, p)
	}
	begun := time.Now()
	<-ctx.Done()
	select {
	case s.ended <- time.Since(begun):
	default:
	}
	return channel.Receipt{}, ctx.Err()
}

// Run hides the optional abilities of the fake.
func (s *stuck) Run(ctx context.Context, sink channel.Sink) error { return s.Fake.Run(ctx, sink) }

func announceTimeout(t *testing.T) {
	s := &stuck{Fake: &channeltest.Fake{}, on: make(chan struct{}), ended: make(chan time.Duration, 1)}
	release := make(chan struct{})
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case strings.Contains(systemOf(r), "# Subagent Context"):
			<-release
			return llmtest.Say("done")
		case strings.Contains(last.PlainText(), "The subagent "):
			return llmtest.Say("it is done")
		case last.Role == llm.RoleTool:
			return llmtest.Say("started")
		}
		return llmtest.Call("c", "sessions_spawn", `{"task":"x"}`)
	})
	g := Start(t, Options{
		Model: model, Channels: map[string]channel.Channel{"talk": plainChannel{s}},
		Config: Config{"channels": json.RawMessage(`{"talk": {"allowFrom": ["ann"]}}`),
			"agents.defaults": json.RawMessage(`{"subagents": {"announceTimeoutMs": 7000}}`)},
	})
	a := chela.Address{Channel: "talk", Account: "default", Peer: direct("ann")}
	if err := s.Say(t.Context(), chela.Inbound{ID: "1", Address: a, Sender: chela.Sender{ID: "ann"}, Text: "go"}); err !=
		nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if got := s.Texts(a); len(got) != 1 || got[0] != "started" {
		t.Errorf("sent %q", got)
	}
	close(s.on)
	close(release)
	if took := <-s.ended; took != 7*time.Second {
		t.Errorf("an attempt ended after %s, want 7 s", took)
	}
	g.Stop()
}

// plainChannel is a channel without optional abilities.
type plainChannel struct{ s *stuck }

func (p plainChannel) Run(ctx context.Context, sink channel.Sink) error { return p.s.Run(ctx, sink) }

func (p plainChannel) Send(ctx context.Context, m channel.Part) (channel.Receipt, error) {
	return p.s.Send(ctx, m)
}
