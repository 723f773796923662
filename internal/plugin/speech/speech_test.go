package speech

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// handler answers requests without a network.
type handler http.HandlerFunc

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, r)
	return w.Result(), r.Context().Err()
}

// open returns a speaker with a section tts whose services are answered by f. The provider
// openai of models has the key sk-models.
func open(t *testing.T, tts string, env map[string]string, f http.HandlerFunc) speech.Speaker {
	t.Helper()
	c, err := speech.Parse([]byte(tts), nil)
	if err != nil {
		t.Fatal(err)
	}
	hc := &http.Client{Transport: handler(f)}
	return New(Options{
		Log: slog.New(slog.DiscardHandler), Config: c, Getenv: func(name string) string { return env[name] }, HTTP: hc,
		Programs: Programs{Programs: sandbox.Programs{Broker: host.New(""), Environ: []string{"PATH=" + env["PATH"]},
			Dir: filepath.Join(t.TempDir(), "work")}},
		Endpoint: func(id string) (dialect.Options, error) {
			if id == "openai" && env["OPENAI_API_KEY"] != "" {
				return dialect.Options{Key: secret.New(env["OPENAI_API_KEY"]), HTTP: hc}, nil
			}
			return dialect.Options{}, errors.New("not configured")
		},
	})
}

func ids(s speech.Speaker) (out []string) {
	for _, p := range s.Providers() {
		if p.Configured {
			out = append(out, p.ID)
		}
	}
	return out
}

func TestServices(t *testing.T) {
	t.Parallel()
	var asked []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked,
			strings.Join([]string{r.URL.String(), r.Header.Get("Authorization") + r.Header.Get("Xi-Api-Key"), string(body)},
				" "))
		_, _ = io.WriteString(w, "ID3 music")
	}
	for _, tt := range []struct {
		name, tts string
		env       map[string]string
		r         speech.Request
		want      string
	}{
		{
			"OpenAI with the key of its models", `{}`, map[string]string{"OPENAI_API_KEY": "k"},
			speech.Request{Text: "hi", Note: true},
			`https://api.openai.com/v1/audio/speech Bearer k {"input":"hi","model":"gpt-4o-mini-tts","response_format":"opus","voice":"coral"}`,
		},
		{
			"a service with OpenAI's format, without a key", `{"providers": {"kokoro": {"baseUrl": "http://127.0.0.1:8880/v1", "model": "kokoro", "voice": "af_sky", "speed": 1.5, "instructions": "calm", "responseFormat": "wav"}}}`,
			nil, speech.Request{Text: "hi"},
			`http://127.0.0.1:8880/v1/audio/speech  {"input":"hi","instructions":"calm","model":"kokoro","response_format":"wav","speed":1.5,"voice":"af_sky"}`,
		},
		{
			"another address does not get the key of the models",
			`{"providers": {"openai": {"baseUrl": "https://proxy.example/v1"}}}`, map[string]string{"OPENAI_API_KEY": "k"},
			speech.Request{Text: "hi"},
			`https://proxy.example/v1/audio/speech  {"input":"hi","model":"gpt-4o-mini-tts","response_format":"mp3","voice":"coral"}`,
		},
		{
			"ElevenLabs", `{"provider": "elevenlabs", "providers": {"elevenlabs": {"speakerVoiceId": "a/b"}}}`,
			map[string]string{"ELEVENLABS_API_KEY": "e", "OPENAI_API_KEY": "k"}, speech.Request{Text: "hi", Note: true},
			`https://api.elevenlabs.io/v1/text-to-speech/a%2Fb?output_format=opus_48000_64 e {"text":"hi","model_id":"eleven_multilingual_v2"}`,
		},
		{
			"ElevenLabs in a manner", `{"provider": "elevenlabs"}`, map[string]string{"ELEVENLABS_API_KEY": "e"},
			speech.Request{Text: "hi", Voice: "v", Model: "m", Format: "mp3", Note: true, Manner: speech.Manner{
				Speed:      1.5,
				Stability:  new(0.0),
				Similarity: new(0.5),
				Style:      new(1.0),
				Boost:      new(false),
				Seed:       new(int64(7)),
				Normalize:  "on",
				Language:   "de",
				Latency:    new(0),
			}},
			`https://api.elevenlabs.io/v1/text-to-speech/v?optimize_streaming_latency=0&output_format=mp3_44100_128 e {"text":"hi","model_id":"m","seed":7,"apply_text_normalization":"on","language_code":"de","voice_settings":{"stability":0,"similarity_boost":0.5,"style":1,"use_speaker_boost":false,"speed":1.5}}`,
		},
		{
			"OpenAI in a manner", `{"providers": {"openai": {"speed": 0.9}}}`, map[string]string{"OPENAI_API_KEY": "k"},
			speech.Request{Text: "hi", Model: "m", Format: "wav", Note: true, Manner: speech.Manner{Speed: 1.2, Language: "de"}},
			`https://api.openai.com/v1/audio/speech Bearer k {"input":"hi","model":"m","response_format":"wav","speed":1.2,"voice":"coral"}`,
		},
		{
			"a voice for one text", `{"providers": {"openai": {"voice": "alloy"}}}`, map[string]string{"OPENAI_API_KEY": "k"},
			speech.Request{Text: "hi", Voice: "nova"},
			`https://api.openai.com/v1/audio/speech Bearer k {"input":"hi","model":"gpt-4o-mini-tts","response_format":"mp3","voice":"nova"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			a, err := open(t, tt.tts, tt.env, answer).Speak(t.Context(), tt.r)
			if err != nil || a.Type != "audio/mpeg" || len(asked) != 1 || asked[0] != tt.want {
				t.Errorf("%v %s\n%v\n want\n[%s]", err, a.Type, asked, tt.want)
			}
		})
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	conf := `{"provider": "b", "providers": {"a": {"baseUrl": "http://a/v1"}, "b": {"baseUrl": "http://b/v1", "apiKey": "sk-secret-of-b"}}}`
	t.Run("the next one speaks", func(t *testing.T) {
		t.Parallel()
		s := open(t, conf, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Host == "b" {
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, "OggS...")
		})
		if got := ids(s); !slices.Equal(got, []string{"b", "a"}) {
			t.Errorf("%v", got)
		}
		if a, err := s.Speak(t.Context(), speech.Request{Text: "hi"}); err != nil || a.Provider != "a" ||
			a.Type != "audio/ogg" {
			t.Errorf("%+v %v", a, err)
		}
		if _, err := s.Speak(t.Context(), speech.Request{Text: "hi", Provider: "b"}); err == nil {
			t.Error("another one spoke")
		}
	})
	t.Run("errors name the services and no key", func(t *testing.T) {
		t.Parallel()
		s := open(t, conf, nil, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Host {
			case "a":
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html>")
			default:
				http.Error(w, `{"error": {"message": "bad key sk-secret-of-b"}}`, http.StatusUnauthorized)
			}
		})
		_, err := s.Speak(t.Context(), speech.Request{Text: "hi"})
		if err == nil || strings.Contains(err.Error(), "secret-of-b") ||
			!strings.Contains(err.Error(), "b: status 401: bad key") ||
			!strings.Contains(err.Error(), "a: the answer is no recording") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a silent service", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := open(t, `{"timeoutMs": 2000, "providers": {"a": {"baseUrl": "http://a/v1"}}}`, nil,
				func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			began := time.Now()
			if _, err := s.Speak(t.Context(), speech.Request{Text: "hi"}); err == nil ||
				err.Error() != "a: no answer within 2s" || time.Since(began) != 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("nothing is configured", func(t *testing.T) {
		t.Parallel()
		s := open(t, `{}`, nil, nil)
		if _, err := s.Speak(t.Context(), speech.Request{Text: "hi"}); err == nil ||
			err.Error() != "no voice is configured" || speech.Active(s) != "" {
			t.Errorf("%v", err)
		}
		if _, err := s.Speak(t.Context(), speech.Request{Text: " "}); err == nil {
			t.Error("an empty text is said")
		}
	})
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts of sh")
	}
	bin := t.TempDir()
	script := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script("writes", `printf 'RIFF1234WAVE%s' "$2" > "$1"`)
	script("prints", `printf 'ID3 %s' "$1"`)
	script("fails", `echo "no voice" >&2; exit 3`)
	script("nothing", `exit 0`)
	script("espeak-ng", `printf 'RIFF1234WAVElocal' > "$2"`)
	env := map[string]string{"PATH": bin + ":/usr/bin:/bin"}
	for _, tt := range []struct{ name, conf, data, kind, err string }{
		{"a file", `{"command": "writes", "args": ["{{OutputPath}}", "{{Text}}"], "outputFormat": "wav"}`,
			"RIFF1234WAVE-n 'hi'", "audio/wav", ""},
		{"its output", `{"command": "prints"}`, "ID3 -n 'hi'", "audio/mpeg", ""},
		{"an error", `{"command": "fails"}`, "", "", "p: fails: exit status 3: no voice"},
		{"no recording", `{"command": "nothing"}`, "", "", "p: "},
		{"no program", `{"command": "absent"}`, "", "", "p: the program absent was not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, `{"providers": {"p": `+tt.conf+`}}`, env, nil)
			a, err := s.Speak(t.Context(), speech.Request{Text: "-n 'hi'"})
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || string(a.Data) != tt.data || a.Type != tt.kind {
				t.Errorf("%q %s %v", a.Data, a.Type, err)
			}
		})
	}
	t.Run("an installed program is the last", func(t *testing.T) {
		t.Parallel()
		s := open(t, `{}`, env, nil)
		if got := ids(s); !slices.Equal(got, []string{"espeak-ng"}) {
			t.Fatalf("%v", got)
		}
		if a, err := s.Speak(t.Context(), speech.Request{Text: "hi"}); err != nil || string(a.Data) != "RIFF1234WAVElocal" {
			t.Errorf("%q %v", a.Data, err)
		}
		s = open(t, `{"providers": {"p": {"command": "fails"}}}`, env, nil)
		if _, err := s.Speak(t.Context(), speech.Request{Text: "hi"}); err == nil {
			t.Error("it speaks instead of the configured one")
		}
		s = open(t, `{"provider": "espeak-ng", "providers": {"p": {"command": "fails"}}}`, env, nil)
		if a, err := s.Speak(t.Context(), speech.Request{Text: "hi"}); err != nil || a.Provider != "espeak-ng" {
			t.Errorf("chosen: %+v %v", a, err)
		}
	})
}
