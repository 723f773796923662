package app

import (
	"context"
	"slices"
	"strconv"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/speech"
)

// voice implements speech.Voice with the configuration in force.
type voice struct{ e *Engine }

func (v voice) Speak(ctx context.Context, r speech.Request) (speech.Audio, error) {
	return v.e.now().Speaker.Speak(ctx, r)
}

func (v voice) Providers() []speech.State { return v.e.now().Speaker.Providers() }

func (v voice) Mode() speech.Mode { return v.e.now().Settings.Speech.Auto }

func (v voice) Limit() int { return v.e.now().Settings.Speech.Limit() }

func (v voice) SetMode(ctx context.Context, m speech.Mode) error {
	return v.set(ctx, "tts.auto", string(m))
}

func (v voice) SetProvider(ctx context.Context, id string) error {
	if !slices.ContainsFunc(v.Providers(), func(s speech.State) bool { return s.ID == id && s.Configured }) {
		return &chela.Error{Code: chela.CodeInvalid, Message: "there is no provider " + strconv.Quote(id) + " that speaks",
			Hint: "chela tts status"}
	}
	return v.set(ctx, "tts.provider", id)
}

// set writes a setting to the configuration.
func (v voice) set(ctx context.Context, path, value string) error {
	if v.e.tree() == nil {
		return chela.Errorf(chela.CodeUnavailable, "this process has no configuration file")
	}
	_, err := v.e.change(ctx, anyBase, func(now *config.Tree) (*config.Draft, error) {
		return now.Draft(config.Edit{Path: path, Value: []byte(strconv.Quote(value))})
	}, v.e.requestRestart)
	return err
}
