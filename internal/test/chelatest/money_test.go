package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// priced returns a configuration in which mock/m costs $10 per million tokens of input and
// $50 per million tokens of output, of which an answer has at most 10,000, and mock/cheap
// a hundredth of that.
func priced(budget, agents string) Config {
	return Config{
		"models": json.RawMessage(`{"providers": {"mock": {"models": [
			{"id": "m", "contextWindow": 200000, "maxTokens": 10000, "cost": {"input": 10, "output": 50, "cacheRead": 1, "cacheWrite": 10}},
			{"id": "cheap", "contextWindow": 200000, "maxTokens": 10000, "cost": {"input": 0.1, "output": 0.5, "cacheRead": 0.01, "cacheWrite": 0.1}},
			{"id": "unpriced", "contextWindow": 200000, "maxTokens": 10000}]}}}`),
		"budget":          json.RawMessage(budget),
		"agents.defaults": json.RawMessage(agents),
	}
}

// paid returns an answer that used the given tokens.
func paid(text string, input, output int64) llmtest.Step {
	s := llmtest.Say(text)
	s.Usage = &llm.Usage{Input: input, Output: output}
	return s
}

// withMoney runs f with a gateway whose model uses the tokens, on a fake clock.
func withMoney(t *testing.T, name string, conf Config, input, output int64, f func(*testing.T, *beats)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		withBeats(t, beatsConfig{config: conf}, func(t *testing.T, b *beats) {
			b.plays(func(*llm.Request) llmtest.Step { return paid("ok", input, output) })
			f(t, b)
		})
	})
}

// ask has the owner write, and returns what is sent.
func (b *beats) ask(text string) string {
	b.t.Helper()
	before := len(b.tg.Texts(beatOwner))
	in := chela.Inbound{
		ID:      fmt.Sprint(time.Now().UnixNano()),
		Address: beatOwner,
		Sender:  chela.Sender{ID: "7"},
		Text:    text,
		Time:    time.Now(),
	}
	if err := b.tg.Say(b.t.Context(), in); err != nil {
		b.t.Fatal(err)
	}
	b.after(10 * time.Second)
	return strings.Join(b.tg.Texts(beatOwner)[before:], "\n")
}

// expect compares a text with pieces that it has to contain, in order.
func expect(t *testing.T, text string, pieces ...string) {
	t.Helper()
	rest := text
	for _, p := range pieces {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Errorf("%q lacks %q", text, p)
			return
		}
		rest = after
	}
}

// committed returns what is spent or reserved in scopes that begin with a prefix.
func (b *beats) committed(scope string) (all, held int64) {
	b.t.Helper()
	err := b.st.View(b.t.Context(), func(r store.Reader) (err error) {
		all, err = r.Usage().Committed(scope)
		if err == nil {
			held, err = r.Usage().Held(scope)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all, held
}

func TestMoney(t *testing.T) {
	// $0.35 a call
	withMoney(t, "a call is held at its highest price, its answer is limited to what is left, and then it is refused",
		priced(`{"usdPerDay": 0.9}`, `{}`), 10_000, 5_000, func(t *testing.T, b *beats) {
			for i, want := range []string{"ok", "ok", "ok", "the budget of today is used up: $1.05 of $0.9000 are spent"} {
				expect(t, b.ask(fmt.Sprint("m", i)), want)
			}
			limits := []int{}
			for _, r := range b.model.Requests() {
				limits = append(limits, r.MaxTokens)
				if r.Ceiling != r.MaxTokens {
					t.Errorf("ceiling %d, limit %d", r.Ceiling, r.MaxTokens)
				}
			}
			if len(limits) != 3 || limits[0] != 10_000 || limits[1] != 9_000 || limits[2] != 2_000 {
				t.Errorf("limits of the answers: %d", limits)
			}
			all, held := b.committed(usage.DayScope(time.Now()))
			if all != 1_050_000_000 || held != 0 {
				t.Errorf("committed %d, held %d", all, held)
			}
		})
	withMoney(t, "the message says until when, and the budget is new at midnight in the person's time zone",
		priced(`{"usdPerDay": 0.5}`, `{"userTimezone": "America/New_York"}`), 10_000, 5_000, func(t *testing.T, b *beats) {
			// It is 2000-01-01 00:00 UTC, the evening of the day before in New York.
			b.ask("one")
			expect(t, b.ask("two"), "I answer again from Saturday, 1 January, 00:00 (America/New_York)", "/budget AMOUNT")
			b.after(time.Until(time.Date(2000, 1, 1, 4, 59, 0, 0, time.UTC)))
			expect(t, b.ask("three"), "used up")
			b.after(2 * time.Minute)
			if got := b.ask("four"); got != "ok" {
				t.Errorf("on the next day: %q", got)
			}
		})
	// $0.60 a call
	withMoney(t, "a share of the budget is reported once a day, also after a restart",
		priced(`{"usdPerDay": 2, "warnAt": 0.5}`, `{}`), 10_000, 10_000, func(t *testing.T, b *beats) {
			if got := b.ask("one"); got != "ok" {
				t.Errorf("%q", got)
			}
			expect(t, b.ask("two"), "60 % of the budget of today are spent: $1.20 of $2.00.")
			dir := b.Dir
			b.Stop()
			again := startBeats(t, beatsConfig{config: priced(`{"usdPerDay": 4, "warnAt": 0.2}`, `{}`), dir: dir})
			defer again.Stop()
			again.plays(func(*llm.Request) llmtest.Step { return paid("ok", 10_000, 10_000) })
			if got := again.ask("three"); got != "ok" {
				t.Errorf("after a restart: %q", got)
			}
			again.after(24 * time.Hour)
			again.ask("four")
			expect(t, again.ask("five"), "30 % of the budget of today")
		})
	withMoney(t, "what was spent before there was a budget counts", priced(`{}`, `{}`), 10_000, 5_000,
		func(t *testing.T, b *beats) {
			b.ask("one")
			b.ask("two")
			expect(t, b.ask("/budget"), "There is no budget of money")
			dir := b.Dir
			b.Stop()
			again := startBeats(t, beatsConfig{config: priced(`{"usdPerDay": 0.6}`, `{}`), dir: dir})
			defer again.Stop()
			expect(t, again.ask("/budget"), "All agents: $0.7000 of $0.6000 spent, $0.00 left")
			expect(t, again.ask("three"), "the budget of today is used up: $0.7000 of $0.6000 are spent")
			again.calls(0)
			again.ask("/budget 2")
			again.answers("ok")
			if got := again.ask("four"); got != "ok" {
				t.Errorf("after the budget was raised: %q", got)
			}
		})
	withMoney(t, "the owner raises the budget of today, durably, and nobody else does", priced(`{"usdPerDay": 0.3}`, `{}`),
		10_000, 5_000, func(t *testing.T, b *beats) {
			b.ask("one")
			expect(t, b.ask("two"), "used up")
			expect(t, b.ask("/budget lots"), `"lots" is not an amount`)
			expect(t, b.ask("/budget agent 3"), "there is no such budget", "agents.defaults.budget.usdPerDay")
			expect(t, b.ask("/budget 1.5"), "All agents: $0.3500 of $1.50 spent, $1.15 left (for today; otherwise $0.3000)")
			dir := b.Dir
			b.Stop()
			again := startBeats(t, beatsConfig{config: priced(`{"usdPerDay": 0.3}`, `{}`), dir: dir})
			defer again.Stop()
			again.plays(func(*llm.Request) llmtest.Step { return paid("ok", 10_000, 5_000) })
			expect(t, again.ask("three"), "ok")
			again.after(24 * time.Hour)
			expect(t, again.ask("/budget"), "$0.00 of $0.3000 spent")
			again.ask("/budget 1")
			expect(t, again.ask("/budget reset"), "$0.00 of $0.3000 spent, $0.3000 left")
		})
	withMoney(t, "an agent has its own budget", priced(`{}`, `{"budget": {"usdPerDay": 0.5}}`), 10_000, 5_000,
		func(t *testing.T, b *beats) {
			b.ask("one")
			expect(t, b.ask("two"), "the budget of the agent main for today is used up", "/budget agent AMOUNT")
			b.ask("/budget agent 1")
			expect(t, b.ask("three"), "ok")
		})
	// $0.15 a call
	withMoney(t, "a run has its own budget", priced(`{}`, `{"budget": {"usd": 0.2}}`), 10_000, 1_000,
		func(t *testing.T, b *beats) {
			n := 0
			b.plays(func(*llm.Request) llmtest.Step {
				n++
				s := llmtest.Call(fmt.Sprint("c", n), "ls", `{"path": "."}`)
				s.Usage = &llm.Usage{Input: 10_000, Output: 1_000}
				return s
			})
			expect(t, b.ask("go on"), "the budget of this run is used up: $0.1500 of $0.2000", "agents.defaults.budget.usd")
			b.calls(1)
		})
	// $0.50 a call
	withMoney(t, "cheaper: another model answers, and that is told once",
		priced(`{"usdPerDay": 0.9, "ladder": ["cheaper", "wait"], "model": "mock/cheap"}`, `{}`), 10_000, 8_000,
		func(t *testing.T, b *beats) {
			b.plays(func(r *llm.Request) llmtest.Step { return paid("from "+r.Model, 10_000, 8_000) })
			expect(t, b.ask("one"), "from m")
			b.after(time.Minute)
			b.ask("/budget 0.61")
			expect(t, b.ask("two"), "mock/cheap answers instead of mock/m while it lasts", "from cheap")
			if got := b.ask("three"); strings.Contains(got, "instead") || !strings.Contains(got, "from cheap") {
				t.Errorf("%q", got)
			}
			b.ask("/budget 0.5")
			expect(t, b.ask("four"), "used up")
		})
	withMoney(t, "smaller: less of the conversation is sent",
		priced(`{"usdPerDay": 2, "ladder": ["smaller", "wait"], "warnAt": 0}`, `{}`), 10_000, 1_000,
		func(t *testing.T, b *beats) {
			long := strings.Repeat("many words ", 4000) // about 11,000 tokens, $0.11
			b.plays(func(r *llm.Request) llmtest.Step {
				n := 0
				for _, m := range r.Messages {
					n += len(m.PlainText()) / 3
				}
				return paid("ok", int64(n), 100)
			})
			for i := range 4 {
				b.ask(fmt.Sprint(i, long))
			}
			before := b.model.Requests()
			b.ask("five" + long)
			after := b.model.Requests()
			if len(before) == 0 || len(after) != len(before)+1 ||
				len(after[len(after)-1].Messages) >= len(before[len(before)-1].Messages) {
				t.Errorf("%d calls, %d before", len(after), len(before))
			}
		})
	t.Run("an unknown price is refused, or counts as zero", func(t *testing.T) {
		t.Parallel()
		for unpriced, want := range map[string]string{
			"block": "there is a budget, but the price of mock/unpriced is not known", "allow": "ok"} {
			conf := priced(`{"usdPerDay": 1, "unpriced": "`+unpriced+`"}`, `{"model": "mock/unpriced"}`)
			g := Start(t,
				Options{Model: llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return paid("ok", 1_000_000, 1_000_000) }),
					Config: conf})
			c := g.Client()
			for range 2 {
				end := c.Ask("main", "hello")
				expect(t, end.Text+end.Error, want)
			}
			if report := c.Ask("main", "/usage cost"); strings.Contains(report.Text, "$") {
				t.Errorf("USAGE-03: %q", report.Text)
			}
		}
	})
	t.Run("of runs that compete for the last cent, one gets it", func(t *testing.T) {
		t.Parallel()
		const runs = 12
		var mu sync.Mutex
		calls, hold := 0, make(chan struct{})
		model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			mu.Lock()
			calls++
			mu.Unlock()
			<-hold
			return paid("ok", 10, 10)
		})
		conf := priced(`{"usdPerDay": 0.2}`, `{"maxConcurrent": 12}`) // $0.10 of a prompt and $0.05 of an answer
		conf["models"] = json.RawMessage(strings.ReplaceAll(string(conf["models"]), `"maxTokens": 10000`,
			`"maxTokens": 1000`))
		g := Start(t, Options{Model: model, Config: conf})
		c := g.Client()
		text := strings.Repeat("many words ", 1500)
		ids := map[string]bool{}
		for i := range runs {
			ids[c.Send(fmt.Sprint("s", i), text)] = true
		}
		refused := 0
		for len(ids) > 1 {
			ev := <-c.Events()
			var chat wire.Chat
			if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.State == wire.StateError && ids[chat.RunID] {
				expect(t, chat.ErrorMessage, "the budget of today is used up")
				refused++
				delete(ids, chat.RunID)
			}
		}
		close(hold)
		for id := range ids {
			if end := c.Await(id); end.Text != "ok" {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
		}
		if calls != 1 || refused != runs-1 {
			t.Errorf("%d calls, %d refused", calls, refused)
		}
	})
}

// TestMoneyInBackground has work that nobody waits for run out of money.
func TestMoneyInBackground(t *testing.T) {
	withMoney(t, "a job reports it in its history, is not disabled, and the owner is told once",
		priced(`{"usdPerDay": 0.3, "warnAt": 0}`, `{}`), 10_000, 5_000, func(t *testing.T, b *beats) {
			b.ask("hello") // the owner's chat is known
			before := len(b.tg.Texts(beatOwner))
			c := b.Client()
			var job wire.CronJob
			c.must(wire.MethodCronAdd, json.RawMessage(`{"name": "x", "schedule": {"kind": "every", "everyMs": 300000}, "payload": {"kind": "agentTurn", "message": "work"},
			"sessionTarget": "isolated", "wakeMode": "now", "delivery": {"mode": "none"}}`), &job)
			var once wire.CronJob
			c.must(wire.MethodCronAdd, json.RawMessage(`{"name": "reminder", "schedule": {"kind": "at", "at": "2000-01-01T01:00:00Z"}, "payload": {"kind": "agentTurn", "message": "remind"},
			"sessionTarget": "isolated", "wakeMode": "now", "delivery": {"mode": "none"}}`), &once)
			b.after(3 * time.Hour)
			b.calls(1)
			var page wire.CronRunsPage
			c.must(wire.MethodCronRuns, wire.CronRuns{ID: job.ID}, &page)
			if n := len(page.Entries); n < 20 {
				t.Errorf("%d runs", n)
			}
			for _, e := range page.Entries {
				if e.Status != "skipped" || !strings.Contains(e.Error, "the budget of today is used up") {
					t.Errorf("%s %s", e.Status, e.Error)
					break
				}
			}
			told := b.tg.Texts(beatOwner)[before:]
			if len(told) != 1 || !strings.Contains(told[0], "the budget of today is used up") {
				t.Errorf("told %q", told)
			}
			b.after(22 * time.Hour) // the next day has begun
			found := false
			for _, p := range b.prompts() {
				found = found || strings.Contains(p, "remind")
			}
			if !found {
				t.Errorf("the reminder did not run on the next day: %q", b.prompts())
			}
			c.Close()
		})
	withMoney(t, "a heartbeat is silent", priced(`{"usdPerDay": 0.3, "warnAt": 0}`, `{}`), 10_000, 5_000,
		func(t *testing.T, b *beats) {
			b.ask("hello")
			dir := b.Dir
			b.Stop()
			again := startBeats(t, beatsConfig{config: priced(`{"usdPerDay": 0.3, "warnAt": 0}`, `{}`),
				heartbeat: `{"every": "30m", "target": "last"}`, file: "- look at the weather\n", dir: dir})
			defer again.Stop()
			c := again.Client()
			before := len(again.tg.Texts(beatOwner))
			again.after(5 * time.Hour)
			again.calls(0)
			if got := again.tg.Texts(beatOwner)[before:]; len(got) != 1 ||
				!strings.HasPrefix(got[0], "💰 the budget of today is used up") {
				t.Errorf("sent %q", got)
			}
			var h wire.History
			c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
			for _, m := range h.Messages {
				if strings.Contains(m.Text(), "weather") {
					t.Errorf("the history has %q", m.Text())
				}
			}
			if got := again.state().Last; got.Status != heartbeat.StatusFailed || !strings.Contains(got.Reason, "used up") {
				t.Errorf("last %+v", got)
			}
			c.Close()
		})
	t.Run("E2E-13 all accounts without credit: one message, silent heartbeats, and it recovers", func(t *testing.T) {
		t.Parallel()
		conf := priced(`{}`, `{"model": {"primary": "mock/m", "fallbacks": ["mock/cheap"]}}`)
		withBeats(t, beatsConfig{config: conf, heartbeat: `{"every": "30m", "target": "last"}`,
			file: "- look at the weather\n"}, func(t *testing.T, b *beats) {
			b.plays(func(*llm.Request) llmtest.Step { return llmtest.Status(402, "no credit") })
			got := b.ask("hello")
			expect(t, got, "no model answered: mock/m (billing), mock/cheap (billing); try again in 5h")
			if n := strings.Count(got, "billing"); n != 2 {
				t.Errorf("%q", got)
			}
			before := len(b.tg.Texts(beatOwner))
			b.after(4 * time.Hour)
			if got := b.tg.Texts(beatOwner)[before:]; len(got) > 0 {
				t.Errorf("heartbeats sent %q", got)
			}
			b.plays(func(*llm.Request) llmtest.Step { return llmtest.Say("here again") })
			b.after(90 * time.Minute)
			expect(t, b.ask("and now?"), "here again")
		})
	})
}

// using is a model whose answers use the same number of tokens.
type using struct {
	llm.Provider
	usage llm.Usage
}

// Stream implements llm.Provider.
func (u using) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for ev, err := range u.Provider.Stream(ctx, r) {
			if ev.Kind == llm.Done {
				ev.Usage = u.usage
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// TestTaskMoney has subagents spend the money of a task.
func TestTaskMoney(t *testing.T) {
	usage := llm.Usage{Input: 10_000, Output: 2_000} // $0.20 a call
	t.Run("USAGE-06 the cost of subagents is in the announcement, in the requester's total and in the receipt",
		func(t *testing.T) {
			t.Parallel()
			model := newFamily()
			g := Start(t, Options{Model: using{model, usage}, Config: priced(`{"usdPerDay": 100}`,
				`{"budget": {"usdPerTask": 10}}`)})
			c := g.Client()
			run := c.Send("main", task("say one", "label", "one")+"\n"+task("say two", "label", "two"))
			c.Await(run)
			// A child that has ended is not announced at once.
			announced, n := "", 0
			waittest.Until(t, "two announcements", func() bool {
				c.settled()
				for _, r := range model.Requests() {
					n = 0
					for _, m := range r.Messages {
						if k := strings.Count(m.PlainText(), "Stats: "); k > 0 {
							announced, n = m.PlainText(), n+k
						}
					}
				}
				return n >= 2
			})
			expect(t, announced, "Stats: ", "in 10k · out 2k, $0.2000")
			expect(t, c.Ask("main", "/status").Text, "2 subagents: in 20k · out 4k · $0.4000")
			receipt := c.Ask("main", "/usage receipt").Text
			expect(t, receipt, "Receipt of the task "+run)
			var got wire.UsageReceipt
			c.must(wire.MethodUsageReceipt, wire.ReceiptGet{RunID: run}, &got)
			children := 0
			var sum float64
			for _, r := range got.Runs {
				sum += r.Cost
				if r.Label == "one" || r.Label == "two" {
					children++
				}
			}
			if children != 2 || len(got.Models) != 1 || got.Models[0].Model != "m" || math.Abs(sum-got.Totals.Cost) > 1e-9 ||
				math.Abs(got.Totals.Cost-0.2*float64(len(model.Requests()))) > 1e-9 {
				t.Errorf("%+v", got)
			}
			expect(t, receipt, fmt.Sprintf("%d calls", len(model.Requests())), "mock/m",
				"one: 1 call, in 10k · out 2k · $0.2000")
			var report wire.UsageReport
			c.must(wire.MethodUsageCost, wire.UsageCost{}, &report)
			if math.Abs(report.Totals.Cost-got.Totals.Cost) > 1e-9 {
				t.Errorf("the total %v, the receipt %v", report.Totals.Cost, got.Totals.Cost)
			}
		})
	t.Run("subagents spend the budget of the task that started them", func(t *testing.T) {
		t.Parallel()
		model := newFamily()
		conf := priced(`{"warnAt": 0}`, `{"budget": {"usdPerTask": 0.4}, "subagents": {"maxConcurrent": 1}}`)
		conf["models"] = json.RawMessage(strings.ReplaceAll(string(conf["models"]), `"maxTokens": 10000`,
			`"maxTokens": 2000`))
		g := Start(t, Options{Model: using{model, llm.Usage{Input: 1000, Output: 2000}}, Config: conf}) // $0.11 a call
		c := g.Client()
		run := c.Send("main", task("say one", "label", "one")+"\n"+task("say two", "label", "two")+"\n"+
			task("say three", "label", "three"))
		c.Await(run)
		c.settled()
		var got wire.UsageReceipt
		c.must(wire.MethodUsageReceipt, wire.ReceiptGet{RunID: run}, &got)
		if got.Totals.Cost > 0.4 || got.Totals.Cost < 0.2 {
			t.Errorf("the task cost %v", got.Totals.Cost)
		}
		var list wire.TasksPage
		c.must(wire.MethodTasksList, wire.TasksList{}, &list)
		failed := 0
		for _, task := range list.Tasks {
			if strings.Contains(task.Error, "the budget of this task is used up") {
				failed++
			}
		}
		if failed == 0 {
			t.Errorf("%+v", list.Tasks)
		}
	})
	t.Run("a failed attempt of a fallback counts, and the next one is reserved again", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			if r.Model == "m" {
				return llmtest.Status(503, "overloaded")
			}
			return paid("from "+r.Model, 1000, 100)
		})
		g := Start(t,
			Options{Model: model,
				Config: priced(`{"usdPerDay": 1}`, `{"model": {"primary": "mock/m", "fallbacks": ["mock/cheap"]}}`)})
		c := g.Client()
		if end := c.Ask("main", "hello"); end.Text != "from cheap" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		var b wire.BudgetStatus
		c.must(wire.MethodBudgetStatus, wire.BudgetGet{}, &b)
		if len(b.Budgets) != 1 || math.Abs(b.Budgets[0].Spent-0.00015) > 1e-9 || b.Budgets[0].Held != 0 {
			t.Errorf("%+v", b)
		}
	})
}

// settled waits until no session has work.
func (c *Client) settled() {
	c.t.Helper()
	waittest.Until(c.t, "the end of all work", func() bool {
		var s wire.Status
		c.must(wire.MethodStatus, nil, &s)
		return len(s.Runs) == 0 && s.Queued == 0
	})
}
