package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Main runs a command line, given without the program name, and returns the
// exit code.
func Main(ctx context.Context, args []string, app App) int {
	c := &commands{app: app, console: console{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}}
	if !isTerminal(os.Stdout) {
		c.stdout = &errWriter{w: os.Stdout}
	}
	return c.run(ctx, args)
}

// commands holds the state that the commands share.
type commands struct {
	console
	app App

	// Global flags.
	profile  string
	state    string
	config   string
	logLevel string

	repairs bool // the command may create the file of --config, or correct it

	// Flags of many commands.
	json bool // print JSON
	yes  bool // do not ask for confirmation

	log          logOptions
	logToConsole bool            // also write the log to standard error
	verbose      bool            // include debug messages there
	secrets      secret.Redactor // secrets to remove from the log
	loaded       *config.Tree    // the configuration; nil: there is no usable one
}

func (c *commands) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if s, ok := c.stdout.(*errWriter); ok && err == nil { // a full disk, or a pipe that nobody reads
		err = s.err
	}
	if err == nil {
		return exitOK
	}
	return c.fail(cmd, err)
}

// root returns the command tree.
func (c *commands) root() *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "chela",
		Short: "A personal AI assistant",
		Long: "Chela is a personal AI assistant. Run `chela chat` to start a conversation;\n" +
			"no configuration is needed.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				fmt.Fprintln(c.stdout, "chela "+c.app.Version)
				return nil
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNumbers(cmd, args); err != nil {
				return err
			}
			return c.checkHere(cmd, args)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(c.stdout, help(cmd)) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { _, err := fmt.Fprint(c.stderr, help(cmd)); return err })
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "Show help for a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, _, err := root.Find(args)
			if err != nil {
				return err
			}
			return found.Help()
		}})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(flagError(cmd, err)) })
	root.Flags().BoolVar(&version, "version", false, "print the version")

	f := root.PersistentFlags()
	f.StringVar(&c.profile, "profile", "", "use the state directory ~/.chela-`NAME`")
	f.StringVar(&c.state, "state-dir", "", "use the state directory `DIR`")
	f.StringVar(&c.config, "config", "", "use the configuration `FILE`")
	f.StringVar(&c.logLevel, "log-level", "",
		"log `LEVEL`, overrides logging.level: silent, error, warn, info, debug or trace")
	f.BoolVar(&c.noColor, "no-color", false, "disable colors")

	root.AddCommand(c.chat(), c.agent(), c.gateway(), c.dashboard(), c.health(), c.logs(), c.configuration(), c.status(),
		c.usageReport(), c.budget(), c.security(), c.doctor(), c.backup(), c.reset(), c.uninstall(), c.update(),
		c.version(), c.completion())
	root.AddCommand(c.sessions(), c.tasks(), c.memory(), c.tools(), c.sandbox(), c.hooks(), c.skills(), c.plugins(),
		c.mcp(), c.approvals(), c.execPolicy(), c.models(), c.agents(), c.devices(), c.onboard(), c.channels(), c.pairing(),
		c.message(), c.directory(), c.nodes(), c.node(), c.browser(), c.cron(), c.webhooks(), c.system(), c.acp())
	root.AddCommand(c.workspace(), c.undo(), c.migrate(), c.tts(), c.talking())
	root.AddCommand(c.foreignCommands()...)
	return root
}

// start resolves the installation that the command works with.
func (c *commands) start() (Start, error) {
	p, err := config.Resolve(c.env, config.Flags{Profile: c.profile})
	if err != nil {
		return Start{}, err
	}
	if c.config != "" && !c.repairs {
		if _, err := os.Stat(p.Config); errors.Is(err, os.ErrNotExist) {
			return Start{}, withHint(fmt.Errorf("--config %s: no such file", c.config), "echo '{}' > "+shell.Quote(c.config))
		}
	}
	if c.log, err = c.logging(p); err != nil {
		return Start{}, err
	}
	log, err := c.newLogger(p.State)
	return Start{
		State: p.State, Config: p.Config, LastGood: p.LastGood, Profile: p.Profile, Log: log, Secrets: &c.secrets,
	}, err
}

// env looks up an environment variable. Global flags override the variables
// they correspond to.
func (c *commands) env(name string) string {
	switch {
	case name == "CHELA_STATE_DIR" && c.state != "":
		return c.state
	case name == "CHELA_CONFIG_PATH" && c.config != "":
		return c.config
	case c.profile != "" && c.state == "" && (name == "CHELA_STATE_DIR" || name == "OPENCLAW_STATE_DIR"):
		return "" // --profile overrides the variable
	}
	return c.getenv(name)
}

// commandLine returns the command line of a subcommand of chela, with the
// global flags that select this installation.
func (c *commands) commandLine(rest string) string {
	s := "chela "
	for _, f := range [...]struct{ name, value string }{{"profile", c.profile}, {"state-dir", c.state},
		{"config", c.config}} {
		if f.value != "" {
			s += "--" + f.name + " " + shell.Quote(f.value) + " "
		}
	}
	return s + rest
}
