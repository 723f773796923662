package chelatest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// tasks returns the tasks of all kinds, newest first.
func (c *Client) tasks(status ...string) []wire.Task {
	c.t.Helper()
	var page wire.TasksPage
	c.must(wire.MethodTasksList, wire.TasksList{Status: status, Turns: true}, &page)
	return page.Tasks
}

// taskWhere waits for a task with the property.
func (c *Client) taskWhere(what string, is func(wire.Task) bool) wire.Task {
	c.t.Helper()
	var have []wire.Task
	waittest.Until(c.t, "a task that is "+what, func() bool {
		have = c.tasks()
		return slices.ContainsFunc(have, is)
	})
	return have[slices.IndexFunc(have, is)]
}

// labeled returns the test for a task with the title and the status.
func labeled(title, status string) func(wire.Task) bool {
	return func(t wire.Task) bool { return t.Title == title && t.Status == status }
}

// with connects a client with some of the scopes.
func (g *Gateway) with(scopes ...string) *Client {
	g.t.Helper()
	c, err := client.Dial(g.t.Context(), client.Options{Dial: g.Dial, Once: true, Scopes: scopes})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	return &Client{Client: c, t: g.t}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	t.Run("LOOP-17 a result that could not be delivered is kept, and retried", func(t *testing.T) {
		t.Parallel()
		f, chat := newFamily(), new(channeltest.Fake)
		conf := section("channels", `{"fake": {"allowFrom": ["p"]}}`)
		g := Start(t, Options{Model: f, Config: conf, Channels: map[string]channel.Channel{"fake": chat.Plain()}})
		c := g.Client()
		here := chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
		err := chat.Say(t.Context(), chela.Inbound{ID: "1", Address: here, Sender: chela.Sender{ID: "p"},
			Text: task("hold a\nsay the result", "label", "one")})
		if err != nil {
			t.Fatal(err)
		}
		f.waitHeld(t, "a")
		waittest.Until(t, "an answer", func() bool { return len(chat.Texts(here)) > 0 })
		before := len(chat.Texts(here))
		chat.Fail(channeltest.Permanent(), channeltest.Permanent())
		f.release("a")
		blocked := c.taskWhere("blocked", func(t wire.Task) bool { return t.Delivery == wire.DeliveryFailed })
		if blocked.Title != "one" || blocked.Status != wire.TaskCompleted ||
			blocked.Outcome != "blocked" || blocked.Error == "" {
			t.Errorf("blocked: %+v", blocked)
		}
		if list := c.tasks(); len(list) != 1 {
			t.Errorf("one task stands for the subagent and its answer: %+v", list)
		}
		var kept wire.TaskFound
		c.must(wire.MethodTasksGet, wire.TaskGet{ID: blocked.ID}, &kept)
		if kept.Task.Result != "the result" || !strings.HasPrefix(kept.Task.Prompt, "hold a") {
			t.Errorf("kept: %+v", kept.Task)
		}
		retry := func() wire.TaskRecovered {
			var r wire.TasksRecovered
			c.must(wire.MethodTasksRetry, wire.TaskIDs{IDs: []string{blocked.ID}}, &r)
			return r.Results[0]
		}
		if r := retry(); !r.OK || r.Task == nil || r.DuplicateRisk {
			t.Errorf("retry while the channel is down: %+v", r)
		}
		c.taskWhere("blocked again", func(t wire.Task) bool { return t.Delivery == wire.DeliveryFailed })
		if r := retry(); !r.OK {
			t.Errorf("retry: %+v", r)
		}
		sent := c.taskWhere("delivered", func(t wire.Task) bool { return t.Delivery == wire.DeliveryDelivered })
		if sent.ID != blocked.ID || sent.Status != wire.TaskCompleted || sent.Outcome != "succeeded" {
			t.Errorf("delivered: %+v", sent)
		}
		if got := chat.Texts(here)[before:]; !slices.Equal(got, []string{"told one ok"}) {
			t.Errorf("the person got %q", got)
		}
		if r := retry(); r.OK || !strings.Contains(r.Reason, "there is no answer to send again") {
			t.Errorf("retry of a delivered answer: %+v", r)
		}
	})
	t.Run("an answer of a turn that could not be delivered is dismissed", func(t *testing.T) {
		t.Parallel()
		chat := new(channeltest.Fake)
		g := Start(t, Options{Model: newFamily(), Config: section("channels", `{"fake": {"allowFrom": ["p"]}}`),
			Channels: map[string]channel.Channel{"fake": chat.Plain()}})
		c := g.Client()
		here := chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
		chat.Fail(channeltest.Permanent())
		if err := chat.Say(t.Context(),
			chela.Inbound{ID: "1", Address: here, Sender: chela.Sender{ID: "p"}, Text: "say hello"}); err != nil {
			t.Fatal(err)
		}
		blocked := c.taskWhere("blocked", func(t wire.Task) bool { return t.Delivery == wire.DeliveryFailed })
		if blocked.Kind != "turn" || blocked.Status != wire.TaskCompleted {
			t.Errorf("blocked: %+v", blocked)
		}
		reader := g.with(wire.ScopeRead)
		var r wire.TasksRecovered
		c.must(wire.MethodTasksDismiss, wire.TaskIDs{IDs: []string{blocked.ID, "nobody"}}, &r)
		if !r.Results[0].OK || r.Results[0].Task.Delivery != wire.DeliveryDismissed || r.Results[1].OK ||
			r.Results[1].Reason == "" {
			t.Errorf("dismissed: %+v", r)
		}
		limit := time.After(waittest.Limit)
		for told := false; !told; {
			select {
			case ev := <-reader.Events():
				var p wire.TaskChanged
				told = ev.Name == wire.EventTask && json.Unmarshal(ev.Payload, &p) == nil && p.Task.ID == blocked.ID &&
					p.Task.Delivery == wire.DeliveryDismissed
			case <-limit:
				t.Fatal("clients are not told that it was dismissed")
			}
		}
		if list := c.tasks(); len(list) != 0 {
			t.Errorf("after that: %+v", list)
		}
	})
	t.Run("LOOP-17 a retry sends what did not arrive, once, and warns of what may have arrived", func(t *testing.T) {
		t.Parallel()
		for name, lost := range map[string]struct {
			fault channeltest.Fault
			risk  bool
		}{"refused": {channeltest.Permanent(), false}, "unknown": {channeltest.Broken(), true}} {
			chat := new(channeltest.Fake)
			g := Start(t, Options{
				Model: newFamily(), Config: section("channels", `{"fake": {"allowFrom": ["p"]}}`),
				Channels: map[string]channel.Channel{"fake": plainChannel{&stuck{Fake: chat, on: make(chan struct{})}}},
				Limits:   map[string]channel.Limits{"fake": {Text: 12}},
			})
			c := g.Client()
			here := chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
			chat.Fail(channeltest.Fault{}, lost.fault)
			if err := chat.Say(t.Context(), chela.Inbound{ID: "1", Address: here, Sender: chela.Sender{ID: "p"},
				Text: "say part-number1 part-number2 part-number3"}); err != nil {
				t.Fatal(err)
			}
			blocked := c.taskWhere("blocked", func(t wire.Task) bool { return t.Delivery == wire.DeliveryFailed })
			waittest.Until(t, "the last part", func() bool { return slices.Contains(chat.Texts(here), "part-number3") })
			var r wire.TasksRecovered
			c.must(wire.MethodTasksRetry, wire.TaskIDs{IDs: []string{blocked.ID}}, &r)
			if got := r.Results[0]; !got.OK || got.DuplicateRisk != lost.risk {
				t.Errorf("%s: %+v", name, got)
			}
			waittest.Until(t, "three parts", func() bool { return slices.Contains(chat.Texts(here), "part-number2") })
			waittest.Until(t, "no blocked task", func() bool { return len(c.tasks()) == 0 })
			got := slices.DeleteFunc(chat.Texts(here),
				func(s string) bool { return strings.HasPrefix(s, "I don't know whether") })
			if !slices.Equal(got, []string{"part-number1", "part-number3", "part-number2"}) {
				t.Errorf("%s: sent %q", name, got)
			}
		}
	})
	talk(t, "LOOP-17 a retry after a day has the time and the attempts of a new answer", nil,
		func(t *testing.T, k *talkers) {
			ann := chela.Address{Channel: "chat", Account: "default", Peer: direct("ann")}
			k.chat.Fail(channeltest.Temporary(), channeltest.Temporary(), channeltest.Temporary(), channeltest.Temporary(),
				channeltest.Temporary())
			k.say("1", ann, "say hello")
			time.Sleep(25 * time.Hour)
			blocked := k.taskWhere("blocked", func(t wire.Task) bool { return t.Delivery == wire.DeliveryFailed })
			k.chat.Fail(channeltest.Temporary(), channeltest.Temporary(), channeltest.Temporary(), channeltest.Temporary())
			var r wire.TasksRecovered
			k.must(wire.MethodTasksRetry, wire.TaskIDs{IDs: []string{blocked.ID}}, &r)
			time.Sleep(2 * time.Hour)
			if got := k.chat.Texts(ann); !r.Results[0].OK || !slices.Equal(got, []string{"hello"}) {
				t.Errorf("after the retry %+v: %q", r, got)
			}
		})
	t.Run("a task whose message has joined a run is cancelled with that run", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		c := Start(t, Options{Model: f, Config: section("messages", `{"queue": {"mode": "steer"}}`)}).Client()
		busy := c.Send("main", "hold it\nsessions_list {}\nthen say listed")
		f.waitHeld(t, "it")
		ended := make(chan error, 1)
		go func() {
			ended <- c.Call(context.Background(), wire.MethodAgent,
				wire.AgentRun{Message: "hang", IdempotencyKey: "work", SessionKey: "main"}, nil)
		}()
		c.taskWhere("waiting", func(t wire.Task) bool { return t.ID == "work" && t.Status == wire.TaskQueued })
		f.release("it")
		c.taskWhere("running", func(t wire.Task) bool { return t.ID == "work" && t.Status == wire.TaskRunning })
		var stopped wire.TaskStopped
		c.must(wire.MethodTasksCancel, wire.TaskCancel{ID: "work"}, &stopped)
		if !stopped.Cancelled {
			t.Fatalf("cancel: %+v", stopped)
		}
		<-ended // with the error that the run was stopped
		if end := c.Await(busy); end.Text == "listed" {
			t.Errorf("the run ends with %q", end.Text)
		}
	})
	t.Run("LOOP-18 a cancelled task stays cancelled although its subagent still answers", func(t *testing.T) {
		t.Parallel()
		gate, started := make(chan struct{}), make(chan struct{})
		f := newFamily()
		g := Start(t, Options{Model: f, Tools: []tool.Tool{blocking("stall", started, gate)}})
		c := g.Client()
		c.Ask("main", task("stall {}\nthen say finished", "label", "worker"))
		<-started
		running := c.taskWhere("running", labeled("worker", wire.TaskRunning))
		if running.SessionKey != "agent:main:main" || !strings.HasPrefix(running.ChildSessionKey, "agent:main:subagent:") ||
			running.Runtime != "subagent" || running.Delivery != wire.DeliveryPending {
			t.Errorf("running: %+v", running)
		}
		var stopped wire.TaskStopped
		c.must(wire.MethodTasksCancel, wire.TaskCancel{ID: running.ID}, &stopped)
		if !stopped.Found || !stopped.Cancelled || stopped.Task.Status != wire.TaskCancelled {
			t.Errorf("cancel: %+v", stopped)
		}
		close(gate)
		c.Ask("main", task("say later", "label", "later"))
		if got := c.answer("told "); got != "told later ok" {
			t.Errorf("told %q", got)
		}
		after := c.taskWhere("cancelled", labeled("worker", wire.TaskCancelled))
		if after.Delivery != wire.DeliveryNotApplicable || after.EndedAt == 0 {
			t.Errorf("afterwards: %+v", after)
		}
		c.must(wire.MethodTasksCancel, wire.TaskCancel{ID: running.ID}, &stopped)
		if !stopped.Found || stopped.Cancelled || stopped.Reason != "the task has ended: cancelled" {
			t.Errorf("the second cancel: %+v", stopped)
		}
		c.must(wire.MethodTasksCancel, wire.TaskCancel{ID: "nobody"}, &stopped)
		if stopped.Found || stopped.Cancelled {
			t.Errorf("cancel of an unknown task: %+v", stopped)
		}
	})
	t.Run("who may only read cannot cancel, retry or dismiss", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f})
		owner, reader := g.Client(), g.with(wire.ScopeRead)
		owner.Ask("main", task("hold a\nsay done", "label", "worker"))
		f.waitHeld(t, "a")
		running := reader.taskWhere("running", labeled("worker", wire.TaskRunning))
		for method, params := range map[string]any{
			wire.MethodTasksCancel:  wire.TaskCancel{ID: running.ID},
			wire.MethodTasksRetry:   wire.TaskIDs{IDs: []string{running.ID}},
			wire.MethodTasksDismiss: wire.TaskIDs{IDs: []string{running.ID}},
		} {
			if err := reader.Call(t.Context(), method, params, nil); err == nil ||
				!strings.Contains(err.Error(), "operator.write") {
				t.Errorf("%s: %v", method, err)
			}
		}
		reader.taskWhere("still running", labeled("worker", wire.TaskRunning))
		writer := g.with(wire.ScopeRead, wire.ScopeWrite)
		var stopped wire.TaskStopped
		writer.must(wire.MethodTasksCancel, wire.TaskCancel{ID: running.ID}, &stopped)
		if !stopped.Cancelled {
			t.Errorf("cancel: %+v", stopped)
		}
		f.release("a")
	})
	t.Run("a background command is a task that can be ended, and its end is told", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: newFamily(), Config: full()})
		c := g.Client()
		c.Ask("main", `exec {"command":"sleep 600","background":true}`)
		c.Ask("main", `exec {"command":"exit 3","background":true}`)
		failed := c.taskWhere("failed", func(t wire.Task) bool { return t.Status == wire.TaskFailed })
		if failed.Kind != "command" || failed.Title != "exec exit 3" || !strings.HasPrefix(failed.Summary, "exit code 3") {
			t.Errorf("failed: %+v", failed)
		}
		running := c.taskWhere("running", labeled("exec sleep 600", wire.TaskRunning))
		var stopped wire.TaskStopped
		c.must(wire.MethodTasksCancel, wire.TaskCancel{ID: running.ID}, &stopped)
		if !stopped.Cancelled {
			t.Errorf("cancel: %+v", stopped)
		}
		ended := c.taskWhere("cancelled", labeled("exec sleep 600", wire.TaskCancelled))
		if ended.ID != running.ID || ended.EndedAt == 0 {
			t.Errorf("ended: %+v", ended)
		}
	})
	t.Run("a command of a process that died is lost", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		g := Start(t, Options{Dir: dir, Model: newFamily(), Config: full()})
		c := g.Client()
		c.Ask("main", `exec {"command":"sleep 600","background":true}`)
		running := c.taskWhere("running", labeled("exec sleep 600", wire.TaskRunning))
		g.Stop()
		c = Start(t, Options{Dir: dir, Model: newFamily(), Config: full()}).Client()
		lost := c.taskWhere("lost", labeled("exec sleep 600", wire.TaskFailed))
		if lost.ID != running.ID || !strings.Contains(lost.Error, "Chela stopped") {
			t.Errorf("lost: %+v", lost)
		}
	})
	t.Run("turns are listed only while they run, and only on request", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		c := Start(t, Options{Model: f}).Client()
		run := c.Send("main", "hold a\nsay done")
		f.waitHeld(t, "a")
		waiting := c.Send("main", "say next")
		c.taskWhere("waiting", func(t wire.Task) bool { return t.ID == waiting && t.Status == wire.TaskQueued })
		turn := c.taskWhere("running", func(t wire.Task) bool { return t.ID == run && t.Status == wire.TaskRunning })
		if turn.Kind != "turn" || turn.Title != "hold a…" {
			t.Errorf("turn: %+v", turn)
		}
		var page wire.TasksPage
		c.must(wire.MethodTasksList, wire.TasksList{}, &page)
		if len(page.Tasks) != 0 {
			t.Errorf("without turns: %+v", page.Tasks)
		}
		f.release("a")
		c.Await(waiting)
		if list := c.tasks(); len(list) != 0 {
			t.Errorf("after the turns: %+v", list)
		}
	})
	t.Run("a message of the method agent is a task", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		c := Start(t, Options{Model: f}).Client()
		ended := make(chan error, 1)
		go func() {
			ended <- c.Call(context.Background(), wire.MethodAgent,
				wire.AgentRun{Message: "see http://127.0.0.1/?token=open-sesame\nhold a\nsay done", IdempotencyKey: "work",
					SessionKey: "errand"}, nil)
		}()
		f.waitHeld(t, "a")
		c.taskWhere("running",
			func(t wire.Task) bool { return t.ID == "work" && t.Status == wire.TaskRunning && t.Kind == "cli" })
		f.release("a")
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		done := c.taskWhere("completed", func(t wire.Task) bool { return t.ID == "work" && t.Status == wire.TaskCompleted })
		if done.Title != "see http://127.0.0.1/?token=[redacted]…" {
			t.Errorf("its title is %q", done.Title)
		}
		if done.Summary != "done" || done.Delivery != wire.DeliveryNotApplicable || done.SessionKey != "agent:main:errand" {
			t.Errorf("done: %+v", done)
		}
		var h wire.TaskMessages
		c.must(wire.MethodTasksHistory, wire.TaskHistory{ID: "work"}, &h)
		if len(h.Messages) != 2 || h.Messages[1].Text() != "done" {
			t.Errorf("history: %+v", h)
		}
	})
	t.Run("clients are told of each change of a subagent's task", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f})
		c, reader := g.Client(), g.with(wire.ScopeRead)
		c.Ask("main", task("hold a\nsay done", "label", "worker"))
		var seen []string
		limit := time.After(waittest.Limit)
		for !slices.Contains(seen, "completed delivered") {
			select {
			case ev := <-reader.Events():
				var p wire.TaskChanged
				if ev.Name == wire.EventTask && json.Unmarshal(ev.Payload, &p) == nil {
					state := p.Task.Status + " " + p.Task.Delivery
					if state == "running pending" && !slices.Contains(seen, state) {
						f.release("a") // not before: changes that follow each other closely are told as one
					}
					seen = append(seen, state)
				}
			case <-limit:
				t.Fatalf("seen: %q", seen)
			}
		}
	})
	t.Run("pages and filters", func(t *testing.T) {
		t.Parallel()
		c := Start(t, Options{Model: newFamily()}).Client()
		c.Ask("main", task("say 1", "label", "a")+"\n"+task("say 2", "label", "b")+"\n"+task("say 3", "label", "c"))
		for _, label := range []string{"a", "b", "c"} {
			c.taskWhere("completed", labeled(label, wire.TaskCompleted))
		}
		var seen []string
		p := wire.TasksList{Limit: 2, SortBy: "endedAt", SessionKey: "main", Status: wire.Strings{wire.TaskCompleted}}
		for {
			var page wire.TasksPage
			c.must(wire.MethodTasksList, p, &page)
			for _, t := range page.Tasks {
				seen = append(seen, t.Title)
			}
			if p.Cursor = page.Next; p.Cursor == "" {
				break
			}
		}
		if slices.Sort(seen); !slices.Equal(seen, []string{"a", "b", "c"}) {
			t.Errorf("pages: %q", seen)
		}
		var none wire.TasksPage
		c.must(wire.MethodTasksList, map[string]any{"sessionKey": "other", "status": "completed"}, &none)
		if len(none.Tasks) != 0 {
			t.Errorf("of another session: %+v", none.Tasks)
		}
		for _, bad := range []map[string]any{{"status": "owed"}, {"limit": 501}, {"cursor": "x"}, {"sortBy": "x"},
			{"agentId": "nobody"}} {
			if err := c.Call(t.Context(), wire.MethodTasksList, bad, nil); err == nil {
				t.Errorf("%v was accepted", bad)
			}
		}
	})
}
