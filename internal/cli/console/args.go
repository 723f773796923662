package console

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Group returns a command that only has subcommands.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: NoCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// NoCommand refuses arguments of a command that only has subcommands, and
// names the one that was probably meant.
func NoCommand(cmd *cobra.Command, args []string) error {
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
	return Usage(Hint(err, hint))
}

// Exactly accepts n arguments.
func Exactly(n int) cobra.PositionalArgs { return Between(n, n) }

// Between accepts from lo to hi arguments.
func Between(lo, hi int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < lo:
			return Usage(Hint(fmt.Errorf("%s: an argument is missing", cmd.CommandPath()), cmd.UseLine()))
		case len(args) > hi:
			return Usage(Hint(fmt.Errorf("%s: too many arguments: %q", cmd.CommandPath(), args[hi]), cmd.UseLine()))
		}
		return nil
	}
}
