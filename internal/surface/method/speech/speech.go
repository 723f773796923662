// Package speech implements the methods about answers that are said aloud.
package speech

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Voice speech.Voice
	Dir   string // with the files of conversations
	Store func(chela.Media) (chela.Media, error)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodTTSStatus, wire.RoleOperator, chela.ScopeRead, o.status),
		rpc.New(wire.MethodTTSProviders, wire.RoleOperator, chela.ScopeRead, o.providers),
		rpc.New(wire.MethodTTSPersonas, wire.RoleOperator, chela.ScopeRead,
			func(context.Context, rpc.Peer, wire.None) (wire.TTSPersonas, error) {
				return wire.TTSPersonas{Personas: []string{}}, nil
			}),
		rpc.New(wire.MethodTTSEnable, wire.RoleOperator, chela.ScopeAdmin, o.mode(speech.Always)),
		rpc.New(wire.MethodTTSDisable, wire.RoleOperator, chela.ScopeAdmin, o.mode(speech.Off)),
		rpc.New(wire.MethodTTSSetProvider, wire.RoleOperator, chela.ScopeAdmin,
			func(ctx context.Context, _ rpc.Peer, in wire.TTSSetProvider) (wire.TTSSetProvider, error) {
				return in, o.Voice.SetProvider(ctx, in.Provider)
			}),
		rpc.New(wire.MethodTTSConvert, wire.RoleOperator, chela.ScopeWrite, o.convert),
		rpc.New(wire.MethodTTSSpeak, wire.RoleOperator, chela.ScopeWrite, o.speak),
	}
}

func (o Options) status(context.Context, rpc.Peer, wire.None) (wire.TTSStatus, error) {
	mode := o.Voice.Mode()
	out := wire.TTSStatus{
		Enabled:   mode != speech.Off,
		Auto:      string(mode),
		Provider:  speech.Active(o.Voice),
		Personas:  []string{},
		Fallbacks: []string{},
		States:    []wire.TTSProvider{},
	}
	for _, p := range o.Voice.Providers() {
		out.States = append(out.States, wire.TTSProvider{ID: p.ID, Label: p.Name, Configured: p.Configured})
		if p.Configured && p.ID != out.Provider {
			out.Fallbacks = append(out.Fallbacks, p.ID)
		}
	}
	if len(out.Fallbacks) > 0 {
		out.Fallback = &out.Fallbacks[0]
	}
	return out, nil
}

func (o Options) providers(context.Context, rpc.Peer, wire.None) (wire.TTSProviders, error) {
	out := wire.TTSProviders{Providers: []wire.TTSProvider{}, Active: speech.Active(o.Voice)}
	for _, p := range o.Voice.Providers() {
		out.Providers = append(out.Providers, wire.TTSProvider{
			ID:         p.ID,
			Name:       p.Name,
			Configured: p.Configured,
			Models:     p.Models,
			Voices:     p.Voices,
		})
	}
	return out, nil
}

// mode returns the method that sets a mode.
func (o Options) mode(m speech.Mode) func(context.Context, rpc.Peer, wire.None) (wire.TTSEnabled, error) {
	return func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.TTSEnabled, error) {
		return wire.TTSEnabled{Enabled: m != speech.Off}, o.Voice.SetMode(ctx, m)
	}
}

// say says a text.
func (o Options) say(ctx context.Context, r speech.Request) (speech.Audio, error) {
	if r.Text = strings.TrimSpace(r.Text); r.Text == "" {
		return speech.Audio{}, rpc.Invalid("at /text: must not be empty")
	}
	if n := len([]rune(r.Text)); n > o.Voice.Limit() {
		return speech.Audio{}, rpc.Invalid("at /text: %d characters, at most %d (tts.maxTextLength) can be said at once", n,
			o.Voice.Limit())
	}
	return o.Voice.Speak(ctx, r)
}

func (o Options) convert(ctx context.Context, _ rpc.Peer, in wire.TTSConvert) (wire.TTSConverted, error) {
	a, err := o.say(ctx, speech.Request{
		Text:     in.Text,
		Provider: in.Provider,
		Voice:    in.Voice,
		Model:    in.Model,
		Note:     in.Channel != "",
	})
	if err != nil {
		return wire.TTSConverted{}, err
	}
	m, err := o.Store(chela.Media{Name: "voice" + speech.Extension(a.Type), Type: a.Type, Data: a.Data})
	if err != nil {
		return wire.TTSConverted{}, err
	}
	format := wireview.SpokenFormat(a.Type)
	return wire.TTSConverted{
		Path:     filepath.Join(o.Dir, m.Ref),
		Ref:      m.Ref,
		Provider: a.Provider,
		Format:   format,
		Voice:    format == "opus",
	}, nil
}

// speak returns the recording itself.
func (o Options) speak(ctx context.Context, _ rpc.Peer, in wire.TTSSpeak) (wire.TalkAudio, error) {
	a, err := o.say(ctx, speech.Request{Text: in.Text})
	if err != nil {
		return wire.TalkAudio{}, err
	}
	out, err := wireview.Spoken(a)
	out.Voice = nil // not in the result of this method
	return out, err
}
