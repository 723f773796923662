package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Migration moves an installation of OpenClaw in.
type Migration interface {
	// Plan returns what Apply would do. It changes nothing.
	Plan(ctx context.Context, s Start, o MigrateOptions) (Migrated, error)
	// Apply takes over what the plan names. No engine may be running. If it fails, or is
	// killed, calling it again continues.
	Apply(ctx context.Context, s Start, o MigrateOptions) (Migrated, error)
	// Undo takes back what the last Apply made, except what was changed since. No engine
	// may be running.
	Undo(ctx context.Context, s Start) (Migrated, error)
	// Find returns the state folders of OpenClaw in a home folder.
	Find(home string) []string
}

// MigrateOptions says what is taken over.
type MigrateOptions struct {
	From      string // state folder of OpenClaw
	Agent     string // only what belongs to the agent; "": everything
	NoSecrets bool   // no keys and tokens
	Overwrite bool   // replace what is here already and differs
}

// Migrated is what was, or would be, done.
type Migrated struct {
	From     string          `json:"from"`
	State    string          `json:"state"`
	Running  string          `json:"running,omitempty"` // sign that OpenClaw is running
	Resumes  bool            `json:"resumes,omitempty"` // the last Apply did not end
	Groups   []MigratedGroup `json:"groups"`
	Left     []NotMigrated   `json:"notTaken"`
	Problems []NotMigrated   `json:"problems"`
	Notes    []string        `json:"notes,omitempty"`
	Report   string          `json:"report,omitempty"` // file with all of this
}

// GroupSettings is the name of the group of settings.
const GroupSettings = "Configuration"

// MigratedGroup is things of one kind.
type MigratedGroup struct {
	Name    string         `json:"name"`
	Summary string         `json:"summary"`
	Items   []MigratedItem `json:"items"`
}

// MigratedItem is one thing.
type MigratedItem struct {
	What   string `json:"what"`
	To     string `json:"to,omitempty"`
	Action string `json:"action"` // ItemAdd, …
	Note   string `json:"note,omitempty"`
}

// The actions.
const (
	ItemAdd      = "add"
	ItemReplace  = "replace"
	ItemSame     = "same"     // it is here already
	ItemConflict = "conflict" // something else is here, which is kept
	ItemRemove   = "remove"   // by Undo
	ItemRestore  = "restore"  // by Undo
	ItemKeep     = "keep"     // by Undo: it was changed since
)

// NotMigrated is something that is not taken over.
type NotMigrated struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Count returns the number of items with an action.
func (m Migrated) Count(actions ...string) int {
	n := 0
	for _, g := range m.Groups {
		for _, i := range g.Items {
			for _, a := range actions {
				if i.Action == a {
					n++
				}
			}
		}
	}
	return n
}

func (c *commands) migrate() *cobra.Command {
	return here(group("migrate", "Move in from another assistant", c.migrateOpenClaw()))
}

func (c *commands) migrateOpenClaw() *cobra.Command {
	var o MigrateOptions
	var dry, apply, undo, secrets bool
	cmd := &cobra.Command{
		Use: "openclaw", Short: "Take over the settings, conversations, jobs and files of OpenClaw", Args: exactly(0),
		Long: "Take over the settings, conversations, jobs, memory, keys and skills of OpenClaw. Without --apply, only a\n" +
			"plan is shown. The folder of OpenClaw is never changed. What is here already is kept and reported,\n" +
			"unless --overwrite is set. Keys and tokens are taken along, readable only by you, unless --no-secrets\n" +
			"is set; they are never shown.",
		Example: "  chela migrate openclaw             # what would be migrated\n" +
			"  chela migrate openclaw --apply     # take it over\n" +
			"  chela migrate openclaw --undo      # take the last --apply back",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry && (apply || undo) || apply && undo {
				return usage(errors.New("--dry-run, --apply and --undo exclude each other"))
			}
			if secrets && o.NoSecrets {
				return usage(errors.New("--include-secrets and --no-secrets exclude each other"))
			}
			s, err := c.start()
			if err != nil {
				return err
			}
			if undo {
				return c.undoMigration(cmd.Context(), s)
			}
			var others []string
			if o.From == "" {
				if o.From, others, err = c.findOpenClaw(s); err != nil {
					return err
				}
			}
			return c.runMigration(cmd.Context(), s, o, others, apply)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&dry, "dry-run", false, "show what would be migrated, which is the default")
	f.BoolVar(&apply, "apply", false, "take it over")
	f.BoolVar(&undo, "undo", false, "take the last --apply back, except what you changed since")
	f.StringVar(&o.From, "from", "", "state `FOLDER` of OpenClaw (default OPENCLAW_STATE_DIR, else ~/.openclaw)")
	f.StringVar(&o.Agent, "agent", "", "take over only what belongs to the agent `ID`")
	f.BoolVar(&secrets, "include-secrets", false, "take keys and tokens along, which is the default")
	f.BoolVar(&o.NoSecrets, "no-secrets", false, "take no keys and tokens along")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace what is here already and differs")
	return c.withYes(c.withJSON(cmd))
}

// findOpenClaw returns the state folder of OpenClaw, and the other ones.
func (c *commands) findOpenClaw(s Start) (dir string, others []string, err error) {
	if dir := c.getenv("OPENCLAW_STATE_DIR"); dir != "" {
		return dir, nil, nil
	}
	home := c.env("HOME")
	found := c.app.Migrate.Find(home)
	if s.Profile != "" {
		own := filepath.Join(home, ".openclaw-"+s.Profile)
		for _, dir := range found {
			if dir == own {
				return own, nil, nil
			}
		}
	}
	if len(found) == 0 {
		return "", nil, c.suggest(fmt.Errorf("no state folder of OpenClaw was found in %s", home),
			"migrate openclaw --from FOLDER")
	}
	return found[0], found[1:], nil
}

// runMigration shows the plan, and carries it out.
func (c *commands) runMigration(ctx context.Context, s Start, o MigrateOptions, others []string, apply bool) error {
	plan, err := c.app.Migrate.Plan(ctx, s, o)
	if err != nil {
		return err
	}
	for _, dir := range others {
		plan.Notes = append(plan.Notes, dir+" is another folder of OpenClaw: "+
			c.commandLine("migrate openclaw --from "+shell.Quote(dir)))
	}
	if !apply {
		return c.print(plan, func() {
			c.printMigrated(plan)
			if plan.Count(ItemAdd, ItemReplace) > 0 {
				fmt.Fprintln(c.stdout, "\nNothing was changed. To take it over: "+c.commandLine(applyLine(o)))
			} else {
				fmt.Fprintln(c.stdout, "\nThere is nothing to do.")
			}
		})
	}
	todo := plan.Count(ItemAdd, ItemReplace)
	if todo > 0 && !c.yes {
		if !c.json {
			c.printMigrated(plan)
		}
		if err := c.confirm("take over "+humanize.Many(todo, "item")+" from "+plan.From+" into "+plan.State,
			applyLine(o)+" --yes"); err != nil {
			return err
		}
	}
	if todo > 0 || plan.Resumes {
		notes := plan.Notes
		if plan, err = c.app.Migrate.Apply(ctx, s, o); err != nil {
			return err
		}
		plan.Notes = notes
	}
	return c.print(plan, func() {
		c.printMigrated(plan)
		if todo == 0 && plan.Report == "" {
			fmt.Fprintln(c.stdout, "\nEverything is here already.")
			return
		}
		fmt.Fprintln(c.stdout, "\nDone. The full report: "+plan.Report)
		fmt.Fprintln(c.stdout, "To take it back: "+c.commandLine("migrate openclaw --undo"))
	})
}

// applyLine is the command that applies a plan.
func applyLine(o MigrateOptions) string {
	line := "migrate openclaw --apply --from " + shell.Quote(o.From)
	if o.Agent != "" {
		line += " --agent " + shell.Quote(o.Agent)
	}
	if o.NoSecrets {
		line += " --no-secrets"
	}
	if o.Overwrite {
		line += " --overwrite"
	}
	return line
}

func (c *commands) undoMigration(ctx context.Context, s Start) error {
	if err := c.confirm("take back the last migration into "+s.State, "migrate openclaw --undo --yes"); err != nil {
		return err
	}
	out, err := c.app.Migrate.Undo(ctx, s)
	if err != nil {
		return err
	}
	return c.print(out, func() {
		c.printMigrated(out)
		fmt.Fprintln(c.stdout, "\nTaken back. The full report: "+out.Report)
	})
}

// shownItems is how many items of a group are printed.
const shownItems = 12

// sections joins the settings of a section that have nothing else to say.
func sections(items []MigratedItem) []MigratedItem {
	var out []MigratedItem
	at := map[string]int{} // in out
	n := map[string]int{}
	for _, i := range items {
		section, _, ok := strings.Cut(i.What, ".")
		if !ok || i.To != "" || i.Note != "" || i.Action != ItemAdd {
			out = append(out, i)
			continue
		}
		if n[section]++; n[section] == 1 {
			at[section] = len(out)
			out = append(out, i)
			continue
		}
		out[at[section]].What, out[at[section]].Note = section, humanize.Many(n[section], "setting")
	}
	return out
}

// printMigrated prints what was, or would be, done.
func (c *commands) printMigrated(m Migrated) {
	p := c.palette(c.stdout)
	fmt.Fprintf(c.stdout, "OpenClaw in %s → %s\n", ansi.Line(m.From), ansi.Line(m.State))
	for _, g := range m.Groups {
		fmt.Fprintf(c.stdout, "\n%s: %s\n", p.Bold.Paint(g.Name), ansi.Line(g.Summary))
		shown := 0
		items := g.Items
		if g.Name == GroupSettings {
			items = sections(items)
		}
		for _, i := range items {
			if i.Action == ItemSame {
				continue
			}
			if shown++; shown > shownItems {
				continue
			}
			line := "  " + fmt.Sprintf("%-8s ", i.Action) + ansi.Line(i.What)
			if i.To != "" {
				line += " → " + ansi.Line(i.To)
			}
			if i.Note != "" {
				line += p.Dim.Paint(" (" + ansi.Line(i.Note) + ")")
			}
			fmt.Fprintln(c.stdout, line)
		}
		if more := shown - shownItems; more > 0 {
			fmt.Fprintf(c.stdout, "  … and %d more (--json)\n", more)
		}
	}
	for _, list := range []struct {
		title string
		items []NotMigrated
	}{{"Not taken", m.Left}, {"Could not be read", m.Problems}} {
		if len(list.items) == 0 {
			continue
		}
		fmt.Fprintf(c.stdout, "\n%s:\n", p.Bold.Paint(list.title))
		for _, l := range list.items {
			fmt.Fprintf(c.stdout, "  %s: %s\n", ansi.Line(l.What), ansi.Line(l.Why))
		}
	}
	if m.Running != "" {
		fmt.Fprintf(c.stdout, "\nOpenClaw is running: %s. What it writes from now on is not taken. Stop it before you start Chela, or both\nanswer the same chats and run the same jobs: openclaw gateway stop\n", ansi.Line(m.Running))
	}
	for _, n := range m.Notes {
		fmt.Fprintln(c.stdout, "\n"+ansi.Line(n))
	}
}
