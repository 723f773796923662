package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) directory() *cobra.Command {
	return group("directory", "Find people and chats of messaging channels by their names",
		c.directorySearch("people [QUERY]", "List people with such a name", "user"),
		c.directorySearch("groups [QUERY]", "List groups and rooms with such a name", "group", "channel"))
}

// directorySearch returns a command that lists entries of some kinds.
func (c *commands) directorySearch(use, short string, kinds ...string) *cobra.Command {
	var in wire.MessageParams
	cmd := &cobra.Command{
		Use: use, Short: short, Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				in.Query = args[0]
			}
			out := wire.MessageResult{Entries: []wire.DirectoryEntry{}}
			err := c.withGateway(cmd.Context(), func(l *client.Client) error {
				for _, in.Kind = range kinds {
					params, err := json.Marshal(in)
					if err != nil {
						return err
					}
					var r wire.MessageResult
					if err := l.Call(cmd.Context(), wire.MethodMessageAction,
						wire.MessageAction{Channel: in.Channel, Action: "search", Params: params}, &r); err != nil {
						return err
					}
					out.OK, out.Action, out.Status, out.Channel, out.Account, out.Text = r.OK, r.Action, r.Status,
						r.Channel, r.Account, r.Text
					out.Entries = append(out.Entries, r.Entries...)
				}
				return nil
			})
			if err != nil {
				return c.chatHint(err)
			}
			return c.print(out, func() { c.printEntries(out) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Channel, "channel", "", "the `CHANNEL`, if there are several")
	f.StringVar(&in.Account, "account", "", "the account `ID` of the channel")
	f.IntVar(&in.Limit, "limit", 100, "at most `N` entries, up to 100")
	return c.withJSON(cmd)
}

func (c *commands) printEntries(out wire.MessageResult) {
	if len(out.Entries) == 0 {
		fmt.Fprintln(c.stdout, "nobody is found on "+ansi.Line(out.Channel))
		return
	}
	rows := [][]string{{"CHAT", "NAME", "HANDLE"}}
	for _, e := range out.Entries {
		handle := ""
		if e.Handle != "" {
			handle = "@" + e.Handle
		}
		rows = append(rows, []string{ansi.Line(out.Channel + ":" + e.Kind + ":" + e.ID), ansi.Truncate(ansi.Line(e.Name), 40),
			ansi.Truncate(ansi.Line(handle), 40)})
	}
	c.printTable(rows)
}
