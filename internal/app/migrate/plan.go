package migrate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/openclaw"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// group is a kind of things.
type group int

// The groups, in the order in which they are shown.
const (
	groupConfig group = iota
	groupKeys
	groupSessions
	groupJobs
	groupPeople
	groupDevices
	groupWorkspaces
	groupSkills
	groupCommands
	groupCount
)

var groupNames = [groupCount]string{cli.GroupSettings, "Keys", "Sessions", "Scheduled jobs", "People", "Devices",
	"Workspaces and memory", "Skills", "Rules about commands"}

// item is one thing that is shown, with what is done for it.
type item struct {
	cli.MigratedItem
	group group
	size  int                                             // of a session: its messages; of a workspace: its files
	steps []step                                          // what do makes; none: there is nothing to do
	do    func(ctx context.Context, a *application) error // makes it, or finds it made
}

// plan is what an Apply would do.
type plan struct {
	m      Migrator
	start  cli.Start
	o      cli.MigrateOptions
	home   *openclaw.Home
	target target
	now    time.Time
	config map[string]any // of OpenClaw
	ours   *config.Tree
	opts   settings.Settings
	last   *record // not nil if it is to be completed

	items   []item
	left    []cli.NotMigrated
	broken  []cli.NotMigrated
	notes   []string
	running string            // the program of OpenClaw that is running, for people; "": none
	moved   map[string]string // path in the folder of OpenClaw → where it is copied to
}

// prepare makes the plan. The caller closes its home.
func (m Migrator) prepare(ctx context.Context, s cli.Start, o cli.MigrateOptions, t target) (_ *plan, err error) {
	dir, err := filepath.Abs(o.From)
	if err != nil {
		return nil, err
	}
	if err := overlap(dir, s.State); err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("%s cannot be read", dir),
			Hint: "chela migrate openclaw --from FOLDER", Err: err}
	}
	home, err := openclaw.Open(dir, m.Open)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	defer func() {
		if err != nil {
			home.Close()
		}
	}()
	p := &plan{m: m, start: s, o: o, home: home, target: t, now: time.Now(), moved: map[string]string{}}
	if p.last, err = lastRecord(s.State); err != nil {
		return nil, err
	}
	if p.last != nil && p.last.State == undoing {
		return nil, &chela.Error{Code: chela.CodeConflict, Message: "undoing the last migration did not finish",
			Hint: "chela migrate openclaw --undo"}
	}
	if p.last != nil && p.last.State != applying {
		p.last = nil
	}
	if p.last != nil && p.last.From != home.Dir {
		return nil, &chela.Error{
			Code: chela.CodeConflict, Message: "the migration from " + p.last.From + " is not complete",
			Hint: "chela migrate openclaw --apply --from " + shell.Quote(p.last.From) + ", or chela migrate openclaw --undo",
		}
	}
	if info, err := os.Lstat(s.Config); err == nil && !info.Mode().IsRegular() {
		return nil, chela.Errorf(chela.CodeInvalid, "%s is a symbolic link, which chela does not write to", s.Config)
	}
	if p.ours, err = (config.Options{LastGood: s.LastGood}).Load(s.Config); err != nil {
		return nil, err
	}
	if err := p.ours.Broken(); err != nil {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: s.Config + " is invalid", Hint: "chela config validate",
			Err: err}
	}
	if p.opts, err = settings.Read(p.ours); err != nil {
		return nil, err
	}
	p.config = home.Config()
	p.running = home.Running(os.TempDir(), alive)
	if o.Agent != "" && !slices.Contains(p.agents(), o.Agent) {
		return nil, chela.Errorf(chela.CodeInvalid, "OpenClaw has no agent %s in %s; it has %s", o.Agent, dir,
			strings.Join(p.agents(), ", "))
	}
	return p, p.collect(ctx)
}

// alive reports whether there is a process.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// collect adds the items. Files come before the configuration, because it is rewritten to name
// the places that they are copied to.
func (p *plan) collect(ctx context.Context) error {
	for _, f := range [...]func(context.Context) error{
		p.workspaces, p.skills, p.commands, p.keys, p.configuration, p.sessions, p.jobs, p.people, p.devices,
	} {
		if err := f(ctx); err != nil {
			return err
		}
		if err := cmp.Or(ctx.Err(), p.home.Err()); err != nil {
			return err
		}
	}
	p.leftFiles()
	for _, b := range p.home.Problems() {
		p.broken = append(p.broken, cli.NotMigrated{What: b.File, Why: b.Text})
	}
	return nil
}

// agents returns the ids of the agents of OpenClaw, in its folder or its configuration.
func (p *plan) agents() []string {
	ids := p.home.Agents()
	for id := range p.agentConfigs() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// agentConfigs returns the sections of the agents by their ids.
func (p *plan) agentConfigs() map[string]map[string]any {
	out := map[string]map[string]any{}
	agents, _ := p.config["agents"].(map[string]any)
	list, _ := agents["list"].([]any)
	for _, v := range list {
		if a, ok := v.(map[string]any); ok {
			if id, _ := a["id"].(string); id != "" {
				out[id] = a
			}
		}
	}
	entries, _ := agents["entries"].(map[string]any)
	for id, v := range entries {
		if a, ok := v.(map[string]any); ok {
			out[id] = a
		}
	}
	return out
}

// wanted reports whether what belongs to an agent is taken.
func (p *plan) wanted(agent string) bool { return p.o.Agent == "" || p.o.Agent == agent }

// add adds an item.
func (p *plan) add(i item) { p.items = append(p.items, i) }

// leave records what is not taken.
func (p *plan) leave(what, why string) {
	l := cli.NotMigrated{What: what, Why: why}
	if !slices.Contains(p.left, l) {
		p.left = append(p.left, l)
	}
}

// unreadable records what could not be read.
func (p *plan) unreadable(what string, err error) {
	n := cli.NotMigrated{What: what, Why: err.Error()}
	if !slices.Contains(p.broken, n) { // sessions are read twice
		p.broken = append(p.broken, n)
	}
}

// leftovers says why files and folders of OpenClaw are not taken.
var leftovers = map[string]string{
	"logs":              "logs",
	"cache":             "it is made again when it is needed",
	"memory":            "indexes over the memory files; Chela makes its own",
	"media":             "attachments of old messages; the conversations keep their texts and small pictures",
	"browser":           "profiles of a browser",
	"sandboxes":         "work folders of containers; Chela has its own sandbox",
	"extensions":        "plug-ins, which are programs: install those that you want (chela plugins install FOLDER)",
	"plugins":           "plug-ins, which are programs: install those that you want (chela plugins install FOLDER)",
	"plugin-skills":     "skills of OpenClaw's plug-ins",
	"canvas":            "pages of OpenClaw's canvas",
	"identity":          "the key with which this machine showed itself to OpenClaw's gateway; Chela has its own",
	"telegram":          "positions in the streams of messages; Chela keeps its own",
	"subagents":         "subagents in progress",
	"tasks":             "work in progress",
	"delivery-queue":    "messages that were not delivered yet",
	"hooks":             "hooks, which are programs: install those that you want (chela hooks install FOLDER)",
	"update-check.json": "bookkeeping of OpenClaw",
	"nodes":             "pairings of older nodes; pair them again (chela devices invite)",
	"completions":       "bookkeeping of OpenClaw",
	"settings":          "settings of its apps",
}

// leftFiles reports the files and folders that are not taken.
func (p *plan) leftFiles() {
	for _, name := range slices.Sorted(maps.Keys(leftovers)) {
		if p.home.IsDir(name) || p.home.IsFile(name) {
			p.leave(name, leftovers[name])
		}
	}
	if p.home.IsDir("credentials/whatsapp") {
		p.leave("credentials/whatsapp", "the session of WhatsApp belongs to OpenClaw's program; link the account again")
	}
}

// shown returns the plan as it is shown.
func (p *plan) shown() cli.Migrated {
	m := cli.Migrated{
		From: p.home.Dir, State: p.start.State, Running: p.running, Resumes: p.last != nil,
		Groups: []cli.MigratedGroup{}, Left: p.left, Problems: p.broken, Notes: p.notes,
	}
	if m.Left == nil {
		m.Left = []cli.NotMigrated{}
	}
	if m.Problems == nil {
		m.Problems = []cli.NotMigrated{}
	}
	for g := range groupCount {
		var items []cli.MigratedItem
		count, size := map[string]int{}, 0
		for _, i := range p.items {
			if i.group == g {
				items = append(items, i.MigratedItem)
				count[i.Action]++
				if i.Action == cli.ItemAdd || i.Action == cli.ItemReplace {
					size += i.size
				}
			}
		}
		if len(items) > 0 {
			m.Groups = append(m.Groups, cli.MigratedGroup{Name: groupNames[g], Summary: summary(g, count, size), Items: items})
		}
	}
	if p.target.blind {
		m.Notes = append(m.Notes, "A gateway of Chela is running, so sessions, jobs, people and devices were not compared with those that are here. Stop it before --apply: chela gateway stop")
	}
	return m
}

// summary describes the items of a group.
func summary(g group, count map[string]int, size int) string {
	noun := [groupCount]string{"setting", "key", "session", "job", "person", "device", "file", "skill", "file"}[g]
	var parts []string
	if n := count[cli.ItemAdd] + count[cli.ItemReplace]; n > 0 {
		switch g {
		case groupSessions:
			parts = append(parts, humanize.Many(n, noun)+" with "+humanize.Many(size, "message"))
		case groupWorkspaces:
			parts = append(parts, humanize.Many(size, noun))
		case groupPeople:
			parts = append(parts, people(n))
		default:
			parts = append(parts, humanize.Many(n, noun))
		}
	}
	if n := count[cli.ItemSame]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d here already", n))
	}
	if n := count[cli.ItemConflict]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d kept unchanged (--overwrite replaces it)", n))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	text := parts[0]
	for _, part := range parts[1:] {
		text += ", " + part
	}
	return text
}

func people(n int) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}
