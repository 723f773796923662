package system

import (
	"context"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// absent returns the methods about features that Chela does not have. Their answers say
// that there is nothing.
func absent() []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodUpdateStatus, op, chela.ScopeAdmin, answer[wire.None](wire.UpdateStatus{
			Sentinel: json.RawMessage("null"), Available: json.RawMessage("null"),
		})).Reads(),
		rpc.New(wire.MethodObserverVisibility, op, chela.ScopeRead, answer[wire.ObserverVisibility](wire.OK{OK: true})),
		rpc.New(wire.MethodTalkCatalog, op, chela.ScopeRead, answer[wire.None](wire.TalkCatalog{
			Modes: []string{}, Transports: []string{}, Brains: []string{}, Speech: silence, Transcription: silence, Realtime: silence,
		})),
		rpc.New(wire.MethodThemesList, op, chela.ScopeRead, answer[wire.None](wire.ThemesList{
			Current: wire.ThemeChoice{ID: pageTheme.ID, Mode: "system", Scope: "gateway"}, Theme: pageTheme, Themes: []wire.Theme{},
		})),
		rpc.New(wire.MethodUsersList, op, chela.ScopeRead, answer[wire.None](wire.UsersList{Profiles: []wire.None{}})),
		rpc.New(wire.MethodEnvironmentsList, op, chela.ScopeRead, answer[wire.None](wire.EnvironmentsList{
			Environments: []wire.Environment{{ID: "gateway", Type: "local", Label: "Gateway local", Status: "available"}},
		})),
	}
}

// silence says that nobody can talk.
var silence = wire.TalkProviders{Providers: []wire.None{}}

// pageTheme is the theme that OpenClaw's Control UI shows by default.
var pageTheme = wire.Theme{ID: "claw", Name: "Claw", Source: "builtin", Modes: []string{"light", "dark"}}

// answer returns a function that answers always the same.
func answer[P, R any](r R) func(context.Context, rpc.Peer, P) (R, error) {
	return func(context.Context, rpc.Peer, P) (R, error) { return r, nil }
}
