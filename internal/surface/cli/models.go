package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) models() *cobra.Command {
	return group("models", "Show and choose models",
		c.modelsList(), c.modelsStatus(), here(c.modelsSet()), here(c.modelsFallbacks()),
		here(c.modelsAliases()), here(c.modelsAuth()))
}

func (c *commands) modelsList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "list", Short: "List the available models", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var p wire.ModelsGet
			if all {
				p.View = wire.ModelsAll
			}
			return query(cmd.Context(), c, wire.MethodModelsList, p, func(list wire.ModelsList) {
				rows := [][]string{{"MODEL", "NAME", "WINDOW", "ALIAS", ""}}
				for _, m := range list.Models {
					note, window := strings.Join(m.Tags, ","), ""
					if m.Context > 0 {
						window = humanize.Count(int64(m.Context))
					}
					if !m.Available {
						note = "no key"
					}
					rows = append(rows, []string{m.Provider + "/" + m.ID, ansi.Truncate(ansi.Line(m.Name), 40), window, m.Alias, note})
				}
				c.printTable(rows)
			})
		}}
	cmd.Flags().BoolVar(&all, "all", false, "also list models whose provider has no key")
	return c.withJSON(cmd)
}

func (c *commands) modelsStatus() *cobra.Command {
	var probe bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the default model, its fallbacks, and which keys are on cooldown", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.ModelsStatus
			if err := c.call(cmd.Context(), wire.MethodModelsStatus, wire.None{}, &s); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(s)
			}
			c.printModels(s)
			if probe {
				return c.probeProviders(cmd.Context(), s)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "send a test request to each ready provider with each of its keys")
	return c.withJSON(cmd)
}

func (c *commands) printModels(s wire.ModelsStatus) {
	fmt.Fprintf(c.stdout, "default    %s (%s)\n", s.Default, s.Reason)
	if len(s.Fallbacks) > 0 {
		fmt.Fprintf(c.stdout, "fallbacks  %s\n", strings.Join(s.Fallbacks, ", "))
	}
	fmt.Fprintln(c.stdout)
	rows := [][]string{{"PROVIDER", "READY", "KEYS"}}
	for _, p := range s.Providers {
		ready := "yes"
		if !p.Ready {
			ready = "no: " + ansi.Truncate(ansi.Line(p.Error), 60)
		}
		rows = append(rows, []string{p.ID, ready, strings.Join(keyLines(p), "; ")})
	}
	c.printTable(rows)
}

// keyLines describes the keys of a provider and their cooldowns.
func keyLines(p wire.ProviderStatus) []string {
	var out []string
	for _, k := range p.Keys {
		s := strings.TrimPrefix(k.ID, p.ID+":")
		for _, r := range k.Cooldowns {
			model := ""
			if r.Model != "" {
				model = " with " + r.Model
			}
			s += fmt.Sprintf(" (on cooldown%s for %s: %s)", model, humanize.Span(time.Until(r.Until.Time())), r.Reason)
		}
		out = append(out, s)
	}
	return out
}

func (c *commands) modelsAuth() *cobra.Command {
	var name string
	var force bool
	cmd := &cobra.Command{
		Use: "auth PROVIDER", Short: "Save an API key of a provider, read from standard input", Args: exactly(1),
		Long: "Save an API key of a provider in the state directory. The key is read from standard\n" +
			"input. A provider can have several keys, each with a --name: if one is rejected or\n" +
			"rate-limited, the next one is used.",
		Example: "  chela models auth groq < key.txt\n  chela models auth groq --name work < other.txt",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := c.checkProvider(args[0]); err != nil && !force {
				return err
			}
			key, err := c.readSecret("API key of " + args[0] + ": ")
			if err != nil {
				return err
			}
			if key == "" {
				return usage(errors.New("no key on standard input"))
			}
			s, err := c.start()
			if err == nil {
				err = c.app.SaveKey(s, args[0], name, key)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(c.stderr, "saved")
			return nil
		},
	}
	cmd.AddCommand(c.modelsLogout())
	cmd.Flags().BoolVar(&force, "force", false, "accept a provider that is neither known nor configured")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the key, if the provider has several")
	return cmd
}

// probeProviders sends test requests and prints which keys work.
func (c *commands) probeProviders(ctx context.Context, s wire.ModelsStatus) error {
	rows := [][]string{{"KEY", "STATUS", "TIME", "ERROR"}}
	for _, p := range s.Providers {
		if !p.Ready {
			continue
		}
		var out wire.ModelsProbed
		if err := c.call(ctx, wire.MethodModelsProbe, wire.ModelsProbe{Provider: p.ID}, &out); err != nil {
			return err
		}
		for _, r := range out.Results {
			took := ""
			if r.Latency != nil {
				took = fmt.Sprintf("%d ms", *r.Latency)
			}
			rows = append(rows, []string{r.Label, r.Status, took, ansi.Truncate(ansi.Line(r.Error), 80)})
		}
	}
	fmt.Fprintln(c.stdout)
	c.printTable(rows)
	return nil
}

func (c *commands) modelsLogout() *cobra.Command {
	return &cobra.Command{
		Use: "logout PROVIDER[:NAME]", Short: "Delete the saved keys of a provider, or one of them", Args: exactly(1),
		Long: "Delete the saved keys of a provider, or one of them. Keys in the configuration and\n" +
			"in environment variables are not deleted.",
		Example: "  chela models auth logout groq\n  chela models auth logout groq:work",
		RunE: func(cmd *cobra.Command, args []string) error {
			var in wire.ModelsLogout
			if in.Provider, _, _ = strings.Cut(args[0], ":"); in.Provider != args[0] {
				in.Keys = []string{args[0]}
			}
			return query(cmd.Context(), c, wire.MethodModelsLogout, in, func(out wire.ModelsLoggedOut) {
				if out.Warning != "" {
					fmt.Fprintln(c.stderr, ansi.Line(out.Warning))
				}
				if len(out.Removed) == 0 {
					fmt.Fprintln(c.stderr, "no saved key of "+in.Provider)
				} else {
					fmt.Fprintln(c.stderr, "deleted "+strings.Join(out.Removed, ", "))
				}
			})
		},
	}
}
