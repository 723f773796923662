package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/services"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// validate returns the error with which an engine of this build would refuse a
// configuration. It makes the parts as an engine does, but starts none of them and
// needs neither the state directory nor the port.
func (b starter) validate(ctx context.Context, s cli.Start, t *config.Tree) error {
	r, log, env := b.registry, slog.New(slog.DiscardHandler), settings.Environ(t)
	g, err := endpoint.Read(t.Section("gateway"), endpoint.Listen{})
	if err != nil {
		return err
	}
	if err := g.Check(endpoint.Env{Log: log, State: s.State, Env: env}); err != nil {
		return err
	}
	if _, err := webhook.Parse(t.Section("hooks"), env, s.State); err != nil {
		return err
	}
	if err := workspaces(s, t); err != nil {
		return err
	}
	more, err := b.generation(ctx, s, t)
	if err != nil {
		return err
	}
	if _, err := r.NewHooks(standard.HookEnv{Log: log, Redact: func(s string) string { return s }},
		t.Section); err != nil {
		return err
	}
	client := func() *http.Client { return egress.Client(egress.Options{}) }
	accounts := channels.New(channels.Options{Log: log, Factories: r.Channels(), Env: channelEnv(env, nil),
		Dir: filepath.Join(s.State, "channels")})
	if _, err := accounts.Prepare(t.Section, more...); err != nil {
		return err
	}
	_, err = services.New(ctx, log).Prepare(r.Services(standard.ServiceEnv{Log: log, State: s.State, HTTP: client}),
		t.Section)
	return err
}

// workspaces returns the error about a workspace that is not a folder.
func workspaces(s cli.Start, t *config.Tree) error {
	return eachWorkspace(s, t, func(dir, have string, isDir bool) error {
		if !isDir {
			return fmt.Errorf("%s is not a folder", have)
		}
		return nil
	})
}

// creatable returns the error about a workspace that is missing and cannot be made.
func creatable(s cli.Start, t *config.Tree) error {
	return eachWorkspace(s, t, func(dir, have string, isDir bool) error {
		if !isDir || dir == have {
			return nil
		}
		made, err := os.MkdirTemp(have, ".chela-")
		if err != nil {
			return fmt.Errorf("no folder can be made in %s: %w", have, errors.Unwrap(err))
		}
		return os.Remove(made)
	})
}

// eachWorkspace calls f with the workspace of each agent and the part of its path that exists.
func eachWorkspace(s cli.Start, t *config.Tree, f func(dir, have string, isDir bool) error) error {
	opts, err := settings.Read(t)
	if err != nil {
		return err
	}
	home := settings.Environ(t)("HOME")
	for _, id := range opts.Roster() {
		dir := opts.Workspace(id, s.State, home)
		have := dir
		info, err := os.Stat(have)
		for err != nil && have != filepath.Dir(have) {
			have = filepath.Dir(have)
			info, err = os.Stat(have)
		}
		if err != nil {
			continue
		}
		if err := f(dir, have, info.IsDir()); err != nil {
			return chela.Errorf(chela.CodeInvalid, "the workspace of agent %s, %s: %w", id, dir, err)
		}
	}
	return nil
}

// generation makes what runs would use of a configuration, and returns the channels of
// plug-ins.
func (b starter) generation(ctx context.Context, s cli.Start, t *config.Tree) ([]channel.Factory, error) {
	opts, err := settings.Read(t)
	if err != nil {
		return nil, err
	}
	f, err := profile.NewFactory(profile.Options{
		Log:      slog.New(slog.DiscardHandler),
		State:    s.State,
		Registry: b.registry,
		NoProbe:  true,
		Reserved: func(dir string) bool { return inventory.Holds(s.State, dir) },
	}, t)
	if err != nil {
		return nil, err
	}
	return f.Validate(ctx, profile.Config{Sections: t, Env: settings.Environ(t)}, &opts)
}

// refuse returns the error about a change to a valid configuration with which the gateway
// would not start, or no model would answer.
func (b starter) refuse(ctx context.Context, s cli.Start, now, next *config.Tree) error {
	if exposed(now) == nil {
		if err := exposed(next); err != nil {
			return err
		}
	}
	if err := creatable(s, next); err != nil && creatable(s, now) == nil {
		return err
	}
	before, err := b.models(ctx, s, now)
	if err != nil {
		return nil // it is being repaired
	}
	after, err := b.models(ctx, s, next)
	if err != nil {
		return err
	}
	return checkChange(now, before, next, after)
}

// exposed returns the error with which the gateway refuses to serve other machines.
func exposed(t *config.Tree) error {
	g, err := endpoint.Read(t.Section("gateway"), endpoint.Listen{})
	if err != nil {
		return err
	}
	host, err := g.Host()
	if err != nil {
		return err
	}
	return g.Safe(host, false)
}

// checkChange returns the error about what a changed configuration chooses, unless it was
// chosen before: a model of an unknown provider, or a port that is none, which a variable
// may hide, a provider that cannot be asked, a context window with which no run begins, or an
// id that another agent has.
func checkChange(now *config.Tree, before *model.Set, next *config.Tree, after *model.Set) error {
	if err := writtenPort(next); err != nil && writtenPort(now) == nil {
		return err
	}
	if err := after.BadProvider(); err != nil && before.BadProvider() == nil {
		return err
	}
	if w := tooSmall(next); w != nil && tooSmall(now) == nil {
		return w
	}
	had := noBudgets(now)
	for _, path := range noBudgets(next) {
		if !slices.Contains(had, path) {
			return chela.Errorf(chela.CodeInvalid,
				"%s: 0 does not limit anything; want a larger number, or a negative one for no limit", path)
		}
	}
	if empty := emptyAddress(next); empty != "" && emptyAddress(now) == "" {
		return chela.Errorf(chela.CodeInvalid, "%s is empty", empty)
	}
	if again := repeated(next); again != nil && len(again) > len(repeated(now)) {
		return chela.Errorf(chela.CodeInvalid, "%s: another agent has this id", again[0])
	}
	chosen, had := next.Models(), slices.Collect(maps.Values(now.Models()))
	for _, path := range slices.Sorted(maps.Keys(chosen)) {
		ref := chosen[path]
		if err := after.Unknown(ref); err != nil && !(slices.Contains(had, ref) && before.Unknown(ref) != nil) {
			return chela.Errorf(chela.CodeInvalid, "%s: %w", path, err)
		}
	}
	return nil
}

// tooSmall returns the error about a context window for all agents with which no run begins.
func tooSmall(t *config.Tree) error {
	opts, err := settings.Read(t)
	if err != nil {
		return nil //nolint:nilerr // something else is wrong
	}
	if n := opts.Agent.ContextTokens; n != 0 && n < window.MinWindow {
		return chela.Errorf(chela.CodeInvalid,
			"agents.defaults.contextTokens: %d tokens are too few for a run; want at least %d", n, window.MinWindow)
	}
	return nil
}

// noBudgets returns the paths of budgets for all agents that are 0, which stands for the
// default.
func noBudgets(t *config.Tree) (out []string) {
	for _, k := range config.Keys() {
		if k.Path == "budget.usdPerDay" || strings.HasPrefix(k.Path, "agents.defaults.budget.") {
			var n *float64
			if raw := config.At(t.Written(), k.Path); raw != nil && json.Unmarshal(raw, &n) == nil && n != nil && *n == 0 {
				out = append(out, k.Path)
			}
		}
	}
	return out
}

// emptyAddress returns the path of an address of a provider that is written as an empty
// text; "": there is none.
func emptyAddress(t *config.Tree) string {
	var providers map[string]struct{ BaseURL *string }
	if raw := t.Section("models.providers"); raw == nil || json.Unmarshal(raw, &providers) != nil {
		return ""
	}
	for _, id := range slices.Sorted(maps.Keys(providers)) {
		if u := providers[id].BaseURL; u != nil && strings.TrimSpace(*u) == "" {
			return "models.providers." + id + ".baseUrl"
		}
	}
	return ""
}

// repeated returns the paths of agents that have the id of one before them. They have no
// effect.
func repeated(t *config.Tree) (out []string) {
	var section struct {
		List []struct{ ID string }
	}
	if raw := t.Section("agents"); raw == nil || json.Unmarshal(raw, &section) != nil {
		return nil
	}
	have := map[chela.AgentID]bool{}
	for i, a := range section.List {
		id := chela.AgentIDOf(a.ID)
		if have[id] {
			out = append(out, fmt.Sprintf("agents.list[%d]", i))
		}
		have[id] = true
	}
	return out
}

// writtenPort returns the error about the port in the files.
func writtenPort(t *config.Tree) error {
	port := config.At(t.Written(), "gateway.port")
	if port == nil || port[0] == '"' { // a variable
		return nil
	}
	_, err := endpoint.Read(fmt.Appendf(nil, `{"port": %s}`, port), endpoint.Listen{})
	return err
}

// models returns the models of a configuration.
func (b starter) models(ctx context.Context, s cli.Start, t *config.Tree) (*model.Set, error) {
	opts, err := settings.Read(t)
	if err != nil {
		return nil, err
	}
	o := opts.ModelOptions(s.State, settings.Environ(t))
	o.Log, o.NoProbe, o.NewProvider = slog.New(slog.DiscardHandler), true, b.registry.NewProvider
	return model.Open(ctx, o)
}

// unusable returns why a model cannot be asked with the configuration in the files.
func (b starter) unusable(ctx context.Context, s cli.Start, ref string) error {
	tree, err := load(s)
	if err != nil {
		return err
	}
	m, err := b.models(ctx, s, tree)
	if err != nil {
		return err
	}
	info, err := m.Catalog().Resolve(ref)
	if err != nil {
		return err
	}
	return m.Unusable(info.Provider)
}

// ineffective returns the paths of settings that have no effect in this build.
func (b starter) ineffective(ctx context.Context, s cli.Start, t *config.Tree) []string {
	known := b.registry.Channels()
	if t.Section("plugins") != nil && len(unknownChannels(t, known)) > 0 { // they may be those of plug-ins
		if more, err := b.generation(ctx, s, t); err == nil {
			known = slices.Concat(known, more)
		}
	}
	return unused(t, known)
}

// unused returns the paths of settings that have no effect where there are these channels.
func unused(t *config.Tree, known []channel.Factory) []string {
	out := slices.Concat(t.Unused(), unknownChannels(t, known), repeated(t))
	slices.Sort(out)
	return out
}

// unknownChannels returns the paths of the sections of unknown channels.
func unknownChannels(t *config.Tree, known []channel.Factory) []string {
	var sections map[string]json.RawMessage
	if raw := t.Section("channels"); raw == nil || json.Unmarshal(raw, &sections) != nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if name != "defaults" && channel.Find(known, name) == nil {
			out = append(out, config.FormatPath([]string{"channels", name}))
		}
	}
	return out
}
