package speech

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const (
	openAIModel = "gpt-4o-mini-tts"
	openAIVoice = "coral"
	elevenModel = "eleven_multilingual_v2"
	elevenVoice = "pMsXgVXv3BLzUgSXRplE"
	maxFailure  = 16 << 10 // bytes of an error response
)

var openAIVoices = []string{"alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx",
	"sage", "shimmer", "verse"}

// service is a service that is asked over HTTP.
type service struct {
	dialect.Options
	redactor secret.Redactor
}

// openAI asks a service of OpenAI's format (POST /audio/speech).
func (s *service) openAI(ctx context.Context, p speech.Provider, r speech.Request) (speech.Audio, error) {
	format := cmp.Or(r.Format, p.Format, map[bool]string{true: "opus", false: "mp3"}[r.Note])
	body := map[string]any{
		"model": cmp.Or(r.Model, p.ModelOf(), openAIModel), "voice": cmp.Or(r.Voice, p.VoiceOf(), openAIVoice),
		"input": r.Text, "response_format": format,
	}
	if p.Manner != "" {
		body["instructions"] = p.Manner
	}
	if speed := cmp.Or(r.Manner.Speed, p.Speed); speed > 0 {
		body["speed"] = speed
	}
	u, err := dialect.BaseURL(s.BaseURL, "https://api.openai.com")
	if err != nil {
		return speech.Audio{}, err
	}
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.Path += "/audio/speech"
	header := http.Header{}
	if !s.Key.IsZero() {
		header.Set("Authorization", "Bearer "+s.Key.Reveal())
	}
	return s.ask(ctx, u, header, body, formats[format])
}

// elevenLabs asks ElevenLabs.
func (s *service) elevenLabs(ctx context.Context, p speech.Provider, r speech.Request) (speech.Audio, error) {
	u, err := dialect.BaseURL(s.BaseURL, "https://api.elevenlabs.io")
	if err != nil {
		return speech.Audio{}, err
	}
	u = u.JoinPath("v1", "text-to-speech", url.PathEscape(cmp.Or(r.Voice, p.VoiceOf(), elevenVoice)))
	format, kind := "mp3_44100_128", formats["mp3"]
	if want := cmp.Or(r.Format, p.Format); want == "opus" || want == "" && r.Note {
		format, kind = "opus_48000_64", formats["opus"]
	}
	m := r.Manner
	query := url.Values{"output_format": {format}}
	if m.Latency != nil {
		query.Set("optimize_streaming_latency", strconv.Itoa(*m.Latency))
	}
	u.RawQuery = query.Encode()
	body := elevenBody{
		Text:      r.Text,
		Model:     cmp.Or(r.Model, p.ModelOf(), elevenModel),
		Seed:      m.Seed,
		Normalize: m.Normalize,
		Language:  m.Language,
	}
	if set := (elevenVoiceSettings{m.Stability, m.Similarity, m.Style, m.Boost, cmp.Or(m.Speed, p.Speed)}); set !=
		(elevenVoiceSettings{}) {
		body.Settings = &set
	}
	return s.ask(ctx, u, http.Header{"Xi-Api-Key": {s.Key.Reveal()}}, body, kind)
}

// elevenBody is a request to ElevenLabs.
type elevenBody struct {
	Text      string               `json:"text"`
	Model     string               `json:"model_id"`
	Seed      *int64               `json:"seed,omitempty"`
	Normalize string               `json:"apply_text_normalization,omitempty"`
	Language  string               `json:"language_code,omitempty"`
	Settings  *elevenVoiceSettings `json:"voice_settings,omitempty"`
}

type elevenVoiceSettings struct {
	Stability  *float64 `json:"stability,omitempty"`
	Similarity *float64 `json:"similarity_boost,omitempty"`
	Style      *float64 `json:"style,omitempty"`
	Boost      *bool    `json:"use_speaker_boost,omitempty"`
	Speed      float64  `json:"speed,omitempty"`
}

// formats are the MIME types of formats.
var formats = map[string]string{"mp3": "audio/mpeg", "opus": "audio/ogg", "wav": "audio/wav"}

// ask sends a request and returns the recording of the answer. kind is its type if neither
// the content nor the service says it.
func (s *service) ask(ctx context.Context, u *url.URL, header http.Header, body any,
	kind string) (a speech.Audio, err error) {
	defer func() {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL may contain a password
		}
		if err != nil {
			err = errors.New(s.redactor.Redact(err.Error()))
		}
	}()
	if s.HTTP == nil || s.HTTP.Transport == nil {
		return a, errors.New("the service has no HTTP client")
	}
	data, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(data))
	if err != nil {
		return a, err
	}
	for _, h := range [...]http.Header{header, s.Header} {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "chela")
	resp, err := s.HTTP.Transport.RoundTrip(req) // it does not follow redirects, which would get the key
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
		_, message := dialect.ParseError(data)
		return a, fmt.Errorf("status %d: %s", resp.StatusCode, cmp.Or(message, http.StatusText(resp.StatusCode)))
	}
	if a.Data, err = io.ReadAll(io.LimitReader(resp.Body, speech.MaxAudio+1)); err != nil {
		return a, err
	}
	if a.Type = typeOf(a.Data, ""); a.Type != "" {
		return a, nil
	}
	said, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if strings.HasPrefix(said, "text/") || said == "application/json" {
		return a, errors.New("the answer is no recording: is the base URL right?")
	}
	a.Type = kind
	return a, nil
}

// typeOf returns the type of a recording by its content, or else by what was asked for.
func typeOf(data []byte, kind string) string {
	switch {
	case bytes.HasPrefix(data, []byte("OggS")):
		return "audio/ogg"
	case len(data) > 12 && bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WAVE":
		return "audio/wav"
	case bytes.HasPrefix(data, []byte("ID3")), len(data) > 1 && data[0] == 0xFF && data[1]&0xE0 == 0xE0:
		return "audio/mpeg"
	}
	return kind
}
