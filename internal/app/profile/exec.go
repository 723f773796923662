package profile

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// Exec returns what /exec chooses from for a principal in a session. The tool exec enforces
// the same rules for each command.
func (g *Generation) Exec(ctx context.Context, who chela.Principal, key chela.SessionKey) (inbound.ExecRule, error) {
	m, err := g.meta(ctx, key)
	if err != nil {
		return inbound.ExecRule{}, err
	}
	rules, err := g.Allowed.Rules(m.Agent)
	if err != nil {
		return inbound.ExecRule{}, fmt.Errorf("rules about commands: %w", err)
	}
	c, err := exec.ParseConfig(g.Config.Section("tools.exec"))
	if err != nil {
		return inbound.ExecRule{}, fmt.Errorf("configuration, tools.exec: %w", err)
	}
	r := inbound.ExecRule{Host: c.Options(exec.Options{}).Host, Policy: rules.Policy}
	if r.Host == run.HostSandbox {
		r.NoHost = "tools.exec.host is sandbox"
	}
	if box := g.Sandbox(m); box != nil {
		r.Host = run.HostSandbox
		if e := g.Settings.ElevatedFor(m.Agent, who, m.Elevated); e.Reason != "" {
			r.NoHost = e.Reason
		}
		return r, nil
	}
	cage := g.Cage()
	if cage == nil {
		r.NoSandbox = "commands are not sandboxed here"
	} else if level := cage.Level(ctx); !level.Complete {
		r.NoSandbox = level.Reason
	}
	return r, nil
}
