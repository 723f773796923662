package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/session"
)

func TestTitleOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		" fix  the\ttests \nnow":    "fix the tests",
		strings.Repeat("word ", 30): strings.TrimSpace(strings.Repeat("word ", 12)) + "…",
		strings.Repeat("长", 100):    strings.Repeat("长", 60) + "…",
		"look at http://me:open-sesame-1@127.0.0.1/?token=open-sesame-2&day=3": "look at http://[redacted]@127.0.0.1/?token=[redacted]&day=3",
	} {
		if got := session.TitleOf(in); got != want {
			t.Errorf("TitleOf(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestImportedTitle reads messages as OpenClaw stores them.
func TestImportedTitle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said []string // by the user
		want string
	}{
		"a plain message":         {[]string{"plan a trip\nto Rome", "second"}, "plan a trip"},
		"a message with its time": {[]string{"[Fri 2026-01-02 03:04 UTC] plan a trip"}, "plan a trip"},
		"a message of a chat":     {[]string{"[Telegram Ann id:7 +2m 2026-01-02 03:04 UTC] plan a trip"}, "plan a trip"},
		"an own word in brackets": {[]string{"[urgent] plan a trip"}, "[urgent] plan a trip"},
		"context in an old form":  {[]string{"Conversation info (untrusted metadata):\n```json\n{\"a\": 1}\n```\n\nSender (untrusted metadata):\n```json\n{}\n```\n\nplan a trip"}, "plan a trip"},
		"context in the new form": {
			[]string{"Sender: ⟦openclaw:ctx⟧\n```json\n{\"name\": \"Ann\"}\n```\n[Fri 2026-01-02 03:04 UTC] plan a trip"},
			"plan a trip"},
		"context in plain lines": {[]string{"Thread: ⟦openclaw:ctx⟧\nfirst\nsecond\n\nplan a trip"}, "plan a trip"},
		"events before a message": {
			[]string{"System: [2026-01-02 03:04:05] Node connected\nSystem: [2026-01-02 03:04:06] again\n\nplan a trip"},
			"plan a trip"},
		"only context": {[]string{"Sender: ⟦openclaw:ctx⟧\n```json\n{}", "plan a trip"}, "plan a trip"},
		"the greeting of a reset": {
			[]string{"A new session was started via /new or /reset. Execute your Session Startup sequence now.", "plan a trip"},
			"plan a trip"},
		"no message of the person": {nil, ""},
	} {
		lines := []string{`{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}`,
			`{"type":"custom_message","id":"0","content":"not typed"}`,
			`{"type":"message","id":"1","message":{"role":"assistant","content":"hello"}}`}
		for _, s := range c.said {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, `{"type":"message","message":{"role":"user","content":`+string(text)+`}}`)
		}
		got, err := session.Import(strings.NewReader(strings.Join(lines, "\n")))
		if err != nil || got.Title != c.want {
			t.Errorf("%s: title %q (%v), want %q", name, got.Title, err, c.want)
		}
	}
}
