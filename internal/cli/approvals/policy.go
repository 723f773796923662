package approvals

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Settings is the configuration, as these commands change it.
type Settings interface {
	// Section returns the JSON at a path; nil: nothing is set.
	Section(path string) (json.RawMessage, error)
	// Set writes values by their paths, and says so; nil takes one away.
	Set(values map[string]any) error
}

// Policy returns the command exec-policy with those below it.
func Policy(k *console.Console, s Settings) *cobra.Command {
	p := policy{commands{k}, s}
	return console.Group("exec-policy", "Which commands run, and when a person is asked", p.show(), p.preset(), p.set())
}

type policy struct {
	commands
	settings Settings
}

// entries are the rows of a table of what is on the allowlist.
func entries(p wire.ExecPolicy) [][]string {
	var rows [][]string
	for _, id := range slices.Sorted(maps.Keys(p.Agents)) {
		for _, e := range p.Agents[id].Allowlist {
			what, with := e.Pattern, cmp.Or(e.Args, "any arguments")
			if e.Source == wire.AllowAlways && e.Text != "" {
				what, with = brief(e.Text), "as it was allowed"
			}
			used := "–"
			if e.LastUsed > 0 {
				used = console.Ago(e.LastUsed.Time())
			}
			rows = append(rows, []string{ansi.Line(e.ID), ansi.Line(id), ansi.Truncate(ansi.Line(what), 60), ansi.Truncate(ansi.Line(with), 40), used})
		}
	}
	return rows
}

func (p policy) show() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show what the configuration and the rules say, and what holds", Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			configured, err := p.configured()
			if err != nil {
				return err
			}
			return p.rules(cmd.Context(), func(_ *client.Client, s wire.ExecPolicySnapshot) error {
				if asJSON {
					return p.JSON(map[string]any{"configured": words(configured), "rules": s.File.Defaults, "effective": s.Resolved})
				}
				p.print(configured, s)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// configured is the policy that the configuration says for all agents.
func (p policy) configured() (allowlist.Policy, error) {
	base := allowlist.Default()
	raw, err := p.settings.Section("compat")
	if err != nil {
		return base, err
	}
	if string(raw) == `"openclaw"` {
		base = allowlist.Open()
	}
	var c allowlist.Config
	if raw, err = p.settings.Section("tools.exec"); err == nil && raw != nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return base, err
	}
	return c.Policy(base)
}

func words(q allowlist.Policy) wire.ExecSettings {
	return wire.ExecSettings{Security: string(q.Security), Ask: string(q.Ask), Fallback: string(q.Fallback)}
}

// print shows a policy to a person.
func (p policy) print(configured allowlist.Policy, s wire.ExecPolicySnapshot) {
	d := s.File.Defaults
	none := func(word string) string { return cmp.Or(word, "–") }
	p.Table([][]string{
		{"", "SECURITY", "ASK", "WHEN NOBODY CAN BE ASKED"},
		{"configuration", string(configured.Security), string(configured.Ask), "–"},
		{"rules", none(d.Security), none(d.Ask), none(d.Fallback)},
		{"in force", s.Resolved.Security, s.Resolved.Ask, s.Resolved.Fallback},
	})
	fmt.Fprintln(p.Out)
	switch {
	case s.Resolved.Security == string(allowlist.Listed) && configured.Reads && d.Security != string(allowlist.Listed):
		fmt.Fprintln(p.Out, "What is known to only read is on the allowlist, too.")
	case s.Resolved.Security == string(allowlist.Listed):
		fmt.Fprintln(p.Out, "Nothing is on the allowlist but its entries and filters.")
	}
	fmt.Fprintf(p.Out, "%s, in %s\n", figure.Many(len(entries(s.File)), "entry"), s.Path)
}

func (p policy) preset() *cobra.Command {
	return &cobra.Command{
		Use: "preset NAME", Short: "Set the configuration and the rules: default, cautious, yolo or deny-all", Args: console.Exactly(1),
		Long: "Set what the configuration and the rules say, for all agents:\n" +
			"  default   what only reads runs, all else asks\n" +
			"  cautious  what is on the allowlist runs, all else asks\n" +
			"  yolo      everything runs, nobody is asked\n" +
			"  deny-all  nothing runs\n" +
			"Entries stay as they are, and so does what is said of single agents.",
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
				return console.Usage(fmt.Errorf("preset %q is none of default, cautious, yolo, deny-all", args[0]))
			}
			return p.apply(cmd, s, true)
		},
	}
}

func (p policy) set() *cobra.Command {
	var s wire.ExecSettings
	cmd := &cobra.Command{
		Use: "set", Short: "Set the configuration and the rules, in OpenClaw's words", Args: console.Exactly(0),
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
				return console.Usage(err)
			case s == wire.ExecSettings{}:
				return console.Usage(console.Hint(fmt.Errorf("nothing is to be set"), cmd.CommandPath()+" --help"))
			}
			return p.apply(cmd, s, false)
		},
	}
	cmd.Flags().StringVar(&s.Security, "security", "", "which commands may run: `deny`, allowlist or full")
	cmd.Flags().StringVar(&s.Ask, "ask", "", "when a person is asked: `off`, on-miss or always")
	cmd.Flags().StringVar(&s.Fallback, "ask-fallback", "", "when nobody can be asked: `deny`, allowlist or full")
	return cmd
}

// apply sets the policy in both places; with all, what s leaves open is
// unset. What is stricter is set first, so that nothing is open in between.
func (p policy) apply(cmd *cobra.Command, s wire.ExecSettings, all bool) error {
	err := p.change(cmd.Context(), func(f *wire.ExecPolicy) error {
		d := &f.Defaults
		for _, v := range [...]struct{ to, from *string }{{&d.Security, &s.Security}, {&d.Ask, &s.Ask}, {&d.Fallback, &s.Fallback}} {
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
		values["tools.exec.mode"] = nil // the pair says it
		if err := p.unword(&s, all); err != nil {
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
	if err := p.settings.Set(values); err != nil {
		return err
	}
	fmt.Fprintln(p.Out, "It holds from the next command on.")
	fmt.Fprintln(p.Err, "what holds: "+p.Command("exec-policy show"))
	return nil
}

// unword puts into s what the one word for the pair said of the half that is
// not to be set: it stays said when the word goes.
func (p policy) unword(s *wire.ExecSettings, all bool) error {
	raw, err := p.settings.Section("tools.exec.mode")
	if err != nil || raw == nil {
		return err
	}
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return fmt.Errorf("tools.exec.mode: %w", err)
	}
	q, err := allowlist.ParseMode(word)
	if err != nil {
		return err
	}
	if all {
		return nil
	}
	s.Ask = cmp.Or(s.Ask, string(q.Ask))
	if s.Security == "" && q.Security != allowlist.Listed { // which is what holds without a word
		s.Security = string(q.Security)
	}
	return nil
}
