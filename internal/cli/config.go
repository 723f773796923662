package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/json5"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

func (c *commands) configuration() *cobra.Command {
	return console.Group("config", "Read and change the configuration",
		c.configGet(), c.configSet(), c.configUnset(), c.configValidate(), c.configPath())
}

// tree loads the configuration.
func (c *commands) tree() (*config.Tree, error) {
	s, err := c.start()
	if err != nil {
		return nil, err
	}
	t, err := config.Options{Env: c.env}.Load(s.Config)
	if err != nil {
		return nil, c.Hint(err, "config validate")
	}
	return t, nil
}

func (c *commands) configGet() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get [PATH]", Short: "Show what is in force, or all that is set", Args: console.Between(0, 1),
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
			if asJSON {
				return c.JSON(map[string]any{"path": path, "value": v.JSON, "source": v.Source})
			}
			return c.printValue(v.JSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with where the value comes from")
	cmd.ValidArgsFunction = keys
	return cmd
}

// printValue prints a text as it is and everything else as JSON.
func (c *commands) printValue(raw json.RawMessage) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		_, err := fmt.Fprintln(c.Out, ansi.Clean(s))
		return err
	}
	return c.JSON(raw)
}

// keys completes the path of a key.
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
		Use: "set PATH VALUE", Short: "Set a value; what else the file says stays as it is written",
		Long: "Set a value; what else the file says stays as it is written. VALUE is JSON5 when\n" +
			"it can be read as that, and a text otherwise. VALUE - reads it from standard\n" +
			"input, which keeps a key out of the shell's history.",
		Example: "  chela config set agents.defaults.model anthropic/claude-sonnet-4-5\n" +
			"  chela config set session.reset '{mode: \"daily\", atHour: 4}'\n" +
			"  chela config set env.vars.ANTHROPIC_API_KEY - < key.txt",
		Args: console.Exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := c.value(args[1], text)
			if err != nil {
				return err
			}
			return c.change(cmd.Context(), config.Edit{Path: args[0], Value: value})
		},
	}
	cmd.Flags().BoolVar(&text, "string", false, "VALUE is a text, whatever it looks like")
	cmd.ValidArgsFunction = keys
	return cmd
}

// value reads a value from the command line.
func (c *commands) value(arg string, text bool) (json.RawMessage, error) {
	if arg == "-" {
		b, err := io.ReadAll(c.In)
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		arg = strings.TrimRight(string(b), "\r\n")
	}
	if !text {
		v, err := json5.Literal(arg)
		if err != nil {
			return nil, console.Usage(console.Hint(err, "--string takes it as a text"))
		}
		return v, nil
	}
	return json.Marshal(arg)
}

func (c *commands) configUnset() *cobra.Command {
	cmd := &cobra.Command{Use: "unset PATH", Short: "Remove a value, so that its default is in force", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.change(cmd.Context(), config.Edit{Path: args[0]})
	}}
	cmd.ValidArgsFunction = keys
	return cmd
}

// problem writes one line.
func (c *commands) problem(p config.Problem) {
	styles := c.Palette(c.Err)
	mark := styles.Warn.Paint("!")
	if p.Fatal {
		mark = styles.Bad.Paint("✗")
	}
	fmt.Fprintln(c.Err, mark+" "+ansi.Line(p.String()))
}

func (c *commands) configValidate() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "validate", Short: "Check the configuration", Args: console.Exactly(0), RunE: func(*cobra.Command, []string) error {
		s, err := c.start()
		if err != nil {
			return err
		}
		problems := config.Options{Env: c.env}.Validate(s.Config)
		fatal := false
		for _, p := range problems {
			fatal = fatal || p.Fatal
		}
		if asJSON {
			if err := c.JSON(validation(s.Config, problems, !fatal)); err != nil {
				return err
			}
		} else {
			c.printProblems(s.Config, problems, fatal)
		}
		if fatal {
			return console.ErrReported
		}
		return nil
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) printProblems(file string, problems []config.Problem, fatal bool) {
	for _, p := range problems {
		c.problem(p)
	}
	_, err := os.Stat(file)
	switch {
	case fatal:
		fmt.Fprintln(c.Err, file+" cannot be used")
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(c.Out, "there is no "+file+": defaults are used")
	default:
		fmt.Fprintln(c.Out, file+" can be used")
	}
}

// validation is what config validate --json prints.
func validation(file string, problems []config.Problem, valid bool) any {
	type problem struct {
		Path    string `json:"path,omitempty"`
		Message string `json:"message"`
		Fatal   bool   `json:"fatal"`
		Unknown bool   `json:"unknown,omitempty"`
	}
	rows := []problem{}
	for _, p := range problems {
		rows = append(rows, problem(p))
	}
	return map[string]any{"path": file, "valid": valid, "problems": rows}
}

func (c *commands) configPath() *cobra.Command {
	return &cobra.Command{Use: "path", Aliases: []string{"file"}, Short: "Show where the configuration is", Args: console.Exactly(0), RunE: func(*cobra.Command, []string) error {
		s, err := c.start()
		if err != nil {
			return err
		}
		fmt.Fprintln(c.Out, s.Config)
		return nil
	}}
}
