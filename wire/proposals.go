package wire

import "time"

// Methods of proposals of skills. skills.proposals.describe and skills.proposals.rollback
// are Chela's own.
const (
	MethodProposalsList       = "skills.proposals.list"
	MethodProposalsInspect    = "skills.proposals.inspect"
	MethodProposalsDescribe   = "skills.proposals.describe"
	MethodProposalsCreate     = "skills.proposals.create"
	MethodProposalsUpdate     = "skills.proposals.update"
	MethodProposalsRevise     = "skills.proposals.revise"
	MethodProposalsApply      = "skills.proposals.apply"
	MethodProposalsReject     = "skills.proposals.reject"
	MethodProposalsQuarantine = "skills.proposals.quarantine"
	MethodProposalsRollback   = "skills.proposals.rollback"
	MethodWorkshopRead        = "skills.workshop.read"
)

// The forms of proposals, in their field schema.
const (
	ProposalsSchema = "openclaw.skill-workshop.proposals-manifest.v1"
	ProposalSchema  = "openclaw.skill-workshop.proposal.v1"
)

// DetailProposalChanged is the code in the details of the error about a proposal that is
// not the revision that a client expects.
const DetailProposalChanged = "SKILL_PROPOSAL_REVISION_CHANGED"

// ProposalsList holds the parameters of skills.proposals.list.
type ProposalsList struct {
	AgentID string `json:"agentId,omitempty"` // "": all
}

// Proposals is the result of skills.proposals.list, newest first.
type Proposals struct {
	Schema    string          `json:"schema"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Proposals []ProposalEntry `json:"proposals"`
	// Installed is the skills of the workspace, which proposals can change.
	Installed []WorkshopSkill `json:"installedSkills"`
}

// ProposalEntry is a proposal in a list.
type ProposalEntry struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // create or update
	// pending, applied, rejected, quarantined, stale; rejected also if it was rolled back
	Status      string    `json:"status"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Skill       string    `json:"skillName"`
	Key         string    `json:"skillKey"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	Scan        string    `json:"scanState"` // clean, failed, quarantined
}

// ProposalRecord is a proposal without the content of its files, and the result of
// skills.proposals.reject and skills.proposals.quarantine.
type ProposalRecord struct {
	Schema       string             `json:"schema"`
	ID           string             `json:"id"`
	Kind         string             `json:"kind"`
	Status       string             `json:"status"`
	Title        string             `json:"title"`
	Description  string             `json:"description"`
	CreatedAt    time.Time          `json:"createdAt"`
	UpdatedAt    time.Time          `json:"updatedAt"`
	CreatedBy    string             `json:"createdBy"` // skill-workshop: the assistant; gateway: a client
	Origin       ProposalOrigin     `json:"origin"`
	Version      string             `json:"proposedVersion"` // v1, v2 after a revision, …
	DraftFile    string             `json:"draftFile"`       // always PROPOSAL.md, the name in OpenClaw
	DraftHash    string             `json:"draftHash"`       // SHA-256 of SKILL.md
	Files        []ProposalFileInfo `json:"supportFiles,omitempty"`
	Target       ProposalTarget     `json:"target"`
	Scan         ProposalScan       `json:"scan"`
	Goal         string             `json:"goal,omitempty"`
	AppliedAt    time.Time          `json:"appliedAt,omitzero"`
	RejectedAt   time.Time          `json:"rejectedAt,omitzero"`
	Quarantined  time.Time          `json:"quarantinedAt,omitzero"`
	StaleAt      time.Time          `json:"staleAt,omitzero"`
	StatusReason string             `json:"statusReason,omitempty"`
}

// ProposalOrigin says where a proposal is from.
type ProposalOrigin struct {
	AgentID    string `json:"agentId"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// ProposalFileInfo describes a file of a proposal.
type ProposalFileInfo struct {
	Path string `json:"path"`
	Size int    `json:"sizeBytes"`
	Hash string `json:"hash"` // SHA-256
}

// ProposalTarget is the skill that a proposal writes.
type ProposalTarget struct {
	Skill  string `json:"skillName"`
	Key    string `json:"skillKey"`
	Dir    string `json:"skillDir"`
	File   string `json:"skillFile"`
	Source string `json:"source"`
	Hash   string `json:"currentContentHash,omitempty"` // of the skill that it replaces
}

// ProposalScan is what the scanner found in a proposal.
type ProposalScan struct {
	State    string            `json:"state"`
	At       time.Time         `json:"scannedAt"`
	Critical int               `json:"critical"`
	Warn     int               `json:"warn"`
	Info     int               `json:"info"`
	Findings []ProposalFinding `json:"findings"`
}

// ProposalFinding is a finding of the scanner.
type ProposalFinding struct {
	Rule     string `json:"ruleId"`
	Severity string `json:"severity"` // info, warn, critical
	File     string `json:"file"`
	Line     int    `json:"line"` // 1 also if the finding is about the whole file
	Text     string `json:"message"`
	Evidence string `json:"evidence"`
}

// SkillFile is a file of a proposed skill.
type SkillFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// ProposalContent is a proposal with its files, the result of skills.proposals.inspect,
// create, update and revise.
type ProposalContent struct {
	Record  ProposalRecord `json:"record"`
	Hash    string         `json:"revisionHash"` // of all files
	Content string         `json:"content"`      // of SKILL.md
	Files   []SkillFile    `json:"supportFiles,omitempty"`
}

// ProposalApplied is the result of skills.proposals.apply.
type ProposalApplied struct {
	Record ProposalRecord `json:"record"`
	File   string         `json:"targetSkillFile"`
}

// ProposalCreate holds the parameters of skills.proposals.create.
type ProposalCreate struct {
	AgentID     string      `json:"agentId,omitempty"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Content     string      `json:"content"` // of SKILL.md, with or without front matter
	Files       []SkillFile `json:"supportFiles,omitempty"`
	Goal        string      `json:"goal,omitempty"`
	Evidence    string      `json:"evidence,omitempty"`
}

// ProposalUpdate holds the parameters of skills.proposals.update.
type ProposalUpdate struct {
	AgentID     string      `json:"agentId,omitempty"`
	Skill       string      `json:"skillName"`
	Description string      `json:"description,omitempty"`
	Content     string      `json:"content"`
	Files       []SkillFile `json:"supportFiles,omitempty"` // added to those of the skill, or replaced
	Goal        string      `json:"goal,omitempty"`
	Evidence    string      `json:"evidence,omitempty"`
}

// ProposalRevise holds the parameters of skills.proposals.revise. What is missing stays.
type ProposalRevise struct {
	AgentID     string      `json:"agentId,omitempty"`
	ID          string      `json:"proposalId"`
	Hash        string      `json:"expectedRevisionHash,omitempty"`
	Description string      `json:"description,omitempty"`
	Content     string      `json:"content,omitempty"`
	Files       []SkillFile `json:"supportFiles,omitempty"` // of a new skill: all of them
	Goal        string      `json:"goal,omitempty"`
	Evidence    string      `json:"evidence,omitempty"`
}

// ProposalRef names a proposal: the parameters of skills.proposals.inspect and
// skills.proposals.rollback.
type ProposalRef struct {
	AgentID string `json:"agentId,omitempty"`
	ID      string `json:"proposalId"`
}

// ProposalDecision holds the parameters of skills.proposals.apply and
// skills.proposals.reject.
type ProposalDecision struct {
	AgentID string `json:"agentId,omitempty"`
	ID      string `json:"proposalId"`
	Hash    string `json:"expectedRevisionHash"` // the revision that a person decided about
	Reason  string `json:"reason,omitempty"`
}

// ProposalAction holds the parameters of skills.proposals.quarantine.
type ProposalAction struct {
	AgentID string `json:"agentId,omitempty"`
	ID      string `json:"proposalId"`
	Hash    string `json:"expectedRevisionHash,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// ProposalDescribe holds the parameters of skills.proposals.describe.
type ProposalDescribe struct {
	AgentID string `json:"agentId,omitempty"`    // "": all
	ID      string `json:"proposalId,omitempty"` // "": all; otherwise also its files
}

// SkillProposals is the result of skills.proposals.describe, newest first.
type SkillProposals struct {
	Proposals []SkillProposal `json:"proposals"`
}

// SkillProposal is a proposal as Chela keeps it, and the result of
// skills.proposals.rollback.
type SkillProposal struct {
	ID          string         `json:"id"`
	AgentID     string         `json:"agentId"`
	Name        string         `json:"name"` // of the skill
	Description string         `json:"description"`
	Kind        string         `json:"kind"`   // create or update
	Status      string         `json:"status"` // pending, applied, rejected, quarantined, stale, rolled-back
	By          string         `json:"by"`     // agent or operator
	SessionKey  string         `json:"sessionKey,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	Hash        string         `json:"hash"` // of its files
	Findings    []SkillFinding `json:"findings"`
	Events      []SkillEvent   `json:"events"`
	Files       []SkillFile    `json:"files,omitempty"` // SKILL.md first
	CreatedAt   Millis         `json:"createdAt"`
	UpdatedAt   Millis         `json:"updatedAt"`
}

// SkillEvent is a change of a [SkillProposal].
type SkillEvent struct {
	At     Millis `json:"at"`
	Status string `json:"status"`
	By     string `json:"by,omitempty"`
	Note   string `json:"note,omitempty"`
}

// WorkshopRead holds the parameters of skills.workshop.read.
type WorkshopRead struct {
	AgentID string `json:"agentId,omitempty"`
	Name    string `json:"name"`
}

// WorkshopSkill is a skill of a workspace, and the result of skills.workshop.read.
type WorkshopSkill struct {
	Name        string `json:"name"`
	Key         string `json:"skillKey"`
	Description string `json:"description"`
	Content     string `json:"content,omitempty"` // of SKILL.md; of skills.workshop.read
}
