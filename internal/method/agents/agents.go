// Package agents is the methods that say which agents there are and what they
// can do: their names, commands and tools.
package agents

import (
	"cmp"
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/wire"
)

// Agent is what is told of an agent.
type Agent struct {
	ID        chela.AgentID
	Name      string // "": the id
	Avatar    string // an emoji or a picture's address; "": first letter of the name
	Workspace string
	Primary   string // model asked first, provider/model
	Fallbacks []string
}

// Options is what the methods work with. All fields are required.
type Options struct {
	Default  chela.AgentID
	Scope    string // how direct messages split: per-sender
	Agents   func() []Agent
	Commands func() []wire.Command
	Tools    func(chela.AgentID) tool.Set
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodAgentsList, op, chela.ScopeRead, m.list),
		rpc.New(wire.MethodAgentIdentity, op, chela.ScopeRead, m.identity),
		rpc.New(wire.MethodCommandsList, op, chela.ScopeRead, m.commands).Accepting("provider", "scope"),
		rpc.New(wire.MethodToolsCatalog, op, chela.ScopeRead, m.tools).Accepting("includePlugins"),
	}
}

type methods struct{ o Options }

func (m methods) list(context.Context, rpc.Peer, wire.None) (wire.AgentsList, error) {
	out := wire.AgentsList{
		DefaultID: string(m.o.Default), MainKey: chela.MainKey, Scope: m.o.Scope, Agents: []wire.AgentInfo{},
	}
	for _, a := range m.o.Agents() {
		out.Agents = append(out.Agents, wire.AgentInfo{
			ID: string(a.ID), Name: name(a), Kind: "agent", Workspace: a.Workspace,
			Model: wire.AgentModel{Primary: a.Primary, Fallbacks: a.Fallbacks},
		})
	}
	return out, nil
}

func name(a Agent) string { return cmp.Or(a.Name, string(a.ID)) }

// find returns the agent that a client means: the named one, that of the
// session, or the default one.
func (m methods) find(method, id, session string) (Agent, error) {
	want := m.o.Default
	if session != "" {
		key, err := chela.ParseSessionKey(session, m.o.Default)
		if err != nil {
			return Agent{}, rpc.Invalid(method, "%v", err)
		}
		want = key.Agent()
	}
	if id != "" {
		want = chela.AgentID(id)
	}
	all := m.o.Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.ID == want })
	if i < 0 {
		return Agent{}, rpc.Invalid(method, "unknown agent id %q", want)
	}
	return all[i], nil
}

func (m methods) identity(_ context.Context, _ rpc.Peer, in wire.AgentIdentityGet) (wire.AgentIdentity, error) {
	a, err := m.find(wire.MethodAgentIdentity, in.AgentID, in.SessionKey)
	if err != nil {
		return wire.AgentIdentity{}, err
	}
	avatar := a.Avatar
	for _, r := range name(a) {
		avatar = cmp.Or(avatar, string(r))
		break
	}
	return wire.AgentIdentity{AgentID: string(a.ID), Name: name(a), Avatar: avatar}, nil
}

func (m methods) commands(_ context.Context, _ rpc.Peer, in wire.CommandsGet) (wire.CommandsList, error) {
	out := wire.CommandsList{Commands: []wire.Command{}}
	for _, c := range m.o.Commands() {
		if !in.IncludeArgs {
			c.Args = nil
		}
		out.Commands = append(out.Commands, c)
	}
	return out, nil
}

// groups are the tools by what they can do, in the order of danger.
var groups = [...]struct {
	effect tool.Effect
	label  string
}{{tool.Reads, "Read"}, {tool.Writes, "Change files and state"}, {tool.Acts, "Act"}}

func (m methods) tools(_ context.Context, _ rpc.Peer, in wire.ToolsGet) (wire.ToolsCatalog, error) {
	a, err := m.find(wire.MethodToolsCatalog, in.AgentID, "")
	if err != nil {
		return wire.ToolsCatalog{}, err
	}
	set := m.o.Tools(a.ID)
	out := wire.ToolsCatalog{AgentID: string(a.ID), Groups: []wire.ToolGroup{}}
	for _, g := range groups {
		group := wire.ToolGroup{ID: g.effect.String(), Label: g.label, Source: "core"}
		for _, n := range set.Names() {
			t, _ := set.Get(n)
			if s := t.Spec(); s.Effect == g.effect {
				group.Tools = append(group.Tools, wire.ToolInfo{
					ID: s.Name, Label: cmp.Or(s.Label, s.Name), Description: s.Description, Source: "core", Effect: s.Effect.String(),
				})
			}
		}
		if group.Tools != nil {
			out.Groups = append(out.Groups, group)
		}
	}
	return out, nil
}
