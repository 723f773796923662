package doctor

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// withBackends calls f with the backends that confine commands, by name. What they
// write is removed afterwards.
func (d Doctor) withBackends(getenv func(string) string, f func(map[string]sandbox.Backend)) error {
	dir, err := os.MkdirTemp("", "chela-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := d.Registry.NewBackends(standard.SandboxEnv{State: dir, Log: slog.New(slog.DiscardHandler), Getenv: getenv})
	defer func() {
		for _, b := range all {
			b.Close()
		}
	}()
	f(all)
	return nil
}

// sandboxes checks how well commands are confined, and what weakens it.
func (a *audit) sandboxes(ctx context.Context, s cli.Start, tree *config.Tree,
	backends map[string]sandbox.Backend) error {
	opts, err := settings.Read(tree)
	if err != nil {
		return err
	}
	home := settings.Environ(tree)("HOME")
	if b := backends[sandbox.Native]; b == nil {
		a.add("sandbox.unavailable", cli.SeverityWarn, "",
			"this program cannot confine commands on %s, so all but single programs that read need approval", runtime.GOOS)
	} else if l := b.Level(ctx); !l.Complete {
		a.add("sandbox.unavailable", cli.SeverityWarn, l.Hint,
			"commands cannot be confined here (%s), so all but single programs that read need approval", l.Reason)
	} else if l.Reason != "" {
		a.add("sandbox.level", cli.SeverityInfo, l.Hint, "commands are confined by %s: %s", l.Name, l.Reason)
	}
	switch opts.Agent.Elevated {
	case "", "off":
	case "full":
		a.add("agents.defaults.elevated", cli.SeverityCritical, "chela config set agents.defaults.elevatedDefault off",
			"commands of sandboxed sessions run outside of the sandbox, in tools.exec.mode full without approval")
	default:
		a.add("agents.defaults.elevated", cli.SeverityWarn, "chela config set agents.defaults.elevatedDefault off",
			"commands of sandboxed sessions run outside of the sandbox, after approval")
	}
	for _, id := range opts.Roster() {
		a.sandboxOf(ctx, id, &opts, s, home, backends)
	}
	return a.hostEntries(filepath.Join(s.State, allowlist.FileName))
}

// sandboxOf checks the sandbox of an agent's sessions, and its workspace.
func (a *audit) sandboxOf(ctx context.Context, id chela.AgentID, opts *settings.Settings, s cli.Start, home string,
	backends map[string]sandbox.Backend) {
	workspace := opts.Workspace(id, s.State, home)
	if pathpolicy.Inside(pathpolicy.Real(s.Config), pathpolicy.Real(workspace)) {
		a.add("fs.config.in_workspace", cli.SeverityWarn, "move it, and set CHELA_CONFIG_PATH",
			"%s is in the workspace of the agent %s: Git may have copies of it, and a command that runs while it is written could read it", s.Config, id)
	}
	c, at := opts.Sandbox(id, home)
	if c.Mode == sandbox.Off {
		return
	}
	if c.Access == sandbox.ReadWrite {
		a.add(at+".workspace_rw", cli.SeverityInfo, "chela config set "+at+".workspaceAccess ro",
			"sandboxed sessions of the agent %s change its workspace (workspaceAccess rw), which its other sessions trust", id)
	}
	var open map[string]json.RawMessage
	if json.Unmarshal(c.Docker, &open) == nil {
		for _, name := range slices.Sorted(maps.Keys(open)) {
			if strings.HasPrefix(name, "dangerously") && string(open[name]) == "true" {
				a.add(at+"."+name, cli.SeverityWarn, "chela config set "+at+".docker."+name+" false",
					"docker.%s opens the containers of the agent %s to the host", name, id)
			}
		}
		if network := string(open["network"]); network != "" && network != `"none"` && network != `"host"` {
			a.add(at+".network", cli.SeverityWarn, "chela config set "+at+".docker.network none",
				"containers of the agent %s have the network %s, without the rules about hosts", id, network)
		}
	}
	b := backends[c.Backend]
	if b == nil {
		a.add(at+".backend_missing", cli.SeverityWarn, "chela config set "+at+".backend native",
			"the sandbox backend %s does not exist here, so commands of sandboxed sessions of the agent %s are refused",
			c.Backend, id)
		return
	}
	if l := b.Level(ctx); !l.Complete {
		a.add(at+".backend_missing", cli.SeverityWarn, l.Hint,
			"the sandbox backend %s does not work (%s), so commands of sandboxed sessions of the agent %s are refused",
			c.Backend, l.Reason, id)
	}
	box := sandbox.New(c, chela.MainSession(id), workspace, filepath.Join(s.State, "sandboxes"))
	err := b.Prepare(box)
	if checker, ok := b.(sandbox.Checker); ok && err == nil {
		err = checker.Check(box)
	}
	if err != nil {
		a.add(at+".refused", cli.SeverityCritical, "chela config validate", "%v", err)
	}
}

// hostEntries lists the entries of the allowlist that run outside of the sandbox.
func (a *audit) hostEntries(path string) error {
	d, _, err := allowlist.NewFile(path).Load()
	if err != nil {
		return nil //nolint:nilerr // commands reports it
	}
	for _, agent := range slices.Sorted(maps.Keys(d.Agents)) {
		var names []string
		for _, e := range d.Agents[agent].Allowlist {
			if e.Host {
				names = append(names, strings.TrimSpace(e.Pattern+" "+e.Args))
			}
		}
		if len(names) > 0 {
			a.add("tools.exec.allowlist_host", cli.SeverityInfo, "chela approvals allowlist list",
				"these entries of the allowlist (agent %s) run without approval outside of the sandbox: %s", agent,
				strings.Join(names, ", "))
		}
	}
	return nil
}

// sandbox reports how well commands can be confined here, and what weakens it.
func (c *checkup) sandbox(ctx context.Context, s cli.Start, tree *config.Tree, getenv func(string) string) {
	err := c.withBackends(getenv, func(all map[string]sandbox.Backend) {
		if b := all[sandbox.Native]; b != nil { // nil: this build has none
			switch l := b.Level(ctx); {
			case !l.Complete:
				c.warn("sandbox", l.Hint,
					"commands cannot be confined here (%s), so all but single programs that read need approval", l.Reason)
			case l.Reason != "":
				c.ok("sandbox", "%s: %s", l.Name, l.Reason)
			default:
				c.ok("sandbox", "%s", l.Name)
			}
		}
		a := &audit{}
		if tree == nil || a.sandboxes(ctx, s, tree, all) != nil { // the check of the configuration reports it
			return
		}
		for _, w := range a.found {
			if w.Severity != cli.SeverityInfo && w.ID != "sandbox.unavailable" {
				c.warn("sandbox", w.Hint, "%s", w.Text)
			}
		}
	})
	if err != nil {
		c.fail("sandbox", "", "%v", err)
	}
}
