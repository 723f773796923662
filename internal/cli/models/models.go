// Package models is the commands that show and choose the models that answer.
package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the command models with those below it.
func Commands(k *console.Console, s Settings) *cobra.Command {
	c := commands{k, s}
	return console.Group("models", "Show and choose the models that answer",
		c.list(), c.status(), c.set(), c.fallbacks(), c.aliases(), c.auth())
}

// Settings is what is kept of the choice of models.
type Settings interface {
	// Section returns what the configuration says at a path; nil: nothing.
	Section(path string) (json.RawMessage, error)
	// Set writes values of the configuration by their paths, and says so; nil
	// takes one away.
	Set(values map[string]any) error
	// Providers returns the providers that are known or configured.
	Providers() ([]string, error)
	// SaveKey keeps the key of a model provider. A name keeps it beside the
	// provider's other keys.
	SaveKey(provider, name, key string) error
}

type commands struct {
	*console.Console
	settings Settings
}

func (c commands) list() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List the models that can be asked", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		var p wire.ModelsGet
		if all {
			p.View = wire.ModelsAll
		}
		var list wire.ModelsList
		if err := c.Call(cmd.Context(), wire.MethodModelsList, p, &list); err != nil {
			return err
		}
		if asJSON {
			return c.JSON(list)
		}
		rows := [][]string{{"MODEL", "NAME", "WINDOW", "ALIAS", ""}}
		for _, m := range list.Models {
			note, window := strings.Join(m.Tags, ","), ""
			if m.Context > 0 {
				window = figure.Count(int64(m.Context))
			}
			if !m.Available {
				note = "no key"
			}
			rows = append(rows, []string{m.Provider + "/" + m.ID, ansi.Truncate(ansi.Line(m.Name), 40), window, m.Alias, note})
		}
		c.Table(rows)
		return nil
	}}
	cmd.Flags().BoolVar(&all, "all", false, "also those whose provider has no key")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) status() *cobra.Command {
	var asJSON, probe bool
	cmd := &cobra.Command{
		Use: "status", Short: "Say which model answers, which do when it does not, and which keys rest", Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.ModelsStatus
			if err := c.Call(cmd.Context(), wire.MethodModelsStatus, wire.None{}, &s); err != nil {
				return err
			}
			if asJSON {
				return c.JSON(s)
			}
			c.printModels(s)
			if probe {
				return c.probe(cmd.Context(), s)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "ask each provider that can be asked for a word, under each of its keys")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) printModels(s wire.ModelsStatus) {
	fmt.Fprintf(c.Out, "default    %s (%s)\n", s.Default, s.Reason)
	if len(s.Fallbacks) > 0 {
		fmt.Fprintf(c.Out, "fallbacks  %s\n", strings.Join(s.Fallbacks, ", "))
	}
	fmt.Fprintln(c.Out)
	rows := [][]string{{"PROVIDER", "READY", "KEYS"}}
	for _, p := range s.Providers {
		ready := "yes"
		if !p.Ready {
			ready = "no: " + ansi.Truncate(ansi.Line(p.Error), 60)
		}
		rows = append(rows, []string{p.ID, ready, strings.Join(keyLines(p), "; ")})
	}
	c.Table(rows)
}

// keyLines names a provider's keys, and what rests of them.
func keyLines(p wire.ProviderStatus) []string {
	var out []string
	for _, k := range p.Keys {
		s := strings.TrimPrefix(k.ID, p.ID+":")
		for _, r := range k.Rests {
			what := ""
			if r.Model != "" {
				what = " for " + r.Model
			}
			s += fmt.Sprintf(" (rests%s %s: %s)", what, figure.Span(time.Until(r.Until.Time())), r.Reason)
		}
		out = append(out, s)
	}
	return out
}

func (c commands) auth() *cobra.Command {
	var name string
	var force bool
	cmd := &cobra.Command{
		Use: "auth PROVIDER", Short: "Keep a key for a provider, read from standard input", Args: console.Exactly(1),
		Long: "Keep a key for a provider, read from standard input, in the state directory.\n" +
			"Several keys, each with a --name, are used in turn when one is refused or limited.",
		Example: "  chela models auth groq < key.txt\n  chela models auth groq --name work < other.txt",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := c.provider(args[0], force); err != nil {
				return err
			}
			key, err := c.Secret("key of " + args[0] + ", and Enter: ")
			if err != nil {
				return err
			}
			if key == "" {
				return console.Usage(errors.New("no key came in"))
			}
			if err := c.settings.SaveKey(args[0], name, key); err != nil {
				return err
			}
			fmt.Fprintln(c.Err, "kept")
			return nil
		},
	}
	cmd.AddCommand(c.logout())
	forceFlag(cmd, &force)
	cmd.Flags().StringVar(&name, "name", "", "the key's `NAME`, beside other keys of the provider")
	return cmd
}
