package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/daemon"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/spelling"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Removal removes parts of an installation.
type Removal interface {
	// Plan returns what Remove would do. It changes nothing.
	Plan(s Start, o RemovalOptions) (*Removed, error)
	// Free returns an error if a process uses the installation.
	Free(ctx context.Context, s Start) error
	// Remove removes what the plan names. No engine may be running. If it fails, or is
	// killed, calling it again continues.
	Remove(ctx context.Context, s Start, o RemovalOptions) (*Removed, error)
}

// RemovalOptions says what is removed.
type RemovalOptions struct {
	Config    bool // the configuration
	Sessions  bool // credentials, conversations, caches and logs
	Workspace bool // workspaces in the state directory
	Rest      bool // everything else in the state directory that is of chela, except backups
}

// Removed is what was, or would be, removed.
type Removed struct {
	State  string        `json:"state"`
	Remove []RemovedPart `json:"remove"`
	Stay   []LeftOut     `json:"stay,omitempty"`
	DryRun bool          `json:"dryRun,omitempty"`
	// For uninstall: the file of the service, and the program.
	Service string `json:"service,omitempty"`
	Program string `json:"program,omitempty"`
}

// RemovedPart is a file or a folder.
type RemovedPart struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
}

// scopes is what reset removes, by scope.
var scopes = map[string]RemovalOptions{
	"config":                {Config: true},
	"config+creds+sessions": {Config: true, Sessions: true},
	"full":                  {Config: true, Sessions: true, Workspace: true, Rest: true},
}

func (c *commands) reset() *cobra.Command {
	scope, dry := "", false
	cmd := c.withJSON(c.withYes(&cobra.Command{
		Use: "reset --scope SCOPE", Short: "Remove the configuration, or everything, to start over", Args: exactly(0),
		Long: "Remove parts of the installation, after showing them. SCOPE is\n" +
			"  config                 the configuration and the rules for commands\n" +
			"  config+creds+sessions  also keys, paired devices, conversations, jobs and logs\n" +
			"  full                   also workspaces, plug-ins, skills and hooks\n" +
			"Backups stay, as does what is outside of the state directory.",
		Example: "  chela backup create\n  chela reset --scope full --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, ok := scopes[scope]
			if !ok {
				err := errors.New("--scope is config, config+creds+sessions or full")
				if scope != "" {
					err = fmt.Errorf("--scope %s: want config, config+creds+sessions or full", scope)
				}
				return usage(c.suggest(err, "reset --scope "+nearest(scope)+" --dry-run"))
			}
			s, err := c.start()
			if err != nil {
				return err
			}
			plan, err := c.app.Removal.Plan(s, o)
			if err != nil {
				return err
			}
			if dry {
				plan.DryRun = true
				return c.print(plan, func() { c.printRemoval(plan, "would remove") })
			}
			return c.remove(cmd.Context(), s, o, plan, "reset --scope "+shell.Quote(scope)+" --yes", nil)
		},
	}))
	cmd.Flags().StringVar(&scope, "scope", "", "what is removed: config, config+creds+sessions or `full`")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be removed, and remove nothing")
	return cmd
}

// nearest returns the scope that is spelled most like s.
func nearest(s string) string {
	best := "config"
	if s == "" {
		return best
	}
	for name := range scopes {
		if spelling.Distance(s, name) < spelling.Distance(s, best) {
			best = name
		}
	}
	return best
}

// printRemoval prints what is removed and what stays.
func (c *commands) printRemoval(r *Removed, verb string) {
	p := c.palette(c.stdout)
	if r.Service != "" {
		fmt.Fprintf(c.stdout, "%s %s %s\n", verb, p.Dim.Paint("service"), ansi.Line(r.Service))
	}
	for _, part := range r.Remove {
		fmt.Fprintf(c.stdout, "%s %s %s\n", verb, p.Dim.Paint(part.Kind), ansi.Line(part.Path))
	}
	if r.Service == "" && len(r.Remove) == 0 {
		fmt.Fprintln(c.stdout, "there is nothing to remove")
	}
	for _, l := range r.Stay {
		fmt.Fprintf(c.stdout, "stays %s: %s\n", ansi.Line(l.Path), ansi.Line(l.Why))
	}
}

// remove carries a plan out after asking. before is called first; nil: there is nothing to
// do before.
func (c *commands) remove(ctx context.Context, s Start, o RemovalOptions, plan *Removed, again string,
	before func() error) error {
	if len(plan.Remove) > 0 || plan.Service != "" {
		if before == nil {
			if err := c.app.Removal.Free(ctx, s); err != nil {
				return err
			}
		}
		if !c.yes && !c.json {
			c.printRemoval(plan, "to be removed:")
		}
		if err := c.confirm("remove what is listed here for good", again); err != nil {
			return err
		}
	}
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	out := plan
	if len(plan.Remove) > 0 {
		removed, err := c.app.Removal.Remove(ctx, s, o)
		if err != nil {
			return err
		}
		removed.Service, removed.Program = plan.Service, plan.Program
		out = removed
	}
	return c.print(out, func() {
		c.printRemoval(out, "removed")
		if out.Program != "" {
			fmt.Fprintln(c.stdout, "the program itself stays; to remove it: "+deleteCommand(out.Program))
		}
	})
}

// deleteCommand returns the command that removes a file.
func deleteCommand(file string) string {
	if runtime.GOOS == "windows" {
		return `del "` + file + `"`
	}
	return "rm " + shell.Quote(file)
}

func (c *commands) uninstall() *cobra.Command {
	var service, state, workspace, all, dry bool
	cmd := c.withJSON(c.withYes(&cobra.Command{
		Use: "uninstall", Short: "Remove the service, and if asked everything else of chela", Args: exactly(0),
		Long: "Remove the service of the gateway. With --state also the state directory with configuration, keys and\n" +
			"conversations, with --workspace the workspaces in it. Backups stay, as does what is outside of the\n" +
			"state directory, and what is not known to be of chela.",
		Example: "  chela uninstall --all --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := RemovalOptions{Config: state || all, Sessions: state || all, Rest: state || all, Workspace: workspace || all}
			service = service || all || !state && !workspace
			s, err := c.start()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			plan, err := c.app.Removal.Plan(s, o)
			if err != nil {
				return err
			}
			if plan.Program = c.app.Program; plan.Program == "" {
				if plan.Program, err = os.Executable(); err != nil {
					return err
				}
			}
			m, name, st, err := c.installed(ctx, s)
			if err != nil {
				return err
			}
			if service && st.Installed {
				plan.Service = st.File
			}
			if dry {
				plan.DryRun = true
				return c.print(plan, func() { c.printRemoval(plan, "would remove") })
			}
			if (plan.Service == "" || !st.Running) && len(plan.Remove) > 0 { // else the service ends
				if err := c.app.Removal.Free(ctx, s); err != nil {
					return err
				}
			}
			again := "uninstall --yes"
			for _, f := range [...]struct {
				name string
				on   bool
			}{{"--service", service && !all}, {"--state", state && !all}, {"--workspace", workspace && !all}, {"--all", all}} {
				if f.on {
					again = strings.Replace(again, " --yes", " "+f.name+" --yes", 1)
				}
			}
			return c.remove(ctx, s, o, plan, again, func() error {
				if plan.Service == "" {
					return nil
				}
				if err := m.Uninstall(ctx, name); err != nil {
					return fmt.Errorf("remove the service: %w", err)
				}
				return nil
			})
		},
	}))
	f := cmd.Flags()
	f.BoolVar(&service, "service", false, "remove the service, which is the default")
	f.BoolVar(&state, "state", false, "remove the state directory: configuration, keys, conversations")
	f.BoolVar(&workspace, "workspace", false, "remove the workspaces in the state directory")
	f.BoolVar(&all, "all", false, "remove all of these")
	f.BoolVar(&dry, "dry-run", false, "show what would be removed, and remove nothing")
	return cmd
}

// installed returns the service of this installation, if the machine has a service manager.
func (c *commands) installed(ctx context.Context, s Start) (m daemon.Manager, name string, st daemon.State, err error) {
	m, name, err = c.services(s)
	if errors.Is(err, daemon.ErrNone) {
		return nil, name, st, nil
	}
	if err == nil {
		st, err = m.State(ctx, name)
	}
	return m, name, st, err
}
