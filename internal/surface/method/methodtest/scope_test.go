package methodtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// needs is the scope each method needs according to the protocol.
var needs = map[chela.Scope][]string{
	chela.ScopeRead: {
		"health", "status", "system-presence", "system.info", "channels.status", "agents.list", "agent.identity.get",
		"agents.files.list", "agents.files.get", "agents.workspace.list", "agents.workspace.get", "models.list",
		"models.authStatus", "models.status", "commands.list", "tools.catalog", "tools.effective",
		"tools.explain", "tools.calls", "sandbox.status", "sandbox.explain", "hooks.status", "usage.cost", "usage.status",
		"usage.receipt", "budget.status", "sessions.usage", "node.list", "node.describe",
		"cron.list", "cron.get", "cron.status", "cron.runs",
		"diagnostics.lanes", "sessions.observer.visibility", "themes.list", "users.list", "environments.list",
		"last-heartbeat", "device.scopes.requestUpgrade", "device.scopes.waitUpgrade", "progressCard.get",
	},
	chela.ScopeWrite: {"tools.invoke", "wake", "progressCard.put", "progressCard.refresh", "send",
		"poll", "message.action"},
	chela.ScopePairing: {
		"guests.list", "guests.approve", "guests.dismiss", "guests.remove",
		"device.pair.list", "device.pair.approve", "device.pair.reject", "device.pair.remove",
		"device.pair.rename", "device.token.rotate",
		"device.token.revoke", "node.rename", "node.pair.list", "node.pair.approve", "node.pair.reject", "node.pair.remove",
	},
	chela.ScopeApprovals: {
		"exec.approval.list", "exec.approval.get", "exec.approval.resolve", "exec.approval.request",
		"exec.approval.waitDecision",
		"approval.get", "approval.history", "approval.resolve", "plugin.approval.list", "plugin.approval.resolve",
		"openclaw.approval.list",
	},
	chela.ScopeQuestions: {"question.list"},
	chela.ScopeAdmin: {
		"openclaw.chat", "wizard.start", "system-event", "set-heartbeats", "update.status", "backup.create",
		"agents.files.set", "device.pair.setupCode", "device.pair.setupStatus", "exec.approvals.get", "exec.approvals.set",
		"budget.set", "models.probe", "models.authLogout", "sandbox.test", "sandbox.recreate", "hooks.install",
		"cron.add", "cron.update", "cron.remove", "cron.run", "cron.scratch.get", "cron.scratch.set",
		"cron.export", "cron.import",
	},
}

// scopes are the scopes that no other scope includes.
var scopes = []chela.Scope{chela.ScopeWrite, chela.ScopeApprovals, chela.ScopeQuestions, chela.ScopePairing}

func TestScopes(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	known := map[string]bool{}
	for _, names := range needs {
		for _, n := range names {
			known[n] = true
		}
	}
	for _, name := range h.Hello().Features.Methods {
		family, _, _ := strings.Cut(name, ".")
		if !known[name] && !slices.Contains([]string{"chat", "sessions", "agent"}, family) {
			t.Errorf("%s is missing in the table", name)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("%s is in the table but is not a method", name)
	}

	node := dialAs(t, h, wire.RoleNode, nil)
	for scope, names := range needs {
		var others []chela.Scope
		for _, s := range scopes {
			if s != scope && (scope != chela.ScopeRead || s != chela.ScopeWrite) { // write includes read
				others = append(others, s)
			}
		}
		without := dialAs(t, h, wire.RoleOperator, others)
		for _, name := range names {
			var we *wire.Error
			err := without.Call(t.Context(), name, nil, nil)
			if want := "missing scope: " + string(scope); !errors.As(err, &we) || we.Message != want ||
				we.Code != wire.Forbidden {
				t.Errorf("%s with all scopes but the required one: %v, want %s", name, err, want)
			}
			if slices.Contains([]string{"health", "agents.list", "node.list", "exec.approval.list", "question.list",
				"backup.create"}, name) {
				if err := node.Call(t.Context(), name, nil, nil); !errors.As(err, &we) || we.Message != "unauthorized role: node" {
					t.Errorf("%s as a node: %v", name, err)
				}
			}
		}
	}
}

// dialAs connects in a role with scopes.
func dialAs(t *testing.T, h *methodtest.Fixture, role string, scopes []chela.Scope) *client.Client {
	t.Helper()
	pipe := gateway.NewPipe()
	who := chela.Principal{ID: "somebody", Credential: "test", Scopes: scopes}
	go h.Server.Serve(pipe, h.Server.Upgrade(func(context.Context, access.Attempt) (access.Grant, error) {
		return access.Grant{Principal: who, Method: "test"}, nil
	}))
	o := client.Options{Dial: pipe.Dial}
	if role == wire.RoleNode {
		o.Role = role
	}
	c, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
