package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) skills() *cobra.Command {
	return group("skills", "Manage skills: folders that teach the assistant how to do something",
		c.skillsList(), c.skillsInfo(), c.skillsCheck(), c.skillsSearch(), c.skillsInstall(), c.skillsUpdate(),
		c.skillsRemove(), c.skillProposals())
}

// agentFlag adds --agent.
func agentFlag(cmd *cobra.Command, agent *string, what string) *cobra.Command {
	cmd.Flags().StringVar(agent, "agent", "", what)
	return cmd
}

// skillStatus returns the skills of an agent.
func (c *commands) skillStatus(ctx context.Context, agent string) (s wire.SkillsStatus, err error) {
	return s, c.call(ctx, wire.MethodSkillsStatus, wire.SkillsGet{AgentID: agent}, &s)
}

// skillSource returns the source of a skill for people, such as workspace.
func skillSource(s string) string {
	return strings.TrimPrefix(strings.TrimPrefix(s, "openclaw-"), "agents-skills-")
}

func (c *commands) skillsList() *cobra.Command {
	var agent string
	cmd := &cobra.Command{Use: "list", Short: "List skills, and whether they are used", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.skillStatus(cmd.Context(), agent)
			if err != nil {
				return err
			}
			return c.print(s, func() {
				if len(s.Skills) == 0 {
					fmt.Fprintf(c.stdout, "there are no skills; %s adds one\n", c.commandLine("skills install FOLDER"))
				} else {
					rows := [][]string{{"SKILL", "USED", "SOURCE", "COMMAND", "DESCRIPTION"}}
					for _, k := range s.Skills {
						used, command := "yes", "-"
						if !k.Eligible {
							used = "no"
						}
						if k.Command != "" {
							command = "/" + k.Command
						}
						rows = append(rows, []string{ansi.Line(k.Name), used, skillSource(k.Source), command,
							ansi.Truncate(ansi.Line(k.Description), 60)})
					}
					c.printTable(rows)
				}
				c.printSkillProblems(s)
				if slices.ContainsFunc(s.Skills, func(k wire.Skill) bool { return !k.Eligible }) {
					fmt.Fprintf(c.stdout, "why skills are not used: %s\n", c.commandLine("skills check"))
				}
			})
		}}
	return c.withJSON(agentFlag(cmd, &agent, "list the skills of this `AGENT`"))
}

// printSkillProblems prints what is wrong with files.
func (c *commands) printSkillProblems(s wire.SkillsStatus) {
	for _, p := range s.Problems {
		fmt.Fprintf(c.stdout, "%s: %s\n", ansi.Line(p.File), ansi.Line(p.Text))
	}
}

func (c *commands) skillsCheck() *cobra.Command {
	var agent string
	cmd := &cobra.Command{Use: "check", Short: "Say why skills are not used, and what they need", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.skillStatus(cmd.Context(), agent)
			if err != nil {
				return err
			}
			return c.print(s, func() {
				used := 0
				for _, k := range s.Skills {
					if k.Eligible {
						used++
						continue
					}
					fmt.Fprintf(c.stdout, "%s is not used: %s\n", ansi.Line(k.Name), ansi.Line(strings.Join(k.Reasons, "; ")))
					if len(k.Missing.Bins)+len(k.Missing.AnyBins) > 0 {
						for _, i := range k.Install {
							fmt.Fprintf(c.stdout, "  %s\n", ansi.Line(i.Label))
						}
					}
				}
				c.printSkillProblems(s)
				fmt.Fprintf(c.stdout, "%d of %d skills are used\n", used, len(s.Skills))
			})
		}}
	return c.withJSON(agentFlag(cmd, &agent, "check the skills of this `AGENT`"))
}

// findSkill returns a skill of an agent by its name or its command.
func (c *commands) findSkill(ctx context.Context, agent, name string) (wire.Skill, error) {
	s, err := c.skillStatus(ctx, agent)
	if err != nil {
		return wire.Skill{}, err
	}
	for _, k := range s.Skills {
		if k.Name == name || k.Command != "" && k.Command == strings.TrimPrefix(name, "/") {
			return k, nil
		}
	}
	return wire.Skill{}, c.suggest(chela.Errorf(chela.CodeNotFound, "there is no skill %q", name), "skills list")
}

func (c *commands) skillsInfo() *cobra.Command {
	var agent string
	cmd := &cobra.Command{Use: "info SKILL", Short: "Show a skill, what it needs and where it is from", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.findSkill(cmd.Context(), agent, args[0])
			if err != nil {
				return err
			}
			return c.print(k, func() { c.printSkill(k) })
		}}
	return c.withJSON(agentFlag(cmd, &agent, "a skill of this `AGENT`"))
}

// printSkill prints a skill.
func (c *commands) printSkill(k wire.Skill) {
	line := func(name string, values ...string) {
		if v := strings.Join(values, ", "); v != "" {
			fmt.Fprintf(c.stdout, "%-14s %s\n", name, ansi.Line(v))
		}
	}
	line("skill", k.Name)
	line("description", k.Description)
	state := "yes"
	if !k.Eligible {
		state = "no: " + strings.Join(k.Reasons, "; ")
	}
	line("used", state)
	line("source", skillSource(k.Source))
	line("file", k.File)
	if k.Command != "" {
		line("command", "/"+k.Command)
	}
	line("calls", k.Tool)
	if !k.ModelVisible && k.Eligible {
		line("in prompts", "no")
	}
	line("homepage", k.Homepage)
	line("license", k.License)
	line("compatibility", k.Compatibility)
	line("systems", k.Requirements.OS...)
	line("programs", k.Requirements.Bins...)
	line("one of", k.Requirements.AnyBins...)
	line("variables", k.Requirements.Env...)
	line("settings", k.Requirements.Config...)
	if k.Variable != "" {
		line("key", "skills.entries."+k.Key+".apiKey, as the variable "+k.Variable)
	}
	for _, i := range k.Install {
		line("install", i.Label)
	}
	if k.Origin != nil {
		c.printOrigin(*k.Origin)
		if k.Edited {
			line("changed", "by hand, since it was installed")
		}
	}
}

// printOrigin prints where a skill is from.
func (c *commands) printOrigin(o wire.SkillOrigin) {
	from := o.Source + " " + o.From
	if o.Path != "" {
		from += " (" + o.Path + ")"
	}
	fmt.Fprintf(c.stdout, "%-14s %s\n", "from", ansi.Line(from))
	if o.Version != "" {
		fmt.Fprintf(c.stdout, "%-14s %s\n", "version", ansi.Line(o.Version))
	}
	if o.Commit != "" {
		fmt.Fprintf(c.stdout, "%-14s %s\n", "commit", ansi.Line(o.Commit))
	}
	fmt.Fprintf(c.stdout, "%-14s %s\n", "sha256", o.Hash)
	if o.Installed > 0 {
		fmt.Fprintf(c.stdout, "%-14s %s\n", "installed", time.UnixMilli(o.Installed).Format(time.DateTime))
	}
}

func (c *commands) skillsSearch() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "search [WORD]...", Short: "Search the registry for skills", Args: between(0, 200),
		RunE: func(cmd *cobra.Command, args []string) error {
			var out wire.SkillsFound
			if err := c.call(cmd.Context(), wire.MethodSkillsSearch,
				wire.SkillsSearch{Query: strings.Join(args, " "), Limit: limit}, &out); err != nil {
				return err
			}
			return c.print(out, func() {
				if len(out.Results) == 0 {
					fmt.Fprintln(c.stdout, "nothing was found")
					return
				}
				rows := [][]string{{"SKILL", "VERSION", "DESCRIPTION"}}
				for _, l := range out.Results {
					rows = append(rows, []string{ansi.Line(l.Slug), ansi.Line(l.Version), ansi.Truncate(ansi.Line(l.Description), 80)})
				}
				c.printTable(rows)
			})
		}}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` skills")
	return c.withJSON(cmd)
}

func (c *commands) skillsInstall() *cobra.Command {
	in := wire.SkillsInstall{}
	var preview bool
	cmd := &cobra.Command{
		Use:   "install SKILL",
		Short: "Install a skill from a folder, an archive, a repository or the registry, without running it",
		Args:  exactly(1),
		Long: "Copy a skill into the folder of the skills of all agents, or of one agent. SKILL is a folder or a\n" +
			".zip, .tar or .tar.gz archive on this machine, the https address of such an archive or of a Git\n" +
			"repository (#REF selects a branch or tag), or NAME or NAME@VERSION in the registry.\n\n" +
			"Nothing of it is run. What a scan found is shown first; critical findings stop the installation.",
		Example: "  chela skills install ./my-skill\n  chela skills install https://github.com/anthropics/skills --path skills/pdf\n  chela skills install weather",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if in.From, err = c.sourceOf(args[0]); err != nil {
				return err
			}
			return c.installSkill(cmd.Context(), in, args[0], preview)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Path, "path", "", "the `FOLDER` of the skill in the repository or archive")
	f.StringVar(&in.Version, "version", "", "this `VERSION` of the registry, or a branch or tag")
	f.BoolVar(&in.Replace, "replace", false, "replace an installed skill with the same name")
	f.BoolVar(&in.Force, "force", false, "install in spite of critical findings, and replace changes by hand")
	f.BoolVar(&preview, "preview", false, "only show what would be installed")
	return c.withJSON(c.withYes(agentFlag(cmd, &in.AgentID, "install it for this `AGENT` only")))
}

// sourceOf returns where a skill is from. A path becomes absolute.
func (c *commands) sourceOf(text string) (string, error) {
	if strings.HasPrefix(text, "~"+string(os.PathSeparator)) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(home, text[2:]), nil
	}
	if _, err := os.Stat(text); err == nil || strings.HasPrefix(text, ".") {
		return c.gatewayPath(text)
	}
	return text, nil
}

// installSkill shows a skill and installs it if the person agrees.
func (c *commands) installSkill(ctx context.Context, in wire.SkillsInstall, name string, preview bool) error {
	var out wire.SkillInstalled
	show := in
	show.Preview = true
	if err := c.call(ctx, wire.MethodSkillsInstall, show, &out); err != nil {
		return err
	}
	if preview {
		return c.print(out, func() { c.printInstall(out) })
	}
	if !c.json {
		c.printInstall(out)
	}
	switch {
	case out.Exists && !in.Replace && !in.Force:
		return c.suggest(chela.Errorf(chela.CodeConflict, "the skill %s is installed already", out.Name),
			"skills install --replace "+name)
	case out.Edited && !in.Force:
		return c.suggest(chela.Errorf(chela.CodeConflict, "the skill %s was changed by hand, and the changes would be lost",
			out.Name), "skills install --force "+name)
	case isCritical(out) && !in.Force:
		return c.suggest(errors.New("not installed, because of critical findings"), "skills install --force "+name)
	}
	if err := c.confirm("install "+out.Skill.Dir, "skills install --yes "+name); err != nil {
		return err
	}
	in.Hash = out.Origin.Hash
	if err := c.call(ctx, wire.MethodSkillsInstall, in, &out); err != nil {
		return err
	}
	return c.print(out, func() { c.printInstalled(out) })
}

func isCritical(out wire.SkillInstalled) bool {
	return slices.ContainsFunc(out.Findings, func(f wire.SkillFinding) bool { return f.Severity == "critical" })
}

// printInstalled says that a skill was installed, and what it lacks.
func (c *commands) printInstalled(out wire.SkillInstalled) {
	fmt.Fprintf(c.stdout, "installed %s\n", ansi.Line(out.Skill.Dir))
	if !out.Skill.Eligible {
		fmt.Fprintf(c.stdout, "it is not used yet: %s\n", ansi.Line(strings.Join(out.Skill.Reasons, "; ")))
	}
}

// printInstall prints what would be installed.
func (c *commands) printInstall(out wire.SkillInstalled) {
	k := out.Skill
	fmt.Fprintf(c.stdout, "%-14s %s\n%-14s %s\n", "skill", ansi.Line(k.Name), "description", ansi.Line(k.Description))
	c.printOrigin(out.Origin)
	if out.Warning != "" {
		fmt.Fprintf(c.stdout, "%-14s %s\n", "warning", ansi.Line(out.Warning))
	}
	if k.Tool != "" {
		fmt.Fprintf(c.stdout, "%-14s %s\n", "command calls", ansi.Line(k.Tool))
	}
	c.printChanges(out)
	if len(out.Findings) == 0 {
		fmt.Fprintln(c.stdout, "the scan found nothing; read the skill before you use it")
		return
	}
	fmt.Fprintln(c.stdout, "the scan found:")
	for _, f := range out.Findings {
		at := f.File
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		fmt.Fprintf(c.stdout, "  %-8s  %s: %s\n", f.Severity, ansi.Line(at), ansi.Line(f.Text))
	}
}

// maxChanges is the number of changed files that are shown.
const maxChanges = 50

// printChanges prints which files change.
func (c *commands) printChanges(out wire.SkillInstalled) {
	for i, f := range out.Changes {
		if i == maxChanges {
			fmt.Fprintf(c.stdout, "  … and %d more\n", len(out.Changes)-i)
			break
		}
		fmt.Fprintf(c.stdout, "  %-8s  %s\n", f.How, ansi.Line(f.File))
	}
}

func (c *commands) skillsUpdate() *cobra.Command {
	in := wire.SkillsUpdate{}
	var preview bool
	cmd := &cobra.Command{
		Use:   "update [SKILL]",
		Short: "Install skills again from where they are from, if they changed there",
		Args:  between(0, 1),
		Long:  "Show what changed where the installed skills are from, and install it. A skill that was changed\nby hand is left as it is, unless --force is given.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.All = len(args) == 0; !in.All {
				in.Slug = args[0]
			}
			return c.updateSkills(cmd.Context(), in, preview)
		},
	}
	cmd.Flags().BoolVar(&in.Force, "force", false, "replace changes by hand, and install in spite of critical findings")
	cmd.Flags().BoolVar(&preview, "preview", false, "only show what would change")
	return c.withJSON(c.withYes(agentFlag(cmd, &in.AgentID, "update the skills of this `AGENT`'s workspace")))
}

// updateSkills shows the changes of installed skills, and installs each of them if the
// person agrees.
func (c *commands) updateSkills(ctx context.Context, in wire.SkillsUpdate, preview bool) error {
	var out wire.SkillsUpdated
	show := in
	show.Preview = true
	if err := c.call(ctx, wire.MethodSkillsUpdate, show, &out); err != nil {
		return err
	}
	if c.json && preview {
		return c.print(out, func() {})
	}
	done := wire.SkillsUpdated{OK: true, Updates: []wire.SkillInstalled{}}
	for _, u := range out.Updates {
		if u.Error == "" && u.Old != nil && u.Old.Hash == u.Origin.Hash && !(in.Force && u.Edited) {
			c.note("%s has not changed", u.Name)
			continue
		}
		problem := u.Error
		switch {
		case problem != "":
		case u.Edited && !in.Force:
			problem = "it was changed by hand; --force replaces the changes"
		case isCritical(u) && !in.Force:
			problem = "critical findings; --force installs it in spite of them"
		}
		if !c.json && u.Error == "" {
			c.printInstall(u)
		}
		if problem != "" {
			done.OK = false
			fmt.Fprintf(c.stderr, "%s was not updated: %s\n", ansi.Line(u.Name), ansi.Line(problem))
			continue
		}
		if preview {
			continue
		}
		if err := c.confirm("update "+u.Skill.Dir, "skills update --yes"); err != nil {
			return err
		}
		var one wire.SkillsUpdated
		if err := c.call(ctx, wire.MethodSkillsUpdate, wire.SkillsUpdate{AgentID: in.AgentID,
			Slug: filepath.Base(u.Skill.Dir), Force: in.Force, Hash: u.Origin.Hash}, &one); err != nil {
			return err
		}
		done.Updates = append(done.Updates, one.Updates...)
		c.note("updated %s", u.Name)
	}
	if len(out.Updates) == 0 {
		c.note("no skills were installed")
	}
	err := c.print(done, func() {})
	if err == nil && !done.OK {
		err = errReported
	}
	return err
}

// note prints a line, unless the output is JSON.
func (c *commands) note(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.stdout, format+"\n", args...)
	}
}

func (c *commands) skillsRemove() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:     "remove SKILL",
		Aliases: []string{"uninstall"},
		Short:   "Remove an installed skill and its files",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.findSkill(cmd.Context(), agent, args[0])
			if err != nil {
				return err
			}
			if want := map[bool]string{true: wire.SkillManaged, false: wire.SkillWorkspace}[agent == ""]; k.Source != want {
				return chela.Errorf(chela.CodeInvalid,
					"the skill %s is from %s (%s), and is not removed here; to switch it off: %s",
					k.Name, skillSource(k.Source), k.Dir,
					c.commandLine("config set skills.entries."+k.Key+".enabled false"))
			}
			if err := c.confirm("remove "+k.Dir, "skills remove --yes "+args[0]); err != nil {
				return err
			}
			var out wire.SkillRemoved
			if err := c.call(cmd.Context(), wire.MethodSkillsRemove,
				wire.SkillsRemove{AgentID: agent, Name: filepath.Base(k.Dir)}, &out); err != nil {
				return err
			}
			return c.print(out, func() { fmt.Fprintf(c.stdout, "removed %s\n", out.Removed) })
		},
	}
	return c.withJSON(c.withYes(agentFlag(cmd, &agent, "remove it from the workspace of this `AGENT`")))
}
