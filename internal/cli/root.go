package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chela-ai/chela/internal/cli/devices"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

// Main carries out a command line, without the program's name, and returns the
// exit code.
func Main(ctx context.Context, args []string, app App) int {
	c := &console{app: app, in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	return c.run(ctx, args)
}

// console is what commands work with.
type console struct {
	app    App
	in     *os.File
	out    io.Writer
	err    io.Writer
	getenv func(string) string

	// Global flags.
	profile  string
	state    string
	config   string
	logLevel string
	noColor  bool

	log     logOptions
	aloud   bool            // the log is shown, too
	verbose bool            // all of it
	secrets secret.Redactor // what must not be in it
}

func (c *console) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	return c.fail(cmd, err)
}

// root returns the tree of commands.
func (c *console) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "chela",
		Short: "A personal AI assistant",
		Long: "Chela is a personal AI assistant. `chela chat` begins a conversation;\n" +
			"it works without any configuration.",
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(c.out, help(cmd)) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { _, err := fmt.Fprint(c.err, help(cmd)); return err })
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "Show what a command does", RunE: func(cmd *cobra.Command, args []string) error {
		about, _, err := root.Find(args)
		if err != nil {
			return err
		}
		return about.Help()
	}})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })

	f := root.PersistentFlags()
	f.StringVar(&c.profile, "profile", "", "use the state directory ~/.chela-`NAME`")
	f.StringVar(&c.state, "state-dir", "", "use the state directory `DIR`")
	f.StringVar(&c.config, "config", "", "use the configuration `FILE`")
	f.StringVar(&c.logLevel, "log-level", "", "log `LEVEL` instead of logging.level: silent, error, warn, info, debug or trace")
	f.BoolVar(&c.noColor, "no-color", false, "write without colours")

	root.AddCommand(c.chat(), c.agent(), c.sessions(), c.gateway(), c.health(), c.logs(), c.configuration(), c.status(), c.tools(), c.approvals(), c.models(), c.security(), c.doctor(), c.backup(), c.version(), c.completion())
	root.AddCommand(devices.Commands(c.forDevices())...)
	return root
}

// noCommand refuses arguments of a command that only has subcommands, and
// names the one that was probably meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", cmd.CommandPath()+" "+args[0])
	hint := cmd.CommandPath() + " --help"
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = cmd.CommandPath() + " " + near[0]
	}
	return usageError{hinted{err, hint}}
}

// group returns a command that only has subcommands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// forDevices is what the commands about devices work with.
func (c *console) forDevices() devices.Options {
	return devices.Options{
		Out: c.out, Table: c.table, JSON: c.printJSON, Ago: ago, Args: between, Group: group,
		Hint: func(err error, command string) error { return hinted{err, c.command(command)} },
		With: func(ctx context.Context, f func(devices.Caller) error) error {
			return c.with(ctx, func(l *link) error { return f(l) })
		},
	}
}

// exactly accepts n arguments.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between accepts from lo to hi arguments.
func between(lo, hi int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < lo:
			return usageError{hinted{fmt.Errorf("%s: an argument is missing", cmd.CommandPath()), cmd.UseLine()}}
		case len(args) > hi:
			return usageError{hinted{fmt.Errorf("%s: too many arguments: %q", cmd.CommandPath(), args[hi]), cmd.UseLine()}}
		}
		return nil
	}
}

// start returns what commands ask of an engine.
func (c *console) start() (Start, error) {
	p, err := config.Resolve(c.env, config.Flags{Profile: c.profile})
	if err != nil {
		return Start{}, err
	}
	if c.log, err = c.logging(p); err != nil {
		return Start{}, err
	}
	log, err := c.journal(p.State)
	return Start{
		State: p.State, Config: p.Config, LastGood: p.LastGood, Profile: p.Profile, Log: log, Secrets: &c.secrets,
	}, err
}

// env is the environment, with the flags that stand for variables.
func (c *console) env(name string) string {
	switch {
	case name == "CHELA_STATE_DIR" && c.state != "":
		return c.state
	case name == "CHELA_CONFIG_PATH" && c.config != "":
		return c.config
	case c.profile != "" && c.state == "" && (name == "CHELA_STATE_DIR" || name == "OPENCLAW_STATE_DIR"):
		return "" // a flag goes before a variable
	}
	return c.getenv(name)
}

// command returns how a person types a subcommand of chela for this state
// directory.
func (c *console) command(rest string) string {
	s := "chela "
	for _, f := range [...]struct{ name, value string }{{"profile", c.profile}, {"state-dir", c.state}, {"config", c.config}} {
		if f.value != "" {
			s += "--" + f.name + " " + quote(f.value) + " "
		}
	}
	return s + rest
}

// quote returns s as a shell reads it.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@~+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// palette returns the styles for w.
func (c *console) palette(w io.Writer) ansi.Palette {
	switch {
	case !isTerminal(w):
		return ansi.Palette{}
	case c.noColor, c.getenv("NO_COLOR") != "", c.getenv("TERM") == "dumb":
		return ansi.Monochrome()
	}
	return ansi.Colours()
}

// isTerminal reports whether a person sees what is written to f, or types what
// is read from it.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
