package system

import (
	"cmp"
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
		rpc.New(wire.MethodThemesList, op, chela.ScopeRead, answer[wire.None](wire.ThemesList{
			Current: wire.ThemeChoice{ID: pageTheme.ID, Mode: "system", Scope: "gateway"}, Theme: pageTheme,
			Themes: []wire.Theme{},
		})),
		rpc.New(wire.MethodUsersList, op, chela.ScopeRead, answer[wire.None](wire.UsersList{Profiles: []wire.None{}})),
		rpc.New(wire.MethodEnvironmentsList, op, chela.ScopeRead, answer[wire.None](wire.EnvironmentsList{
			Environments: []wire.Environment{{ID: "gateway", Type: "local", Label: "Gateway local", Status: "available"}},
		})),
		rpc.New(wire.MethodAssistantChat, op, chela.ScopeAdmin, assist).Reads(),
		rpc.New(wire.MethodWizardStart, op, chela.ScopeAdmin, startWizard).Reads(),
	}
}

// assist answers for the assistant that sets OpenClaw up, with the commands that do so here.
func assist(_ context.Context, _ rpc.Peer, in wire.AssistantChat) (wire.AssistantReply, error) {
	return wire.AssistantReply{SessionID: in.SessionID, Action: "none",
		Reply: `Chela has no assistant for its settings. They are changed with commands on the machine of the gateway:

    chela agents add NAME      # a new agent
    chela channels add NAME    # a chat app, such as telegram
    chela onboard              # a model, and everything else that a new installation needs

Or ask the assistant itself in a chat.`}, nil
}

// startWizard refuses to set something up step by step.
func startWizard(_ context.Context, _ rpc.Peer, in wire.WizardStart) (wire.WizardStarted, error) {
	command := "chela onboard"
	if in.Flow == "channels" {
		command = "chela channels add " + cmp.Or(in.Channel, "NAME")
	}
	return wire.WizardStarted{
		SessionID: "none", Done: true, Status: "error",
		Error: "this is set up with a command on the machine of the gateway: " + command,
	}, nil
}

// pageTheme is the theme that OpenClaw's Control UI shows by default.
var pageTheme = wire.Theme{ID: "claw", Name: "Claw", Source: "builtin", Modes: []string{"light", "dark"}}

// answer returns a function that answers always the same.
func answer[P, R any](r R) func(context.Context, rpc.Peer, P) (R, error) {
	return func(context.Context, rpc.Peer, P) (R, error) { return r, nil }
}
