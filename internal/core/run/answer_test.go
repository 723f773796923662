package run_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/run"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	heartbeat := run.Answer{Tokens: []string{run.HeartbeatOK}, MaxAck: 10}
	skip := run.Answer{Tokens: []string{run.AnnounceSkip, run.ReplySkip}}
	for _, c := range []struct {
		a      run.Answer
		text   string
		silent bool
	}{
		{run.Answer{}, "NO_REPLY", true},
		{run.Answer{}, " no_reply\n", true},
		{run.Answer{}, "say NO_REPLY to be silent", false},
		{run.Answer{}, "", false},
		{run.Answer{}, "HEARTBEAT_OK", false},
		{heartbeat, "NO_REPLY", true},
		{heartbeat, "HEARTBEAT_OK", true},
		{heartbeat, "heartbeat_ok all well", true},
		{heartbeat, "All well. HEARTBEAT_OK", true},
		{heartbeat, "HEARTBEAT_OK " + strings.Repeat("长", 10), true},
		{heartbeat, "HEARTBEAT_OK " + strings.Repeat("长", 11), false},
		{heartbeat, "The disk is full. HEARTBEAT_OK", false},
		{skip, "ANNOUNCE_SKIP", true},
		{skip, "ANNOUNCE_SKIP done", false},
		{skip, "reply_skip\n", true},
		{skip, "The answer is REPLY_SKIP", false},
	} {
		if got := c.a.Silent(c.text); got != c.silent {
			t.Errorf("%+v: %q is silent: %t, want %t", c.a, c.text, got, c.silent)
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(c.text), " "); c.silent &&
			strings.HasPrefix(strings.Join(c.a.Tokens, "")+run.NoReply, strings.ToUpper(first)) && !c.a.MayBeSilent(first) {
			t.Errorf("%+v: MayBeSilent(%q) is false", c.a, first)
		}
	}
	if (run.Answer{}).MayBeSilent("Hello") || heartbeat.MayBeSilent("HEARTBEAT_OK "+strings.Repeat("x", 20)) {
		t.Error("MayBeSilent is true for an answer that cannot become silent")
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "",
		"hello":                            "hello",
		" hello ":                          " hello ",
		"HEARTBEAT_OK":                     "",
		"heartbeat_ok\n":                   "",
		"HEARTBEAT_OK HEARTBEAT_OK":        "",
		"HEARTBEAT_OK. The disk is full":   "The disk is full",
		"The disk is full\n\nHEARTBEAT_OK": "The disk is full",

		"HEARTBEAT_OK both HEARTBEAT_OK": "both",
		"not HEARTBEAT_OK at all":        "not HEARTBEAT_OK at all",
		"HEARTBEAT_OKAY then":            "HEARTBEAT_OKAY then",

		"NO_REPLY": "NO_REPLY",
	} {
		if got := run.Strip(text); got != want {
			t.Errorf("Strip(%q) = %q, want %q", text, got, want)
		}
	}
}
