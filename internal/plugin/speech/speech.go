package speech

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// The providers that need no address.
const (
	openAI     = "openai"
	elevenLabs = "elevenlabs"
)

// Options configure a speaker. All fields are required.
type Options struct {
	Log      *slog.Logger
	Config   speech.Config
	Getenv   func(string) string
	Programs Programs
	// Endpoint returns how a provider of models is called, with its key.
	Endpoint func(provider string) (dialect.Options, error)
	HTTP     *http.Client // reaches the addresses of the configuration
}

// New returns a speaker.
func New(o Options) speech.Speaker { return &speaker{o} }

type speaker struct{ o Options }

// way is how a provider is asked.
type way struct {
	state speech.State
	speak func(context.Context, speech.Provider, speech.Request) (speech.Audio, error)
	conf  speech.Provider
	spare bool // it is asked only if no other can be
}

// Providers implements speech.Speaker.
func (s *speaker) Providers() (out []speech.State) {
	for _, w := range s.ways() {
		out = append(out, w.state)
	}
	return out
}

// Speak implements speech.Speaker.
func (s *speaker) Speak(ctx context.Context, r speech.Request) (speech.Audio, error) {
	if strings.TrimSpace(r.Text) == "" {
		return speech.Audio{}, chela.Errorf(chela.CodeInvalid, "there is no text to say")
	}
	ways := s.ways()
	if r.Provider != "" {
		i := slices.IndexFunc(ways, func(w way) bool { return w.state.ID == r.Provider })
		if i < 0 {
			return speech.Audio{}, chela.Errorf(chela.CodeInvalid, "there is no provider %q that speaks", r.Provider)
		}
		ways = ways[i : i+1]
	}
	var errs []error
	for _, w := range ways {
		if !w.state.Configured || w.spare && len(errs) > 0 {
			continue
		}
		one, cancel := context.WithTimeout(ctx, s.o.Config.Patience(w.conf))
		a, err := w.speak(one, w.conf, r)
		cancel()
		switch {
		case err == nil && len(a.Data) == 0:
			err = errors.New("the answer is empty")
		case err == nil && len(a.Data) > speech.MaxAudio:
			err = errors.New("the recording is too large")
		case err != nil && ctx.Err() == nil && errors.Is(one.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("no answer within %v", s.o.Config.Patience(w.conf))
		}
		if err == nil {
			if r.Note {
				a = s.o.Programs.note(ctx, a)
			}
			a.Provider = w.state.ID
			return a, nil
		}
		if ctx.Err() != nil {
			return speech.Audio{}, ctx.Err()
		}
		s.o.Log.Warn("speech", "provider", w.state.ID, "err", err)
		errs = append(errs, fmt.Errorf("%s: %w", w.state.ID, err))
	}
	if len(errs) == 0 {
		return speech.Audio{}, &chela.Error{
			Code: chela.CodeUnavailable, Message: "no voice is configured",
			Hint: `chela models auth openai, or chela config set tts.providers.local '{command: "espeak-ng", args: ["-w", "{{OutputPath}}", "{{Text}}"], outputFormat: "wav"}'`,
		}
	}
	return speech.Audio{}, errors.Join(errs...)
}

// ways returns the providers in the order in which they are asked: the chosen one, the
// other configured ones, services with a key, and programs that are installed, which do
// not speak instead of a service that fails.
func (s *speaker) ways() (out []way) {
	c, installed := s.o.Config, s.o.Programs.local()
	ids := append([]string{c.Provider}, slices.Sorted(maps.Keys(c.Providers))...)
	ids = append(ids, openAI, elevenLabs)
	for _, id := range ids {
		if id == "" || slices.ContainsFunc(out, func(w way) bool { return w.state.ID == id }) {
			continue
		}
		if w, ok := s.way(id, installed); ok {
			out = append(out, w)
		}
	}
	for _, local := range installed {
		if _, taken := c.Providers[local.id]; taken ||
			slices.ContainsFunc(out, func(w way) bool { return w.state.ID == local.id }) {
			continue
		}
		out = append(out, way{state: speech.State{ID: local.id, Name: local.id, Configured: true}, speak: s.o.Programs.speak,
			conf: local.conf, spare: true})
	}
	return out
}

// way returns how a provider is asked; false: it is unknown, and nothing says where it is.
func (s *speaker) way(id string, installed []known) (way, bool) {
	conf, configured := s.o.Config.Providers[id]
	w := way{state: speech.State{ID: id, Name: id, Configured: true}, conf: conf}
	if conf.Command != "" {
		w.speak = s.o.Programs.speak
		return w, true
	}
	for _, local := range installed {
		if local.id == id && !configured {
			w.speak, w.conf = s.o.Programs.speak, local.conf
			return w, true
		}
	}
	to, err := s.endpoint(id, conf)
	if err != nil {
		w.state.Configured = false
	}
	if id == elevenLabs {
		w.state.Name, w.state.Models = "ElevenLabs", []string{elevenModel}
		w.speak = to.elevenLabs
		return w, true
	}
	if id == openAI {
		w.state.Name, w.state.Models, w.state.Voices = "OpenAI", []string{openAIModel}, openAIVoices
	}
	if !configured && id != openAI && err != nil {
		return w, false
	}
	w.speak = to.openAI
	return w, true
}

// endpoint returns the service of a provider, or an error if it has no key.
func (s *speaker) endpoint(id string, conf speech.Provider) (*service, error) {
	to := &service{Options: dialect.Options{HTTP: s.o.HTTP}}
	if o, err := s.o.Endpoint(id); err == nil {
		to.Options = o
	}
	if conf.BaseURL != "" {
		if conf.BaseURL != to.BaseURL {
			to.Key, to.Header = secret.Value{}, nil // another address does not get the key of the models
		}
		to.BaseURL, to.HTTP = conf.BaseURL, s.o.HTTP
	}
	key, err := conf.APIKey.Resolve(s.o.Getenv)
	if err != nil {
		return to, err
	}
	if !key.IsZero() {
		to.Key = key
	}
	if id == elevenLabs && to.Key.IsZero() {
		for _, name := range [...]string{"ELEVENLABS_API_KEY", "XI_API_KEY"} {
			if v := s.o.Getenv(name); v != "" && to.Key.IsZero() {
				to.Key = secret.New(v)
			}
		}
	}
	to.redactor.Add(to.Key)
	if to.Key.IsZero() && conf.BaseURL == "" {
		return to, errors.New("there is no key")
	}
	return to, nil
}
