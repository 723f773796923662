package inbound

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Allowed is which commands the configuration permits, besides /config.
type Allowed struct {
	Text, Bash, MCP, Plugins, Restart bool
}

func adminCommands() []Command {
	const group = "admin"
	admin := func(name string, on func(Allowed) bool, key string) func(context.Context, *call) (string, error) {
		return func(ctx context.Context, k *call) (string, error) {
			switch {
			case !on(k.g.allowed()):
				return "", refuse{"/" + name + " is disabled. To enable it, run `chela config set commands." + key + " true`."}
			case k.g.o.Admin == nil:
				return "", refuse{"/" + name + " is not available here."}
			}
			return k.g.o.Admin(chela.WithPrincipal(ctx, k.who), name, k.args, k.key)
		}
	}
	always := func(Allowed) bool { return true }
	return []Command{
		{
			Name: "tasks", Group: "info", Scope: chela.ScopeRead, Help: "list the work in the background of this session",
			before: admin("tasks", always, ""),
		},
		{
			Name: "diagnostics", Group: group, Scope: chela.ScopeAdmin, Help: "show the state of the gateway",
			before: admin("diagnostics", always, ""),
		},
		{
			Name: "mcp", Group: group, Scope: chela.ScopeAdmin, Help: "list the MCP servers, if commands.mcp is true",
			before: admin("mcp", func(a Allowed) bool { return a.MCP }, "mcp"),
		},
		{
			Name: "plugins", Group: group, Args: "[list | enable <id> | disable <id>]", Scope: chela.ScopeAdmin,
			Help:   "list, enable and disable plug-ins, if commands.plugins is true",
			before: admin("plugins", func(a Allowed) bool { return a.Plugins }, "plugins"),
		},
		{
			Name: "restart", Group: group, Scope: chela.ScopeAdmin, Help: "restart the gateway; work in progress resumes",
			before: admin("restart", func(a Allowed) bool { return a.Restart }, "restart"),
		},
		{
			Name: "bash", Group: group, Args: "<command> | poll | stop", Scope: chela.ScopeAdmin,
			Help:   "run a command, if commands.bash is true; also !command, !poll and !stop",
			before: bash,
		},
	}
}

// allowed returns the commands that are permitted.
func (g *Gate) allowed() Allowed {
	if g.o.Allowed == nil {
		return Allowed{Text: true, Restart: true}
	}
	return g.o.Allowed()
}

// bash is /bash. The command passes the same rules as that of a model.
func bash(ctx context.Context, k *call) (string, error) {
	switch {
	case !k.g.allowed().Bash:
		return "", refuse{"/bash is disabled. To enable it, run `chela config set commands.bash true`."}
	case k.g.o.Bash == nil:
		return "", refuse{"/bash is not available here."}
	case k.args == "":
		return "", refuse{"Usage: /bash <command>, /bash poll or /bash stop"}
	}
	text, err := k.g.o.Bash(ctx, k.who, k.key, k.args)
	return chunk.Fenced(text), err
}

// bang returns the command /bash that a message with a leading "!", also a wide
// one before a word in ASCII, stands for.
func bang(s string) (string, bool) {
	s = strings.TrimSpace(s)
	line, ok := strings.CutPrefix(s, "!")
	if !ok {
		line, ok = strings.CutPrefix(s, "！")
		ok = ok && startsCommand(s)
	}
	if s = strings.TrimSpace(line); !ok || s == "" || strings.HasPrefix(s, "!") {
		return "", false
	}
	return "/bash " + s, true
}
