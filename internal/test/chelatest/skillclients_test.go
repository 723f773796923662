package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// TestSkillClients calls the methods about skills as clients of OpenClaw do.
func TestSkillClients(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{Model: sayOK(), Config: section("skills", `{"registry": {"url": "`+newRegistry(t).URL+`"}}`)})
	c := g.Client()
	type m = map[string]any
	t.Run("a listing and its detail are those of a registry of OpenClaw", func(t *testing.T) {
		var found wire.SkillsFound
		if err := c.Call(t.Context(), wire.MethodSkillsSearch, m{"query": "tea"}, &found); err != nil ||
			len(found.Results) != 1 || found.Results[0] != (wire.SkillListing{
			Score:       1,
			Slug:        "tea",
			Ref:         "tea",
			Name:        "Tea",
			Description: "makes tea",
			Version:     "1.0",
		}) {
			t.Errorf("%+v, %v", found, err)
		}
		var d wire.SkillDetail
		if err := c.Call(t.Context(), wire.MethodSkillsDetail, m{"slug": "tea"}, &d); err != nil || d.Skill.Name != "Tea" ||
			d.Latest == nil || d.Latest.Version != "1.0" || d.Skill.Created != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("a skill is installed for an agent, and not over another one", func(t *testing.T) {
		in := m{"agentId": "main", "source": "clawhub", "slug": "tea"}
		var done wire.SkillInstalled
		if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, &done); err != nil ||
			done.Message != "Installed tea 1.0" {
			t.Errorf("%+v, %v", done, err)
		}
		if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "skills", "tea", "SKILL.md")); err != nil {
			t.Error(err)
		}
		if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, nil); err == nil ||
			!strings.Contains(err.Error(), "installed already") {
			t.Errorf("again: %v", err)
		}
		var s wire.SkillsStatus
		if err := c.Call(t.Context(), wire.MethodSkillsStatus, m{"agentId": "main"}, &s); err != nil || len(s.Skills) != 1 ||
			s.Skills[0].Source != wire.SkillWorkspace {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("what Chela does not do is refused with the reason", func(t *testing.T) {
		for want, in := range map[string]m{
			"does not accept uploaded skills (chela skills install":       {"source": "upload", "uploadId": "x", "slug": "tea"},
			"does not install programs for skills (chela skills info tea": {"name": "tea", "installId": "brew"},
		} {
			if err := c.Call(t.Context(), wire.MethodSkillsInstall, in, nil); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", in, err)
			}
		}
	})
}
