package chelatest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// TestProposalMethods makes, revises and decides about proposals as a client of OpenClaw
// does.
func TestProposalMethods(t *testing.T) {
	t.Parallel()
	g := Start(t,
		Options{Model: sayOK(), Config: section("agents", `{"list": [{"id": "main", "default": true}, {"id": "cook"}]}`)})
	c := g.Client()
	must := func(t *testing.T, method string, params, out any) {
		t.Helper()
		if err := c.Call(t.Context(), method, params, out); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	propose := func(t *testing.T, name string) wire.ProposalContent {
		t.Helper()
		var p wire.ProposalContent
		must(t, wire.MethodProposalsCreate, wire.ProposalCreate{
			Name:        name,
			Description: "Make tea.",
			Content:     "Boil water.",
			Files:       []wire.SkillFile{{Path: "sorts.md", Content: "Oolong\n"}, {Path: "cups.md", Content: "Blue\n"}},
			Goal:        "tea",
			Evidence:    "asked twice",
		}, &p)
		return p
	}
	file := filepath.Join(g.Dir, "workspace", "skills", "tea", "SKILL.md")
	entryOf := func(t *testing.T, id string) (e wire.ProposalEntry, l wire.Proposals) {
		t.Helper()
		must(t, wire.MethodProposalsList, wire.ProposalsList{AgentID: "main"}, &l)
		for _, e := range l.Proposals {
			if e.ID == id {
				return e, l
			}
		}
		t.Fatalf("no proposal %s in %+v", id, l)
		return e, l
	}
	p := propose(t, "tea")
	if p.Record.Version != "v1" || p.Record.Goal != "tea\nasked twice" || p.Record.CreatedBy != "gateway" ||
		len(p.Files) != 2 || !strings.Contains(p.Content, "Boil water.") {
		t.Fatalf("%+v", p)
	}
	t.Run("a decision needs the hash of the present revision", func(t *testing.T) {
		var r wire.ProposalContent
		must(t, wire.MethodProposalsRevise, wire.ProposalRevise{ID: p.Record.ID, Hash: p.Hash, Content: "Boil fresh water.",
			Files: []wire.SkillFile{{Path: "sorts.md", Content: "Assam\n"}}}, &r)
		if r.Record.Version != "v2" || len(r.Files) != 1 || r.Files[0].Content != "Assam\n" || r.Hash == p.Hash {
			t.Errorf("%+v", r)
		}
		for _, method := range []string{wire.MethodProposalsApply, wire.MethodProposalsReject, wire.MethodProposalsQuarantine,
			wire.MethodProposalsRevise} {
			in := map[string]any{"proposalId": p.Record.ID, "expectedRevisionHash": p.Hash}
			err := c.Call(t.Context(), method, in, nil)
			if e, ok := errors.AsType[*wire.Error](err); !ok || e.Detail() != wire.DetailProposalChanged ||
				!strings.Contains(string(e.Details), r.Hash) {
				t.Errorf("%s of an old revision: %v", method, err)
			}
		}
		for _, hash := range []any{nil, ""} {
			err := c.Call(t.Context(), wire.MethodProposalsApply,
				map[string]any{"proposalId": p.Record.ID, "expectedRevisionHash": hash}, nil)
			if err == nil || !strings.Contains(err.Error(), "expectedRevisionHash") {
				t.Errorf("apply with the hash %v: %v", hash, err)
			}
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatal("it was applied")
		}
		p = r
	})
	t.Run("a proposal of another agent is not found", func(t *testing.T) {
		err := c.Call(t.Context(), wire.MethodProposalsApply,
			wire.ProposalDecision{AgentID: "cook", ID: p.Record.ID, Hash: p.Hash}, nil)
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Detail() != wire.DetailNotFound {
			t.Errorf("%v", err)
		}
	})
	t.Run("an applied one is a skill, and can be read", func(t *testing.T) {
		var done wire.ProposalApplied
		must(t, wire.MethodProposalsApply, wire.ProposalDecision{AgentID: "main", ID: p.Record.ID, Hash: p.Hash}, &done)
		if done.File != file || done.Record.Status != "applied" || done.Record.AppliedAt.IsZero() {
			t.Errorf("%+v", done)
		}
		var read wire.WorkshopSkill
		must(t, wire.MethodWorkshopRead, wire.WorkshopRead{Name: "tea"}, &read)
		if text, err := os.ReadFile(file); err != nil || read.Content != string(text) {
			t.Errorf("%+v, %v", read, err)
		}
		if _, l := entryOf(t, p.Record.ID); len(l.Installed) != 1 || l.Installed[0].Name != "tea" {
			t.Errorf("%+v", l.Installed)
		}
	})
	t.Run("an update keeps the files of the skill", func(t *testing.T) {
		var u wire.ProposalContent
		must(t, wire.MethodProposalsUpdate, wire.ProposalUpdate{Skill: "tea", Content: "Boil it twice.",
			Files: []wire.SkillFile{{Path: "more.md", Content: "x"}}}, &u)
		must(t, wire.MethodProposalsRevise,
			wire.ProposalRevise{ID: u.Record.ID, Files: []wire.SkillFile{{Path: "other.md", Content: "y"}}}, &u)
		if u.Record.Kind != "update" || u.Record.Target.Hash != p.Hash || len(u.Files) != 3 {
			t.Errorf("%+v", u)
		}
	})
	t.Run("a rolled back one is rejected for clients of OpenClaw", func(t *testing.T) {
		var back wire.SkillProposal
		must(t, wire.MethodProposalsRollback, wire.ProposalRef{ID: p.Record.ID}, &back)
		var exact wire.SkillProposals
		must(t, wire.MethodProposalsDescribe, wire.ProposalDescribe{ID: p.Record.ID}, &exact)
		var seen wire.ProposalContent
		must(t, wire.MethodProposalsInspect, wire.ProposalRef{ID: p.Record.ID}, &seen)
		e, _ := entryOf(t, p.Record.ID)
		if back.Status != "rolled-back" || exact.Proposals[0].Status != "rolled-back" || len(exact.Proposals[0].Files) != 2 ||
			e.Status != "rejected" || seen.Record.StatusReason != "rolled back" {
			t.Errorf("%+v\n%+v\n%+v\n%+v", back, exact, e, seen)
		}
	})
}
