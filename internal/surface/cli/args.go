package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/spelling"
)

// group returns a command that only has subcommands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
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
	return usage(withHint(err, cmp.Or(meant(cmd, args[0]), message(cmd, args), cmd.CommandPath()+" --help")))
}

// meant returns the command below cmd that a person who typed name probably means: the one
// with the most similar name, or those one level deeper that have this name; "": none.
func meant(cmd *cobra.Command, name string) string {
	cmd.SuggestionsMinimumDistance = min(2, (len(name)+1)/3) // in a short name, two other letters are another word
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return cmd.CommandPath() + " " + slices.MinFunc(near, func(a, b string) int {
			return cmp.Compare(spelling.Distance(name, a), spelling.Distance(name, b))
		})
	}
	var deeper []string
	for _, group := range cmd.Commands() {
		for _, sub := range group.Commands() {
			if sub.Name() == name && sub.IsAvailableCommand() {
				deeper = append(deeper, sub.CommandPath())
			}
		}
	}
	slices.Sort(deeper)
	return strings.Join(deeper, ", ")
}

// message returns the command that sends the arguments of the root command as a message, if
// they are a text rather than a command; "": they are not.
func message(cmd *cobra.Command, args []string) string {
	text := strings.Join(args, " ")
	foreign := strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
	if cmd.HasParent() || len(strings.Fields(text)) < 3 && !foreign {
		return ""
	}
	return cmd.CommandPath() + " agent -m " + shell.Quote(text)
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
