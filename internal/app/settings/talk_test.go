package settings_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/talk"
)

// TestTalkSpeech checks what talk changes of tts.
func TestTalkSpeech(t *testing.T) {
	t.Parallel()
	const tts = `{"provider": "a", "maxTextLength": 7, "providers": {
		"a": {"baseUrl": "https://a", "apiKey": "env:A", "voice": "va", "model": "ma", "responseFormat": "opus"}, "p": {"command": "say", "outputFormat": "wav"}}}`
	for _, tt := range []struct{ name, talk, want string }{
		{"nothing", `{}`, "a https://a env:A va ma opus"},
		{"a voice, a model and a format",
			`{"providers": {"a": {"voiceId": "v2", "modelId": "m2", "outputFormat": "mp3_44100_128"}}}`,
			"a https://a env:A v2 m2 mp3"},
		{"another key", `{"providers": {"a": {"apiKey": "env:B"}}}`, "a https://a env:B va ma opus"},
		{"another address does not get the key", `{"providers": {"a": {"baseUrl": "https://b"}}}`, "a https://b  va ma opus"},
		{"another provider", `{"provider": "b", "providers": {"b": {"baseUrl": "https://b", "apiKey": "env:B"}}}`,
			"b https://b env:B   "},
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
		o := settings.Settings{Speech: base, Talk: c}
		got := o.TalkSpeech()
		if after, _ := json.Marshal(base); string(after) != string(before) {
			t.Errorf("%s: tts itself changed", tt.name)
		}
		p := got.Providers[got.Provider]
		key := ""
		if !p.APIKey.IsZero() {
			key = p.APIKey.String()
		}
		if s := fmt.Sprint(got.Provider, " ", p.BaseURL, " ", key, " ", p.VoiceOf(), " ", p.ModelOf(), " ", p.Format); s !=
			tt.want || got.MaxText != 7 {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
}
