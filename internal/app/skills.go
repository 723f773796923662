package app

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"time"

	"github.com/chela-ai/chela/internal/app/skillsource"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/trigger"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/plugin/tool/skills"
)

// callSkill calls the tool of a skill for a person's command, without a model. It passes
// the same rules as a call of a model; one that needs an approval is refused.
func (e *Engine) callSkill(ctx context.Context, it queue.Item, c skill.Command, input string) (string, error) {
	args, err := e.skillArgs(it.Session.Agent(), c, input)
	if err != nil {
		return "", err
	}
	direct := invoke.NewDirect(invoke.DirectOptions{
		Executor: e.executor, Store: e.store, Default: chela.DefaultAgent, Agent: e.current.HasAgent, Scope: e.current.Scope,
		Direct: func() (deny, allow []string) { return nil, []string{c.Skill.Tool} },
	})
	a, err := direct.Do(chela.WithPrincipal(ctx, it.Principal), it.Principal, invoke.DirectCall{
		Tool: c.Skill.Tool, Session: string(it.Session), Agent: string(it.Session.Agent()), Args: args, Key: "skill:" + it.ID,
	})
	switch {
	case err != nil:
		return "", err
	case a.Approval:
		return "", chela.Errorf(chela.CodeInvalid,
			"the call needs an approval, which a command cannot ask for; ask the assistant to do it instead: %s", a.Text)
	case a.Refusal != "" && (a.Refusal != invoke.Failed || len(a.Result.Content) == 0):
		return "", chela.Errorf(chela.CodeInvalid, "%s", a.Text)
	case a.Refusal != "":
		return failure(trigger.Text(a.Result)), nil
	}
	return trigger.Text(a.Result), nil
}

// failure returns the result of a tool that failed as a person reads it: the error alone,
// if the result is an error for a model.
func failure(text string) string {
	var r struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if json.Unmarshal([]byte(text), &r) == nil && r.Status == "error" && r.Error != "" {
		return r.Error
	}
	return text
}

// skillArgs returns the arguments of the tool of a skill. Those that it does not have are
// left out, except the input.
func (e *Engine) skillArgs(agent chela.AgentID, c skill.Command, input string) (json.RawMessage, error) {
	args := map[string]string{"command": input, "commandName": c.Name, "skillName": c.Skill.Name}
	if t, ok := e.now().Tools(agent).Get(c.Skill.Tool); ok {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			More       *bool                      `json:"additionalProperties"`
		}
		if err := json.Unmarshal(t.Spec().Schema, &schema); err == nil && schema.More != nil && !*schema.More {
			for _, name := range [...]string{"commandName", "skillName"} {
				if schema.Properties[name] == nil {
					delete(args, name)
				}
			}
		}
	}
	return json.Marshal(args)
}

// skillSource returns what fetches skills, with the registry of the configuration.
func (e *Engine) skillSource() *skillsource.Fetcher {
	g := e.now()
	f := &skillsource.Fetcher{
		Broker: e.profiles.Broker(), Environ: e.profiles.Environ(),
		HTTP: egress.Client(egress.Options{Proxy: egress.Proxies(e.o.Env), ProxyResolves: true, MaxRedirects: maxRedirects}),
	}
	conf := g.Settings.Skills.Registry
	u, err := url.Parse(conf.URL)
	if err != nil || u.Host == "" {
		return f
	}
	token, err := conf.Token.Resolve(e.o.Env)
	if err != nil {
		e.o.Log.Warn("skills.registry.token", "err", err)
	}
	f.Registry = &skillsource.Client{URL: conf.URL, Token: token.Reveal(), HTTP: standard.HostClient(u)}
	return f
}

// maxRedirects is the number of redirects that the download of a skill may have.
const maxRedirects = 5

// skillRegistry is the registry of skills for models.
type skillRegistry struct{ e *Engine }

// Search implements skills.Registry.
func (r skillRegistry) Search(ctx context.Context, words string, limit int) (out []skills.Found, err error) {
	found, err := r.e.skillSource().Search(ctx, words, limit)
	for _, l := range found {
		out = append(out, skills.Found{Name: l.Slug, Version: l.Version, Description: l.Description})
	}
	return out, err
}

// recordSkill returns what records the changes of the skills of an agent, or of all agents
// for the empty id, in the journal.
func (e *Engine) recordSkill(ctx context.Context, agent chela.AgentID) installdir.Record {
	src := journal.SourceFrom(ctx)
	src.Agent, src.Tool = cmp.Or(src.Agent, agent, chela.DefaultAgent), cmp.Or(src.Tool, "skills")
	ctx = journal.WithSource(ctx, src)
	return func(dir, next string, change func() error) error { return e.history.Folder(ctx, dir, next, change) }
}

// recoverSkills completes or undoes the changes of skills that a killed process left.
func (e *Engine) recoverSkills() {
	g := e.now()
	dirs := []string{g.ManagedSkills()}
	for _, id := range g.Settings.Roster() {
		dirs = append(dirs, g.SkillsDir(id))
	}
	for _, dir := range dirs {
		if err := skill.Recover(dir); err != nil {
			e.o.Log.Error("complete the installation of a skill", "folder", dir, "err", err)
		}
	}
	if _, err := e.proposed.List(""); err != nil {
		e.o.Log.Error("complete the proposal of a skill", "err", err)
	}
}

// Install implements skills.Registry.
func (r skillRegistry) Install(ctx context.Context, name, version, hash string, preview bool) (skill.Candidate, error) {
	if err := r.e.mayInstall(ctx, "skill", name); err != nil {
		return skill.Candidate{}, err
	}
	source, dir := r.e.skillSource(), r.e.profiles.ManagedSkills()
	k, err := skill.Install(dir, skill.Request{
		Origin:  skill.Origin{Source: skillsource.Registry, From: name, Version: version},
		Hash:    hash,
		Preview: preview,
		Now:     time.Now(),
		Record:  r.e.recordSkill(ctx, ""),
		Fetch:   func(to string, o *skill.Origin) error { return source.Fetch(ctx, to, o) },
	})
	if k.Skill != nil {
		k.Skill.File = filepath.Join(dir, k.Dir, skill.FileName)
	}
	return k, err
}
