package inbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/store"
)

// skillGroup is the heading of the commands of skills.
const skillGroup = "skills"

func skillCommands() []Command {
	return []Command{{
		Name: "skill", Group: skillGroup, Args: "[name [input]]", Help: "use a skill, or list them",
		run: (*call).skill,
	}}
}

// SkillCommands returns the commands of skills. None has the name of another command.
func SkillCommands(skills []*skill.Skill) []skill.Command {
	names := byName()
	return skill.Commands(skills, func(name string) bool { _, ok := names[name]; return ok })
}

// skillsOf returns the commands of an agent's skills.
func (g *Gate) skillsOf(agent chela.AgentID) []skill.Command {
	if g.o.Skills == nil {
		return nil
	}
	return skill.Commands(g.o.Skills(agent), func(name string) bool { _, ok := g.names[name]; return ok })
}

// findSkill returns the command of a skill by the name of the skill, or by its own.
func findSkill(all []skill.Command, name string) (skill.Command, bool) {
	if i := slices.IndexFunc(all, func(c skill.Command) bool { return c.Skill.Name == name }); i >= 0 {
		return all[i], true
	}
	return findCommand(all, name)
}

// findCommand returns the command of a skill by its own name.
func findCommand(all []skill.Command, name string) (skill.Command, bool) {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	i := slices.IndexFunc(all, func(c skill.Command) bool { return c.Name == name })
	if i < 0 {
		return skill.Command{}, false
	}
	return all[i], true
}

// skillCommand parses the command of a skill: "/name input", or "/skill name input".
func (g *Gate) skillCommand(agent chela.AgentID, w commandLine) (skill.Command, commandLine, bool) {
	if w.name == "skill" {
		name, input, _ := strings.Cut(w.args, " ")
		c, ok := findSkill(g.skillsOf(agent), name)
		w.args = strings.TrimSpace(input)
		return c, w, ok && name != ""
	}
	if _, ok := g.names[w.name]; ok {
		return skill.Command{}, w, false
	}
	c, ok := findCommand(g.skillsOf(agent), w.name)
	return c, w, ok
}

// ofSkill returns the command that calls a skill: a model follows it, or its tool is
// called.
func ofSkill(c skill.Command) Command {
	return Command{
		Name: c.Name, Group: skillGroup, Args: "[input]", Help: c.Skill.Description,
		later: c.Skill.Tool != "", message: c.Skill.Tool == "",
		run: func(k *call) (string, error) {
			k.follow, k.then = true, c.Prompt(k.args)
			return "", nil
		},
	}
}

// skill is /skill without the name of a skill that there is.
func (k *call) skill() (string, error) {
	all := k.g.skillsOf(k.key.Agent())
	if len(all) == 0 {
		return "There are no skills that can be used here. `chela skills check` says why.", nil
	}
	var b strings.Builder
	if name, _, _ := strings.Cut(k.args, " "); name != "" {
		fmt.Fprintf(&b, "There is no skill %s. ", name)
	}
	b.WriteString("The skills:")
	for _, c := range all {
		b.WriteString("\n- /" + c.Name + ": " + c.Skill.Description)
	}
	if k.args != "" {
		return "", refuse{b.String()}
	}
	return b.String(), nil
}

// callSkill calls the tool of a skill for a command that waits in the queue, and answers
// it. After a crash the tool is not called again; see Options.CallSkill.
func (g *Gate) callSkill(ctx context.Context, it queue.Item, c skill.Command, input string) error {
	reply := "Skills that call tools are not available here."
	if g.o.CallSkill != nil {
		text, err := g.o.CallSkill(ctx, it, c, input)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if reply = text; err != nil {
			reply = "⚠️ " + g.explain(err)
		}
	}
	if reply = g.o.Redact(reply); reply == "" {
		reply = "Done."
	}
	var done call
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		it.State, it.Result = queue.Done, answered(reply)
		who, err := pairing.Current(tx.Devices(), it.Principal)
		if err != nil {
			return err
		}
		if who.ID != it.Principal.ID {
			it.State, it.Note, it.Result = queue.Cancelled, "revoked", queue.Result{}
		}
		ok, err := tx.Queue().Replace(it)
		if err == nil && !ok {
			err = errUnheard
		}
		if err != nil || it.State == queue.Cancelled {
			return err
		}
		done = call{g: g, tx: tx, who: it.Principal, home: it.Session, key: it.Session, in: it.Inbound, now: time.Now()}
		var created bool
		if done.meta, created, err = done.open(it.Session); err != nil {
			return err
		}
		if created {
			done.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhaseCreated})
		}
		done.touch()
		if err := tx.Sessions().Put(done.meta); err != nil {
			return err
		}
		return done.reply(chela.RunID(it.ID), it.ID, reply)
	})
	switch {
	case errors.Is(err, errUnheard):
		return nil
	case err != nil:
		return fmt.Errorf("answer /%s: %w", c.Name, err)
	}
	for _, e := range done.events {
		g.o.Bus.Publish(e)
	}
	done.notifyResets(ctx)
	return nil
}
