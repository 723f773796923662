package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) pairing() *cobra.Command {
	return group("pairing", "Decide who may write to the assistant in chat apps",
		c.pairingList(), c.pairingApprove(), c.pairingDeny(), c.pairingRemove())
}

func (c *commands) pairingList() *cobra.Command {
	var in wire.GuestsGet
	cmd := c.withJSON(&cobra.Command{
		Use: "list [CHANNEL]", Short: "List people who ask to be admitted, and guests", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				in.Channel = args[0]
			}
			var out wire.Guests
			if err := c.call(cmd.Context(), wire.MethodGuestList, in, &out); err != nil {
				return err
			}
			return c.print(out, func() { c.printGuests(out) })
		},
	})
	cmd.Flags().StringVar(&in.Account, "account", "", "only those of an account")
	return cmd
}

func (c *commands) printGuests(out wire.Guests) {
	if len(out.Requests)+len(out.Guests) == 0 {
		fmt.Fprintln(c.stdout, "there are no requests and no guests")
		return
	}
	row := func(g wire.Guest, last string) []string {
		return []string{g.Channel, cmp.Or(g.Account, "default"), ansi.Truncate(ansi.Line(g.ID), 40),
			ansi.Truncate(ansi.Line(g.Name), 30), last}
	}
	if len(out.Requests) > 0 {
		rows := [][]string{{"CHANNEL", "ACCOUNT", "PERSON", "NAME", "ASKED", "CODE"}}
		for _, g := range out.Requests {
			rows = append(rows, append(row(g, ago(g.Asked.Time())), g.Request))
		}
		c.printTable(rows)
	}
	if len(out.Guests) > 0 {
		if len(out.Requests) > 0 {
			fmt.Fprintln(c.stdout)
		}
		rows := [][]string{{"CHANNEL", "ACCOUNT", "GUEST", "NAME", "ADMITTED"}}
		for _, g := range out.Guests {
			rows = append(rows, row(g, ago(g.Admitted.Time())))
		}
		c.printTable(rows)
	}
}

func (c *commands) pairingApprove() *cobra.Command {
	in := wire.GuestRequest{Owner: true}
	cmd := c.withJSON(&cobra.Command{
		Use: "approve CHANNEL CODE", Short: "Admit the person who got a code",
		Long: "Admits the person who got a code to private chats of the account. The first person becomes the owner, who may use\n" +
			"every command, unless commands.ownerAllowFrom names somebody.",
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Channel, in.Request = args[0], args[1]
			var out wire.GuestDecided
			if err := c.call(cmd.Context(), wire.MethodGuestApprove, in, &out); err != nil || out.ID == "" {
				return cmp.Or(err, unknownCode(in))
			}
			return c.print(out, func() {
				fmt.Fprintf(c.stdout, "admitted %s on %s\n", ansi.Line(out.ID), in.Channel)
				switch out.Owner {
				case wire.GuestOwnerConfigured:
					fmt.Fprintf(c.stdout, "%s:%s is the owner now (commands.ownerAllowFrom)\n", in.Channel, ansi.Line(out.ID))
				case wire.GuestOwnerCannotBeSet:
					fmt.Fprintln(c.stderr, "the owner could not be set: chela config set commands.ownerAllowFrom '[\""+in.Channel+":"+
						ansi.Line(out.ID)+"\"]'")
				}
			})
		},
	})
	cmd.Flags().BoolVar(&in.Notify, "notify", true, "tell the person")
	cmd.Flags().StringVar(&in.Account, "account", "", "account that the person wrote to")
	return cmd
}

// unknownCode says that nobody got the code, or too long ago.
func unknownCode(in wire.GuestRequest) error {
	return withHint(fmt.Errorf("no request on %s has the code %q; codes are valid for an hour", in.Channel, in.Request),
		"chela pairing list")
}

func (c *commands) pairingDeny() *cobra.Command {
	var in wire.GuestRequest
	cmd := c.withJSON(&cobra.Command{
		Use: "deny CHANNEL CODE", Short: "Refuse the person who got a code", Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Channel, in.Request = args[0], args[1]
			var out wire.GuestDecided
			if err := c.call(cmd.Context(), wire.MethodGuestDismiss, in, &out); err != nil || out.ID == "" {
				return cmp.Or(err, unknownCode(in))
			}
			return c.print(out, func() { fmt.Fprintf(c.stdout, "refused %s on %s\n", ansi.Line(out.ID), in.Channel) })
		},
	})
	cmd.Flags().StringVar(&in.Account, "account", "", "account that the person wrote to")
	return cmd
}

func (c *commands) pairingRemove() *cobra.Command {
	var in wire.GuestRemove
	cmd := &cobra.Command{
		Use: "remove CHANNEL PERSON", Short: "Exclude a guest", Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Channel, in.ID = args[0], args[1]
			var out wire.GuestDecided
			if err := c.call(cmd.Context(), wire.MethodGuestRemove, in, &out); err != nil || out.ID == "" {
				return cmp.Or(err, withHint(fmt.Errorf("no guest of %s has the id %q", in.Channel, in.ID), "chela pairing list"))
			}
			fmt.Fprintf(c.stdout, "%s is no guest of %s any more\n", ansi.Line(in.ID), in.Channel)
			return nil
		},
	}
	cmd.Flags().StringVar(&in.Account, "account", "", "only of an account")
	return cmd
}
