package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/cli/agents"
	"github.com/chela-ai/chela/internal/cli/approvals"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/cli/devices"
	"github.com/chela-ai/chela/internal/cli/models"
	"github.com/chela-ai/chela/internal/cli/sessions"
	"github.com/chela-ai/chela/internal/cli/tools"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/shell"
)

// Main carries out a command line, without the program's name, and returns the
// exit code.
func Main(ctx context.Context, args []string, app App) int {
	c := &commands{app: app, Console: console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}}
	if !console.IsTerminal(os.Stdout) {
		c.Out = &console.Sink{W: os.Stdout}
	}
	c.Command = c.command
	c.Dial = func(ctx context.Context, f func(*client.Client) error) error {
		return c.with(ctx, func(l *link) error { return f(l.Client) })
	}
	return c.run(ctx, args)
}

// commands is what the commands of this package work with.
type commands struct {
	console.Console
	app App

	// Global flags.
	profile  string
	state    string
	config   string
	logLevel string

	log     logOptions
	aloud   bool            // the log is shown, too
	verbose bool            // all of it
	secrets secret.Redactor // what must not be in it
}

func (c *commands) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if s, ok := c.Out.(*console.Sink); ok && err == nil {
		err = s.Err
	}
	if err == nil {
		return exitOK
	}
	return c.fail(cmd, err)
}

// root returns the tree of commands.
func (c *commands) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "chela",
		Short: "A personal AI assistant",
		Long: "Chela is a personal AI assistant. `chela chat` begins a conversation;\n" +
			"it works without any configuration.",
		Args:          console.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(c.Out, help(cmd)) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { _, err := fmt.Fprint(c.Err, help(cmd)); return err })
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "Show what a command does", RunE: func(cmd *cobra.Command, args []string) error {
		about, _, err := root.Find(args)
		if err != nil {
			return err
		}
		return about.Help()
	}})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Usage(err) })

	f := root.PersistentFlags()
	f.StringVar(&c.profile, "profile", "", "use the state directory ~/.chela-`NAME`")
	f.StringVar(&c.state, "state-dir", "", "use the state directory `DIR`")
	f.StringVar(&c.config, "config", "", "use the configuration `FILE`")
	f.StringVar(&c.logLevel, "log-level", "", "log `LEVEL` instead of logging.level: silent, error, warn, info, debug or trace")
	f.BoolVar(&c.NoColor, "no-color", false, "write without colours")

	root.AddCommand(c.chat(), c.agent(), c.gateway(), c.health(), c.logs(), c.configuration(), c.status(), c.security(), c.doctor(), c.backup(), c.version(), c.completion())
	root.AddCommand(sessions.Commands(&c.Console), tools.Commands(&c.Console), approvals.Commands(&c.Console), approvals.Policy(&c.Console, settings{c}))
	root.AddCommand(models.Commands(&c.Console, settings{c}))
	root.AddCommand(agents.Commands(&c.Console))
	root.AddCommand(devices.Commands(&c.Console)...)
	return root
}

// start returns what commands ask of an engine.
func (c *commands) start() (Start, error) {
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
func (c *commands) env(name string) string {
	switch {
	case name == "CHELA_STATE_DIR" && c.state != "":
		return c.state
	case name == "CHELA_CONFIG_PATH" && c.config != "":
		return c.config
	case c.profile != "" && c.state == "" && (name == "CHELA_STATE_DIR" || name == "OPENCLAW_STATE_DIR"):
		return "" // a flag goes before a variable
	}
	return c.Getenv(name)
}

// command returns how a person types a subcommand of chela for this state
// directory.
func (c *commands) command(rest string) string {
	s := "chela "
	for _, f := range [...]struct{ name, value string }{{"profile", c.profile}, {"state-dir", c.state}, {"config", c.config}} {
		if f.value != "" {
			s += "--" + f.name + " " + shell.Quote(f.value) + " "
		}
	}
	return s + rest
}
