// Package skills implements the methods about skills.
package skills

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	Skills  func(chela.AgentID) Inventory
	// Parse returns what a person's text names; see skillsource.Parse.
	Parse func(text string) (skill.Origin, error)
	// Fetch fills a folder with what an origin names.
	Fetch func(ctx context.Context, to string, o *skill.Origin) error
	// MayInstall returns why a skill may not be installed.
	MayInstall func(ctx context.Context, from string) error
	// Record keeps a record of a change of the skills of an agent, or of all agents for the
	// empty id.
	Record func(ctx context.Context, agent chela.AgentID) installdir.Record
	Search func(ctx context.Context, words string, limit int) ([]wire.SkillListing, error)
	Detail func(ctx context.Context, slug string) (wire.SkillDetail, error)
	// Set changes settings of a skill in the configuration; nil: a value is removed.
	Set func(ctx context.Context, key string, values map[string]any) error
}

// Inventory is the skills of an agent.
type Inventory struct {
	Workspace string
	Managed   string // folder of the skills that the person installed
	Own       string // folder of the agent's own skills
	All       []*skill.Skill
	Problems  []skill.Problem
	Config    *skill.Config
	Host      skill.Host
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodSkillsStatus, op, chela.ScopeRead, o.status),
		rpc.New(wire.MethodSkillsLibrary, op, chela.ScopeRead, library),
		rpc.New(wire.MethodSkillsSearch, op, chela.ScopeRead, o.search),
		rpc.New(wire.MethodSkillsDetail, op, chela.ScopeRead, o.detail),
		rpc.New(wire.MethodSkillsInstall, op, chela.ScopeAdmin, o.install).Ignoring("timeoutMs",
			"dangerouslyForceUnsafeInstall", "uploadId"),
		rpc.New(wire.MethodSkillsUpdate, op, chela.ScopeAdmin, o.update),
		rpc.New(wire.MethodSkillsRemove, op, chela.ScopeAdmin, o.remove),
	}
}

func (o Options) status(_ context.Context, _ rpc.Peer, in wire.SkillsGet) (wire.SkillsStatus, error) {
	agent, err := rpc.AgentOf(in.AgentID, in.SessionKey, o.Default, o.Agent)
	if err != nil {
		return wire.SkillsStatus{}, err
	}
	v := o.Skills(agent)
	out := wire.SkillsStatus{
		Workspace: v.Workspace,
		Managed:   v.Managed,
		AgentID:   string(agent),
		Skills:    []wire.Skill{},
		Problems:  []wire.SkillProblem{},
	}
	commands := map[string]string{}
	for _, c := range inbound.SkillCommands(v.Config.Use(v.All, v.Host)) {
		commands[c.Skill.Name] = c.Name
	}
	for _, s := range v.All {
		w := describe(s, v.Config.Check(s, v.Host), v.Host)
		w.Command = commands[s.Name]
		w.CommandVisible = w.Command != ""
		if origin, err := skill.ReadOrigin(s.Dir); err == nil {
			w.Origin, w.Edited = wireOrigin(origin), skill.Edited(s.Dir, origin)
		}
		out.Skills = append(out.Skills, w)
	}
	for _, p := range v.Problems {
		out.Problems = append(out.Problems, wire.SkillProblem{File: p.File, Text: p.Text})
	}
	return out, nil
}

// describe returns a skill with its status.
func describe(s *skill.Skill, st skill.Status, h skill.Host) wire.Skill {
	w := wire.Skill{
		Name:          s.Name,
		Description:   s.Description,
		Source:        source(s.Source),
		Bundled:       s.Source == skill.Bundled,
		File:          s.File,
		Dir:           s.Dir,
		Key:           s.EntryKey(),
		Emoji:         s.Emoji,
		Homepage:      s.Homepage,
		License:       s.License,
		Compatibility: s.Needs,

		Variable:      s.Variable,
		Always:        s.Always,
		Disabled:      st.Disabled,
		NotAllowed:    st.NotAllowed,
		NotOfAgent:    st.NotOfAgent,
		Eligible:      st.Ok(),
		WrongOS:       st.WrongOS,
		ModelVisible:  st.Ok() && !s.Hidden,
		UserInvocable: !s.NoCommand,
		Tool:          s.Tool,
		Requirements:  needs(s.Requires, s.OS),
		Missing:       needs(st.Missing, nil),
		Reasons:       list(st.Reasons()),

		ConfigChecks: []wire.SkillCheck{},
		Install:      []wire.SkillInstaller{},
	}
	if st.WrongOS {
		w.Missing.OS = s.OS
	}
	for _, path := range s.Requires.Config {
		w.ConfigChecks = append(w.ConfigChecks,
			wire.SkillCheck{Path: path, Satisfied: !slices.Contains(st.Missing.Config, path)})
	}
	for _, i := range s.Install {
		label := i.Command()
		if label == "" {
			label = i.Label
		}
		if label != "" && (len(i.OS) == 0 || slices.Contains(i.OS, h.OS)) {
			w.Install = append(w.Install, wire.SkillInstaller{ID: i.ID, Kind: i.Kind, Label: label, Bins: list(i.Bins)})
		}
	}
	return w
}

// source returns a source as clients of OpenClaw know it.
func source(s skill.Source) string {
	switch s {
	case skill.Extra:
		return wire.SkillExtra
	case skill.Bundled:
		return wire.SkillBundled
	case skill.Managed:
		return wire.SkillManaged
	case skill.Personal:
		return wire.SkillPersonal
	case skill.Project:
		return wire.SkillProject
	case skill.Workspace:
		return wire.SkillWorkspace
	}
	return string(s)
}

func needs(r skill.Requires, systems []string) wire.SkillNeeds {
	return wire.SkillNeeds{
		Bins:    list(r.Bins),
		AnyBins: list(r.AnyBins),
		Env:     list(r.Env),
		Config:  list(r.Config),
		OS:      list(systems),
	}
}

// list returns a list that is not nil.
func list(s []string) []string { return append([]string{}, s...) }

func wireOrigin(o skill.Origin) *wire.SkillOrigin {
	w := &wire.SkillOrigin{Source: o.Source, From: o.From, Path: o.Sub, Version: o.Version, Commit: o.Commit, Hash: o.Hash}
	if !o.Installed.IsZero() {
		w.Installed = o.Installed.UnixMilli()
	}
	return w
}

// library says that there is no library besides the workspaces. The Control UI asks for it
// before it offers to install a skill.
func library(ctx context.Context, _ rpc.Peer, _ wire.SkillsLibraryList) (wire.SkillsLibrary, error) {
	out := wire.SkillsLibrary{Entries: []wire.None{}, Target: "unavailable",
		Workspace: chela.PrincipalFrom(ctx).May(chela.ScopeAdmin)}
	if out.Workspace {
		out.Target = "workspace"
	}
	return out, nil
}

func (o Options) search(ctx context.Context, _ rpc.Peer, in wire.SkillsSearch) (wire.SkillsFound, error) {
	found, err := o.Search(ctx, in.Query, in.Limit)
	return wire.SkillsFound{Results: append([]wire.SkillListing{}, found...)}, err
}

func (o Options) detail(ctx context.Context, _ rpc.Peer, in wire.SkillGet) (wire.SkillDetail, error) {
	return o.Detail(ctx, in.Slug)
}

// target returns the folder in which skills are installed: that of an agent, or "" for
// all agents.
func (o Options) target(agent string) (string, error) {
	id := o.Default
	if agent != "" {
		var err error
		if id, err = rpc.AgentOf(agent, "", o.Default, o.Agent); err != nil {
			return "", err
		}
		return o.Skills(id).Own, nil
	}
	return o.Skills(id).Managed, nil
}

func (o Options) install(ctx context.Context, _ rpc.Peer, in wire.SkillsInstall) (wire.SkillInstalled, error) {
	if in.Source == "upload" {
		return wire.SkillInstalled{}, &chela.Error{Code: chela.CodeInvalid, Message: "Chela does not accept uploaded skills",
			Hint: "chela skills install FILE"}
	}
	if in.InstallID != "" || in.Name != "" {
		return wire.SkillInstalled{}, &chela.Error{Code: chela.CodeInvalid,
			Message: "Chela does not install programs for skills", Hint: "chela skills info " + in.Name}
	}
	origin, err := o.origin(in)
	if err != nil {
		return wire.SkillInstalled{}, err
	}
	dir, err := o.target(in.AgentID)
	if err != nil {
		return wire.SkillInstalled{}, err
	}
	return o.put(ctx, dir, skill.Request{
		Record:  o.Record(ctx, chela.AgentID(in.AgentID)),
		Origin:  origin,
		Replace: in.Replace,
		Force:   in.Force,
		Preview: in.Preview,
		Hash:    in.Hash,
	})
}

// origin returns where the skill of a request is from.
func (o Options) origin(in wire.SkillsInstall) (origin skill.Origin, err error) {
	switch in.Source {
	case "clawhub", "registry":
		origin = skill.Origin{Source: "registry", From: in.Slug}
	case "":
		if origin, err = o.Parse(in.From); err != nil {
			return origin, err
		}
	default:
		origin = skill.Origin{Source: in.Source, From: in.From}
	}
	if in.Version != "" && origin.Source == "git" {
		origin.Ref = in.Version
	} else if in.Version != "" {
		origin.Version = in.Version
	}
	origin.Sub = in.Path
	return origin, nil
}

// put installs a skill in a folder.
func (o Options) put(ctx context.Context, dir string, r skill.Request) (wire.SkillInstalled, error) {
	if err := o.MayInstall(ctx, r.Origin.From); err != nil {
		return wire.SkillInstalled{}, err
	}
	r.Now = time.Now()
	r.Fetch = func(to string, origin *skill.Origin) error { return o.Fetch(ctx, to, origin) }
	c, err := skill.Install(dir, r)
	if c.Skill == nil || err != nil && !r.Preview {
		return wire.SkillInstalled{}, err
	}
	v := o.Skills(o.Default)
	out := wire.SkillInstalled{
		OK:       !r.Preview,
		Name:     c.Skill.Name,
		Origin:   *wireOrigin(c.Origin),
		Warning:  c.Warning,
		Exists:   c.Exists,
		Edited:   c.Edited,
		Skill:    describe(c.Skill, v.Config.Check(c.Skill, v.Host), v.Host),
		Findings: []wire.SkillFinding{},

		Changes: []wire.SkillChange{},
	}
	if err != nil {
		out.Error = err.Error()
	}
	if out.OK {
		out.Message = strings.TrimSpace("Installed " + c.Skill.Name + " " + c.Origin.Version)
	}
	out.Skill.Dir = filepath.Join(dir, c.Dir)
	out.Skill.File = filepath.Join(out.Skill.Dir, skill.FileName)
	if c.Old != nil {
		out.Old = wireOrigin(*c.Old)
	}
	for _, f := range c.Findings {
		out.Findings = append(out.Findings, wire.SkillFinding{
			Rule:     f.Rule,
			Severity: string(f.Severity),
			File:     f.File,
			Line:     f.Line,
			Text:     f.Text,
		})
	}
	for _, f := range c.Changes {
		out.Changes = append(out.Changes, wire.SkillChange{File: f.File, How: f.How})
	}
	return out, nil
}

func (o Options) update(ctx context.Context, _ rpc.Peer, in wire.SkillsUpdate) (wire.SkillsUpdated, error) {
	if in.Key != "" {
		return o.configure(ctx, in)
	}
	if in.All == (in.Slug != "") {
		return wire.SkillsUpdated{}, rpc.Invalid("want either slug or all, or skillKey")
	}
	dir, err := o.target(in.AgentID)
	if err != nil {
		return wire.SkillsUpdated{}, err
	}
	names, err := installed(dir)
	if err != nil {
		return wire.SkillsUpdated{}, err
	}
	out := wire.SkillsUpdated{OK: true, Updates: []wire.SkillInstalled{}}
	for _, name := range names {
		if !in.All && name != skill.DirName(in.Slug) {
			continue
		}
		u, err := o.renew(ctx, dir, name, in)
		if err != nil && !in.All {
			return wire.SkillsUpdated{}, err
		}
		if err != nil {
			u.Name, u.Error, out.OK = name, err.Error(), false
		}
		out.Updates = append(out.Updates, u)
	}
	if len(out.Updates) == 0 && !in.All {
		return out, &chela.Error{Code: chela.CodeNotFound, Message: "no skill with the name " + in.Slug + " was installed",
			Hint: "chela skills list"}
	}
	return out, nil
}

// renew installs a skill again from where it is from, unless it has not changed there.
func (o Options) renew(ctx context.Context, dir, name string, in wire.SkillsUpdate) (wire.SkillInstalled, error) {
	origin, err := skill.ReadOrigin(filepath.Join(dir, name))
	if err != nil {
		return wire.SkillInstalled{}, err
	}
	was := origin.Hash
	origin.Hash, origin.Archive, origin.Commit, origin.Version, origin.Installed = "", "", "", "", time.Time{}
	r := skill.Request{
		Record:  o.Record(ctx, chela.AgentID(in.AgentID)),
		Origin:  origin,
		Only:    name,
		Replace: true,
		Force:   in.Force,
		Preview: true,
		Hash:    in.Hash,
	}
	u, err := o.put(ctx, dir, r)
	if err != nil || in.Preview || u.Error != "" || u.Origin.Hash == was && !(in.Force && u.Edited) {
		return u, err
	}
	r.Preview, r.Hash = false, u.Origin.Hash
	return o.put(ctx, dir, r)
}

// installed returns the names of the installed skills in a folder.
func installed(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if _, err := skill.ReadOrigin(filepath.Join(dir, e.Name())); err == nil && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// configure changes the settings of a skill.
func (o Options) configure(ctx context.Context, in wire.SkillsUpdate) (wire.SkillsUpdated, error) {
	values := map[string]any{}
	if in.Enabled != nil {
		values["enabled"] = *in.Enabled
	}
	if in.APIKey != nil {
		values["apiKey"] = text(in.APIKey)
	}
	for name, v := range in.Env {
		values["env."+name] = text(v)
	}
	if len(values) == 0 {
		return wire.SkillsUpdated{}, rpc.Invalid("want enabled, apiKey or env")
	}
	return wire.SkillsUpdated{OK: true, Key: in.Key, Updates: []wire.SkillInstalled{}}, o.Set(ctx, in.Key, values)
}

// text returns a value of the configuration; nil: it is removed.
func text(s *string) any {
	if s == nil || *s == "" {
		return nil
	}
	return *s
}

func (o Options) remove(ctx context.Context, _ rpc.Peer, in wire.SkillsRemove) (wire.SkillRemoved, error) {
	dir, err := o.target(in.AgentID)
	if err != nil {
		return wire.SkillRemoved{}, err
	}
	name := skill.DirName(in.Name)
	if err := skill.Remove(dir, name, o.Record(ctx, chela.AgentID(in.AgentID))); err != nil {
		return wire.SkillRemoved{}, err
	}
	return wire.SkillRemoved{OK: true, Name: in.Name, Removed: filepath.Join(dir, name)}, nil
}
