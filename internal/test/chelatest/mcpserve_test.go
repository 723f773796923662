package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/mcpserver"
)

// toolUser is a program that uses the conversations over MCP.
type toolUser struct {
	t *testing.T
	*sdk.ClientSession
}

// use starts a program on a gateway.
func (g *Gateway) use(t *testing.T) toolUser {
	t.Helper()
	fromProgram, toServer := io.Pipe()
	fromServer, toProgram := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- mcpserver.Serve(context.WithoutCancel(t.Context()), mcpserver.Options{
			Client: g.Client().Client, In: fromProgram, Out: toProgram, Log: slog.New(slog.DiscardHandler), Version: "1.2.3",
		})
	}()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "program", Version: "1"}, nil).Connect(t.Context(),
		&sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return toolUser{t, c}
}

// useTool calls a tool and returns its structured content, or its error.
func useTool[Out any](p toolUser, name string, args any) (out Out, failed string) {
	p.t.Helper()
	r, err := p.CallTool(p.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	text := ""
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			text += c.Text
		}
	}
	if r.IsError {
		return out, text
	}
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return out, ""
}

func TestMCPServe(t *testing.T) {
	fake := new(channeltest.Fake)
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role != llm.RoleTool && strings.Contains(last.PlainText(), "make a file") {
			return llmtest.Call("c1", "exec", `{"command": "touch made.txt"}`)
		}
		if last.Role != llm.RoleTool && strings.Contains(last.PlainText(), "run a line") {
			return llmtest.Call("c2", "exec", `{"command": "perl -e 1"}`)
		}
		return llmtest.Say("re: " + strings.TrimSpace(last.PlainText()))
	})
	conf := Config{"channels.talk": json.RawMessage(`{"allowFrom": ["ann"]}`),
		"tools.exec": json.RawMessage(`{"mode": "ask", "strictInlineEval": true}`)}
	g := Start(t, Options{Model: model, Channels: map[string]channel.Channel{"talk": fake}, Config: conf})
	p := g.use(t)
	to := chela.Address{Channel: "talk", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
	n := 0
	say := func(text string) {
		t.Helper()
		n++
		if err := fake.Say(t.Context(), chela.Inbound{
			ID:        fmt.Sprint(n),
			Address:   to,
			Sender:    chela.Sender{ID: "ann"},
			Text:      text,
			Mentioned: true,
		}); err != nil {
			t.Fatal(err)
		}
	}
	g.Client().Ask("agent:main:other", "of the terminal")
	say("hello")
	waittest.Until(t, "the answer", func() bool { return len(fake.Texts(to)) == 1 })
	const key = "agent:main:main"

	t.Run("MCP-06 conversations are listed, read and answered", func(t *testing.T) {
		p.t = t
		list, failed := useTool[mcpserver.ListOut](p, "conversations_list", map[string]any{"includeLastMessage": true})
		if len(list.Conversations) != 1 || list.Conversations[0].SessionKey != key ||
			list.Conversations[0].Channel != "talk" {
			t.Fatalf("%+v %s", list, failed)
		}
		for args, n := range map[string]int{
			`{"channel": "TALK"}`:     1,
			`{"channel": "telegram"}`: 0,
			`{"search": "main"}`:      1,
			`{"search": "nobody"}`:    0,
		} {
			if list, failed := useTool[mcpserver.ListOut](p, "conversations_list",
				json.RawMessage(args)); len(list.Conversations) != n || failed != "" {
				t.Errorf("%s: %+v %s, want %d", args, list, failed, n)
			}
		}
		if read, failed := useTool[mcpserver.ReadOut](p, "messages_read",
			map[string]any{"session_key": key, "limit": 1}); len(read.Messages) != 1 || read.Messages[0].Text != "re: hello" {
			t.Errorf("the last message: %+v %s", read, failed)
		}
		one, failed := useTool[mcpserver.GetOut](p, "conversation_get", map[string]any{"session_key": key})
		if one.Conversation.To != "direct:ann" {
			t.Errorf("%+v %s", one, failed)
		}
		read, failed := useTool[mcpserver.ReadOut](p, "messages_read", map[string]any{"session_key": key})
		if len(read.Messages) != 2 || read.Messages[0].Role != "user" || read.Messages[0].Text != "hello" ||
			read.Messages[1].Text != "re: hello" {
			t.Errorf("%+v %s", read, failed)
		}
		sent, failed := useTool[mcpserver.SendOut](p, "messages_send",
			map[string]any{"session_key": key, "text": "from the **program**"})
		if got := fake.Texts(to); sent.Status != "sent" || len(got) != 2 || got[1] != "from the **program**" {
			t.Errorf("%+v %s: the chat shows %q", sent, failed, got)
		}
		for args, want := range map[string]string{
			`{"session_key": "agent:main:nobody", "text": "x"}`: "there is no conversation agent:main:nobody",
			`{"session_key": "agent:main:other", "text": "x"}`:  "has no chat",
			`{"session_key": "agent:main:main", "text": " "}`:   "text is empty",
		} {
			if _, failed := useTool[mcpserver.SendOut](p, "messages_send",
				json.RawMessage(args)); !strings.Contains(failed, want) {
				t.Errorf("%s: %q, want %q", args, failed, want)
			}
		}
	})
	t.Run("MCP-06 events are read by a cursor, and a gap is said", func(t *testing.T) {
		p.t = t
		var all mcpserver.PollOut
		waittest.Until(t, "the events of the first messages", func() bool {
			all, _ = useTool[mcpserver.PollOut](p, "events_poll", map[string]any{"limit": 200})
			return len(all.Events) >= 2
		})
		if all.Missed != 0 || all.Events[0].Message.Text != "hello" || all.Events[1].Message.Text != "re: hello" {
			t.Fatalf("%+v", all)
		}
		waited := make(chan mcpserver.PollOut, 1)
		go func() {
			out, _ := useTool[mcpserver.PollOut](p, "events_wait", map[string]any{"after_cursor": all.Next, "timeout_ms": 60000})
			waited <- out
		}()
		say("more")
		if out := <-waited; len(out.Events) != 1 || out.Events[0].Message == nil || out.Events[0].Message.Text != "more" ||
			out.Next != out.Events[0].Cursor {
			t.Errorf("%+v", out)
		}
		if out, _ := useTool[mcpserver.PollOut](p, "events_wait", map[string]any{
			"after_cursor": all.Next,
			"session_key":  "agent:main:other",
			"timeout_ms":   1,
		}); len(out.Events) != 0 {
			t.Errorf("of another conversation: %+v", out)
		}
		if out, _ := useTool[mcpserver.PollOut](p, "events_poll", map[string]any{"after_cursor": 100000}); out.Missed == 0 ||
			!strings.Contains(out.Note, "messages_read") {
			t.Errorf("a cursor of another start: %+v", out)
		}
	})
	t.Run("a permission is decided", func(t *testing.T) {
		p.t = t
		say("make a file")
		var open mcpserver.PendingOut
		waittest.Until(t, "the question", func() bool {
			open, _ = useTool[mcpserver.PendingOut](p, "permissions_list_open", map[string]any{})
			return len(open.Approvals) == 1
		})
		if a := open.Approvals[0]; !strings.Contains(a.Command, "touch made.txt") || a.SessionKey != key ||
			!slices.Equal(a.Decisions, []string{"allow-once", "allow-always", "deny"}) {
			t.Errorf("%+v", a)
		}
		args := map[string]any{"id": open.Approvals[0].ID, "decision": "perhaps"}
		if _, failed := useTool[mcpserver.RespondOut](p, "permissions_respond", args); !strings.Contains(failed,
			"allow-once, allow-always, deny") {
			t.Errorf("%q", failed)
		}
		args["decision"] = "deny"
		if out, failed := useTool[mcpserver.RespondOut](p, "permissions_respond", args); out.Decision != "deny" {
			t.Errorf("%+v %q", out, failed)
		}
		waittest.Until(t, "the end", func() bool { return strings.Contains(strings.Join(fake.Texts(to), "\n"), "denied") })
	})
	t.Run("a permission that can only be given once is not offered for ever", func(t *testing.T) {
		p.t = t
		say("run a line")
		var open mcpserver.PendingOut
		waittest.Until(t, "the question", func() bool {
			open, _ = useTool[mcpserver.PendingOut](p, "permissions_list_open", map[string]any{})
			return len(open.Approvals) == 1
		})
		if got := open.Approvals[0].Decisions; !slices.Equal(got, []string{"allow-once", "deny"}) {
			t.Errorf("decisions %q", got)
		}
		if _, failed := useTool[mcpserver.RespondOut](p, "permissions_respond",
			map[string]any{"id": open.Approvals[0].ID, "decision": "deny"}); failed != "" {
			t.Error(failed)
		}
	})
}
