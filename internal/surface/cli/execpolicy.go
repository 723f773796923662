package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) execPolicy() *cobra.Command {
	return here(group("exec-policy", "Show and set which commands may run, and when approval is needed",
		c.execPolicyShow(), c.execPolicyPreset(), c.execPolicySet()))
}

// allowlistRows returns the entries of the allowlist as table rows.
func allowlistRows(p wire.ExecPolicy) [][]string {
	var rows [][]string
	for _, id := range slices.Sorted(maps.Keys(p.Agents)) {
		for _, e := range p.Agents[id].Allowlist {
			what, with := e.Pattern, cmp.Or(e.Args, "any")
			if e.Source == wire.AllowAlways && e.Text != "" {
				what, with = firstLine(e.Text), "as allowed"
			}
			where := "in the sandbox"
			switch {
			case e.Source == wire.AllowAlways:
				where = "–"
			case e.Host:
				where = "outside"
			}
			used := "–"
			if e.LastUsed > 0 {
				used = ago(e.LastUsed.Time())
			}
			rows = append(rows, []string{ansi.Line(e.ID), ansi.Line(id), ansi.Truncate(ansi.Line(what), 60),
				ansi.Truncate(ansi.Line(with), 40), where, used})
		}
	}
	return rows
}

func (c *commands) execPolicyShow() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "show", Short: "Show the configured policy, the rules, and the policy in effect", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			configured, err := c.configuredPolicy()
			if err != nil {
				return err
			}
			return c.withRules(cmd.Context(), func(_ *link, s wire.ExecPolicySnapshot) error {
				return c.print(map[string]any{
					"configured": policySettings(configured),
					"rules":      s.File.Defaults,
					"effective":  s.Resolved,
				}, func() { c.printPolicy(configured, s) })
			})
		},
	})
}

// configuredPolicy returns the policy that is configured for all agents.
func (c *commands) configuredPolicy() (allowlist.Policy, error) {
	base := allowlist.Default()
	raw, err := c.section("compat")
	if err != nil {
		return base, err
	}
	if string(raw) == `"openclaw"` {
		base = allowlist.Permissive()
	}
	var conf allowlist.Config
	if raw, err = c.section("tools.exec"); err == nil && raw != nil {
		err = json.Unmarshal(raw, &conf)
	}
	if err != nil {
		return base, err
	}
	return conf.Policy(base)
}

func policySettings(q allowlist.Policy) wire.ExecSettings {
	return wire.ExecSettings{Security: string(q.Security), Ask: string(q.Ask), Fallback: string(q.Fallback)}
}

// printPolicy prints a policy as a table.
func (c *commands) printPolicy(configured allowlist.Policy, s wire.ExecPolicySnapshot) {
	d := s.File.Defaults
	none := func(word string) string { return cmp.Or(word, "–") }
	c.printTable([][]string{
		{"", "SECURITY", "ASK", "ASK FALLBACK"},
		{"configuration", string(configured.Security), string(configured.Ask), "–"},
		{"rules", none(d.Security), none(d.Ask), none(d.Fallback)},
		{"in effect", s.Resolved.Security, s.Resolved.Ask, s.Resolved.Fallback},
	})
	fmt.Fprintln(c.stdout)
	switch {
	case s.Resolved.Security == string(allowlist.Listed) && configured.Reads && d.Security != string(allowlist.Listed):
		fmt.Fprintln(c.stdout, "Read-only commands are allowed, too.")
	case s.Resolved.Security == string(allowlist.Listed):
		fmt.Fprintln(c.stdout, "Only allowlist entries and filters are allowed.")
	}
	fmt.Fprintf(c.stdout, "%s in %s\n", humanize.Many(len(allowlistRows(s.File)), "entry"), s.Path)
}

func (c *commands) execPolicyPreset() *cobra.Command {
	return &cobra.Command{
		Use: "preset NAME", Short: "Apply a preset: default, cautious, yolo or deny-all", Args: exactly(1),
		Long: "Set the policy for all agents, in the configuration and in the rules:\n" +
			"  default   commands run in the sandbox; leaving it needs approval\n" +
			"  cautious  commands on the allowlist run, all others need approval\n" +
			"  yolo      all commands run without approval\n" +
			"  deny-all  no command runs\n" +
			"Allowlist entries and the settings of single agents do not change.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var s wire.ExecSettings
			switch args[0] {
			case "default":
			case "cautious":
				s = wire.ExecSettings{Security: "allowlist", Ask: "on-miss", Fallback: "deny"}
			case "yolo":
				s = wire.ExecSettings{Security: "full", Ask: "off", Fallback: "full"}
			case "deny-all":
				s = wire.ExecSettings{Security: "deny", Ask: "off", Fallback: "deny"}
			default:
				return usage(fmt.Errorf("unknown preset %q; want default, cautious, yolo or deny-all", args[0]))
			}
			return c.applyPolicy(cmd, s, true)
		},
	}
}

func (c *commands) execPolicySet() *cobra.Command {
	var s wire.ExecSettings
	cmd := &cobra.Command{
		Use: "set", Short: "Set the policy in the configuration and in the rules", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var q allowlist.Policy
			_, err := q.WithSecurity(s.Security)
			if err == nil {
				_, err = q.WithAsk(s.Ask)
			}
			if err == nil {
				_, err = q.WithFallback(s.Fallback)
			}
			switch {
			case err != nil:
				return usage(err)
			case s == wire.ExecSettings{}:
				return usage(withHint(errors.New("no setting given"), cmd.CommandPath()+" --help"))
			}
			return c.applyPolicy(cmd, s, false)
		},
	}
	cmd.Flags().StringVar(&s.Security, "security", "", "which commands may run: `MODE` deny, allowlist or full")
	cmd.Flags().StringVar(&s.Ask, "ask", "", "when approval is needed: `MODE` off, on-miss or always")
	cmd.Flags().StringVar(&s.Fallback, "ask-fallback", "",
		"what happens if nobody can answer: `MODE` deny, allowlist or full")
	return cmd
}

// applyPolicy sets the policy in the rules and in the configuration. With all,
// empty fields of s are unset there. The rules are changed first.
func (c *commands) applyPolicy(cmd *cobra.Command, s wire.ExecSettings, all bool) error {
	err := c.changeRules(cmd.Context(), func(f *wire.ExecPolicy) error {
		d := &f.Defaults
		for _, v := range [...]struct{ to, from *string }{{&d.Security, &s.Security}, {&d.Ask, &s.Ask},
			{&d.Fallback, &s.Fallback}} {
			if *v.from != "" || all {
				*v.to = *v.from
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	values := map[string]any{}
	if s.Security != "" || s.Ask != "" || all {
		values["tools.exec.mode"] = nil // replaced by security and ask
		if err := c.expandMode(&s, all); err != nil {
			return err
		}
	}
	for path, word := range map[string]string{"tools.exec.security": s.Security, "tools.exec.ask": s.Ask} {
		if word != "" {
			values[path] = word
		} else if all {
			values[path] = nil
		}
	}
	if err := c.setValues(cmd.Context(), values); err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, "Takes effect with the next command.")
	fmt.Fprintln(c.stderr, "to check: "+c.commandLine("exec-policy show"))
	return nil
}

// expandMode copies the settings that tools.exec.mode stands for, and that s
// does not set, to s: they must survive the removal of the mode.
func (c *commands) expandMode(s *wire.ExecSettings, all bool) error {
	raw, err := c.section("tools.exec.mode")
	if err != nil || raw == nil {
		return err
	}
	var mode string
	if err := json.Unmarshal(raw, &mode); err != nil {
		return fmt.Errorf("tools.exec.mode: %w", err)
	}
	q, err := allowlist.ParseMode(mode)
	if err != nil {
		return err
	}
	if all {
		return nil
	}
	s.Ask = cmp.Or(s.Ask, string(q.Ask))
	if s.Security == "" && q.Security != allowlist.Listed { // Listed is the default
		s.Security = string(q.Security)
	}
	return nil
}
