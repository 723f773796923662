package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *console) models() *cobra.Command {
	return group("models", "Show and choose the models that answer",
		c.modelsList(), c.modelsStatus(), c.modelsSet(), c.modelsFallbacks(), c.modelsAliases(), c.modelsAuth())
}

func (c *console) modelsList() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List the models that can be asked", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd.Context(), func(l *link) error {
			var p wire.ModelsGet
			if all {
				p.View = wire.ModelsAll
			}
			var list wire.ModelsList
			if err := l.Call(cmd.Context(), wire.MethodModelsList, p, &list); err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(list)
			}
			rows := [][]string{{"MODEL", "NAME", "WINDOW", "ALIAS", ""}}
			for _, m := range list.Models {
				note := strings.Join(m.Tags, ",")
				if !m.Available {
					note = "no key"
				}
				rows = append(rows, []string{m.Provider + "/" + m.ID, ansi.Truncate(ansi.Line(m.Name), 40), window(m.Context), m.Alias, note})
			}
			c.table(rows)
			return nil
		})
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

func (c *console) modelsStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Short: "Say which model answers, which do when it does not, and which keys rest", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(l *link) error {
				var s wire.ModelsStatus
				if err := l.Call(cmd.Context(), wire.MethodModelsStatus, wire.None{}, &s); err != nil {
					return err
				}
				if asJSON {
					return c.printJSON(s)
				}
				c.printModels(s)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *console) printModels(s wire.ModelsStatus) {
	fmt.Fprintf(c.out, "default    %s (%s)\n", s.Default, s.Reason)
	if len(s.Fallbacks) > 0 {
		fmt.Fprintf(c.out, "fallbacks  %s\n", strings.Join(s.Fallbacks, ", "))
	}
	fmt.Fprintln(c.out)
	rows := [][]string{{"PROVIDER", "READY", "KEYS"}}
	for _, p := range s.Providers {
		ready := "yes"
		if !p.Ready {
			ready = "no: " + ansi.Truncate(ansi.Line(p.Error), 60)
		}
		rows = append(rows, []string{p.ID, ready, strings.Join(keyLines(p), "; ")})
	}
	c.table(rows)
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

func (c *console) modelsSet() *cobra.Command {
	return &cobra.Command{
		Use: "set PROVIDER/MODEL", Short: "Choose the model that answers", Args: exactly(1),
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

func (c *console) modelsFallbacks() *cobra.Command {
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
				return usageError{errors.New("models and --none exclude each other")}
			case len(args) == 0 && !none:
				for _, f := range fallbacks {
					fmt.Fprintln(c.out, f)
				}
				return nil
			case primary == "":
				return hinted{errors.New("no default model is configured, which fallbacks would stand in for"), c.command("models set PROVIDER/MODEL")}
			}
			return c.choose(primary, args)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "no fallbacks any more")
	return cmd
}

// chosen returns the configured default model and its fallbacks.
func (c *console) chosen() (primary string, fallbacks []string, err error) {
	t, err := c.tree()
	if err != nil {
		return "", nil, err
	}
	raw := t.Section("agents.defaults.model")
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
		return "", nil, hinted{errors.New("agents.defaults.model is neither a text nor an object with primary and fallbacks"), c.command("config validate")}
	}
	return both.Primary, both.Fallbacks, nil
}

// choose writes the default model and its fallbacks.
func (c *console) choose(primary string, fallbacks []string) error {
	for _, ref := range append([]string{primary}, fallbacks...) {
		if p, m, ok := strings.Cut(ref, "/"); ok && (p == "" || m == "") || ref == "" {
			return usageError{fmt.Errorf("model %q: want PROVIDER/MODEL or an alias", ref)}
		}
	}
	var v any = primary
	if len(fallbacks) > 0 {
		v = map[string]any{"primary": primary, "fallbacks": fallbacks}
	}
	return c.write("agents.defaults.model", v)
}

// write sets a value of the configuration.
func (c *console) write(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t, err := c.tree()
	if err != nil {
		return err
	}
	next, err := t.Set(path, b)
	if err != nil {
		return err
	}
	c.wrote(next)
	return nil
}

func (c *console) modelsAliases() *cobra.Command {
	return &cobra.Command{
		Use: "aliases [NAME PROVIDER/MODEL]", Short: "Show the short names of models, or give one", Args: between(0, 2),
		Example: "  chela models aliases quick anthropic/claude-haiku-4-5",
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := c.tree()
			if err != nil {
				return err
			}
			models := map[string]map[string]any{}
			if raw := t.Section("agents.defaults.models"); raw != nil {
				if err := json.Unmarshal(raw, &models); err != nil {
					return hinted{fmt.Errorf("agents.defaults.models: %w", err), c.command("config validate")}
				}
			}
			switch len(args) {
			case 0:
				rows := [][]string{{"ALIAS", "MODEL"}}
				for _, ref := range slices.Sorted(maps.Keys(models)) {
					if a, ok := models[ref]["alias"].(string); ok && a != "" {
						rows = append(rows, []string{ansi.Line(a), ansi.Line(ref)})
					}
				}
				c.table(rows)
				return nil
			case 1:
				return usageError{errors.New("which model is it the name of?")}
			}
			if !strings.Contains(args[1], "/") || strings.Contains(args[0], "/") {
				return usageError{errors.New("want a name without a slash and then PROVIDER/MODEL")}
			}
			if models[args[1]] == nil {
				models[args[1]] = map[string]any{}
			}
			models[args[1]]["alias"] = args[0]
			return c.write("agents.defaults.models", models)
		},
	}
}

func (c *console) modelsAuth() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "auth PROVIDER", Short: "Keep a key for a provider, read from standard input", Args: exactly(1),
		Long: "Keep a key for a provider, read from standard input, in the state directory.\n" +
			"Several keys, each with a --name, are used in turn when one is refused or limited.",
		Example: "  chela models auth groq < key.txt\n  chela models auth groq --name work < other.txt",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			if isTerminal(c.in) {
				fmt.Fprintf(c.err, "key of %s, and Enter: ", args[0])
			}
			key, err := c.secretLine()
			if err != nil {
				return err
			}
			if key == "" {
				return usageError{errors.New("no key came in")}
			}
			if err := c.app.SaveKey(s, args[0], name, key); err != nil {
				return err
			}
			fmt.Fprintln(c.err, "kept (a running chela reads it at its next start)")
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the key's `NAME`, beside other keys of the provider")
	return cmd
}

// maxKey bounds a key that is read.
const maxKey = 16 << 10

// secretLine reads the first line of standard input, unseen on a terminal.
func (c *console) secretLine() (string, error) {
	if isTerminal(c.in) {
		return c.hidden()
	}
	b, err := io.ReadAll(io.LimitReader(c.in, maxKey))
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line), nil
}
