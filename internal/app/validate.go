package app

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/services"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// validate returns the error with which an engine of this build would refuse a
// configuration. It makes the parts as an engine does, but starts none of them and
// needs neither the state directory nor the port.
func (b starter) validate(ctx context.Context, s cli.Start, t *config.Tree) error {
	r, log, env := b.registry, slog.New(slog.DiscardHandler), settings.Environ(t)
	opts, err := settings.Read(t)
	if err != nil {
		return err
	}
	g, err := endpoint.Read(t.Section("gateway"), endpoint.Listen{})
	if err != nil {
		return err
	}
	if _, err := g.Host(); err != nil {
		return err
	}
	if _, err := webhook.Parse(t.Section("hooks"), env, s.State); err != nil {
		return err
	}
	f, err := profile.NewFactory(profile.Options{Log: log, State: s.State, Registry: r, NoProbe: true}, t)
	if err != nil {
		return err
	}
	more, err := f.Validate(ctx, profile.Config{Sections: t, Env: env}, &opts)
	if err != nil {
		return err
	}
	if _, err := r.NewHooks(standard.HookEnv{Log: log, Redact: func(s string) string { return s }}, t.Section); err != nil {
		return err
	}
	client := func() *http.Client { return egress.Client(egress.Options{}) }
	accounts := channels.New(channels.Options{Log: log, Factories: r.Channels(), Env: channelEnv(env, nil), Dir: filepath.Join(s.State, "channels")})
	if _, err := accounts.Prepare(t.Section, more...); err != nil {
		return err
	}
	_, err = services.New(ctx, log).Prepare(r.Services(standard.ServiceEnv{Log: log, State: s.State, HTTP: client}), t.Section)
	return err
}
