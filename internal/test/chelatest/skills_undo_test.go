package chelatest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// TestSkillUndo takes back what was installed, updated and removed.
func TestSkillUndo(t *testing.T) {
	t.Parallel()
	tea := func(u *undoer) string {
		u.t.Helper()
		data, err := os.ReadFile(filepath.Join(u.Dir, "skills", "tea", "SKILL.md"))
		if err != nil {
			return "none"
		}
		_, version, _ := strings.Cut(string(data), "version ")
		version, _, _ = strings.Cut(version, "\n")
		return version
	}
	is := func(u *undoer, what, want string) {
		u.t.Helper()
		if got := tea(u); got != want {
			u.t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	t.Run("what the assistant installs", func(t *testing.T) {
		t.Parallel()
		r := newRegistry(t)
		u := newUndoer(t, Options{Config: section("skills", `{"registry": {"url": "`+r.URL+`"}}`)})
		run := u.Send("main", `skills {"action":"install","name":"tea"}`)
		u.decide(u.question().ID, wire.AllowOnce)
		u.Await(run)
		is(u, "installed", "1.0")
		var log wire.WorkspaceChanges
		u.must(wire.MethodWorkspaceLog, wire.WorkspaceLog{All: true}, &log)
		log.Changes = slices.DeleteFunc(log.Changes, func(c wire.Change) bool { return c.Action == "seen" })
		if len(log.Changes) != 2 || log.Changes[0].Tool != "skills" ||
			!strings.HasSuffix(log.Changes[1].Path, "tea/.origin.json") ||
			!strings.HasSuffix(log.Changes[0].Path, "tea/SKILL.md") {
			t.Errorf("the history: %+v", log.Changes)
		}
		before := u.files("skills")
		u.undo("", "Undo 2 changes", "tea/SKILL.md")
		is(u, "undone", "none")
		if _, err := os.Stat(filepath.Join(u.Dir, "skills", "tea")); err == nil {
			t.Error("the folder is still there")
		}
		u.undo("undo")
		u.same("the undo is undone", u.files("skills"), before)
	})
	t.Run("what a person installs, updates and removes", func(t *testing.T) {
		t.Parallel()
		r := newRegistry(t)
		u := newUndoer(t, Options{Config: section("skills", `{"registry": {"url": "`+r.URL+`"}}`)})
		undo := func() {
			t.Helper()
			var plan wire.UndoPlanned
			u.must(wire.MethodUndoPlan, wire.UndoPlan{}, &plan)
			u.must(wire.MethodUndoApply, wire.UndoApply{Hash: plan.Hash}, nil)
		}
		u.must(wire.MethodSkillsInstall, wire.SkillsInstall{From: "tea"}, nil)
		is(u, "installed", "1.0")
		old := u.files("skills")
		v := "1.1"
		r.version.Store(&v)
		u.must(wire.MethodSkillsUpdate, wire.SkillsUpdate{Slug: "tea"}, nil)
		is(u, "updated", "1.1")
		updated := u.files("skills")
		u.must(wire.MethodSkillsRemove, wire.SkillsRemove{Name: "tea"}, nil)
		is(u, "removed", "none")
		undo()
		u.same("the removal is undone", u.files("skills"), updated)
		undo()
		u.same("the update is undone", u.files("skills"), old)
		var s wire.SkillsStatus
		u.must(wire.MethodSkillsStatus, wire.SkillsGet{}, &s)
		if len(s.Skills) != 1 || s.Skills[0].Edited || s.Skills[0].Origin.Version != "1.0" {
			t.Errorf("the skill is %+v", s.Skills)
		}
		undo()
		is(u, "the installation is undone", "none")
	})
	t.Run("a proposal that is applied", func(t *testing.T) {
		t.Parallel()
		u := newUndoer(t, Options{Config: section("skills", `{"workshop": {"approvalPolicy": "auto"}}`)})
		propose := func(action, content string) {
			t.Helper()
			answer := u.call("skill_workshop", "action", action, "name", "plants", "description",
				"Water plants.", "content", content)
			m := regexp.MustCompile(`Proposal ([0-9a-f]{12}): `).FindStringSubmatch(answer)
			if m == nil {
				t.Fatalf("no proposal in %q", answer)
			}
			if answer := u.call("skill_workshop", "action", "apply", "id", m[1]); !strings.Contains(answer, "is applied") {
				t.Fatal(answer)
			}
		}
		skill := func() string {
			data, _ := os.ReadFile(filepath.Join(u.Dir, "workspace", "skills", "plants", "SKILL.md"))
			_, text, _ := strings.Cut(string(data), "---\n\n")
			return strings.TrimSpace(text)
		}
		propose("create", "Water them.")
		propose("update", "Water them on Mondays.")
		if got := skill(); got != "Water them on Mondays." {
			t.Fatalf("the skill is %q", got)
		}
		u.undo("", "Undo 1 change:", "skills/plants/SKILL.md")
		if got := skill(); got != "Water them." {
			t.Errorf("after an undo: %q", got)
		}
		u.undo("")
		if got := skill(); got != "" {
			t.Errorf("after a second one: %q", got)
		}
		var log wire.WorkspaceChanges
		u.must(wire.MethodWorkspaceLog, wire.WorkspaceLog{}, &log)
		for _, c := range log.Changes {
			if strings.Contains(c.Path, "/.") {
				t.Errorf("the history has %s", c.Path)
			}
		}
	})
}
