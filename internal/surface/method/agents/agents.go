// Package agents implements the methods that list, create, change and delete
// agents and that read and write the files of their workspaces.
package agents

import (
	"cmp"
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Agent describes an agent.
type Agent struct {
	ID     chela.AgentID
	Name   string // "": ID
	Source string // of the name: config, workspace, default
	Emoji  string // "": none
	Files  *prompt.Workspace
	Git    bool      // the workspace is a Git repository
	Model  llm.Model // primary model
	Think  llm.Level // default thinking level

	Fallbacks []string // models tried after Model
}

// Options configures the methods. All fields but Roster are required.
type Options struct {
	Default chela.AgentID
	Scope   string // how direct messages are split into sessions: per-sender
	Agents  func() []Agent
	Roster  Roster // nil: agents cannot be created, changed or deleted
	State   string // state directory, which contains workspaces and the trash
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
		rpc.New(wire.MethodAgentsUpdate, op, chela.ScopeAdmin, m.update).Ignoring("agentRuntime"),
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

// info returns the list entry of an agent.
func info(a Agent) wire.AgentInfo {
	out := wire.AgentInfo{
		ID:           string(a.ID),
		Name:         name(a),
		Kind:         "agent",
		Identity:     &wire.AgentProfile{Name: name(a), Emoji: a.Emoji},
		Workspace:    a.Files.Dir(),
		Git:          a.Git,
		Model:        wire.AgentModel{Primary: a.Model.Ref(), Fallbacks: a.Fallbacks},
		Levels:       wireview.Levels(a.Model),
		DefaultLevel: string(cmp.Or(a.Think, llm.Off)),
	}
	for _, l := range out.Levels {
		out.Options = append(out.Options, l.ID)
	}
	return out
}

func name(a Agent) string { return cmp.Or(a.Name, string(a.ID)) }

// find returns the agent of a request.
func (m methods) find(id, session string) (Agent, error) {
	var found Agent
	_, err := rpc.AgentOf(id, session, m.o.Default, func(want chela.AgentID) bool {
		all := m.o.Agents()
		i := slices.IndexFunc(all, func(a Agent) bool { return a.ID == want })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found, err
}

func (m methods) identity(_ context.Context, _ rpc.Peer, in wire.AgentIdentityGet) (wire.AgentIdentity, error) {
	a, err := m.find(in.AgentID, in.SessionKey)
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
