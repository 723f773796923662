package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/spelling"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) modelsSet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set PROVIDER/MODEL", Short: "Choose the default model", Args: exactly(1),
		Example: "  chela models set anthropic/claude-sonnet-4-5",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, fallbacks, err := c.configuredModel()
			if err != nil {
				return err
			}
			return c.setModel(cmd.Context(), args[0], fallbacks)
		},
	}
	return cmd
}

func (c *commands) modelsFallbacks() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "fallbacks [PROVIDER/MODEL]...", Short: "Show or choose the fallback models", Args: cobra.ArbitraryArgs,
		Long: "Show or choose the fallback models, which are tried in order when the default model\n" +
			"fails. A model that was chosen for a session with /model has no fallbacks.",
		RunE: func(cmd *cobra.Command, args []string) error {
			primary, fallbacks, err := c.configuredModel()
			if err != nil {
				return err
			}
			switch {
			case len(args) > 0 && none:
				return usage(errors.New("cannot combine models with --none"))
			case len(args) == 0 && !none && c.json:
				return c.printJSON(append([]string{}, fallbacks...))
			case len(args) == 0 && !none:
				if len(fallbacks) == 0 {
					fmt.Fprintf(c.stdout, "there are no fallbacks; %s adds one\n", c.commandLine("models fallbacks PROVIDER/MODEL"))
				}
				for _, f := range fallbacks {
					fmt.Fprintln(c.stdout, f)
				}
				return nil
			case primary == "":
				return c.suggest(errors.New("no default model is configured"), "models set PROVIDER/MODEL")
			}
			return c.setModel(cmd.Context(), primary, args)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "remove all fallbacks")
	return c.withJSON(cmd)
}

// configuredModel returns the configured default model and its fallbacks.
func (c *commands) configuredModel() (primary string, fallbacks []string, err error) {
	raw, err := c.section("agents.defaults.model")
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
		return "", nil,
			c.suggest(errors.New("agents.defaults.model is neither a string nor an object with primary and fallbacks"),
				"config validate")
	}
	return both.Primary, both.Fallbacks, nil
}

// setModel writes the default model and its fallbacks to the configuration.
func (c *commands) setModel(ctx context.Context, primary string, fallbacks []string) error {
	for _, ref := range append([]string{primary}, fallbacks...) {
		if err := c.checkModel(ref); err != nil {
			return err
		}
	}
	var v any = primary
	if len(fallbacks) > 0 {
		v = map[string]any{"primary": primary, "fallbacks": fallbacks}
	}
	if err := c.setValues(ctx, map[string]any{"agents.defaults.model": v}); err != nil {
		return err
	}
	return c.noteKeys(ctx, append([]string{primary}, fallbacks...)...)
}

// noteKeys says which of the models cannot be used, for example because there is no key.
func (c *commands) noteKeys(ctx context.Context, refs ...string) error {
	if len(refs) == 0 {
		return nil
	}
	s, err := c.start()
	if err != nil {
		return err
	}
	for _, ref := range slices.Compact(refs) {
		if err := c.app.Unusable(ctx, s, ref); err != nil {
			c.problem(config.Problem{Message: ref + " cannot be used yet: " + errorText(err)})
			if hint := c.hintFor(err); hint != "" {
				fmt.Fprintln(c.stderr, "hint: "+hint)
			}
		}
	}
	return nil
}

// checkModel validates a model reference. It does not know which models a
// provider has.
func (c *commands) checkModel(ref string) error {
	p, m, full := strings.Cut(ref, "/")
	switch {
	case full && (p == "" || m == "") || ref == "":
		return usage(fmt.Errorf("model %q: want PROVIDER/MODEL or an alias", ref))
	case !full:
		return c.checkAlias(ref)
	}
	return c.checkProvider(p)
}

// checkProvider rejects a provider that is neither known nor configured.
func (c *commands) checkProvider(name string) error {
	names, err := c.providers()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	text := "unknown provider " + name + spelling.DidYouMean(name, names)
	return usage(c.suggest(errors.New(text), "config set "+shell.Quote("models.providers."+name+".baseUrl")+" URL"))
}

// checkAlias rejects a name that is not an alias of a model.
func (c *commands) checkAlias(name string) error {
	models, err := c.modelSettings()
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
	text := fmt.Sprintf("unknown model alias %q; want PROVIDER/MODEL or an alias", name)
	if near := known.Near(name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(errors.New(text))
}

// modelSettings returns the configured settings of models, by model.
func (c *commands) modelSettings() (map[string]map[string]any, error) {
	models := map[string]map[string]any{}
	raw, err := c.section("agents.defaults.models")
	if err != nil || raw == nil {
		return models, err
	}
	if err := json.Unmarshal(raw, &models); err != nil {
		return nil, c.suggest(fmt.Errorf("agents.defaults.models: %w", err), "config validate")
	}
	return models, nil
}

func (c *commands) modelsAliases() *cobra.Command {
	cmd := &cobra.Command{
		Use: "aliases [NAME PROVIDER/MODEL]", Short: "Show model aliases, or set one", Args: between(0, 2),
		Example: "  chela models aliases quick anthropic/claude-haiku-4-5",
		RunE: func(cmd *cobra.Command, args []string) error {
			models, err := c.modelSettings()
			if err != nil {
				return err
			}
			switch len(args) {
			case 0:
				return c.printAliases(models)
			case 1:
				return usage(errors.New("missing argument: PROVIDER/MODEL"))
			}
			if !strings.Contains(args[1], "/") || strings.Contains(args[0], "/") {
				return usage(errors.New("want a NAME without a slash, then PROVIDER/MODEL"))
			}
			if err := c.checkModel(args[1]); err != nil {
				return err
			}
			if models[args[1]] == nil {
				models[args[1]] = map[string]any{}
			}
			models[args[1]]["alias"] = args[0]
			return c.setValues(cmd.Context(), map[string]any{"agents.defaults.models": models})
		},
	}
	return c.withJSON(cmd)
}

func (c *commands) printAliases(models map[string]map[string]any) error {
	aliases := map[string]string{}
	rows := [][]string{{"ALIAS", "MODEL"}}
	for _, ref := range slices.Sorted(maps.Keys(models)) {
		if a, ok := models[ref]["alias"].(string); ok && a != "" {
			aliases[a] = ref
			rows = append(rows, []string{ansi.Line(a), ansi.Line(ref)})
		}
	}
	return c.print(aliases, func() { c.printTable(rows) })
}
