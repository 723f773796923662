//go:build conformance

package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

// bot is a program that uses a platform's library. Each line of its output is a JSON
// array: the name of what happened, and its details.
type bot struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan []any
	errs  output
}

// newBot starts a program of testdata. It ends with the test.
func newBot(t *testing.T, k kit, script string, args ...string) *bot {
	t.Helper()
	cmd := exec.Command(node(t), append([]string{"testdata/" + script, packages(t, k)}, args...)...)
	b := &bot{t: t, lines: make(chan []any, 1000)}
	cmd.Stderr = &b.errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if b.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewScanner(out); in.Scan(); {
			var l []any
			if err := json.Unmarshal(in.Bytes(), &l); err != nil {
				l = []any{"output", in.Text()}
			}
			b.lines <- l
		}
		close(b.lines)
		_ = cmd.Wait() // errs contains the error
	}()
	t.Cleanup(func() {
		b.in.Close()
		_ = cmd.Process.Kill() // it has ended
		<-done
		if t.Failed() {
			t.Logf("the errors of %s:\n%s", script, b.errs.String())
		}
	})
	return b
}

// Await returns the details of the next line, which must have the name.
func (b *bot) Await(name string) []any {
	b.t.Helper()
	l := waittest.For(b.t, "what the bot says of "+name, b.lines)
	if len(l) == 0 || l[0] != name {
		b.t.Fatalf("the bot says %v, want %s\n%s", l, name, b.errs.String())
	}
	return l[1:]
}

// Want compares the details of the next line.
func (b *bot) Want(name string, want ...any) {
	b.t.Helper()
	if got := b.Await(name); !slices.Equal(texts(got), texts(want)) {
		b.t.Errorf("%s: %v, want %v", name, got, want)
	}
}

// TestGrammy checks that the fake of Telegram is one for grammY, too.
func TestGrammy(t *testing.T) {
	t.Parallel()
	srv := telegramtest.New()
	defer srv.Close()
	root, _ := srv.Listen()
	srv.Chat(7, "private")
	srv.Chat(-100, "forum")
	srv.Topic(-100, 5, "A topic")
	ann := telegramtest.Person(7, "Ann")
	b := newBot(t, kit{name: "grammy", Needs: map[string]string{"grammy": "1.46.0"}}, "grammy.mjs",
		root, telegramtest.Token)
	b.Want("me", telegramtest.BotID, telegramtest.BotName, true)
	b.Want("hook", "")
	b.Want("started")
	if m := srv.Menu(); len(m) != 1 || m[0]["command"] != "help" {
		t.Errorf("the menu is %v", m)
	}
	command := func(text string) {
		name, _, _ := strings.Cut(text, " ")
		srv.Say(7, ann, text,
			telegramtest.Object{"entities": []telegramtest.Object{{"type": "bot_command", "offset": 0, "length": len(name)}}})
	}
	last := func() telegramtest.Message {
		all := srv.Messages(7)
		if len(all) == 0 {
			t.Fatal("the chat is empty")
		}
		return all[len(all)-1]
	}

	srv.Say(7, ann, "hello", nil)
	b.Want("heard", "Ann", "private", "hello", 0)
	srv.Say(-100, ann, "in a topic", telegramtest.Object{"message_thread_id": 5, "is_topic_message": true})
	b.Want("heard", "Ann", "supergroup", "in a topic", 5)
	said := srv.Said(7, ann, "changed", telegramtest.Object{"edit_date": time.Now().Unix() + 1})
	srv.Push(telegramtest.Object{"edited_message": said})
	b.Want("change", "changed", true)

	command("/html")
	sent := b.Await("sent")
	if m := last(); fmt.Sprint(sent) != fmt.Sprint([]any{m.ID, 7, telegramtest.BotID, "bold & code"}) ||
		m.HTML != "<b>bold</b> &amp; <code>code</code>" || m.ReplyTo == 0 || len(m.Buttons) != 1 {
		t.Errorf("sent %v, shown %+v", sent, m)
	}
	srv.Push(telegramtest.Object{"callback_query": telegramtest.Object{
		"id": "q1", "from": ann, "chat_instance": "1", "data": "yes", "message": telegramtest.Object{"message_id": last().ID,
			"date": 1, "chat": telegramtest.Object{"id": 7, "type": "private"}},
	}})
	b.Want("pressed", "yes", last().ID, true)
	if !slices.Equal(srv.Answered(), []string{"q1"}) {
		t.Errorf("answered %q", srv.Answered())
	}
	command("/edit")
	b.Want("edited", true, "after")
	if same := fmt.Sprint(b.Await("same")); !strings.Contains(same, "code:400") ||
		!strings.Contains(same, "message is not modified") {
		t.Errorf("the same edit: %s", same)
	}
	command("/photo")
	b.Want("photo", "a picture", true)
	command("/file " + srv.AddFile("voice/a.ogg", []byte("sound")))
	b.Want("file", 5, "sound")

	srv.Fail("sendMessage", telegramtest.Fault{Status: 429, RetryAfter: 3})
	command("/errors")
	for _, e := range [...][2]string{{"limit", "retry:3"}, {"html", "can't parse entities"}, {"chat", "chat not found"},
		{"long", "message is too long"}} {
		if got := fmt.Sprint(b.Await(e[0])); !strings.Contains(got, e[1]) {
			t.Errorf("%s: %s, want %s", e[0], got, e[1])
		}
	}

	if _, err := io.WriteString(b.in, "webhook\n"); err != nil {
		t.Fatal(err)
	}
	b.Want("webhook", "https://example.com/hook")
	if got := fmt.Sprint(b.Await("conflict")); !strings.Contains(got, "409") {
		t.Errorf("polling with a webhook: %s", got)
	}
	port := b.Await("listening")[0]
	_, secret := srv.Webhook()
	for key, want := range map[string]int{secret: http.StatusOK, "forged": http.StatusUnauthorized} {
		body, err := json.Marshal(telegramtest.Object{"update_id": 5000, "message": srv.Said(7, ann, "by "+key, nil)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%v/", port),
			bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", key)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("%s: status %d, want %d", key, a.StatusCode, want)
		}
	}
	b.Want("heard", "Ann", "private", "by "+secret, 0)
	if len(b.lines) > 0 {
		t.Errorf("the bot also says %v", <-b.lines)
	}
}

// texts returns values as texts.
func texts(values []any) []string {
	var out []string
	for _, v := range values {
		if f, ok := v.(float64); ok {
			v = int64(f)
		}
		out = append(out, fmt.Sprint(v))
	}
	return out
}
