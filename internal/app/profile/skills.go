package profile

import (
	"bytes"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// skillLists are the lists of skills in prompts as they were last made.
type skillLists struct {
	mu   sync.Mutex
	last map[[2]string]skillList // by agent and folder
}

type skillList struct {
	skills []*skill.Skill
	text   string
}

// ManagedSkills is the folder of the skills that the person installed.
func (f *Factory) ManagedSkills() string { return filepath.Join(f.o.State, settings.SkillsDir) }

// SkillsDir is the folder of an agent's own skills.
func (g *Generation) SkillsDir(id chela.AgentID) string {
	return filepath.Join(g.Workspace(id), settings.SkillsDir)
}

// skillFolders returns the folders in which an agent's skills are searched; of those with
// the same name, that of the last one is used.
func (g *Generation) skillFolders(id chela.AgentID) []skill.Folder {
	var folders []skill.Folder
	for _, dir := range g.Settings.Skills.Load.Dirs {
		folders = append(folders, skill.Folder{Dir: g.expand(dir), Source: skill.Extra})
	}
	for i := range g.Plugins {
		if p := &g.Plugins[i]; p.Loadable() {
			for _, dir := range p.Skills {
				folders = append(folders, skill.Folder{Dir: dir, Source: skill.Extra})
			}
		}
	}
	folders = append(folders, skill.Folder{Dir: skill.BundledPath, Source: skill.Bundled})
	return append(folders, g.Settings.SkillFolders(id, g.o.State, g.home)...)
}

// AllSkills returns the skills of an agent, also those that are not used, and what is
// wrong with files.
func (g *Generation) AllSkills(id chela.AgentID) ([]*skill.Skill, []skill.Problem) {
	return g.finder.Find(g.skillFolders(id)...)
}

// Skills returns the skills that an agent uses.
func (g *Generation) Skills(id chela.AgentID) []*skill.Skill {
	all, problems := g.AllSkills(id)
	for _, p := range problems {
		g.warnOnce("skill", "file", p.File, p.Text)
	}
	return g.Settings.Skills.Use(all, g.SkillHost(id))
}

// SkillHost is what the skills of an agent are checked against.
func (g *Generation) SkillHost(id chela.AgentID) skill.Host {
	return skill.Host{
		OS: runtime.GOOS, Look: g.programs.has, Getenv: g.env, Names: g.Settings.SkillNames(id),
		Set: func(path string) bool {
			switch v := bytes.TrimSpace(g.Config.Section(path)); string(v) {
			case "", "null", "false", "0", `""`, "[]", "{}":
				return false
			}
			return true
		},
	}
}

// SkillEnv returns the variables that the configuration has for the skills of an agent.
func (g *Generation) SkillEnv(id chela.AgentID) map[string]string {
	if len(g.Settings.Skills.Entries) == 0 {
		return nil
	}
	vars := g.Settings.Skills.Environ(g.Skills(id))
	for name := range vars {
		if !exec.MayAdd(name) {
			delete(vars, name)
			g.warnOnce("skills", "variable", name,
				"it is not set, because commands have it already, or it changes which code runs")
		}
	}
	return vars
}

// libraries returns the folders of the skills of an agent that are on the disk.
func (g *Generation) libraries(id chela.AgentID) []string {
	var dirs []string
	for _, s := range g.Skills(id) {
		if s.Source != skill.Bundled {
			dirs = append(dirs, s.Dir)
		}
	}
	return dirs
}

// skillList returns the list of an agent's skills for prompts; only those that only names,
// unless it is nil. Paths below dir are
// relative to it.
func (g *Generation) skillList(id chela.AgentID, only []string, dir string) string {
	all := g.Skills(id)
	if only != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(s *skill.Skill) bool { return !slices.Contains(only, s.Name) })
	}
	g.skills.mu.Lock()
	defer g.skills.mu.Unlock()
	key := [2]string{string(id), dir + "\x00" + strings.Join(only, "\x00")}
	k, ok := g.skills.last[key]
	if ok && slices.Equal(k.skills, all) {
		return k.text
	}
	if g.skills.last == nil || len(g.skills.last) >= maxSkillLists {
		g.skills.last = map[[2]string]skillList{}
	}
	k = skillList{all, g.Settings.Skills.Prompt(all, dir)}
	g.skills.last[key] = k
	return k.text
}

// maxSkillLists is the number of lists that are kept. There are several of an agent only
// if its sessions are sandboxed.
const maxSkillLists = 64

// programs remembers which programs are installed.
type programs struct {
	look func(name string) string

	mu    sync.Mutex
	known map[string]looked
}

type looked struct {
	there bool
	at    time.Time
}

// Limits of what programs remembers.
const (
	lookAgain   = time.Minute
	maxPrograms = 1000
)

// has reports whether a program is installed, or was in the last minute.
func (p *programs) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k, ok := p.known[name]; ok && time.Since(k.at) < lookAgain {
		return k.there
	}
	if p.known == nil || len(p.known) >= maxPrograms {
		p.known = map[string]looked{}
	}
	k := looked{p.look(name) != "", time.Now()}
	p.known[name] = k
	return k.there
}

// newPrograms returns a programs for the variables of commands.
func newPrograms(environ []string) *programs { return &programs{look: sandbox.Look(environ)} }
