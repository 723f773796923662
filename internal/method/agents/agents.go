// Package agents is the methods that say which agents there are, who they are,
// and what stands in the files of their workspaces, and that change it.
package agents

import (
	"cmp"
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/prompt"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/wire"
)

// Agent is what is told of an agent.
type Agent struct {
	ID     chela.AgentID
	Name   string // "": the id
	Source string // where the name is from: config, workspace, default
	Emoji  string // "": none
	Files  *prompt.Workspace
	Git    bool      // the workspace is a Git repository
	Model  llm.Model // asked first
	Think  llm.Level // of sessions that set none

	Fallbacks []string // models that are asked after it
}

// Options is what the methods work with. All fields but Roster are required.
type Options struct {
	Default chela.AgentID
	Scope   string // how direct messages split: per-sender
	Agents  func() []Agent
	Roster  Roster // nil: nobody can change which agents there are
	State   string // directory in which workspaces are, and what was thrown away
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	out := []rpc.Method{
		rpc.New(wire.MethodAgentsList, op, chela.ScopeRead, m.list),
		rpc.New(wire.MethodAgentIdentity, op, chela.ScopeRead, m.identity),
		rpc.New(wire.MethodAgentsFilesList, op, chela.ScopeRead, m.files),
		rpc.New(wire.MethodAgentsFilesGet, op, chela.ScopeRead, m.file),
		rpc.New(wire.MethodAgentsFilesSet, op, chela.ScopeAdmin, m.write),
		rpc.New(wire.MethodWorkspaceList, op, chela.ScopeRead, m.entries),
		rpc.New(wire.MethodWorkspaceGet, op, chela.ScopeRead, m.content),
	}
	if o.Roster == nil {
		return out
	}
	return append(out,
		rpc.New(wire.MethodAgentsCreate, op, chela.ScopeAdmin, m.create),
		rpc.New(wire.MethodAgentsUpdate, op, chela.ScopeAdmin, m.update).Accepting("agentRuntime"),
		rpc.New(wire.MethodAgentsDelete, op, chela.ScopeAdmin, m.delete),
	)
}

type methods struct{ o Options }

func (m methods) list(context.Context, rpc.Peer, wire.None) (wire.AgentsList, error) {
	out := wire.AgentsList{
		DefaultID: string(m.o.Default), MainKey: chela.MainKey, Scope: m.o.Scope, Agents: []wire.AgentInfo{},
	}
	all := m.o.Agents()
	if len(all) == 1 {
		out.Ownership = "sole"
	}
	for _, a := range all {
		out.Agents = append(out.Agents, info(a))
	}
	return out, nil
}

// info returns an agent as lists show it.
func info(a Agent) wire.AgentInfo {
	out := wire.AgentInfo{
		ID: string(a.ID), Name: name(a), Kind: "agent", Identity: &wire.AgentPortrait{Name: name(a), Emoji: a.Emoji},
		Workspace: a.Files.Dir(), Git: a.Git, Model: wire.AgentModel{Primary: a.Model.Ref(), Fallbacks: a.Fallbacks}, Levels: shape.Levels(a.Model),
		DefaultLevel: string(cmp.Or(a.Think, llm.Off)),
	}
	for _, l := range out.Levels {
		out.Options = append(out.Options, l.ID)
	}
	return out
}

func name(a Agent) string { return cmp.Or(a.Name, string(a.ID)) }

// find returns the agent that a client means.
func (m methods) find(method, id, session string) (Agent, error) {
	want, err := shape.AgentOf(id, session, m.o.Default)
	if err != nil {
		return Agent{}, rpc.Invalid(method, "%v", err)
	}
	all := m.o.Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.ID == want })
	if i < 0 {
		return Agent{}, shape.UnknownAgent(want)
	}
	return all[i], nil
}

func (m methods) identity(_ context.Context, _ rpc.Peer, in wire.AgentIdentityGet) (wire.AgentIdentity, error) {
	a, err := m.find(wire.MethodAgentIdentity, in.AgentID, in.SessionKey)
	if err != nil {
		return wire.AgentIdentity{}, err
	}
	avatar := a.Emoji
	for _, r := range name(a) {
		avatar = cmp.Or(avatar, string(r))
		break
	}
	return wire.AgentIdentity{
		AgentID: string(a.ID), Name: name(a), Source: cmp.Or(a.Source, "default"), Avatar: avatar, Emoji: a.Emoji,
	}, nil
}
