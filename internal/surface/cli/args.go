package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/spelling"
)

// group returns a command that only has subcommands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// noArgs rejects arguments of a command that only has subcommands, and
// suggests the subcommand with the most similar name.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", cmd.CommandPath()+" "+args[0])
	hint := cmd.CommandPath() + " --help"
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = cmd.CommandPath() + " " + slices.MinFunc(near, func(a, b string) int {
			return cmp.Compare(spelling.Distance(args[0], a), spelling.Distance(args[0], b))
		})
	}
	return usage(withHint(err, hint))
}

// withJSON adds --json to a command, see [commands.print].
func (c *commands) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

// withYes adds --yes to a command, see [commands.confirm].
func (c *commands) withYes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	return cmd
}

// exactly accepts n arguments.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between accepts lo to hi arguments.
func between(lo, hi int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < lo:
			return usage(withHint(errors.New("missing argument"), cmd.UseLine()))
		case len(args) > hi:
			return usage(withHint(fmt.Errorf("unexpected argument %q", args[hi]), cmd.UseLine()))
		}
		return nil
	}
}
