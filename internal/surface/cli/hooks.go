package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) hooks() *cobra.Command {
	return group("hooks", "Manage hooks: programs that run at named points", c.hooksList(), c.hooksInfo(), c.hooksCheck(),
		here(c.hooksEnable(true)), here(c.hooksEnable(false)), here(c.hooksInstall()))
}

// hookList returns the hooks that exist.
func (c *commands) hookList(ctx context.Context) (wire.HooksStatus, error) {
	var s wire.HooksStatus
	return s, c.call(ctx, wire.MethodHooksStatus, wire.HooksGet{}, &s)
}

// findHook returns a hook by its name.
func (c *commands) findHook(ctx context.Context, name string) (wire.Hook, error) {
	s, err := c.hookList(ctx)
	if err != nil {
		return wire.Hook{}, err
	}
	var names []string
	for _, h := range s.Hooks {
		if h.Name == name {
			return h, nil
		}
		names = append(names, h.Name)
	}
	return wire.Hook{}, c.suggest(chela.Errorf(chela.CodeNotFound, "there is no hook %q; there are %s", name,
		strings.Join(names, ", ")), "hooks list")
}

// hookState says in a few words whether a hook is used.
func hookState(h wire.Hook) string {
	switch {
	case h.Loadable:
		return "on"
	case !h.Enabled && h.Satisfied && (h.Blocked == "" || h.Blocked == "disabled"):
		return "off"
	case !h.Enabled:
		return "off, and it could not run"
	}
	return "cannot run"
}

func (c *commands) hooksList() *cobra.Command {
	var eligible bool
	cmd := &cobra.Command{Use: "list", Short: "List hooks, and whether they are used", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.hookList(cmd.Context())
			if err != nil {
				return err
			}
			if eligible {
				kept := []wire.Hook{}
				for _, h := range s.Hooks {
					if h.Satisfied && (h.Blocked == "" || h.Blocked == "disabled") {
						kept = append(kept, h)
					}
				}
				s.Hooks = kept
			}
			return c.print(s, func() {
				rows := [][]string{{"HOOK", "STATE", "SOURCE", "EVENTS", "DESCRIPTION"}}
				for _, h := range s.Hooks {
					rows = append(rows, []string{
						ansi.Line(strings.TrimSpace(h.Emoji + " " + h.Name)), hookState(h), h.Source,
						ansi.Truncate(ansi.Line(strings.Join(h.Events, ", ")), 40), ansi.Truncate(ansi.Line(h.Description), 60),
					})
				}
				c.printTable(rows)
				for _, h := range s.Hooks {
					c.printHookProblems(h)
				}
			})
		}}
	cmd.Flags().BoolVar(&eligible, "eligible", false, "only hooks that can run here")
	return c.withJSON(cmd)
}

// printHookProblems prints why a hook cannot run, and its warnings.
func (c *commands) printHookProblems(h wire.Hook) {
	if h.Blocked != "" && h.Blocked != "disabled" {
		fmt.Fprintf(c.stdout, "%s: %s\n", ansi.Line(h.Name), ansi.Line(h.Blocked))
	}
	for _, w := range h.Warnings {
		fmt.Fprintf(c.stdout, "%s: warning: %s\n", ansi.Line(h.Name), ansi.Line(w))
	}
}

func (c *commands) hooksInfo() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "info HOOK", Short: "Show a hook", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := c.findHook(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.print(h, func() {
				line := func(name, value string) {
					if value != "" {
						fmt.Fprintf(c.stdout, "%-12s %s\n", name, ansi.Line(value))
					}
				}
				line("hook", strings.TrimSpace(h.Emoji+" "+h.Name))
				line("description", h.Description)
				line("state", hookState(h))
				line("source", h.Source)
				line("agent", h.AgentID)
				line("folder", h.Dir)
				line("handler", h.Handler)
				line("homepage", h.Homepage)
				line("events", strings.Join(h.Events, ", "))
				line("settings", "hooks.internal.entries."+h.Key)
				for _, part := range [...]struct {
					name      string
					has, lack []string
				}{
					{"programs", h.Requires.Bins, h.Missing.Bins}, {"one of", h.Requires.AnyBins, h.Missing.AnyBins},
					{"variables", h.Requires.Env, h.Missing.Env},
					{"keys", h.Requires.Config, h.Missing.Config}, {"systems", h.Requires.OS, h.Missing.OS},
				} {
					if text := strings.Join(part.has, ", "); text != "" {
						if len(part.lack) > 0 {
							text += " (missing: " + strings.Join(part.lack, ", ") + ")"
						}
						line("needs "+part.name, text)
					}
				}
				c.printHookProblems(h)
			})
		}})
}

func (c *commands) hooksCheck() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "check", Short: "Show which hooks can run, and what the others lack",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.hookList(cmd.Context())
			if err != nil {
				return err
			}
			bad := 0
			for _, h := range s.Hooks {
				if h.Enabled && !h.Loadable {
					bad++
				}
			}
			err = c.print(s, func() {
				on, off := 0, 0
				for _, h := range s.Hooks {
					if h.Loadable {
						on++
					} else if !h.Enabled {
						off++
					}
					c.printHookProblems(h)
				}
				fmt.Fprintf(c.stdout, "%d on, %d off, %d enabled but cannot run\n", on, off, bad)
			})
			if err == nil && bad > 0 {
				err = errReported
			}
			return err
		}})
}

// hooksEnable is hooks enable, or hooks disable.
func (c *commands) hooksEnable(on bool) *cobra.Command {
	use, short := "enable HOOK", "Use a hook; one of a workspace is bound to its present content"
	if !on {
		use, short = "disable HOOK", "Stop using a hook"
	}
	return &cobra.Command{Use: use, Short: short, Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.findHook(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if on && h.Blocked != "" && h.Blocked != "disabled" && h.Hash == "" {
			fmt.Fprintf(c.stderr, "%s cannot run yet: %s\n", ansi.Line(h.Name), ansi.Line(h.Blocked))
		}
		edits := []config.Edit{hookEdit(h.Key, "enabled", on)}
		if on && h.Hash != "" {
			edits = append(edits, hookEdit(h.Key, "sha256", h.Hash))
		}
		return c.change(cmd.Context(), edits...)
	}}
}

// hookEdit is a change of a setting of a hook.
func hookEdit(key, name string, value any) config.Edit {
	return setting(value, "hooks", "internal", "entries", key, name)
}

// switchOff disables a hook unless the configuration says whether it is used.
func (c *commands) switchOff(ctx context.Context, key string) error {
	return c.changeBy(ctx, func(section func(path string) json.RawMessage) ([]config.Edit, error) {
		e := hookEdit(key, "enabled", false)
		if section(e.Path) != nil {
			return nil, nil
		}
		return []config.Edit{e}, nil
	})
}

func (c *commands) hooksInstall() *cobra.Command {
	var enable, replace bool
	cmd := &cobra.Command{
		Use: "install FOLDER", Short: "Copy a hook from a folder on this machine, without running it", Args: exactly(1),
		Long: "Copy a folder with a HOOK.md into the hooks of the state directory. Nothing of it is\nrun, and it is off until it is enabled.",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			h, err := hookdir.Read(path, func(name string) string { return name })
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if !enable { // before the folder exists, so that the hook never runs
				if err := c.switchOff(cmd.Context(), h.Key); err != nil {
					return err
				}
			}
			var out wire.HookInstalled
			if err := c.call(cmd.Context(), wire.MethodHooksInstall, wire.HooksInstall{Path: path, Replace: replace},
				&out); err != nil {
				return err
			}
			if enable {
				if err := c.change(cmd.Context(), hookEdit(h.Key, "enabled", true)); err != nil {
					return err
				}
			}
			return c.print(out, func() {
				fmt.Fprintf(c.stdout, "installed %s in %s\n", ansi.Line(out.Name), ansi.Line(out.Dir))
				if !enable {
					fmt.Fprintf(c.stdout, "read it, then: %s\n", c.commandLine("hooks enable "+out.Name))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&enable, "enable", false, "use the hook immediately")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an installed hook with the same name")
	return c.withJSON(cmd)
}
