// Package talk implements the methods with which apps talk with a person: how they speak and
// listen, and the words that wake them. What a person says is an ordinary message.
package talk

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/talk"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// WakeWords keeps the words that wake apps.
type WakeWords interface {
	WakeWords(context.Context) ([]string, error)
	// SetWakeWords keeps other words, tells the nodes, and calls tell.
	SetWakeWords(ctx context.Context, words []string, tell func([]string)) ([]string, error)
}

// Options configures the methods. All fields are required.
type Options struct {
	// Voice returns what speaks, the section talk, and how many characters are said at once.
	Voice func() (speech.Speaker, talk.Config, int)
	Words WakeWords
	// Announce tells the clients with a scope.
	Announce func(scope chela.Scope, event string, payload any)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodTalkCatalog, op, chela.ScopeRead, o.catalog),
		rpc.New(wire.MethodTalkConfig, op, chela.ScopeRead, o.config),
		rpc.New(wire.MethodTalkSpeak, op, chela.ScopeTalk, o.speak),
		rpc.New(wire.MethodTalkMode, op, chela.ScopeTalk, o.mode),
		rpc.New(wire.MethodWakeGet, op, chela.ScopeRead, o.words),
		rpc.New(wire.MethodWakeSet, op, chela.ScopeWrite, o.setWords),
		rpc.New(wire.MethodWakeRouting, op, chela.ScopeRead,
			func(context.Context, rpc.Peer, wire.None) (wire.WakeRouting, error) {
				return wire.WakeRouting{Config: wire.WakeRoutes{Version: 1, Default: wire.WakeTarget{Mode: "current"},
					Routes: []wire.None{}}}, nil
			}),
	}
}

// catalog returns what a client can talk with. Audio is neither taken nor sent live, so that
// nothing but speech is there.
func (o Options) catalog(context.Context, rpc.Peer, wire.None) (wire.TalkCatalog, error) {
	speaker, _, _ := o.Voice()
	nobody := wire.TalkProviders{Providers: []wire.TalkProvider{}}
	out := wire.TalkCatalog{
		Modes:         []string{},
		Transports:    []string{},
		Brains:        []string{},
		Speech:        nobody,
		Transcription: nobody,
		Realtime:      nobody,
	}
	out.Speech.Active = speech.Active(speaker)
	out.Speech.Ready = out.Speech.Active != ""
	for _, p := range speaker.Providers() {
		out.Speech.Providers = append(out.Speech.Providers, wire.TalkProvider{
			ID:         p.ID,
			Label:      p.Name,
			Configured: p.Configured,
			Models:     p.Models,
			Voices:     p.Voices,
		})
	}
	return out, nil
}

// config returns the section talk. Keys of services are not in it: apps let the gateway
// speak.
func (o Options) config(ctx context.Context, _ rpc.Peer, in wire.TalkConfigGet) (wire.TalkConfig, error) {
	if in.Secrets {
		if err := rpc.Need(ctx, chela.ScopeTalkSecrets); err != nil {
			return wire.TalkConfig{}, err
		}
	}
	speaker, c, _ := o.Voice()
	t := wire.Talk{
		Provider:  c.Provider,
		Locale:    c.Locale,
		Interrupt: c.Interrupt,
		Silence:   c.Silence,
		Think:     c.Think,
		Fast:      c.Fast,
	}
	for id, p := range c.Providers {
		if t.Providers == nil {
			t.Providers = map[string]wire.TalkVoice{}
		}
		t.Providers[id] = voice(p)
	}
	if id := speech.Active(speaker); id != "" {
		t.Resolved = &wire.TalkResolved{Provider: id, Config: voice(c.Providers[id])}
	}
	return wire.TalkConfig{Config: wire.TalkSettings{Talk: t, Session: wire.TalkSession{MainKey: chela.MainKey}}}, nil
}

func voice(p talk.Provider) wire.TalkVoice {
	return wire.TalkVoice{Voice: p.Voice, Model: p.Model, Format: p.Format, Aliases: p.Aliases}
}

// speak says a text with the voice of talk.
func (o Options) speak(ctx context.Context, p rpc.Peer, in wire.TalkSpeak) (wire.TalkAudio, error) {
	speaker, c, limit := o.Voice()
	r, err := request(in, limit)
	if err != nil {
		return wire.TalkAudio{}, err
	}
	id := speech.Active(speaker)
	if id == "" {
		return wire.TalkAudio{}, failure(wire.TalkUnconfigured, true, "no voice is configured (chela tts status)")
	}
	r.Voice = c.VoiceOf(id, in.Voice)
	p.Yield()
	a, err := speaker.Speak(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return wire.TalkAudio{}, err
		}
		return wire.TalkAudio{}, failure(wire.TalkFailed, true, "say it aloud: "+err.Error())
	}
	out, err := wireview.Spoken(a)
	if err != nil {
		return out, failure(wire.TalkInvalidAudio, true, err.Error())
	}
	return out, nil
}

// request returns what is said, without the provider's voice.
func request(in wire.TalkSpeak, limit int) (speech.Request, error) {
	text, say, _ := speech.Tags(in.Text)
	if say != "" {
		text = say
	}
	r := speech.Request{Text: strings.TrimSpace(text), Model: in.Model, Format: talk.Format(in.Format)}
	switch n := utf8.RuneCountInString(r.Text); {
	case n == 0:
		return r, rpc.Invalid("at /text: must not be empty")
	case n > limit:
		return r, rpc.Invalid("at /text: %d characters, at most %d (tts.maxTextLength) can be said at once", n, limit)
	case len(in.Voice) > maxName || len(in.Model) > maxName:
		return r, rpc.Invalid("at /voiceId, /modelId: must have at most %d bytes", maxName)
	}
	var err error
	r.Manner, err = manner(in)
	return r, err
}

// maxName is the longest name of a voice or a model in bytes.
const maxName = 200

// usualRate is the number of words in a minute at speed 1.
const usualRate = 175

// manner returns how the text is said.
func manner(in wire.TalkSpeak) (speech.Manner, error) {
	m := speech.Manner{
		Stability:  in.Stability,
		Similarity: in.Similarity,
		Style:      in.Style,
		Boost:      in.Boost,
		Seed:       in.Seed,
		Normalize:  strings.ToLower(in.Normalize),
		Language:   strings.ToLower(in.Language),
		Latency:    in.Latency,
	}
	switch {
	case in.Rate != nil:
		m.Speed = float64(*in.Rate) / usualRate
	case in.Speed != nil:
		m.Speed = *in.Speed
	}
	if (in.Rate != nil || in.Speed != nil) && !(m.Speed >= 0.5 && m.Speed <= 2) {
		return m, rpc.Invalid("at /speed, /rateWpm: the speed %.3g is not between 0.5 and 2 (88 and 350 words in a minute)",
			m.Speed)
	}
	for name, v := range map[string]*float64{"stability": in.Stability, "similarity": in.Similarity, "style": in.Style} {
		if v != nil && !(*v >= 0 && *v <= 1) {
			return m, rpc.Invalid("at /%s: must be between 0 and 1", name)
		}
	}
	switch {
	case in.Seed != nil && (*in.Seed < 0 || *in.Seed > 1<<32-1):
		return m, rpc.Invalid("at /seed: must be between 0 and 4294967295")
	case in.Latency != nil && (*in.Latency < 0 || *in.Latency > 4):
		return m, rpc.Invalid("at /latencyTier: must be between 0 and 4")
	case m.Normalize != "" && m.Normalize != "auto" && m.Normalize != "on" && m.Normalize != "off":
		return m, rpc.Invalid("at /normalize: must be auto, on or off")
	case len(m.Language) > 0 && len(m.Language) != 2:
		return m, rpc.Invalid("at /language: must be a code of two letters, such as de")
	}
	return m, nil
}

// failure is an error of talk.speak. fallback says that the app may say the text itself.
func failure(reason string, fallback bool, message string) error {
	return wire.Errorf(wire.Unavailable, "%s", message).With(wire.TalkFailure{Reason: reason, Fallback: fallback})
}

// maxPhase is the longest phase in bytes.
const maxPhase = 64

// mode tells all clients that a person begins or ends talking.
func (o Options) mode(_ context.Context, _ rpc.Peer, in wire.TalkMode) (wire.TalkModeChanged, error) {
	if len(in.Phase) > maxPhase {
		return wire.TalkModeChanged{}, rpc.Invalid("at /phase: must have at most %d bytes", maxPhase)
	}
	out := wire.TalkModeChanged{Enabled: in.Enabled, Time: wire.At(time.Now())}
	if phase := strings.TrimSpace(in.Phase); phase != "" {
		out.Phase = &phase
	}
	o.Announce(chela.ScopeTalk, wire.EventTalkMode, out)
	return out, nil
}

func (o Options) words(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.WakeWords, error) {
	words, err := o.Words.WakeWords(ctx)
	return wire.WakeWords{Triggers: words}, err
}

func (o Options) setWords(ctx context.Context, _ rpc.Peer, in wire.WakeWords) (wire.WakeWords, error) {
	words, err := o.Words.SetWakeWords(ctx, in.Triggers, func(words []string) {
		o.Announce(chela.ScopeRead, wire.EventWakeChanged, wire.WakeWords{Triggers: words})
	})
	if e, ok := errors.AsType[*chela.Error](err); ok && e.Code == chela.CodeInvalid {
		return wire.WakeWords{}, rpc.Invalid("at /triggers: %s", e.Message)
	}
	return wire.WakeWords{Triggers: words}, err
}
