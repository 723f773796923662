// Package models is the commands that show and choose the models that answer.
package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/llm"
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
	// Set writes a value of the configuration and says so.
	Set(path string, value any) error
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
			note := strings.Join(m.Tags, ",")
			if !m.Available {
				note = "no key"
			}
			rows = append(rows, []string{m.Provider + "/" + m.ID, ansi.Truncate(ansi.Line(m.Name), 40), window(m.Context), m.Alias, note})
		}
		c.Table(rows)
		return nil
	}}
	cmd.Flags().BoolVar(&all, "all", false, "also those whose provider has no key")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// window is a context window in short: 200k.
func window(tokens int) string {
	switch {
	case tokens == 0:
		return ""
	case tokens < 1000:
		return fmt.Sprint(tokens)
	case tokens < 1_000_000:
		return fmt.Sprintf("%dk", tokens/1000)
	}
	return fmt.Sprintf("%.3gM", float64(tokens)/1e6)
}

func (c commands) status() *cobra.Command {
	var asJSON bool
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
			return nil
		},
	}
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
			s += fmt.Sprintf(" (rests%s %s: %s)", what, time.Until(r.Until.Time()).Round(time.Second), r.Reason)
		}
		out = append(out, s)
	}
	return out
}

func (c commands) set() *cobra.Command {
	return &cobra.Command{
		Use: "set PROVIDER/MODEL", Short: "Choose the model that answers", Args: console.Exactly(1),
		Example: "  chela models set anthropic/claude-sonnet-4-5",
		RunE: func(_ *cobra.Command, args []string) error {
			_, fallbacks, err := c.chosen()
			if err != nil {
				return err
			}
			return c.choose(args[0], fallbacks)
		},
	}
}

func (c commands) fallbacks() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "fallbacks [PROVIDER/MODEL]...", Short: "Show or choose the models that answer when the default one does not", Args: cobra.ArbitraryArgs,
		Long: "Show or choose the models that answer when the default one does not, in order.\n" +
			"A model that was chosen for a session with /model is not replaced.",
		RunE: func(_ *cobra.Command, args []string) error {
			primary, fallbacks, err := c.chosen()
			if err != nil {
				return err
			}
			switch {
			case len(args) > 0 && none:
				return console.Usage(errors.New("models and --none exclude each other"))
			case len(args) == 0 && !none:
				for _, f := range fallbacks {
					fmt.Fprintln(c.Out, f)
				}
				return nil
			case primary == "":
				return c.Hint(errors.New("no default model is configured, which fallbacks would stand in for"), "models set PROVIDER/MODEL")
			}
			return c.choose(primary, args)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "no fallbacks any more")
	return cmd
}

// chosen returns the configured default model and its fallbacks.
func (c commands) chosen() (primary string, fallbacks []string, err error) {
	raw, err := c.settings.Section("agents.defaults.model")
	if err != nil {
		return "", nil, err
	}
	var both struct {
		Primary   string
		Fallbacks []string
	}
	switch {
	case raw == nil:
		return "", nil, nil
	case json.Unmarshal(raw, &primary) == nil:
		return primary, nil, nil
	case json.Unmarshal(raw, &both) != nil:
		return "", nil, c.Hint(errors.New("agents.defaults.model is neither a text nor an object with primary and fallbacks"), "config validate")
	}
	return both.Primary, both.Fallbacks, nil
}

// choose writes the default model and its fallbacks.
func (c commands) choose(primary string, fallbacks []string) error {
	for _, ref := range append([]string{primary}, fallbacks...) {
		p, m, full := strings.Cut(ref, "/")
		if full && (p == "" || m == "") || ref == "" {
			return console.Usage(fmt.Errorf("model %q: want PROVIDER/MODEL or an alias", ref))
		}
		if full {
			continue
		}
		if err := c.aliased(ref); err != nil {
			return err
		}
	}
	var v any = primary
	if len(fallbacks) > 0 {
		v = map[string]any{"primary": primary, "fallbacks": fallbacks}
	}
	return c.settings.Set("agents.defaults.model", v)
}

// aliased refuses a name that is no model's.
func (c commands) aliased(name string) error {
	models, err := c.named()
	if err != nil {
		return err
	}
	known := llm.Known()
	for _, m := range models {
		if a, ok := m["alias"].(string); ok && a != "" {
			known.Aliases[strings.ToLower(a)] = ""
		}
	}
	if _, ok := known.Aliases[strings.ToLower(name)]; ok {
		return nil
	}
	text := fmt.Sprintf("model %q: there is no such alias; want PROVIDER/MODEL or an alias", name)
	if near := known.Near(name); len(near) > 0 {
		text += ", perhaps " + strings.Join(near, " or ")
	}
	return console.Usage(errors.New(text))
}

// named returns what the configuration says of models, by their names.
func (c commands) named() (map[string]map[string]any, error) {
	models := map[string]map[string]any{}
	raw, err := c.settings.Section("agents.defaults.models")
	if err != nil || raw == nil {
		return models, err
	}
	if err := json.Unmarshal(raw, &models); err != nil {
		return nil, c.Hint(fmt.Errorf("agents.defaults.models: %w", err), "config validate")
	}
	return models, nil
}

func (c commands) aliases() *cobra.Command {
	return &cobra.Command{
		Use: "aliases [NAME PROVIDER/MODEL]", Short: "Show the short names of models, or give one", Args: console.Between(0, 2),
		Example: "  chela models aliases quick anthropic/claude-haiku-4-5",
		RunE: func(_ *cobra.Command, args []string) error {
			models, err := c.named()
			if err != nil {
				return err
			}
			switch len(args) {
			case 0:
				rows := [][]string{{"ALIAS", "MODEL"}}
				for _, ref := range slices.Sorted(maps.Keys(models)) {
					if a, ok := models[ref]["alias"].(string); ok && a != "" {
						rows = append(rows, []string{ansi.Line(a), ansi.Line(ref)})
					}
				}
				c.Table(rows)
				return nil
			case 1:
				return console.Usage(errors.New("which model is it the name of?"))
			}
			if !strings.Contains(args[1], "/") || strings.Contains(args[0], "/") {
				return console.Usage(errors.New("want a name without a slash and then PROVIDER/MODEL"))
			}
			if models[args[1]] == nil {
				models[args[1]] = map[string]any{}
			}
			models[args[1]]["alias"] = args[0]
			return c.settings.Set("agents.defaults.models", models)
		},
	}
}

func (c commands) auth() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "auth PROVIDER", Short: "Keep a key for a provider, read from standard input", Args: console.Exactly(1),
		Long: "Keep a key for a provider, read from standard input, in the state directory.\n" +
			"Several keys, each with a --name, are used in turn when one is refused or limited.",
		Example: "  chela models auth groq < key.txt\n  chela models auth groq --name work < other.txt",
		RunE: func(_ *cobra.Command, args []string) error {
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
			fmt.Fprintln(c.Err, "kept (a running chela reads it at its next start)")
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the key's `NAME`, beside other keys of the provider")
	return cmd
}
