package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/json5"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) configuration() *cobra.Command {
	return group("config", "Read and change the configuration",
		c.configGet(), c.configSet(), c.configUnset(), c.configValidate(), c.configPath())
}

// tree loads the configuration.
func (c *commands) tree() (*config.Tree, error) {
	s, err := c.start()
	if err != nil {
		return nil, err
	}
	t, err := config.Options{Env: c.env, LastGood: s.LastGood}.Read(s.Config)
	if err != nil {
		return nil, c.suggest(err, "config validate")
	}
	return t, nil
}

func (c *commands) configGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get [PATH]", Short: "Show a value in effect, or everything that is set", Args: between(0, 1),
		Example: "  chela config get agents.defaults.model",
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := c.tree()
			if err != nil {
				return err
			}
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			v, err := t.Get(path)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"path": path, "value": v.JSON, "source": v.Source})
			}
			return c.printValue(v.JSON)
		},
	}
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON, including the source of the value")
	cmd.ValidArgsFunction = keys
	return cmd
}

// printValue prints a string as it is and any other value as JSON.
func (c *commands) printValue(raw json.RawMessage) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		_, err := fmt.Fprintln(c.stdout, ansi.Clean(s))
		return err
	}
	return c.printJSON(raw)
}

// keys completes the path of a configuration key.
func keys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, k := range config.Keys() {
		if k.Used() && !strings.ContainsAny(k.Path, "*[") {
			out = append(out, k.Path+"\t"+k.Doc)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (c *commands) configSet() *cobra.Command {
	var text bool
	cmd := &cobra.Command{
		Use: "set PATH VALUE", Short: "Set a value; the rest of the file stays as it is",
		Long: "Set a value; the rest of the file, comments included, stays as it is. VALUE is\n" +
			"parsed as JSON5 if possible and is a string otherwise. If VALUE is -, it is read\n" +
			"from standard input, which keeps secrets out of the shell history.",
		Example: "  chela config set agents.defaults.model anthropic/claude-sonnet-4-5\n" +
			"  chela config set session.reset '{mode: \"daily\", atHour: 4}'\n" +
			"  chela config set env.vars.ANTHROPIC_API_KEY - < key.txt",
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.repairs = true
			value, err := c.value(args[1], text)
			if err != nil {
				return err
			}
			if err := c.change(cmd.Context(), config.Edit{Path: args[0], Value: value}); err != nil {
				return err
			}
			return c.noteKeys(cmd.Context(), slices.Sorted(maps.Values(config.Models(args[0], value)))...)
		},
	}
	cmd.Flags().BoolVar(&text, "string", false, "treat VALUE as a string")
	cmd.ValidArgsFunction = keys
	return cmd
}

// value parses a value from the command line as JSON.
func (c *commands) value(arg string, text bool) (json.RawMessage, error) {
	if arg == "-" {
		b, err := io.ReadAll(c.stdin)
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		arg = strings.TrimRight(string(b), "\r\n")
	}
	if !text {
		v, err := json5.Literal(arg)
		if err != nil {
			return nil, usage(withHint(err, "--string, to pass the value as a string"))
		}
		return v, nil
	}
	return json.Marshal(arg)
}

func (c *commands) configUnset() *cobra.Command {
	cmd := &cobra.Command{Use: "unset PATH", Short: "Remove a value, so that its default applies", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.change(cmd.Context(), config.Edit{Path: args[0]})
		}}
	cmd.ValidArgsFunction = keys
	return cmd
}

// problem prints one problem of the configuration.
func (c *commands) problem(p config.Problem) {
	styles := c.palette(c.stderr)
	mark := styles.Warn.Paint("!")
	if p.Fatal {
		mark = styles.Bad.Paint("✗")
	}
	fmt.Fprintln(c.stderr, mark+" "+ansi.Line(p.String()))
}

func (c *commands) configValidate() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "validate", Short: "Check the configuration", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			o := config.Options{Env: c.env, LastGood: s.LastGood}
			problems := o.Validate(s.Config)
			if t, err := o.Read(s.Config); err == nil {
				if err := c.validate(cmd.Context(), s, t); err != nil {
					problems = append(problems, config.Problem{Message: err.Error(), Fatal: true})
				}
				if keys := c.app.Ineffective(cmd.Context(), s, t); len(keys) > 0 {
					problems = append(problems, config.Problem{Message: "without effect in this version: " + strings.Join(keys, ", ")})
				}
			}
			fatal := slices.ContainsFunc(problems, func(p config.Problem) bool { return p.Fatal })
			out := map[string]any{"path": s.Config, "valid": !fatal, "problems": append([]config.Problem{}, problems...)}
			err = c.print(out, func() { c.printProblems(s.Config, problems, fatal) })
			if err == nil && fatal {
				err = errReported
			}
			return err
		}})
}

func (c *commands) printProblems(file string, problems []config.Problem, fatal bool) {
	for _, p := range problems {
		c.problem(p)
	}
	_, err := os.Stat(file)
	switch {
	case fatal:
		fmt.Fprintln(c.stderr, file+" is invalid")
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(c.stdout, file+" does not exist; using defaults")
	default:
		fmt.Fprintln(c.stdout, file+" is valid")
	}
}

func (c *commands) configPath() *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Aliases: []string{"file"},
		Short:   "Show the path of the configuration file",
		Args:    exactly(0),
		RunE: func(*cobra.Command, []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			fmt.Fprintln(c.stdout, s.Config)
			return nil
		},
	}
}
