package talk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/talk"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ raw, want, err string }{
		{``, ``, ""},
		{`{"provider": "a", "providers": {"a": {"voiceId": "v", "outputFormat": "pcm_44100"}}}`, "a a=v", ""},
		{`{"voiceId": "v", "apiKey": "k"}`, "elevenlabs elevenlabs=v", ""},                      // an older form
		{`{"provider": "a", "voiceId": "v"}`, "a a=v", ""},                                      // likewise
		{`{"voiceId": "old", "providers": {"b": {"voiceId": "v"}}}`, " b=v", ""},                // both: the newer one
		{`{"realtime": {"provider": "x"}, "silenceTimeoutMs": 700}`, "", ""},                    // kept for others
		{`{"silenceTimeoutMs": -1}`, "", "talk.silenceTimeoutMs: -1 is not between"},            //
		{`{"silenceTimeoutMs": 60001}`, "", "talk.silenceTimeoutMs: 60001 is not between"},      //
		{`{"providers": {"a": {"voiceAliases": ["x"]}}}`, "", "configuration, talk: json: can"}, //
	} {
		c, err := talk.Parse([]byte(tt.raw))
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.raw, err)
			continue
		}
		got := c.Provider
		for id, p := range c.Providers {
			got += " " + id + "=" + p.Voice
		}
		if err == nil && got != tt.want {
			t.Errorf("%s: %q, want %q", tt.raw, got, tt.want)
		}
	}
}

func TestVoiceOf(t *testing.T) {
	t.Parallel()
	c, _ := talk.Parse([]byte(`{"providers": {"a": {"voiceAliases": {"Clara ": "v9"}}}}`))
	for name, want := range map[string]string{"clara": "v9", " CLARA": "v9", "v1": "v1", "": ""} {
		if got := c.VoiceOf("a", name); got != want {
			t.Errorf("voice %q: %q, want %q", name, got, want)
		}
	}
}

func TestWakeWords(t *testing.T) {
	t.Parallel()
	many := make([]string, talk.MaxWakeWords+1)
	for i := range many {
		many[i] = fmt.Sprint("word ", i)
	}
	for _, tt := range []struct {
		in        []string
		want, err string
	}{
		{nil, "chela|openclaw|computer", ""},
		{[]string{" ", ""}, "chela|openclaw|computer", ""},
		{[]string{" hey   you ", "Hey you", "小爱"}, "hey you|小爱", ""},
		{[]string{strings.Repeat("ä", talk.MaxWakeWord)}, strings.Repeat("ä", talk.MaxWakeWord), ""},
		{[]string{strings.Repeat("ä", talk.MaxWakeWord+1)}, "", "more than 64 characters"},
		{many, "", "more than 32 wake words"},
		{many[1:], strings.Join(many[1:], "|"), ""},
		{[]string{"a\x07"}, "", "nobody says"},
		{[]string{"\xff"}, "", "nobody says"},
	} {
		got, err := talk.WakeWords(tt.in)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) ||
			strings.Join(got, "|") != tt.want {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
}
