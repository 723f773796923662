package proposals

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/wire"
)

// workshopSource is the source of the skills that OpenClaw's proposals write. Its Control
// UI shows the earlier versions of skills with this source only.
const workshopSource = "openclaw-workshop"

// status returns the status of a proposal in the protocol, which has none for what was
// rolled back.
func status(p proposal.Proposal) string {
	if p.State == proposal.RolledBack {
		return string(proposal.Rejected)
	}
	return string(p.State)
}

func kind(p proposal.Proposal) string {
	if p.Update {
		return "update"
	}
	return "create"
}

// scanState summarizes what the scanner found.
func scanState(p proposal.Proposal) string {
	switch {
	case p.State == proposal.Quarantined:
		return "quarantined"
	case skill.Worst(p.Findings) == skill.Critical:
		return "failed"
	}
	return "clean"
}

func entry(p proposal.Proposal) wire.ProposalEntry {
	return wire.ProposalEntry{
		ID:          p.ID,
		Kind:        kind(p),
		Status:      status(p),
		Title:       p.Name,
		Description: cmp.Or(p.Description, p.Name),
		Skill:       p.Name,
		Key:         p.Name,
		CreatedAt:   p.Created.UTC(),
		UpdatedAt:   p.Updated.UTC(),
		Scan:        scanState(p),
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// record returns a proposal in the protocol's form. Files that are too large for it are
// left out.
func (o Options) record(p proposal.Proposal, files []proposal.File) wire.ProposalRecord {
	e := entry(p)
	dir := filepath.Join(o.Shelf.Skills(p.Agent), p.Name)
	out := wire.ProposalRecord{
		Schema:      wire.ProposalSchema,
		ID:          e.ID,
		Kind:        e.Kind,
		Status:      e.Status,
		Title:       e.Title,
		Description: e.Description,
		CreatedAt:   e.CreatedAt,
		UpdatedAt:   e.UpdatedAt,
		CreatedBy:   "gateway",
		Origin:      wire.ProposalOrigin{AgentID: string(p.Agent), SessionKey: p.Session},

		DraftFile: "PROPOSAL.md",
		Target: wire.ProposalTarget{
			Skill:  p.Name,
			Key:    p.Name,
			Dir:    dir,
			File:   filepath.Join(dir, skill.FileName),
			Source: workshopSource,
			Hash:   p.Base,
		},
		Scan: wire.ProposalScan{State: e.Scan, At: e.UpdatedAt, Findings: []wire.ProposalFinding{}},
		Goal: p.Reason,
	}
	if p.By == proposal.ByAgent {
		out.CreatedBy = "skill-workshop"
	}
	for _, f := range files {
		switch {
		case f.Path == skill.FileName:
			out.DraftHash = hash(f.Content)
		case len(f.Content) <= proposal.MaxFile:
			out.Files = append(out.Files, wire.ProposalFileInfo{Path: f.Path, Size: len(f.Content), Hash: hash(f.Content)})
		}
	}
	out.DraftHash = cmp.Or(out.DraftHash, p.Hash)
	for _, f := range p.Findings {
		switch f.Severity {
		case skill.Critical:
			out.Scan.Critical++
		case skill.Warn:
			out.Scan.Warn++
		default:
			out.Scan.Info++
		}
		out.Scan.Findings = append(out.Scan.Findings, wire.ProposalFinding{
			Rule:     f.Rule,
			Severity: string(f.Severity),
			File:     f.File,
			Line:     max(f.Line, 1),
			Text:     f.Text,
		})
	}
	revisions := 0
	for _, e := range p.Events {
		at := e.Time.UTC()
		switch e.State {
		case proposal.Pending:
			revisions++
		case proposal.Applied:
			out.AppliedAt = at
		case proposal.Rejected, proposal.RolledBack:
			out.RejectedAt = at
		case proposal.Quarantined:
			out.Quarantined = at
		case proposal.Stale:
			out.StaleAt = at
		}
		if p.State != proposal.Pending {
			out.StatusReason = e.Note
		}
	}
	if p.State == proposal.RolledBack {
		out.StatusReason = "rolled back"
	}
	out.Version = fmt.Sprint("v", max(revisions, 1))
	return out
}

// content returns a proposal with its files.
func (o Options) content(p proposal.Proposal, files []proposal.File) wire.ProposalContent {
	out := wire.ProposalContent{Record: o.record(p, files), Hash: p.Hash}
	for _, f := range files {
		switch {
		case f.Path == skill.FileName:
			out.Content = f.Content
		case len(f.Content) <= proposal.MaxFile:
			out.Files = append(out.Files, wire.SkillFile(f))
		}
	}
	return out
}

// describe returns a proposal with its exact status and its history. files may be nil.
func describe(p proposal.Proposal, files []proposal.File) wire.SkillProposal {
	out := wire.SkillProposal{
		ID:          p.ID,
		AgentID:     string(p.Agent),
		Name:        p.Name,
		Description: p.Description,
		Kind:        kind(p),
		Status:      string(p.State),
		By:          p.By,
		SessionKey:  p.Session,
		Reason:      p.Reason,
		Hash:        p.Hash,
		Findings:    []wire.SkillFinding{},
		Events:      []wire.SkillEvent{},
		CreatedAt:   wire.At(p.Created),
		UpdatedAt:   wire.At(p.Updated),
	}
	for _, f := range p.Findings {
		out.Findings = append(out.Findings, wire.SkillFinding{
			Rule:     f.Rule,
			Severity: string(f.Severity),
			File:     f.File,
			Line:     f.Line,
			Text:     f.Text,
		})
	}
	for _, e := range p.Events {
		out.Events = append(out.Events, wire.SkillEvent{At: wire.At(e.Time), Status: string(e.State), By: e.By, Note: e.Note})
	}
	for _, f := range files {
		out.Files = append(out.Files, wire.SkillFile(f))
	}
	return out
}
