package devices

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/wire"
)

func (c commands) nodes() *cobra.Command {
	return console.Group("nodes", "Decide what devices may do for an agent", c.nodesList(), c.nodesApprove(), c.nodesReject(), c.nodesRemove())
}

func (c commands) nodesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List nodes, what they may do, and what they ask for", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.Dial(cmd.Context(), func(l *client.Client) error {
			var list wire.Nodes
			var pairs wire.NodePairs
			if err := l.Call(cmd.Context(), wire.MethodNodeList, wire.None{}, &list); err != nil {
				return err
			}
			if err := l.Call(cmd.Context(), wire.MethodNodePairList, wire.None{}, &pairs); err != nil {
				return err
			}
			if asJSON {
				return c.JSON(map[string]any{"nodes": list.Nodes, "pending": pairs.Pending})
			}
			c.printNodes(list.Nodes, pairs.Pending)
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) printNodes(nodes []wire.Node, pending []wire.NodeRequest) {
	if len(pending) > 0 {
		fmt.Fprintln(c.Out, "Waiting for approval")
		rows := [][]string{{"REQUEST", "NODE", "CLIENT", "COMMANDS", "ASKED"}}
		for _, r := range pending {
			rows = append(rows, []string{r.ID, short(r.NodeClient.ID), onWhat(r.DisplayName, r.ClientID, r.Platform), commandNames(r.Commands), console.Ago(r.Time.Time())})
		}
		c.Table(rows)
		fmt.Fprintln(c.Out)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(c.Out, "No node is paired.")
		return
	}
	rows := [][]string{{"NODE", "CLIENT", "MAY", "STATE", "SEEN"}}
	for _, n := range nodes {
		seen := console.Ago(n.LastSeenAt.Time())
		if n.Connected {
			seen = "connected"
		}
		rows = append(rows, []string{short(n.ID), onWhat(n.DisplayName, n.ClientID, n.Platform), commandNames(n.Commands), n.Approval, seen})
	}
	c.Table(rows)
}

// commandNames returns the commands of a node in one line.
func commandNames(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ",")
}

func (c commands) nodesApprove() *cobra.Command {
	return &cobra.Command{Use: "approve [REQUEST]", Short: "Let a node do what it asks for", Args: console.Between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.Dial(cmd.Context(), func(l *client.Client) error {
			var id string
			if len(args) == 1 {
				id = args[0]
			} else {
				var pairs wire.NodePairs
				if err := l.Call(cmd.Context(), wire.MethodNodePairList, wire.None{}, &pairs); err != nil {
					return err
				}
				if len(pairs.Pending) == 0 {
					return errors.New("no node waits for approval")
				}
				if len(pairs.Pending) > 1 {
					return c.Hint(errors.New("which request?"), "nodes list")
				}
				id = pairs.Pending[0].ID
			}
			var a wire.NodeApprovedResult
			if err := l.Call(cmd.Context(), wire.MethodNodePairApprove, wire.DeviceRequestID{ID: id}, &a); err != nil {
				return c.unknown(err, id, "nodes list")
			}
			fmt.Fprintf(c.Out, "approved %s: %s\n", short(a.Node.ID), commandNames(a.Node.Commands))
			return nil
		})
	}}
}

func (c commands) nodesReject() *cobra.Command {
	return &cobra.Command{Use: "reject REQUEST", Short: "Turn a request down", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		var r wire.NodeRejected
		if err := c.Call(cmd.Context(), wire.MethodNodePairReject, wire.DeviceRequestID{ID: args[0]}, &r); err != nil {
			return c.unknown(err, args[0], "nodes list")
		}
		fmt.Fprintln(c.Out, "rejected "+short(r.Node))
		return nil
	}}
}

func (c commands) nodesRemove() *cobra.Command {
	return &cobra.Command{Use: "remove NODE", Short: "Take a node's access away", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.device(cmd.Context(), args[0], func(l *client.Client, id string) error {
			var n wire.NodeID
			if err := l.Call(cmd.Context(), wire.MethodNodePairRemove, wire.NodeID{ID: id}, &n); err != nil {
				return err
			}
			fmt.Fprintln(c.Out, "removed "+short(n.ID))
			return nil
		})
	}}
}
