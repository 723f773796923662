// Package commands implements the method that lists the slash commands. It
// lists the same registry as /commands.
package commands

import (
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the method. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	Skills  func(chela.AgentID) []*skill.Skill
}

// Methods returns the method.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{rpc.New(wire.MethodCommandsList, wire.RoleOperator, chela.ScopeRead, o.list)}
}

// maxDescription is the maximum length of the description of a skill.
const maxDescription = 200

// categories maps the registry's categories to those of the protocol.
var categories = map[string]string{
	"session": "session",
	"model":   "options",
	"agents":  "management",
	"info":    "status",
	"admin":   "management",
	"skills":  "tools",
}

func (o Options) list(_ context.Context, _ rpc.Peer, in wire.CommandsGet) (wire.CommandsList, error) {
	agent, err := rpc.AgentOf(in.AgentID, in.SessionKey, o.Default, o.Agent)
	if err != nil {
		return wire.CommandsList{}, err
	}
	if !slices.Contains([]string{"", "text", "native", "both"}, in.Scope) {
		return wire.CommandsList{}, rpc.Invalid("at /scope: must be equal to one of the allowed values")
	}
	return List(o.Skills(agent), in.IncludeArgs), nil
}

// List returns the commands and those of skills, with their arguments if args is set.
func List(skills []*skill.Skill, args bool) wire.CommandsList {
	out := wire.CommandsList{Commands: []wire.Command{}}
	for _, c := range inbound.Commands() {
		out.Commands = append(out.Commands, command(c, args))
	}
	for _, c := range inbound.SkillCommands(skills) {
		w := command(inbound.Command{Name: c.Name, Group: "skills", Args: "[input]",
			Help: humanize.Truncate(c.Skill.Description, maxDescription)}, args)
		w.Source = "skill"
		out.Commands = append(out.Commands, w)
	}
	return out
}

// command returns a command.
func command(c inbound.Command, args bool) wire.Command {
	w := wire.Command{
		Name: c.Name, NativeName: c.Name, Aliases: []string{"/" + c.Name}, Description: c.Help, Category: categories[c.Group],
		Source: "native", Scope: "both", AcceptsArgs: c.Args != "",
	}
	for _, a := range c.Aliases {
		w.Aliases = append(w.Aliases, "/"+a)
	}
	if args && c.Args != "" {
		w.Args = []wire.CommandArg{{Name: "args", Description: c.Args, Type: "string"}}
	}
	return w
}
