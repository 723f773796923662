package settings

import (
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/skill"
)

// SkillsDir is the folder of the skills that the person installed, in the state
// directory, and that of an agent's own, in its workspace.
const SkillsDir = "skills"

// SkillFolders returns the folders into which people put skills for an agent; of those with
// the same name, that of the last one is used.
func (s *Settings) SkillFolders(id chela.AgentID, state, home string) []skill.Folder {
	shared := filepath.Join(".agents", "skills") // other programs read it, too
	workspace := s.Workspace(id, state, home)
	folders := []skill.Folder{{Dir: filepath.Join(state, SkillsDir), Source: skill.Managed}}
	if home != "" {
		folders = append(folders, skill.Folder{Dir: filepath.Join(home, shared), Source: skill.Personal})
	}
	return append(folders, skill.Folder{Dir: filepath.Join(workspace, shared), Source: skill.Project},
		skill.Folder{Dir: filepath.Join(workspace, SkillsDir), Source: skill.Workspace})
}
