package chatjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/chatjson"
)

var account = chela.Address{Channel: "box", Account: "work"}

func source(m chatjson.Media) (string, error) {
	if m.Source == "" {
		return "", errors.New("neither data nor source")
	}
	return m.Source, nil
}

func TestInbound(t *testing.T) {
	t.Parallel()
	const text = `{"id": "17", "chat": {"id": "42", "kind": "group", "name": "Friends\u0007"}, "thread": "t", "sender": {"id": "7", "name": "Ann", "bot": true},
		"text": "hello", "media": [{"name": "a.txt", "type": "text/plain", "data": "aGk="}, {"type": "image/png", "source": "file-1", "bytes": 9}],
		"replyTo": "16", "quote": {"sender": {"id": "8"}, "text": "hi"}, "forwarded": "Bob", "mentioned": true, "time": "2026-01-02T03:04:05Z", "unknown": 1}`
	var m chatjson.Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	got, err := m.Inbound(account, source)
	if err != nil {
		t.Fatal(err)
	}
	want := chela.Inbound{
		ID:      "17",
		Address: chela.Address{Channel: "box", Account: "work", Peer: chela.Peer{Kind: chela.Group, ID: "42"}, Thread: "t"},
		Sender:  chela.Sender{ID: "7", Name: "Ann", Bot: true},
		Text:    "hello",
		Media: []chela.Media{{Name: "a.txt", Type: "text/plain", Data: []byte("hi")},
			{Type: "image/png", Source: "file-1", Bytes: 9}},
		ReplyTo:   "16",
		Quote:     chela.Quote{Sender: chela.Sender{ID: "8"}, Text: "hi"},
		Forwarded: "Bob",
		Mentioned: true,
		Group:     "Friends",
		Time:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInboundShort(t *testing.T) {
	t.Parallel()
	m := chatjson.Message{ID: "1", Chat: chatjson.Chat{ID: "7", Name: "Ann"}, Text: "x"}
	got, err := m.Inbound(account, source)
	if err != nil || got.Address.Peer != (chela.Peer{Kind: chela.Direct, ID: "7"}) || got.Sender.ID != "7" ||
		got.Group != "" || got.Time.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	m = chatjson.Message{ID: "1", Chat: chatjson.Chat{ID: "7"}, Text: "y", Edited: true, Time: time.UnixMilli(5)}
	if got, err = m.Inbound(account, source); err != nil || got.ID != "1:edit:5" || !got.Edited {
		t.Errorf("an edit: %+v, %v", got, err)
	}
}

func TestInboundRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		change func(*chatjson.Message)
		want   string
	}{
		"no id":   {func(m *chatjson.Message) { m.ID = "" }, "id is missing"},
		"no chat": {func(m *chatjson.Message) { m.Chat.ID = "" }, "chat.id is missing"},
		"no sender": {func(m *chatjson.Message) { m.Chat.Kind, m.Sender.ID = chela.Group, "" },
			"sender.id is missing"},
		"long id":           {func(m *chatjson.Message) { m.ID = long }, "id has more than 256 bytes"},
		"long thread":       {func(m *chatjson.Message) { m.Thread = long }, "thread has more"},
		"line break":        {func(m *chatjson.Message) { m.Sender.ID = "a\nb" }, "sender.id has a control character"},
		"unknown kind":      {func(m *chatjson.Message) { m.Chat.Kind, m.Sender.ID = "dm", "7" }, `chat.kind is "dm"`},
		"empty":             {func(m *chatjson.Message) { m.Text = "" }, "neither text nor media"},
		"edit without time": {func(m *chatjson.Message) { m.Edited = true }, "edited without the time"},
		"year 1": {func(m *chatjson.Message) { m.Time = time.Date(1, 2, 3, 4, 5, 6, 7, time.UTC) },
			"out of range"},
		"empty attachment": {func(m *chatjson.Message) { m.Media = []chatjson.Media{{Name: "x"}} },
			"media 0: neither data nor source"},
		"many attachments": {func(m *chatjson.Message) { m.Media = make([]chatjson.Media, 17) },
			"more than 16 attachments"},
		"long source": {func(m *chatjson.Message) { m.Media = []chatjson.Media{{Source: strings.Repeat("x", 5000)}} },
			"too long"},
		"long quoted sender": {func(m *chatjson.Message) { m.Quote.Sender.ID = long }, "quote.sender.id"},
	} {
		m := chatjson.Message{ID: "1", Chat: chatjson.Chat{ID: "7"}, Text: "x"}
		tt.change(&m)
		if _, err := m.Inbound(account, source); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestPart(t *testing.T) {
	t.Parallel()
	a := chela.Address{Channel: "box", Account: "work", Peer: chela.Peer{Kind: chela.Group, ID: "42"}, Thread: "t"}
	p := channel.Part{
		Key:     "k",
		Address: a,
		ReplyTo: "1",
		Text:    "x",
		Media:   []chela.Media{{Name: "a", Type: "text/plain", Data: []byte("hi")}},
		Buttons: [][]channel.Button{{{Label: "Yes", Data: "/yes", Style: channel.Primary}}},
	}
	got, err := json.Marshal(chatjson.PartOf(p))
	const want = `{"key":"k","chat":{"id":"42","kind":"group"},"thread":"t","replyTo":"1","text":"x","media":[{"name":"a","type":"text/plain","data":"aGk="}],` +
		`"buttons":[[{"label":"Yes","data":"/yes","style":"primary"}]]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if n := chatjson.MediaBytes(p); n != 2 {
		t.Errorf("%d bytes", n)
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "a\n", strings.Repeat("x", 257)} {
		if r, err := (chatjson.Receipt{ID: id}).Receipt(); err == nil {
			t.Errorf("%q: %+v", id, r)
		}
	}
	if r, err := (chatjson.Receipt{ID: "5"}).Receipt(); err != nil || r.ID != "5" || r.Time.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
}
