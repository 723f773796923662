package skill

import (
	"strconv"
	"strings"
)

// maxCommand is the maximum length of the name of a command.
const maxCommand = 32

// Command is a slash command that calls a skill.
type Command struct {
	Name  string // a-z, 0-9 and _; without the slash
	Skill *Skill
}

// Commands returns the commands of skills, in their order. A name that is taken gets a
// number behind it.
func Commands(skills []*Skill, taken func(name string) bool) []Command {
	var out []Command
	own := map[string]bool{}
	for _, s := range skills {
		name := CommandName(s.Name)
		if s.NoCommand {
			continue
		}
		free := name
		for i := 2; own[free] || taken(free); i++ {
			suffix := "_" + strconv.Itoa(i)
			free = strings.TrimRight(name[:min(len(name), maxCommand-len(suffix))], "_") + suffix
		}
		own[free] = true
		out = append(out, Command{free, s})
	}
	return out
}

// CommandName returns a name as that of a command. One without letters that a command can
// have is skill.
func CommandName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, name)
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	switch name = strings.Trim(name, "_"); {
	case name == "":
		name = "skill"
	case name[0] < 'a': // commands begin with a letter
		name = "skill_" + name
	}
	return strings.TrimRight(name[:min(len(name), maxCommand)], "_")
}

// Prompt returns the message with which a person's command has a model follow the skill.
func (c Command) Prompt(input string) string {
	text := "Use the skill " + c.Skill.Name + ": read " + c.Skill.File + " first, and follow it."
	if input = strings.TrimSpace(input); input != "" {
		text += "\n\n" + input
	}
	return text
}
