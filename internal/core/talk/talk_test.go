package talk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/speech"
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

// TestSpeech checks what talk changes of tts.
func TestSpeech(t *testing.T) {
	t.Parallel()
	const tts = `{"provider": "a", "maxTextLength": 7, "providers": {
		"a": {"baseUrl": "https://a", "apiKey": "env:A", "voice": "va", "model": "ma", "responseFormat": "opus"}, "p": {"command": "say", "outputFormat": "wav"}}}`
	for _, tt := range []struct{ name, talk, want string }{
		{"nothing", `{}`, "a https://a env:A va ma opus"},
		{"a voice, a model and a format", `{"providers": {"a": {"voiceId": "v2", "modelId": "m2", "outputFormat": "mp3_44100_128"}}}`, "a https://a env:A v2 m2 mp3"},
		{"another key", `{"providers": {"a": {"apiKey": "env:B"}}}`, "a https://a env:B va ma opus"},
		{"another address does not get the key", `{"providers": {"a": {"baseUrl": "https://b"}}}`, "a https://b  va ma opus"},
		{"another provider", `{"provider": "b", "providers": {"b": {"baseUrl": "https://b", "apiKey": "env:B"}}}`, "b https://b env:B   "},
		{"the format of a program stays", `{"provider": "p", "providers": {"p": {"outputFormat": "mp3"}}}`, "p     "},
	} {
		base, err := speech.Parse([]byte(tts), nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := talk.Parse([]byte(tt.talk))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(base)
		got := c.Speech(base)
		if after, _ := json.Marshal(base); string(after) != string(before) {
			t.Errorf("%s: tts itself changed", tt.name)
		}
		p := got.Providers[got.Provider]
		key := ""
		if !p.APIKey.IsZero() {
			key = p.APIKey.String()
		}
		if s := fmt.Sprint(got.Provider, " ", p.BaseURL, " ", key, " ", p.VoiceOf(), " ", p.ModelOf(), " ", p.Format); s != tt.want || got.MaxText != 7 {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
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
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || strings.Join(got, "|") != tt.want {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
}
