package dispatch_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

func TestFallback(t *testing.T) {
	t.Parallel()
	busy, mock := llmtest.Status(429, "slow down"), llm.Model{Provider: "mock", ID: "m", Context: 1 << 20}
	// chain returns mock/m, which answers with the steps, with the fallback other/n.
	chain := func(steps ...llmtest.Step) llm.Provider {
		other := llm.Model{Provider: "other", ID: "n", Price: &llm.Price{Input: 1e6}}
		return failover.New(failover.NewHealth(nil, nil),
			failover.Candidate{Model: mock, Keys: []failover.Key{{ID: "mock", Provider: llmtest.NewScript(steps...)}}},
			failover.Candidate{Model: other,
				Keys: []failover.Key{{ID: "other", Provider: llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
					return llmtest.Say("from other")
				})}}})
	}
	group := func(in *chela.Inbound) {
		in.Address = chela.Address{Channel: chela.LocalChannel, Peer: chela.Peer{Kind: chela.Group, ID: "#x"}}
	}
	t.Run("MODEL-03 one notice of a fallback, and one of its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, chain(busy, llmtest.Say("back"))).open()
			defer h.stop()
			if r := h.ask("m1", "one"); r.Text != "from other" || r.Model != "other/n" {
				t.Errorf("%+v", r)
			}
			h.ask("m2", "two")
			time.Sleep(2 * time.Minute)
			if r := h.ask("m3", "three"); r.Model != "mock/m" {
				t.Errorf("%+v", r)
			}
			want := []string{
				"user: one", "notice: ↪️ Model Fallback: other/n (selected mock/m; rate_limit)", "assistant: from other",
				"user: two", "assistant: from other",
				"user: three", "notice: ↪️ Model Fallback cleared: mock/m (was other/n)", "assistant: back",
			}
			if diff := cmp.Diff(want, h.lines()); diff != "" {
				t.Error(diff)
			}
			if got := h.seen(chela.StreamNotice, ""); len(got) != 2 {
				t.Errorf("notices %+v", got)
			}
			h.view(func(r store.Reader) error {
				if m, err := r.Sessions().Get(key); err != nil || m.NanoUSD == 0 || m.Fallback != "" {
					t.Errorf("cost %d, fallback %q, %v", m.NanoUSD, m.Fallback, err)
				}
				return nil
			})
		})
	})
	t.Run("FAIL-11 no notice in a group, and the session records the fallback", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, chain(busy)).open()
			defer h.stop()
			h.wait(h.send("m1", "one", group))
			if got := h.seen(chela.StreamNotice, ""); len(got) != 0 ||
				strings.Contains(strings.Join(h.lines(), "\n"), "notice:") {
				t.Errorf("notices %+v\n%s", got, strings.Join(h.lines(), "\n"))
			}
			h.view(func(r store.Reader) error {
				m, err := r.Sessions().Get(key)
				if m.Fallback != "other/n" {
					t.Errorf("fallback %q", m.Fallback)
				}
				return err
			})
		})
	})
	t.Run("a fallback after an answer that broke off: one answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, chain(llmtest.Step{Parts: []llm.Part{llm.Text("half an ans")}, Fault: llmtest.Fault{Error: true,
				Kind: "api_error", Message: "gone"}})).open()
			defer h.stop()
			if r := h.ask("m1", "one"); r.State != run.OK || r.Text != "from other" {
				t.Errorf("%+v", r)
			}
			var shown string
			for _, e := range h.seen(chela.StreamAssistant, "") {
				shown = e.Text
			}
			if shown != "from other" || strings.Contains(strings.Join(h.lines(), "\n"), "half") {
				t.Errorf("shown %q\n%s", shown, strings.Join(h.lines(), "\n"))
			}
		})
	})
	t.Run("FAIL-06 no model answers: one message, with the time to try again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := llmtest.Status(402, "no credit")
			bad := failover.New(failover.NewHealth(nil, nil),
				failover.Candidate{Model: mock, Keys: []failover.Key{{ID: "a", Provider: llmtest.NewScript(slow, slow, slow)}}},
				failover.Candidate{Model: llm.Model{Provider: "other", ID: "n"},
					Keys: []failover.Key{{ID: "b", Provider: llmtest.NewScript(slow, slow, slow)}}})
			h := newHarness(t, bad).open()
			defer h.stop()
			r := h.ask("m1", "one")
			if want := "no model answered: mock/m (billing), other/n (billing); try again in 5h"; r.State != run.Failed ||
				r.Error != want {
				t.Errorf("%s: %q, want %q", r.State, r.Error, want)
			}
		})
	})
}
