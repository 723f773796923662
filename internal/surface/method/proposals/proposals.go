// Package proposals implements the methods about proposals of skills.
package proposals

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Shelf   *proposal.Shelf
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	// Skills returns the skills of an agent's workspace that proposals can change.
	Skills func(chela.AgentID) []*skill.Skill
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodProposalsList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodProposalsInspect, op, chela.ScopeRead, o.inspect),
		rpc.New(wire.MethodProposalsDescribe, op, chela.ScopeRead, o.describe),
		rpc.New(wire.MethodProposalsCreate, op, chela.ScopeAdmin, o.create),
		rpc.New(wire.MethodProposalsUpdate, op, chela.ScopeAdmin, o.update),
		rpc.New(wire.MethodProposalsRevise, op, chela.ScopeAdmin, o.revise).Ignoring("correlationId"),
		rpc.New(wire.MethodProposalsApply, op, chela.ScopeAdmin, o.apply).Ignoring("correlationId"),
		rpc.New(wire.MethodProposalsReject, op, chela.ScopeAdmin, o.reject).Ignoring("correlationId"),
		rpc.New(wire.MethodProposalsQuarantine, op, chela.ScopeAdmin, o.quarantine).Ignoring("correlationId"),
		rpc.New(wire.MethodProposalsRollback, op, chela.ScopeAdmin, o.rollback),
		rpc.New(wire.MethodWorkshopRead, op, chela.ScopeRead, o.read),
	}
}

// agent returns the agent that a request names; "": the default one.
func (o Options) agent(id string) (chela.AgentID, error) {
	return rpc.AgentOf(id, "", o.Default, o.Agent)
}

// find returns a proposal of an agent, or of any if agent is empty, with its files.
func (o Options) find(agent, id string) (proposal.Proposal, []proposal.File, error) {
	if id == "" {
		return proposal.Proposal{}, nil, rpc.Invalid("at /proposalId: must NOT have fewer than 1 characters")
	}
	p, files, err := o.Shelf.Get(id)
	if err == nil && agent != "" && p.Agent != chela.AgentID(agent) {
		err = &chela.Error{Code: chela.CodeNotFound, Message: "the proposal " + p.ID + " is not of this agent",
			Hint: "chela skills proposals list"}
	}
	return p, files, err
}

func (o Options) list(_ context.Context, _ rpc.Peer, in wire.ProposalsList) (wire.Proposals, error) {
	out := wire.Proposals{Schema: wire.ProposalsSchema, UpdatedAt: time.Now().UTC(), Proposals: []wire.ProposalEntry{},
		Installed: []wire.WorkshopSkill{}}
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return out, err
	}
	for _, s := range o.Skills(agent) {
		out.Installed = append(out.Installed, wire.WorkshopSkill{Name: s.Name, Key: s.Name, Description: s.Description})
	}
	all, err := o.Shelf.List(chela.AgentID(in.AgentID))
	for _, p := range all {
		out.Proposals = append(out.Proposals, entry(p))
	}
	if len(all) > 0 {
		last := slices.MaxFunc(all, func(a, b proposal.Proposal) int { return a.Updated.Compare(b.Updated) })
		out.UpdatedAt = last.Updated.UTC()
	}
	return out, err
}

func (o Options) inspect(_ context.Context, _ rpc.Peer, in wire.ProposalRef) (wire.ProposalContent, error) {
	p, files, err := o.find(in.AgentID, in.ID)
	if err != nil {
		return wire.ProposalContent{}, err
	}
	return o.content(p, files), nil
}

func (o Options) describe(_ context.Context, _ rpc.Peer, in wire.ProposalDescribe) (wire.SkillProposals, error) {
	out := wire.SkillProposals{Proposals: []wire.SkillProposal{}}
	if in.ID != "" {
		p, files, err := o.find(in.AgentID, in.ID)
		if err != nil {
			return out, err
		}
		out.Proposals = append(out.Proposals, describe(p, files))
		return out, nil
	}
	all, err := o.Shelf.List(chela.AgentID(in.AgentID))
	for _, p := range all {
		out.Proposals = append(out.Proposals, describe(p, nil))
	}
	return out, err
}

func (o Options) create(_ context.Context, _ rpc.Peer, in wire.ProposalCreate) (wire.ProposalContent, error) {
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return wire.ProposalContent{}, err
	}
	return o.written(o.Shelf.Create(proposal.Draft{
		Agent:       agent,
		Name:        in.Name,
		Description: in.Description,
		Content:     in.Content,
		Files:       supportFiles(in.Files),
		Reason:      reason(in.Goal, in.Evidence),
		By:          proposal.ByOperator,
	}))
}

func (o Options) update(_ context.Context, _ rpc.Peer, in wire.ProposalUpdate) (wire.ProposalContent, error) {
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return wire.ProposalContent{}, err
	}
	return o.written(o.Shelf.Create(proposal.Draft{
		Agent:       agent,
		Name:        in.Skill,
		Update:      true,
		Description: in.Description,
		Content:     in.Content,
		Files:       supportFiles(in.Files),
		Reason:      reason(in.Goal, in.Evidence),
		By:          proposal.ByOperator,
	}))
}

func (o Options) revise(_ context.Context, _ rpc.Peer, in wire.ProposalRevise) (wire.ProposalContent, error) {
	p, files, err := o.find(in.AgentID, in.ID)
	if err != nil {
		return wire.ProposalContent{}, err
	}
	d := proposal.Draft{
		Description: in.Description,
		Content:     in.Content,
		Files:       supportFiles(in.Files),
		Reason:      reason(in.Goal, in.Evidence),
		By:          proposal.ByOperator,
		Expect:      in.Hash,
	}
	if in.Files != nil && !p.Update {
		for _, f := range files {
			if f.Path != skill.FileName &&
				!slices.ContainsFunc(in.Files, func(n wire.SkillFile) bool { return n.Path == f.Path }) {
				d.Remove = append(d.Remove, f.Path)
			}
		}
	}
	return o.written(o.Shelf.Revise(p.ID, d))
}

// written returns a proposal that was written, with its files.
func (o Options) written(p proposal.Proposal, err error) (wire.ProposalContent, error) {
	if err != nil {
		return wire.ProposalContent{}, changed(err)
	}
	p, files, err := o.Shelf.Get(p.ID)
	if err != nil {
		return wire.ProposalContent{}, err
	}
	return o.content(p, files), nil
}

func (o Options) apply(ctx context.Context, _ rpc.Peer, in wire.ProposalDecision) (wire.ProposalApplied, error) {
	r, err := o.decide(in, func(id string) (proposal.Proposal, error) {
		return o.Shelf.Apply(ctx, id, in.Hash, proposal.ByOperator)
	})
	return wire.ProposalApplied{Record: r, File: r.Target.File}, err
}

func (o Options) reject(_ context.Context, _ rpc.Peer, in wire.ProposalDecision) (wire.ProposalRecord, error) {
	return o.decide(in, func(id string) (proposal.Proposal, error) {
		return o.Shelf.Close(id, in.Hash, proposal.Rejected, proposal.ByOperator, in.Reason)
	})
}

// decide carries out the decision about a revision of a proposal.
func (o Options) decide(in wire.ProposalDecision,
	f func(id string) (proposal.Proposal, error)) (wire.ProposalRecord, error) {
	if in.Hash == "" {
		return wire.ProposalRecord{}, rpc.Invalid("at /expectedRevisionHash: must NOT have fewer than 64 characters")
	}
	return o.change(in.AgentID, in.ID, f)
}

func (o Options) quarantine(_ context.Context, _ rpc.Peer, in wire.ProposalAction) (wire.ProposalRecord, error) {
	return o.change(in.AgentID, in.ID, func(id string) (proposal.Proposal, error) {
		return o.Shelf.Close(id, in.Hash, proposal.Quarantined, proposal.ByOperator, in.Reason)
	})
}

// change calls f, which changes the state of a proposal.
func (o Options) change(agent, id string, f func(id string) (proposal.Proposal, error)) (wire.ProposalRecord, error) {
	p, files, err := o.find(agent, id)
	if err != nil {
		return wire.ProposalRecord{}, err
	}
	if p, err = f(p.ID); err != nil {
		return wire.ProposalRecord{}, changed(err)
	}
	return o.record(p, files), nil
}

func (o Options) rollback(ctx context.Context, _ rpc.Peer, in wire.ProposalRef) (wire.SkillProposal, error) {
	p, _, err := o.find(in.AgentID, in.ID)
	if err == nil {
		p, err = o.Shelf.Rollback(ctx, p.ID, proposal.ByOperator)
	}
	if err != nil {
		return wire.SkillProposal{}, err
	}
	return describe(p, nil), nil
}

func (o Options) read(_ context.Context, _ rpc.Peer, in wire.WorkshopRead) (wire.WorkshopSkill, error) {
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return wire.WorkshopSkill{}, err
	}
	for _, s := range o.Skills(agent) {
		if s.Name == in.Name {
			text, err := s.Text()
			return wire.WorkshopSkill{Name: s.Name, Key: s.Name, Description: s.Description, Content: text}, err
		}
	}
	return wire.WorkshopSkill{}, &chela.Error{Code: chela.CodeNotFound,
		Message: "the workspace has no skill with this name", Hint: "chela skills list"}
}

// changed adds the details that clients expect of the error about a proposal that has
// changed.
func changed(err error) error {
	e, ok := errors.AsType[*proposal.ChangedError](err)
	if !ok {
		return err
	}
	return rpc.Error(err).With(map[string]any{
		"code":                 wire.DetailProposalChanged,
		"expectedRevisionHash": e.Expected,
		"currentRevisionHash":  e.Current,
	})
}

// reason returns the reason for a draft.
func reason(goal, evidence string) string {
	return strings.Join(slices.DeleteFunc([]string{goal, evidence}, func(s string) bool { return s == "" }), "\n")
}

func supportFiles(in []wire.SkillFile) (out []proposal.File) {
	for _, f := range in {
		out = append(out, proposal.File(f))
	}
	return out
}
