package matrix

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// FuzzEvent converts events to messages.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"type":"m.room.message","event_id":"$1","sender":"@a:b","content":{"msgtype":"m.text","body":"Chela: x","m.mentions":{"user_ids":["@bot:x"]}}}`,
		`{"type":"m.room.message","event_id":"$1","sender":"@a:b","content":{"msgtype":"m.image","body":"x","url":"mxc://a/b","info":{"size":1e300}}}`,
		`{"type":"m.room.message","event_id":"$1","sender":"@a:b","content":{"msgtype":"m.text","body":"> <@a:b> x\n> y\n\nz\u0130","m.relates_to":{"m.in_reply_to":{"event_id":"$0"}}}}`,
		`{"type":"m.room.message","content":{"msgtype":"m.text","body":"*","m.new_content":{"msgtype":"m.emote","body":"@bot"},"m.relates_to":{"rel_type":"m.replace"}}}`,
		`{"type":"m.sticker"}`, `{"type":"m.poll.start","content":[]}`,
		`{"state_key":"@bot:x","type":"m.room.member","content":{"membership":"join"}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var e event
		if json.Unmarshal([]byte(s), &e) != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b := &bot{
			env:   channel.Env{Log: slog.New(slog.DiscardHandler)},
			me:    "@bot:x",
			shown: "Chela",
			state: &state{Direct: map[string]string{}},
			rooms: map[string]*room{"!r": {names: map[string]string{}, other: "@a:b"}},
		}
		b.noteState("!other", e)
		_ = e.joins("@bot:x")
		_ = e.key()
		c := e.content()
		c.Relates.ReplyTo.ID = ""
		e.Content, _ = json.Marshal(c)
		in, ok, err := b.inbound(ctx, "!r", e)
		if err == nil && ok && (in.Address.Peer.Kind != chela.Direct || in.Text == "" && len(in.Media) == 0) {
			t.Errorf("%s: %+v", s, in)
		}
		if text, q := unquote(c.Body); len(text) > len(c.Body) || len(q.Text) > len(c.Body) {
			t.Errorf("unquote(%q) = %q, %+v", c.Body, text, q)
		}
		b.mentioned(c)
	})
}
