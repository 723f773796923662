//go:build unix

package chelatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// fileChannel is a channel that writes each message as a line to a file. It
// supports neither keys nor lookups.
type fileChannel struct {
	dir  string
	step func(string)
}

func (f fileChannel) Run(ctx context.Context, _ channel.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}

func (f fileChannel) Send(_ context.Context, p channel.Part) (channel.Receipt, error) {
	f.step("channel.send")
	file, err := os.OpenFile(filepath.Join(f.dir, "sent.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return channel.Receipt{}, err
	}
	_, err = fmt.Fprintln(file, p.Text)
	err = errors.Join(err, file.Close())
	f.step("channel.sent")
	return channel.Receipt{ID: "1"}, err
}

// TestMessageKill kills the engine around a message that a tool sends: it is
// sent once, or it is not reported as sent.
func TestMessageKill(t *testing.T) {
	for _, c := range []struct {
		step string
		sent string // once, never, or at most once
	}{
		{"tool.start:1", "once"}, // not started: the next engine makes the call
		{"tool.run:1", "never"},  // possibly started: the call is not repeated
		{"channel.send:1", "never"},
		{"channel.sent:1", "once"},
		{"tool.end:1", "once"},
		{"run.end:1", "once"},
	} {
		t.Run("never sent twice after a kill at "+c.step, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
				if strings.Contains(string(r.Body), `"role":"tool"`) {
					return llmtest.Say("done")
				}
				return llmtest.Call("call_1", "message", `{"message":"ping","to":"file:7"}`)
			})
			url, _ := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			cmd, cl := startSubprocess(t, dir, conf, c.step)
			_, _ = cl.Client.Send(t.Context(), "main", "send it")
			if err := cmd.Wait(); err == nil {
				t.Fatal("the engine exited normally")
			}
			var st store.Store
			c2 := Start(t, Options{
				Dir: dir, Config: conf, Wrap: func(s store.Store) store.Store { st = s; return s },
				Channels: map[string]channel.Channel{"file": fileChannel{dir, func(string) {}}},
			}).Client()
			waittest.Until(t, "the end of the run", func() bool {
				msgs := c2.history("main")
				return len(msgs) > 0 && msgs[len(msgs)-1].Text() == "done"
			})
			waittest.Until(t, "an empty outbox", func() bool { return len(undelivered(t, st)) == 0 })
			b, _ := os.ReadFile(filepath.Join(dir, "sent.txt"))
			n := strings.Count(string(b), "ping") - doubts(b)
			if want := map[string]int{"once": 1, "never": 0}[c.sent]; n != want {
				t.Errorf("sent %d times, want %s", n, c.sent)
			}
			var told bool
			for _, m := range c2.history("main") {
				told = told || m.Role == wire.RoleToolResult && strings.HasPrefix(m.Text(), "Sent to file:7")
			}
			if told && n != 1 {
				t.Error("the model was told that the message was sent")
			}
		})
	}
}

// undelivered returns the rows of the outbox that are not in a final state.
func undelivered(t *testing.T, st store.Store) (rows []outbox.Row) {
	t.Helper()
	err := st.View(t.Context(), func(r store.Reader) (err error) {
		rows, err = r.Outbox().Open(0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// doubts counts the messages that ask whether another one arrived, which they quote.
func doubts(sent []byte) int { return bytes.Count(sent, []byte("I don't know whether ")) }
