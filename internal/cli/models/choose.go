package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/spelling"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

func (c commands) set() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "set PROVIDER/MODEL", Short: "Choose the model that answers", Args: console.Exactly(1),
		Example: "  chela models set anthropic/claude-sonnet-4-5",
		RunE: func(_ *cobra.Command, args []string) error {
			_, fallbacks, err := c.chosen()
			if err != nil {
				return err
			}
			return c.choose(args[0], fallbacks, force)
		},
	}
	forceFlag(cmd, &force)
	return cmd
}

// forceFlag adds the flag by which a person knows better.
func forceFlag(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVar(force, "force", false, "also of a provider that is neither known nor configured")
}

func (c commands) fallbacks() *cobra.Command {
	var none, asJSON, force bool
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
			case len(args) == 0 && !none && asJSON:
				return c.JSON(append([]string{}, fallbacks...))
			case len(args) == 0 && !none:
				for _, f := range fallbacks {
					fmt.Fprintln(c.Out, f)
				}
				return nil
			case primary == "":
				return c.Hint(errors.New("no default model is configured, which fallbacks would stand in for"), "models set PROVIDER/MODEL")
			}
			return c.choose(primary, args, force)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "no fallbacks any more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	forceFlag(cmd, &force)
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
func (c commands) choose(primary string, fallbacks []string, force bool) error {
	for _, ref := range append([]string{primary}, fallbacks...) {
		if err := c.check(ref, force); err != nil {
			return err
		}
	}
	var v any = primary
	if len(fallbacks) > 0 {
		v = map[string]any{"primary": primary, "fallbacks": fallbacks}
	}
	return c.settings.Set(map[string]any{"agents.defaults.model": v})
}

// check refuses what is no model, as far as that can be known: the models of a
// provider are its own affair.
func (c commands) check(ref string, force bool) error {
	p, m, full := strings.Cut(ref, "/")
	switch {
	case full && (p == "" || m == "") || ref == "":
		return console.Usage(fmt.Errorf("model %q: want PROVIDER/MODEL or an alias", ref))
	case !full:
		return c.aliased(ref)
	}
	return c.provider(p, force)
}

// provider refuses a provider that is neither known nor configured.
func (c commands) provider(name string, force bool) error {
	names, err := c.settings.Providers()
	if err != nil || force || slices.Contains(names, name) {
		return err
	}
	text := "there is no provider " + name
	if near := slices.DeleteFunc(names, func(n string) bool { return spelling.Distance(name, n) > 2 }); len(near) > 0 {
		text += ", perhaps " + strings.Join(near, " or ")
	}
	return console.Usage(c.Hint(errors.New(text), "config set "+shell.Quote("models.providers."+name+".baseUrl")+" URL, or --force"))
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
	var asJSON, force bool
	cmd := &cobra.Command{
		Use: "aliases [NAME PROVIDER/MODEL]", Short: "Show the short names of models, or give one", Args: console.Between(0, 2),
		Example: "  chela models aliases quick anthropic/claude-haiku-4-5",
		RunE: func(_ *cobra.Command, args []string) error {
			models, err := c.named()
			if err != nil {
				return err
			}
			switch len(args) {
			case 0:
				return c.printAliases(models, asJSON)
			case 1:
				return console.Usage(errors.New("which model is it the name of?"))
			}
			if !strings.Contains(args[1], "/") || strings.Contains(args[0], "/") {
				return console.Usage(errors.New("want a name without a slash and then PROVIDER/MODEL"))
			}
			if err := c.check(args[1], force); err != nil {
				return err
			}
			if models[args[1]] == nil {
				models[args[1]] = map[string]any{}
			}
			models[args[1]]["alias"] = args[0]
			return c.settings.Set(map[string]any{"agents.defaults.models": models})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	forceFlag(cmd, &force)
	return cmd
}

func (c commands) printAliases(models map[string]map[string]any, asJSON bool) error {
	aliases := map[string]string{}
	rows := [][]string{{"ALIAS", "MODEL"}}
	for _, ref := range slices.Sorted(maps.Keys(models)) {
		if a, ok := models[ref]["alias"].(string); ok && a != "" {
			aliases[a] = ref
			rows = append(rows, []string{ansi.Line(a), ansi.Line(ref)})
		}
	}
	if asJSON {
		return c.JSON(aliases)
	}
	c.Table(rows)
	return nil
}
