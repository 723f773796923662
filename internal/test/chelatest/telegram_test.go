package chelatest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

// telegramConf is the configuration of a bot on which the person 7 may write.
func telegramConf(root string) Config {
	return section("channels", fmt.Sprintf(`{"telegram": {"botToken": %q, "apiRoot": %q, "allowFrom": ["7"]}}`,
		telegramtest.Token, root))
}

func TestTelegram(t *testing.T) {
	t.Run("TG-04 a private message is answered in its chat after a typing indicator, and a repeated one is not answered again after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := telegramtest.New()
			root, hc := srv.Pipe()
			srv.Chat(7, "private")
			srv.Chat(8, "private")
			model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				s := llmtest.Say("re: " + r.Messages[len(r.Messages)-1].PlainText() + " <&>")
				s.Delay = 10 * time.Second
				return s
			})
			o := Options{Dir: t.TempDir(), HTTP: hc, Model: model, Config: telegramConf(root)}
			g := Start(t, o)
			ann := telegramtest.Person(7, "Ann")
			said := srv.Said(7, ann, "hello", nil)
			update := srv.Push(telegramtest.Object{"message": said})
			srv.Say(8, telegramtest.Person(8, "Bob"), "let me in", nil)
			time.Sleep(time.Minute)
			shows := func(want ...string) {
				t.Helper()
				if got := strings.Join(srv.Texts(7), "|"); got != strings.Join(want, "|") {
					t.Errorf("the chat shows %q, want %q", got, want)
				}
				if n := srv.Waiting(); n != 0 {
					t.Errorf("%d updates are not confirmed", n)
				}
			}
			shows("re: hello <&>")
			if got := srv.Texts(8); len(got) != 1 || !strings.Contains(got[0], "Your code: ") || len(model.Requests()) != 1 {
				t.Errorf("a stranger is answered with %q, %d requests", got, len(model.Requests()))
			}
			if n := len(srv.Menu()); n < 10 {
				t.Errorf("the menu has %d commands", n)
			}
			typed, html := 0, false
			for _, c := range srv.Calls("") {
				if fmt.Sprint(c.Params["chat_id"]) != "7" {
					continue
				}
				switch c.Method {
				case "sendChatAction":
					typed++
				case "sendMessage", "editMessageText":
					html = c.Params["parse_mode"] == "HTML"
					if typed == 0 {
						t.Errorf("%s before a typing indicator", c.Method)
					}
				}
			}
			if typed < 2 || !html {
				t.Errorf("%d typing indicators in 10 s, HTML: %v", typed, html)
			}
			g.Stop()
			srv.PushID(update, telegramtest.Object{"message": said})
			srv.Say(7, ann, "again", nil)
			g = Start(t, o)
			time.Sleep(time.Minute)
			shows("re: hello <&>", "re: again <&>")
			if n := len(model.Requests()); n != 2 {
				t.Errorf("%d requests, want 2", n)
			}
			g.Stop()
			hc.CloseIdleConnections()
			srv.Close()
		})
	})
	t.Run("TG-01 a refused token does not keep the gateway from starting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := telegramtest.New()
			root, hc := srv.Pipe()
			srv.Revoke()
			g := Start(t, Options{HTTP: hc, Model: echoing(), Config: telegramConf(root), Log: slog.New(slog.DiscardHandler)})
			time.Sleep(time.Minute)
			c := g.Client()
			if end := c.Ask("main", "hi"); end.Text != "re: hi" {
				t.Errorf("got %+v", end)
			}
			c.Close()
			if n := len(srv.Calls("getUpdates")); n != 0 {
				t.Errorf("%d polls", n)
			}
			g.Stop()
			srv.Close()
		})
	})
}

// TestTelegramApproval decides about a command with a button.
func TestTelegramApproval(t *testing.T) {
	for decision, want := range map[string]string{"allow-once": "done: hi", "deny": "not run: denied"} {
		t.Run("AP-17 the owner presses "+decision, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := telegramtest.New()
				root, hc := srv.Pipe()
				srv.Chat(7, "private")
				srv.Chat(8, "private")
				model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
					last := r.Messages[len(r.Messages)-1]
					if last.Role == llm.RoleTool {
						return llmtest.Say("done: " + strings.TrimSpace(last.PlainText()))
					}
					return llmtest.Call("call_1", "exec", `{"command": "echo hi > here.txt; echo hi"}`)
				})
				c := telegramConf(root)
				c["tools"] = json.RawMessage(`{"exec": {"mode": "ask"}}`)
				c["commands"] = json.RawMessage(`{"ownerAllowFrom": ["telegram:7"]}`)
				g := Start(t, Options{HTTP: hc, Model: model, Config: c})
				defer func() { g.Stop(); hc.CloseIdleConnections(); srv.Close() }()
				srv.Say(7, telegramtest.Person(7, "Ann"), "do it", nil)
				time.Sleep(time.Minute)
				shown := srv.Messages(7)
				if len(shown) == 0 || len(shown[len(shown)-1].Buttons) == 0 {
					t.Fatalf("the chat shows %+v", shown)
				}
				asked := shown[len(shown)-1]
				data := ""
				for _, b := range asked.Buttons[0] {
					if d := fmt.Sprint(b["callback_data"]); strings.HasSuffix(d, " "+decision) {
						data = d
					}
				}
				press := func(id string, who telegramtest.Object) {
					m := srv.Said(7, telegramtest.Object{"id": telegramtest.BotID, "is_bot": true}, asked.Text, nil)
					m["message_id"] = asked.ID
					srv.Push(telegramtest.Object{"callback_query": telegramtest.Object{"id": id, "from": who, "message": m,
						"data": data}})
					time.Sleep(time.Minute)
				}
				press("c1", telegramtest.Person(8, "Eve")) // may not decide
				if got := srv.Texts(7); strings.Contains(strings.Join(got, "\n"), "done:") {
					t.Errorf("after the press of somebody else the chat shows %q", got)
				}
				press("c2", telegramtest.Person(7, "Ann"))
				press("c3", telegramtest.Person(7, "Ann")) // twice
				got := strings.Join(srv.Texts(7), "\n")
				if strings.Count(got, "done:") != 1 || !strings.Contains(got, want) {
					t.Errorf("the chat shows %q, want %q", got, want)
				}
			})
		})
	}
}
