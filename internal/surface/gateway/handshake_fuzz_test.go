package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
)

// FuzzHandshake checks that only a valid connect as the first frame is
// accepted, that nothing is executed for other clients, and that their
// connection is closed.
func FuzzHandshake(f *testing.F) {
	for _, seed := range []string{"c", "cce", "ec", "ge", "b", "xc", "ceeg", "oc", "nc", "cbx", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, order string) {
		if len(order) > 12 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) { handshakes(t, order) })
	})
}

func handshakes(t *testing.T, order string) {
	frames := map[byte]string{
		'c': connectFrame(t, ""),                                             // valid
		'b': connectFrame(t, `{"minProtocol": 9, "maxProtocol": 9}`),         // unsupported version
		'o': connectFrame(t, `{"role": "owner"}`),                            // unknown role
		'e': `{"type":"req","id":"e","method":"echo","params":{"text":"x"}}`, // another method
		'x': `{"type":"res","id":"e","ok":true}`,                             // not a request
		'n': `{"type":"req","id":"","method":"connect"}`,                     // no id
	}
	tb := newTable(t, nil)
	p := tb.dial("a")
	first := ""
	for i := range len(order) {
		text, known := frames[order[i]]
		if !known {
			text = order[i:] // not JSON
		}
		if i == 0 {
			first = text
		}
		if p.ws.Write(context.Background(), websocket.MessageText, []byte(text)) != nil {
			break // connection closed
		}
		synctest.Wait()
	}
	synctest.Wait()
	heard := strings.Join(p.take(), "\n")
	in := strings.Contains(heard, `"type":"hello-ok"`)
	if want := first == frames['c']; in != want {
		t.Fatalf("%q: accepted: %v, want %v\n%s", order, in, want, heard)
	}
	if in {
		return
	}
	if strings.Contains(heard, `"ok":true`) {
		t.Fatalf("%q: a request was executed before the hello\n%s", order, heard)
	}
	if first != "" && !strings.Contains(heard, "! ") {
		t.Fatalf("%q: the connection is still open\n%s", order, heard)
	}
}
