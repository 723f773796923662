package signal

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// FuzzEvent converts events to messages.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"account":"+491700000000","envelope":{"source":"+491701111111","sourceUuid":"AAAAAAAA-aaaa-4aaa-8aaa-aaaaaaaaaaaa","sourceName":"Ann","timestamp":5,"dataMessage":{"timestamp":5,"message":"\ufffc hi \ufffc","mentions":[{"number":"+491700000000","start":0,"length":1},{"uuid":"x","start":5,"length":1}],"groupInfo":{"groupId":"dGVhbXRlYW10ZWFtdGVhbXRlYW10ZWFtdGVhbXRlYW0=","groupName":"T"}}}}`,
		`{"envelope":{"sourceNumber":"+4930","timestamp":5,"editMessage":{"targetSentTimestamp":4,"dataMessage":{"timestamp":5,"message":"😀","quote":{"id":3,"author":"+491700000000","text":"\ufffc","mentions":[{"name":"+1","start":-9223372036854775808,"length":9223372036854775807}],"attachments":[{}]}}}}}`,
		`{"envelope":{"source":"a:b","timestamp":9007199254740992,"dataMessage":{"message":"x"}}}`,
		`{"envelope":{"source":"+1","timestamp":1,"callMessage":{"offerMessage":{}}}}`,
		`{"envelope":{"source":"+1","timestamp":1,"dataMessage":{"attachments":[{"id":"a b"},{"id":"a","size":-1,"filename":"/../x"}],"sticker":{},"contacts":[{}],"pollCreate":{"question":" "},"payment":{}}}}`,
		`{"exception":{"type":"X","message":"y"}}`, `{"envelope":null}`, `[]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var e event
		if json.Unmarshal([]byte(s), &e) != nil || e.Envelope == nil {
			return
		}
		env := channel.Env{Log: slog.New(slog.DiscardHandler), Trusted: func(...string) *http.Client { return nil }}
		c, err := parse(env, "default", []byte(`{"account": "+491700000000", "httpUrl": "http://x"}`))
		if err != nil {
			t.Fatal(err)
		}
		b := newBot(env, c, "default", nil)
		b.problem(&e, "")
		in, ok := b.inbound(e.Envelope)
		if !ok {
			return
		}
		sent, author, valid := parseID(in.ID)
		switch {
		case in.Text == "" && len(in.Media) == 0, in.Address.Peer.ID == "", in.Sender.ID == "", in.Sender.ID == c.Account:
			t.Errorf("%s: %+v", s, in)
		case !in.Edited && (!valid || sent != in.Time.UnixMilli() || author != in.Sender.ID):
			t.Errorf("%s: id %q of %+v", s, in.ID, in)
		case in.Address.Peer.Kind == chela.Direct && in.Address.Peer.ID != in.Sender.ID:
			t.Errorf("%s: chat %+v of %+v", s, in.Address, in.Sender)
		case !utf8.ValidString(in.Text) || !utf8.ValidString(in.Quote.Text) || len(in.Sender.Name) > maxName+
			10 && in.Sender.Name != in.Sender.ID:
			t.Errorf("%s: texts of %+v", s, in)
		}
		for _, m := range in.Media {
			if m.Source == "" && m.Lost == "" || m.Type == "" || m.Source != "" && strings.Count(m.Source, " ") != 2 {
				t.Errorf("%s: attachment %+v", s, m)
			}
		}
	})
}
