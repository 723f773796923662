package browser

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   wire.BrowserRequest
		want string // an error, if it is no JSON
	}{
		{wire.BrowserRequest{Method: "GET", Path: "/"}, `{"action":"status"}`},
		{wire.BrowserRequest{Method: "GET", Path: "/", Query: map[string]string{"profile": "work"}},
			`{"action":"status","profile":"work"}`},
		{wire.BrowserRequest{Method: "POST", Path: "/start", Query: map[string]string{"headless": "true"}},
			`{"action":"start","headless":true}`},
		{wire.BrowserRequest{Method: "post", Path: "tabs/open", Body: json.RawMessage(`{"url":"https://a.example"}`)},
			`{"action":"open","url":"https://a.example"}`},
		{wire.BrowserRequest{Method: "GET", Path: "/snapshot", Query: map[string]string{"format": "ai", "limit": "25"}},
			`{"action":"snapshot","limit":25,"snapshotFormat":"ai"}`},
		{wire.BrowserRequest{Method: "POST", Path: "/act",
			Body: json.RawMessage(`{"kind":"click","ref":"e1","targetId":null}`), TimeoutMs: 5000},
			`{"action":"act","kind":"click","ref":"e1","timeoutMs":5000}`},
		{wire.BrowserRequest{Method: "DELETE", Path: "/tabs/a%20b"}, `{"action":"close","targetId":"a b"}`},
		{wire.BrowserRequest{Method: "POST", Path: "/tool", Body: json.RawMessage(`{"action":"tabs"}`)}, `{"action":"tabs"}`},
		{wire.BrowserRequest{Method: "POST", Path: "/tool", Body: json.RawMessage(`[]`)}, "must be an object"},
		{wire.BrowserRequest{Method: "POST", Path: "/cookies/set"}, "not supported"},
		{wire.BrowserRequest{Method: "DELETE", Path: "/tabs/%zz"}, "at /path"},
	} {
		got, err := arguments(tt.in)
		text := ""
		if err != nil {
			text = err.Error()
		} else if raw, err := json.Marshal(got); err == nil {
			text = string(raw)
		}
		if text != tt.want && (err == nil || !strings.Contains(text, tt.want)) {
			t.Errorf("%+v: %s, want %s", tt.in, text, tt.want)
		}
	}
}
