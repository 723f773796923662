package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// appender is implemented by the frequent payloads. appendTo appends the same
// JSON as encoding/json, several times faster.
type appender interface{ appendTo(b []byte) []byte }

// appendJSON appends v as JSON without HTML escaping.
func appendJSON(b []byte, v any) ([]byte, error) {
	if a, ok := v.(appender); ok {
		return a.appendTo(b), nil
	}
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return buf.Bytes()[:buf.Len()-1], nil // without the trailing newline
}

// mustAppend appends v, whose type must always encode.
func mustAppend(b []byte, v any) []byte {
	b, err := appendJSON(b, v)
	if err != nil {
		panic(err)
	}
	return b
}

// object is a JSON object under construction.
type object []byte

// key appends the name of a property.
func (o *object) key(s string) {
	if b := *o; b[len(b)-1] != '{' {
		*o = append(b, ',')
	}
	*o = append(append(append(*o, '"'), s...), '"', ':')
}

func (o *object) text(name, s string) {
	o.key(name)
	*o = appendText(*o, s)
}

func (o *object) textIf(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) number(name string, n int64) {
	o.key(name)
	*o = strconv.AppendInt(*o, n, 10)
}

func (o *object) numberIf(name string, n int64) {
	if n != 0 {
		o.number(name, n)
	}
}

func (o *object) boolean(name string, v bool) {
	o.key(name)
	*o = strconv.AppendBool(*o, v)
}

func (o *object) trueIf(name string, v bool) {
	if v {
		o.boolean(name, v)
	}
}

func (o *object) value(name string, v any) {
	o.key(name)
	*o = mustAppend(*o, v)
}

func (o *object) end() []byte { return append(*o, '}') }

func (s ChatSent) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("runId", s.RunID)
	o.text("status", s.Status)
	return o.end()
}

func (a Agent) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("runId", a.RunID)
	o.text("sessionKey", a.SessionKey)
	o.textIf("sessionId", a.SessionID)
	o.textIf("agentId", a.AgentID)
	o.text("stream", a.Stream)
	o.key("data")
	o = append(o, a.Data...)
	o.number("seq", a.Seq)
	o.number("ts", int64(a.Time))
	o.boolean("isHeartbeat", a.Heartbeat)
	return o.end()
}

func (a Assistant) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("text", a.Text)
	o.text("delta", a.Delta)
	o.trueIf("replace", a.Replace)
	return o.end()
}

func (l Lifecycle) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("phase", l.Phase)
	o.numberIf("startedAt", int64(l.StartedAt))
	o.numberIf("endedAt", int64(l.EndedAt))
	o.textIf("provider", l.Provider)
	o.textIf("model", l.Model)
	o.textIf("stopReason", l.Stop)
	o.trueIf("aborted", l.Aborted)
	o.textIf("status", l.Status)
	o.textIf("error", l.Error)
	if l.Reply != nil {
		o.key("terminalReply")
		o = l.Reply.appendTo(o)
	}
	return o.end()
}

func (r *Reply) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("disposition", r.Disposition)
	o.textIf("text", r.Text)
	return o.end()
}

func (c Chat) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("runId", c.RunID)
	o.text("sessionKey", c.SessionKey)
	o.textIf("agentId", c.AgentID)
	o.number("seq", c.Seq)
	o.text("state", c.State)
	o.textIf("deltaText", c.Delta)
	o.trueIf("replace", c.Replace)
	if c.Message != nil {
		o.key("message")
		o = c.Message.appendTo(o)
	}
	o.textIf("stopReason", c.Stop)
	o.textIf("errorMessage", c.ErrorMessage)
	o.textIf("errorKind", c.ErrorKind)
	if c.ErrorDetail != nil {
		o.value("errorDetail", c.ErrorDetail)
	}
	return o.end()
}

func (m *Message) appendTo(b []byte) []byte {
	o := object(append(b, '{'))
	o.text("role", m.Role)
	o.key("content")
	o = m.Content.appendTo(o)
	o.number("timestamp", int64(m.Timestamp))
	o.textIf("idempotencyKey", m.IdempotencyKey)
	o.textIf("provider", m.Provider)
	o.textIf("model", m.Model)
	if m.Usage != nil {
		o.value("usage", m.Usage)
	}
	o.textIf("stopReason", m.StopReason)
	o.textIf("toolCallId", m.ToolCallID)
	o.textIf("toolName", m.ToolName)
	o.trueIf("isError", m.IsError)
	if len(m.Details) > 0 {
		o.value("details", m.Details)
	}
	if m.Abort != nil {
		o.value("openclawAbort", m.Abort)
	}
	if m.Meta != (MessageMeta{}) {
		o.value("__openclaw", m.Meta)
	}
	return o.end()
}

// appendTo has a fast path for content of one text part.
func (c Contents) appendTo(b []byte) []byte {
	if len(c) != 1 || c[0].Type != ContentText {
		return mustAppend(b, []Content(c))
	}
	o := object(append(b, '[', '{'))
	o.text("type", c[0].Type)
	o.textIf("text", c[0].Text)
	return append(o.end(), ']')
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0 // start of the part that is not copied yet
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if esc := escape(r, n); esc != "" {
			b = append(append(b, s[from:i]...), esc...)
			from = i + n
		}
		i += n
	}
	return append(append(b, s[from:]...), '"')
}

// escape returns the JSON escape of a character of n bytes; "" when the
// character needs none.
func escape(r rune, n int) string {
	const hex = "0123456789abcdef"
	switch {
	case r == '"':
		return `\"`
	case r == '\\':
		return `\\`
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r == '\b':
		return `\b`
	case r == '\f':
		return `\f`
	case r < ' ':
		return `\u00` + string([]byte{hex[r>>4], hex[r&15]})
	case r == utf8.RuneError && n == 1: // invalid UTF-8
		return `\ufffd`
	case r == '\u2028': // line separators of JavaScript
		return `\u2028`
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}
