package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
	"github.com/chela-ai/chela/wire"
)

// writes returns a model that calls the tool message once for each text of a person, with
// the text as the arguments, and then gives an answer.
func writes(answer string) *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say(answer)
		}
		return llmtest.Call(fmt.Sprint("call_", n), "message", last.PlainText())
	})
}

// result returns what the tool returned last.
func result(model *llmtest.Script) string {
	all := model.Requests()
	list := all[len(all)-1].Messages
	return list[len(list)-1].PlainText()
}

// withTelegram runs f with a gateway that has a bot. again restarts the gateway.
func withTelegram(t *testing.T, model *llmtest.Script,
	f func(t *testing.T, srv *telegramtest.Server, g *Gateway, again func() *Gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := telegramtest.New()
		root, hc := srv.Pipe()
		srv.Chat(7, "private")
		srv.Chat(8, "private")
		o := Options{Dir: t.TempDir(), HTTP: hc, Model: model, Config: telegramConf(root)}
		g := Start(t, o)
		time.Sleep(time.Second)
		defer func() {
			g.Stop()
			hc.CloseIdleConnections()
			srv.Close()
		}()
		f(t, srv, g, func() *Gateway {
			g.Stop()
			g = Start(t, o)
			time.Sleep(time.Second)
			return g
		})
	})
}

func TestMessageActions(t *testing.T) {
	ann := telegramtest.Person(7, "Ann")
	model := writes("done")
	t.Run("MS-01 LOOP-13 a message to the current chat is sent once, with its id, and is not repeated as the answer",
		func(t *testing.T) {
			withTelegram(t, model, func(t *testing.T, srv *telegramtest.Server, _ *Gateway, _ func() *Gateway) {
				srv.Say(7, ann, `{"action": "send", "message": "done"}`, nil)
				time.Sleep(time.Minute)
				if got := srv.Texts(7); len(got) != 1 || got[0] != "done" || len(srv.Calls("sendMessage")) != 1 {
					t.Errorf("the chat shows %q, %d calls", got, len(srv.Calls("sendMessage")))
				}
				id := int64(0)
				for _, m := range srv.Messages(7) {
					if m.Own {
						id = m.ID
					}
				}
				if text := result(model); !strings.Contains(text, fmt.Sprintf("Sent to telegram:7. Message id %d.", id)) {
					t.Errorf("the tool returned %q", text)
				}
			})
		})
	t.Run("MS-07 MS-04 the model reacts to the message that it answers, asks with buttons, sends a poll",
		func(t *testing.T) {
			withTelegram(t, model, func(t *testing.T, srv *telegramtest.Server, _ *Gateway, _ func() *Gateway) {
				said := srv.Said(7, ann, `{"action": "react", "emoji": "👀"}`, nil)
				srv.Push(telegramtest.Object{"message": said})
				time.Sleep(time.Minute)
				srv.Say(7, ann, fmt.Sprintf(`{"action": "react", "messageId": "%v", "emoji": ""}`, said["message_id"]), nil)
				time.Sleep(time.Minute)
				var got []string
				for _, c := range srv.Calls("setMessageReaction") {
					got = append(got, fmt.Sprint(c.Params["message_id"], c.Params["reaction"]))
				}
				if want := fmt.Sprintf("%v[map[emoji:👀 type:emoji]]|%[1]v[]", said["message_id"]); strings.Join(got, "|") != want {
					t.Errorf("reactions %q, want %q; the tool returned %q", got, want, result(model))
				}
				srv.Say(7, ann,
					`{"to": "8", "message": "Sure?", "buttons": [[{"label": "Yes", "data": "yes", "style": "success"}]]}`, nil)
				time.Sleep(time.Minute)
				if got := srv.Messages(8); len(got) != 1 || got[0].Text != "Sure?" || len(got[0].Buttons) != 1 ||
					got[0].Buttons[0][0]["callback_data"] != "yes" {
					t.Fatalf("the other chat shows %+v", got)
				}
				srv.Say(7, ann, `{"action": "poll", "to": "8", "question": "Tea?", "options": ["yes", "no"]}`, nil)
				time.Sleep(time.Minute)
				if got := srv.Messages(8); len(got) != 2 || got[1].Poll == nil {
					t.Errorf("the other chat shows %+v; the tool returned %q", got, result(model))
				}
			})
		})
	t.Run("CH-22 the model reads what Telegram can do, and nothing else", func(t *testing.T) {
		withTelegram(t, model, func(t *testing.T, srv *telegramtest.Server, _ *Gateway, _ func() *Gateway) {
			srv.Say(7, ann, `{"message": "hi"}`, nil)
			time.Sleep(time.Minute)
			all := model.Requests()
			for _, s := range all[len(all)-1].Tools {
				if s.Name != "message" {
					continue
				}
				if !strings.Contains(s.Description,
					"send (default), broadcast, poll, react, edit, delete, pin, unpin, thread-create.") ||
					strings.Contains(string(s.Schema), `"query"`) {
					t.Errorf("%s\n%s", s.Description, s.Schema)
				}
				return
			}
			t.Error("there is no tool message")
		})
	})
	t.Run("one key sends once, also after a restart", func(t *testing.T) {
		withTelegram(t, model, func(t *testing.T, srv *telegramtest.Server, g *Gateway, again func() *Gateway) {
			first := map[string]string{}
			for round := range 2 {
				c := g.Client()
				for _, call := range []struct {
					method string
					params any
				}{
					{wire.MethodSend, wire.Send{To: "telegram:8", Message: "hello", Key: "a"}},
					{wire.MethodSend, wire.Send{To: "telegram:8", Message: "hello", Key: "a"}},
					{wire.MethodSend, wire.Send{To: "telegram:8", Message: strings.Repeat("word ", 1000), Key: "long",
						Buffer: []byte("a note"), Filename: "note.txt"}},
					{wire.MethodPoll, wire.Poll{To: "8", Channel: "tg", Question: "Tea?", Options: []string{"yes", "no"}, Key: "b"}},
					{wire.MethodPoll, wire.Poll{To: "8", Channel: "tg", Question: "Tea?", Options: []string{"yes", "no"}, Key: "b"}},
					{wire.MethodMessageAction, wire.MessageAction{Action: "broadcast",
						Params: json.RawMessage(`{"targets": ["telegram:8", "telegram:7"], "message": "all"}`), Key: "c"}},
				} {
					var out wire.MessageResult
					if err := c.Call(t.Context(), call.method, call.params, &out); err != nil || !out.OK {
						t.Fatalf("round %d, %s: %+v %v", round, call.method, out, err)
					}
					b, _ := json.Marshal(out)
					key := call.method + out.RunID
					if first[key] == "" {
						first[key] = string(b)
					}
					if first[key] != string(b) {
						t.Errorf("%s: first %s, then %s", call.method, first[key], b)
					}
				}
				c.Close()
				if round == 0 {
					g = again()
				}
			}
			// The long text is two messages, and its file one of its own.
			if n := len(srv.Messages(8)); n != 6 || len(srv.Messages(7)) != 1 {
				t.Errorf("the chat shows %d messages: %q; the other one %q", n, srv.Texts(8), srv.Texts(7))
			}
		})
	})
	t.Run("a client changes a message, and learns what is wrong", func(t *testing.T) {
		withTelegram(t, model, func(t *testing.T, srv *telegramtest.Server, g *Gateway, _ func() *Gateway) {
			c := g.Client()
			defer c.Close()
			act := func(action, params string) (out wire.MessageResult, err error) {
				err = c.Call(t.Context(), wire.MethodMessageAction,
					wire.MessageAction{Channel: "telegram", Action: action, Params: json.RawMessage(params)}, &out)
				return out, err
			}
			sent, err := act("send",
				`{"target": "Ann", "to": "8", "message": "one", "content": "", "silent": false, "media": []}`)
			if err != nil || sent.MessageID == "" {
				t.Fatalf("%+v %v", sent, err)
			}
			for _, a := range []struct{ action, params string }{
				{"edit", `{"to": "8", "messageId": "` + sent.MessageID + `", "message": "two"}`},
				{"pin", `{"to": "8", "messageId": "` + sent.MessageID + `"}`},
				{"react", `{"to": "8", "messageId": "` + sent.MessageID + `", "emoji": "👍"}`},
			} {
				if out, err := act(a.action, a.params); err != nil || out.Status != wire.MessageDone {
					t.Errorf("%s: %+v %v", a.action, out, err)
				}
			}
			if got := srv.Messages(8); len(got) != 1 || got[0].Text != "two" || !got[0].Pinned || got[0].Reaction != "👍" {
				t.Errorf("the chat shows %+v", got)
			}
			if out, err := act("unsend", `{"to": "8", "messageId": "`+sent.MessageID+`"}`); err != nil ||
				len(srv.Messages(8)) != 0 {
				t.Errorf("%+v %v", out, err)
			}
			for params, want := range map[string]string{
				`{"to": "8", "messageId": "1", "emoji": "👍"}`: "message 1 of telegram:8 does not exist",
				`{"to": "8"}`:                                   "messageId is missing",
				`{"to": "irc:8", "messageId": "1"}`:             "is on irc, but the channel is telegram",
				`{"to": "8", "messageId": "1", "fromMe": true}`: `unknown field "fromMe"`,
				`{"to": "agent:main:main", "channel": "", "messageId": "1", "emoji": "👍"}`: "not the number of a chat",
				`{"to": "8", "messageId": "1", "emoji": "👍", "kind": "x"}`:                 `kind "x": want user, group or channel`,
			} {
				if out, err := act("react", params); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %+v %v, want %q", params, out, err, want)
				}
			}
			var out wire.MessageResult
			if err := c.Call(t.Context(), wire.MethodSend, wire.Send{To: "agent:main:main", Message: "x", Key: "k"},
				&out); err == nil || !strings.Contains(err.Error(), "clients read local sessions") {
				t.Errorf("%+v %v", out, err)
			}
			if err := c.Call(t.Context(), wire.MethodSend, wire.Send{To: "8", Message: "x", MediaURL: "/etc/passwd", Key: "k"},
				&out); err == nil || !strings.Contains(err.Error(), "reads no files and addresses for clients") {
				t.Errorf("%+v %v", out, err)
			}
		})
	})
}
