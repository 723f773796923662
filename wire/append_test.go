package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzAppend checks that appendTo writes what encoding/json writes.
func FuzzAppend(f *testing.F) {
	f.Add("main", "Hello", int64(0), true, uint16(0))
	f.Add("a\"b\\c/d\n\t\r\b\f\x00\x1f\x7f<&>", "é世界\u2028\u2029\U0001f600\xff\xed\xa0\x80", int64(1795289955205), false, uint16(0xffff))
	f.Add("", "", int64(-1), true, uint16(0x5555))
	f.Fuzz(func(t *testing.T, a, b string, n int64, yes bool, which uint16) {
		for _, v := range appenders(a, b, n, yes, which) {
			var buf bytes.Buffer
			e := json.NewEncoder(&buf)
			e.SetEscapeHTML(false)
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
			want := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
			if got := v.appendTo([]byte("x")); string(got) != "x"+string(want) {
				t.Errorf("%T by appendTo\n%s, want\n%s", v, got[1:], want)
			}
		}
	})
}

// appenders returns the hand-encoded types; the bits of which select the
// optional fields that are set.
func appenders(a, b string, n int64, yes bool, which uint16) []appender {
	on := func(i int) bool { return which>>i&1 == 1 }
	text := func(i int) string {
		if on(i) {
			return b
		}
		return ""
	}
	data, _ := Encode(map[string]string{"k": a})
	m := Message{
		Role: a, Content: TextContent(b), Timestamp: Millis(n), IdempotencyKey: text(0), Provider: text(1), Model: text(2),
		StopReason: text(3), ToolCallID: text(4), ToolName: text(5), IsError: yes,
	}
	if on(6) {
		m.Content, m.Usage = append(m.Content, Content{Type: ContentThinking, Thinking: a}), &Usage{Input: n, Cost: &Cost{0.5}}
	}
	if on(7) {
		m.Content, m.Details, m.Abort = nil, data, &Abort{Aborted: yes, Origin: a}
	}
	if on(8) {
		m.Meta = MessageMeta{ID: a, Seq: n, Footer: b}
	}
	c := Chat{
		RunID: a, SessionKey: b, AgentID: text(9), Seq: n, State: a, Delta: text(10), Replace: yes, Stop: text(11),
		ErrorMessage: text(12), ErrorKind: text(13),
	}
	if on(14) {
		c.Message, c.ErrorDetail = &m, &ErrorDetail{Provider: a, Model: b}
	}
	l := Lifecycle{
		Phase: a, StartedAt: Millis(n), EndedAt: Millis(n), Provider: text(0), Model: text(1), Stop: text(2), Aborted: yes,
		Status: text(3), Error: text(4),
	}
	if on(5) {
		l.Reply = &Reply{Disposition: a, Text: text(6)}
	}
	return []appender{
		&m, c, l, ChatSent{RunID: a, Status: b}, Assistant{Text: a, Delta: b, Replace: yes},
		Agent{
			RunID: a, SessionKey: b, SessionID: text(7), AgentID: text(8), Stream: a, Data: data, Seq: n, Time: Millis(n), Heartbeat: yes,
		},
	}
}
