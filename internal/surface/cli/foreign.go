package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// foreign is the commands of OpenClaw that this version does not have under this name, and
// what to type instead; "": there is nothing like it.
var foreign = [...]struct{ name, instead string }{
	{"clawbot", ""},
	{"configure", "onboard"},
	{"daemon", "gateway --help"},
	{"dns", ""},
	{"docs", "--help"},
	{"infer", "agent -m TEXT"},
	{"node", ""},
	{"proxy", ""},
	{"qr", "devices invite"},
	{"secrets", "models auth PROVIDER"},
	{"setup", "onboard"},
	{"terminal", "chat"},
	{"tui", "chat"},
	{"voicecall", ""},
	{"wiki", "memory search TEXT"},
}

// foreignCommands returns hidden commands that say what to type instead of the commands of
// OpenClaw, whatever their arguments are.
func (c *commands) foreignCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, f := range foreign {
		out = append(out, &cobra.Command{
			Use: f.name + " [ARGUMENT]...", Short: "A command of OpenClaw that this version does not have", Hidden: true,
			Args: cobra.ArbitraryArgs, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				err := fmt.Errorf("%s is a command of OpenClaw that chela %s does not have", f.name, c.app.Version)
				if f.instead == "" {
					return usage(c.suggest(err, "--help"))
				}
				return usage(c.suggest(err, f.instead))
			},
		})
	}
	return out
}
