package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/openclaw"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// maxReplaced is the size of a file that may be replaced, in bytes.
const maxReplaced = 256 << 20

// copying is a file to be made: of a file of OpenClaw, or with a text.
type copying struct {
	base string // folder that exists or is made; the file is below it, and no link leads out
	rel  string // path in it, with slashes
	perm fs.FileMode
	from string // name in the folder of OpenClaw; "": text
	text []byte

	hash   string // of the content
	have   string // of the file that is there now; "": none
	before string // of the file that Undo puts back; "": none
}

func (c *copying) path() string { return filepath.Join(c.base, filepath.FromSlash(c.rel)) }

// step returns the record of the file.
func (c *copying) step() step {
	return step{Kind: kindFile, Name: c.path(), After: c.hash, Before: c.before}
}

// source returns the hash of what the file will have.
func (p *plan) source(c *copying) (string, error) {
	if c.from == "" {
		return hashOf(c.text), nil
	}
	f, err := p.home.Open(c.from)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashReader(f)
}

// compare decides what is done with a file. ours reports whether a file that differs may
// be replaced without asking.
func (p *plan) compare(c *copying, ours func(path string) bool) (action, note string, err error) {
	if c.hash, err = p.source(c); err != nil {
		return "", "", err
	}
	have, err := hashFile(c.path())
	c.have = have
	switch {
	case errors.Is(err, errIrregular):
		return cli.ItemConflict, "not a regular file", nil
	case err != nil:
		return "", "", err
	}
	known := p.last.find(kindFile, c.path())
	switch {
	case have == "":
		return cli.ItemAdd, "", nil
	case have == c.hash:
		return cli.ItemSame, "", nil
	case known != nil && have == known.After: // of an Apply that did not end
		c.before = known.Before
		return cli.ItemReplace, "", nil
	case p.o.Overwrite || ours(c.path()):
		c.before = have
		return cli.ItemReplace, "", nil
	}
	return cli.ItemConflict, "", nil
}

// never is for files of which none may be replaced.
func never(string) bool { return false }

// tree adds an item for the files of a folder. Files that are kept get items of their own.
func (p *plan) tree(g group, what, to string, files []*copying, ours func(string) bool) {
	i := item{group: g, MigratedItem: cli.MigratedItem{What: what, To: to, Action: cli.ItemSame}}
	var todo []*copying
	var size int64
	var replaced []string // that the person wrote
	for _, c := range files {
		action, note, err := p.compare(c, ours)
		switch {
		case err != nil:
			p.unreadable(c.from, pathError(err))
		case action == cli.ItemConflict:
			p.add(item{group: g, MigratedItem: cli.MigratedItem{What: c.from, To: c.path(), Action: action, Note: note}})
		case action == cli.ItemSame:
		default:
			todo = append(todo, c)
			if action == cli.ItemReplace && !ours(c.path()) {
				replaced = append(replaced, c.rel)
			}
			i.steps = append(i.steps, c.step())
			if info, err := os.Stat(filepath.Join(p.home.Dir, filepath.FromSlash(c.from))); err == nil {
				size += info.Size()
			}
		}
	}
	if len(todo) > 0 {
		i.Action, i.size = cli.ItemAdd, len(todo)
		i.Note = humanize.Many(len(todo), "file") + ", " + humanize.Bytes(size)
		if len(replaced) > 0 {
			i.Action = cli.ItemReplace
			i.Note += ", in place of yours: " + humanize.Truncate(strings.Join(replaced, ", "), 200)
		}
		i.do = func(ctx context.Context, a *application) error {
			for _, c := range todo {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := a.write(c); err != nil {
					return err
				}
			}
			return nil
		}
	}
	p.add(i)
}

// pathError returns an error without the path in it.
func pathError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// expand replaces a leading ~.
func expand(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return dir
}

// inside returns the path in the folder of OpenClaw that a path in its configuration
// leads to. The folder may have been elsewhere when the configuration was written.
func (p *plan) inside(file string) (rel string, ok bool) {
	file = filepath.ToSlash(expand(file))
	if !path.IsAbs(file) && !filepath.IsAbs(file) {
		return "", false
	}
	if rel, ok := p.home.Inside(filepath.FromSlash(file)); ok {
		return rel, true
	}
	if rel = below(file); rel != "" && (p.home.IsDir(rel) || p.home.IsFile(rel)) && !exists(filepath.FromSlash(file)) {
		return rel, true
	}
	return "", false
}

// below returns the part of a path after the name of a folder of OpenClaw; "": there is
// none.
func below(file string) string {
	elements := strings.Split(file, "/")
	for i, e := range elements[:len(elements)-1] {
		for _, base := range [...]string{".openclaw", ".clawdbot", ".moltbot"} {
			if e == base || strings.HasPrefix(e, base+"-") {
				return path.Join(elements[i+1:]...)
			}
		}
	}
	return ""
}

// workspaceOf returns the path in the folder of OpenClaw of an agent's workspace. If it is
// elsewhere, rel is empty.
func (p *plan) workspaceOf(agent string, of map[string]any) (rel, elsewhere string) {
	dir, _ := of["workspace"].(string)
	if dir == "" && agent == string(chela.DefaultAgent) {
		agents, _ := p.config["agents"].(map[string]any)
		defaults, _ := agents["defaults"].(map[string]any)
		dir, _ = defaults["workspace"].(string)
	}
	switch {
	case dir == "" && agent == string(chela.DefaultAgent):
		return "workspace", ""
	case dir == "":
		return "workspace-" + agent, ""
	}
	if rel, ok := p.inside(dir); ok {
		return rel, ""
	}
	return "", expand(dir)
}

// workspaces adds the workspaces of the agents.
func (p *plan) workspaces(ctx context.Context) error {
	configs, heartbeats := p.agentConfigs(), p.home.Heartbeats(ctx)
	ids := p.agents()
	if main := string(chela.DefaultAgent); !slices.Contains(ids, main) {
		ids = append([]string{main}, ids...)
	}
	for _, id := range ids {
		if !p.wanted(id) {
			continue
		}
		rel, elsewhere := p.workspaceOf(id, configs[id])
		if elsewhere != "" {
			p.add(item{group: groupWorkspaces, MigratedItem: cli.MigratedItem{What: elsewhere, Action: cli.ItemSame,
				Note: "outside of OpenClaw's folder"}})
			p.notes = append(p.notes, fmt.Sprintf("The workspace of the agent %s is used where it is: %s", id, elsewhere))
			continue
		}
		if to := p.home.LinkOf(rel); to != "" {
			p.leave(rel, "a symbolic link to "+to+
				", which is not followed; to use that folder, set it as the workspace of the agent "+id+" (chela config set)")
		}
		if !p.home.IsDir(rel) || p.moved[rel] != "" {
			continue
		}
		if !chela.ValidAgentID(id) {
			p.leave(rel, fmt.Sprintf("%q cannot be the id of an agent of Chela", id))
			continue
		}
		to := p.workspace(id)
		p.moved[rel] = to
		files := p.copies(rel, to, ".openclaw")
		if beat := heartbeats[id]; beat != "" &&
			!slices.ContainsFunc(files, func(c *copying) bool { return c.rel == "HEARTBEAT.md" }) {
			files = append(files, &copying{base: to, rel: "HEARTBEAT.md", perm: 0o600, text: []byte(beat)})
		}
		p.tree(groupWorkspaces, rel, to, files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && filepath.Dir(file) == to && prompt.IsTemplate(filepath.Base(file), text)
		})
	}
	return nil
}

// workspace returns the folder that becomes the workspace of an agent: that which the
// configuration here names, else the default one.
func (p *plan) workspace(agent string) string {
	home, _ := os.UserHomeDir() // only for a path with ~
	return p.opts.Workspace(chela.AgentID(agent), p.start.State, home)
}

// copies returns the files of a folder as files of another one.
func (p *plan) copies(rel, to string, without ...string) []*copying {
	var all []*copying
	for _, f := range p.home.Files(rel, without...) {
		all = append(all, &copying{base: to, rel: f.Rel, perm: f.Mode | 0o600, from: f.Name})
	}
	return all
}

// skills adds the skills that the person installed, and those that agents wrote.
func (p *plan) skills(context.Context) error {
	if p.o.Agent == "" {
		p.skillsIn("skills", filepath.Join(p.start.State, settings.SkillsDir))
	}
	for _, id := range p.home.Agents() {
		if p.wanted(id) && chela.ValidAgentID(id) {
			p.skillsIn(path.Join("agents", id, "agent", "workshop-skills"), filepath.Join(p.workspace(id), settings.SkillsDir))
		}
	}
	return nil
}

// skillsIn adds the skills in a folder, each as a whole.
func (p *plan) skillsIn(rel, to string) {
	for _, name := range p.home.Skills(rel) {
		dir := filepath.Join(to, path.Base(name))
		files := p.copies(name, dir)
		p.moved[name] = dir
		if exists(dir) && !p.o.Overwrite && p.differs(files) {
			p.add(item{group: groupSkills, MigratedItem: cli.MigratedItem{What: name, To: dir, Action: cli.ItemConflict}})
			continue
		}
		p.tree(groupSkills, name, dir, files, never)
		last := &p.items[len(p.items)-1]
		if n := p.critical(name); n > 0 && last.do != nil {
			last.Note += "; look at it before you use it: " + humanize.Many(n, "finding") + " (chela skills check)"
		}
	}
	if len(p.home.Skills(rel)) > 0 {
		p.moved[rel] = to
	}
}

// differs reports whether a file of a folder that is here is missing or another one, and
// not of an Apply that did not end.
func (p *plan) differs(files []*copying) bool {
	return slices.ContainsFunc(files, func(c *copying) bool {
		action, _, err := p.compare(c, never)
		return err != nil || action == cli.ItemConflict || action == cli.ItemAdd && p.last.find(kindFile, c.path()) == nil
	})
}

// critical returns the number of dangerous things in a skill.
func (p *plan) critical(name string) int {
	found, err := skill.Scan(os.DirFS(filepath.Join(p.home.Dir, filepath.FromSlash(name))))
	if err != nil {
		return 0
	}
	n := 0
	for _, f := range found {
		if f.Severity == skill.Critical {
			n++
		}
	}
	return n
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// commands adds the rules about commands.
func (p *plan) commands(ctx context.Context) error {
	text, from := p.home.ExecApprovals(ctx)
	if text == nil {
		return nil
	}
	theirs, err := allowlist.Parse(withoutSocket(text))
	if err != nil {
		p.unreadable(from, fmt.Errorf("the rules about commands: %w", err))
		return nil
	}
	file := allowlist.NewFile(filepath.Join(p.start.State, allowlist.FileName))
	ours, there, err := file.Load()
	if err != nil {
		return err
	}
	before := ours.Encode()
	ours, err = allowlist.Parse(before) // a copy
	if err != nil {
		return err
	}
	added := p.mergeRules(ours, theirs)
	if len(added) == 0 {
		return nil
	}
	c := &copying{base: p.start.State, rel: allowlist.FileName, perm: 0o600, text: ours.Encode()}
	i := item{group: groupCommands, MigratedItem: cli.MigratedItem{What: strings.Join(added, ", "), To: file.Path(),
		Action: cli.ItemAdd}}
	if _, _, err := p.compare(c, func(string) bool { return there }); err != nil {
		return err
	}
	i.steps = []step{c.step()}
	i.do = func(_ context.Context, a *application) error { return a.write(c) }
	p.add(i)
	return nil
}

// mergeRules adds rules to those that are here, and returns what was added.
func (p *plan) mergeRules(ours, theirs *allowlist.Document) (added []string) {
	setting := func(name string, to, from *allowlist.Settings) {
		if from.Security != "" && to.Security == "" {
			to.Security = from.Security
			added = append(added, name+" security "+string(from.Security))
		}
		if from.Ask != "" && to.Ask == "" {
			to.Ask = from.Ask
			added = append(added, name+" ask "+string(from.Ask))
		}
		if from.Fallback != "" && to.Fallback == "" {
			to.Fallback = from.Fallback
			added = append(added, name+" askFallback "+string(from.Fallback))
		}
	}
	if p.o.Agent == "" {
		setting("all agents", &ours.Defaults, &theirs.Defaults)
	}
	if ours.Agents == nil {
		ours.Agents = map[string]allowlist.Agent{}
	}
	for _, id := range sortedKeys(theirs.Agents) {
		if !p.wanted(id) {
			continue
		}
		from, to := theirs.Agents[id], ours.Agents[id]
		n := len(added)
		setting(id, &to.Settings, &from.Settings)
		rules := 0
		for _, e := range from.Allowlist {
			if !slices.ContainsFunc(to.Allowlist,
				func(o allowlist.Entry) bool { return o.Pattern == e.Pattern && o.Args == e.Args }) {
				to.Allowlist = append(slices.Clip(to.Allowlist), e)
				rules++
			}
		}
		if rules > 0 {
			added = append(added, fmt.Sprintf("%s of %s", humanize.Many(rules, "allowed command"), id))
		}
		if len(added) > n {
			ours.Agents[id] = to
		}
	}
	return added
}

// withoutSocket removes the address and the token of OpenClaw's approval service.
func withoutSocket(text []byte) []byte {
	var m map[string]any
	if err := decodeNumbers(text, &m); err != nil {
		return text
	}
	delete(m, "socket")
	return mustJSON(m)
}

// keys adds the saved keys of model providers.
func (p *plan) keys(ctx context.Context) error {
	var seen []openclaw.Key
	for _, k := range p.home.Keys(ctx) {
		agent := k.Agent
		if agent == "" {
			agent = string(chela.DefaultAgent)
		}
		what := k.ID
		if k.Agent != "" {
			what += " of the agent " + k.Agent
		}
		switch {
		case k.Agent != "" && !p.wanted(k.Agent) || k.Agent == "" && p.o.Agent != "":
			continue
		case p.o.NoSecrets:
			p.leave(what, "--no-secrets")
			continue
		case k.Type == "oauth":
			p.leave(what, "a login with an account is bound to OpenClaw; log in again: chela models auth "+k.Provider)
			continue
		case k.Secret.IsZero():
			p.leave(what, "its key is not in OpenClaw's folder but referred to; add it: chela models auth "+k.Provider)
			continue
		case k.Expires > 0 && k.Expires < p.now.UnixMilli():
			p.leave(what, "it has expired")
			continue
		case !p.knows(k.Provider):
			p.leave(what, "Chela does not know the provider "+k.Provider)
			continue
		case !chela.ValidAgentID(agent):
			continue
		case slices.ContainsFunc(seen,
			func(o openclaw.Key) bool { return o.Provider == k.Provider && o.Secret.Equal(k.Secret) }):
			continue // agents inherit it
		}
		seen = append(seen, k)
		dir := settings.KeyDir(p.start.State)
		if agent != string(chela.DefaultAgent) {
			dir = settings.AgentKeyDir(p.start.State, chela.AgentID(agent))
		}
		name := k.Provider + ".key"
		if n := keyName(k.Name()); n != "" && n != "default" {
			name = k.Provider + "." + n + ".key"
		}
		c := &copying{base: dir, rel: name, perm: 0o600, text: []byte(k.Secret.Reveal() + "\n")}
		action, note, err := p.compare(c, never)
		if err != nil {
			return err
		}
		i := item{group: groupKeys, MigratedItem: cli.MigratedItem{What: what, To: c.path(), Action: action, Note: note}}
		if action == cli.ItemAdd || action == cli.ItemReplace {
			i.steps = []step{c.step()}
			i.do = func(_ context.Context, a *application) error { return a.write(c) }
		}
		p.add(i)
	}
	return nil
}

// knows reports whether Chela can use a provider: by itself, or by the configuration.
func (p *plan) knows(provider string) bool {
	if strings.ContainsAny(provider, "/\\.*?[") {
		return false
	}
	models, _ := p.config["models"].(map[string]any)
	own, _ := models["providers"].(map[string]any)
	return slices.Contains(p.m.Providers, provider) || own[provider] != nil
}

// keyName returns the name of a key without the characters that it may not have.
func keyName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/\\.*?[: ", r) || r < ' ' {
			return '-'
		}
		return r
	}, name)
}

// write makes a file. One that has the content already is left alone.
func (a *application) write(c *copying) error {
	if err := a.p.m.before("file " + c.rel); err != nil {
		return err
	}
	err := a.place(c)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.path(), pathError(err))
}

// A file that is replaced is kept first. What is there is compared with the plan, so that a
// change by somebody else in between is neither lost nor recorded as ours.
func (a *application) place(c *copying) error {
	have, err := hashFile(c.path())
	if err != nil || have == c.hash {
		return err
	}
	if have != c.have {
		return errors.New("it was changed meanwhile; try again")
	}
	if have != "" && have == c.before {
		if err := a.record.keep(c.path(), have); err != nil {
			return err
		}
		if err := a.p.m.before("kept " + c.rel); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.base, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.base)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := path.Dir(c.rel); dir != "." {
		if err := root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			return err
		}
	}
	fill := func(w io.Writer) error {
		if c.from != "" {
			return a.p.home.Copy(w, c.from)
		}
		_, err := w.Write(c.text)
		return err
	}
	name := filepath.FromSlash(c.rel)
	if have == "" {
		return createIn(root, name, c.perm, c.hash, fill)
	}
	var b bytes.Buffer
	if err := fill(&limited{&b, maxReplaced}); err != nil {
		return err
	}
	if hashOf(b.Bytes()) != c.hash {
		return errors.New("it was changed while it was copied; try again")
	}
	return atomicfile.WriteIn(root, name, b.Bytes(), c.perm)
}

// limited is a Writer that fails after a number of bytes.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, fmt.Errorf("larger than %s, so it does not replace a file", humanize.Bytes(maxReplaced))
	}
	return l.w.Write(b)
}
