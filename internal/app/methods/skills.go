package methods

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/skillsource"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/surface/method/skills"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

func (o *Options) skillMethods() []rpc.Method {
	return skills.Methods(skills.Options{
		Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
		Skills: func(id chela.AgentID) skills.Inventory {
			g := o.Current.Load()
			all, problems := g.AllSkills(id)
			workspace := g.Workspace(id)
			return skills.Inventory{
				Workspace: workspace, Managed: g.ManagedSkills(), Own: g.SkillsDir(id),
				All: all, Problems: problems, Config: &g.Settings.Skills, Host: g.SkillHost(id),
			}
		},
		Parse: func(text string) (skill.Origin, error) { return skillsource.Parse(text, filepath.IsAbs) },
		Fetch: func(ctx context.Context, to string, origin *skill.Origin) error {
			return o.SkillSource().Fetch(ctx, to, origin)
		},
		MayInstall: o.MayInstallSkill, Record: o.RecordSkill,
		Search: func(ctx context.Context, words string, limit int) (out []wire.SkillListing, err error) {
			found, err := o.SkillSource().Search(ctx, words, limit)
			for i, l := range found {
				out = append(out, wire.SkillListing{
					Score:       1 / float64(i+1),
					Slug:        l.Slug,
					Ref:         l.Slug,
					Name:        cmp.Or(l.Name, l.Slug),
					Description: l.Description,
					Version:     l.Version,
				})
			}
			return out, err
		},
		Detail: func(ctx context.Context, slug string) (wire.SkillDetail, error) {
			d, err := o.SkillSource().Detail(ctx, slug)
			return detail(d), err
		},
		Set: o.setSkill,
	})
}

// detail describes a skill of the registry.
func detail(d skillsource.Detail) wire.SkillDetail {
	out := wire.SkillDetail{Skill: wire.RegistrySkill{Slug: d.Slug, Name: cmp.Or(d.Name, d.Slug),
		Description: d.Description}}
	for i, v := range d.Versions {
		created := int64(0)
		if !v.Created.IsZero() {
			created = v.Created.UnixMilli()
		}
		if i == 0 && v.Version != "" {
			out.Latest = &wire.RegistryVersion{Version: v.Version, Created: created, Changelog: v.Changes}
			out.Skill.Updated = created
		}
		out.Skill.Created = created
	}
	return out
}

// workspaceSkills returns the skills that proposals can change.
func (o *Options) workspaceSkills(id chela.AgentID) []*skill.Skill {
	g := o.Current.Load()
	all, _ := g.AllSkills(id)
	own := g.SkillsDir(id)
	return slices.DeleteFunc(all, func(s *skill.Skill) bool { return s.Dir != filepath.Join(own, s.Name) })
}

// setSkill changes settings of a skill; nil: a value is removed.
func (o *Options) setSkill(ctx context.Context, key string, values map[string]any) error {
	var edits []config.Edit
	for name, v := range values {
		path := []string{"skills", "entries", key, name}
		if variable, ok := strings.CutPrefix(name, "env."); ok {
			path = []string{"skills", "entries", key, "env", variable}
		}
		edit := config.Edit{Path: config.FormatPath(path)}
		if v != nil {
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			edit.Value = b
		}
		edits = append(edits, edit)
	}
	return o.Config.Edit(ctx, func(now *config.Tree) (*config.Draft, error) { return now.Draft(edits...) })
}
