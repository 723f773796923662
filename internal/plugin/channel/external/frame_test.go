package external

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
)

// FuzzParse checks that no line of a program does harm, and that what is accepted is
// exactly one of a request, a notification and a response.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":"a","method":"message","params":{"id":"1","chat":{"id":"7"},"text":"x"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x","data":{"gone":true}}}`,
		`{"jsonrpc":"2.0","method":"state","params":{"connected":true}}`,
		`{}`, `{"jsonrpc":"2.0","id":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"data":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		fr, err := parse(line)
		if err != nil {
			return
		}
		if isResponse := fr.Method == ""; isResponse == (fr.Result == nil && fr.Error == nil) {
			t.Errorf("%q is accepted as %+v", line, fr)
		}
		if fr.Error != nil {
			_ = fr.Error.err("x")
		}
		again, err := fr.line()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, err := parse(again); err != nil {
			t.Errorf("%q becomes %q: %v", line, again, err)
		}
	})
}

// FuzzOutput checks that a stream of a program is handled in the same way however it is cut,
// and never ends in a panic.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("banner\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"), byte(3))
	f.Add([]byte("\n \n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"message\",\"params\":{\"id\":\"1\",\"chat\":{\"id\":\"7\"},\"text\":\"x\"}}\n{"), byte(1))
	f.Fuzz(func(t *testing.T, stream []byte, step byte) {
		whole := outcome(stream, len(stream)+1)
		if cut := outcome(stream, int(step%16)+1); cut != whole {
			t.Errorf("%q: %q in pieces, %q as a whole", stream, cut, whole)
		}
	})
}

// outcome writes a stream in pieces and returns what the gateway would answer.
func outcome(stream []byte, step int) string {
	b := &bridge{o: Options{Name: "box", Redact: func(s string) string { return s }},
		env: channel.Env{Log: slog.New(slog.DiscardHandler), Report: func(error) {}}}
	c := newConn(context.Background(), b)
	defer c.cancel(nil)
	o := &output{c: c}
	for len(stream) > 0 {
		n := min(step, len(stream))
		if _, err := o.Write(stream[:n]); err != nil {
			break
		}
		stream = stream[n:]
	}
	var out bytes.Buffer
	for _, p := range c.in.lines {
		out.Write(p.rest)
	}
	for len(c.queue) > 0 {
		m := <-c.queue
		out.WriteString(m.in.ID + "\n")
	}
	if err := context.Cause(c.ctx); err != nil {
		out.WriteString(err.Error())
	}
	return out.String()
}

func TestLine(t *testing.T) {
	t.Parallel()
	line, err := frame{ID: json.RawMessage("1"), Method: "send", Params: json.RawMessage(`{"a":"\n"}`)}.line()
	if want := `{"jsonrpc":"2.0","id":1,"method":"send","params":{"a":"\n"}}` + "\n"; err != nil || string(line) != want {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := (frame{Method: "x", Params: json.RawMessage(`"` + strings.Repeat("x", maxLine) + `"`)}).line(); err ==
		nil {
		t.Error("a line that is too long is written")
	}
}
