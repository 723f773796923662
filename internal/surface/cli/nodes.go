package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) nodes() *cobra.Command {
	return group("nodes", "Manage the commands that devices offer to agents", c.nodesList(), c.nodesApprove(), c.nodesReject(), c.nodesRemove())
}

func (c *commands) nodesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List nodes, their commands and their requests", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.withClient(cmd.Context(), func(l *client.Client) error {
			var list wire.Nodes
			var pairs wire.NodePairs
			if err := l.Call(cmd.Context(), wire.MethodNodeList, wire.None{}, &list); err != nil {
				return err
			}
			if err := l.Call(cmd.Context(), wire.MethodNodePairList, wire.None{}, &pairs); err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(map[string]any{"nodes": list.Nodes, "pending": pairs.Pending})
			}
			c.printNodes(list.Nodes, pairs.Pending)
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) printNodes(nodes []wire.Node, pending []wire.NodeRequest) {
	if len(pending) > 0 {
		fmt.Fprintln(c.stdout, "Pending approval")
		rows := [][]string{{"REQUEST", "NODE", "CLIENT", "COMMANDS", "REQUESTED"}}
		for _, r := range pending {
			rows = append(rows, []string{r.ID, shortID(r.NodeClient.ID), clientLabel(r.DisplayName, r.ClientID, r.Platform), commandNames(r.Commands), ago(r.Time.Time())})
		}
		c.printTable(rows)
		fmt.Fprintln(c.stdout)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(c.stdout, "No node is paired.")
		return
	}
	rows := [][]string{{"NODE", "CLIENT", "COMMANDS", "STATE", "LAST SEEN"}}
	for _, n := range nodes {
		seen := ago(n.LastSeenAt.Time())
		if n.Connected {
			seen = "connected"
		}
		rows = append(rows, []string{shortID(n.ID), clientLabel(n.DisplayName, n.ClientID, n.Platform), commandNames(n.Commands), n.Approval, seen})
	}
	c.printTable(rows)
}

// commandNames returns the commands of a node on one line.
func commandNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

func (c *commands) nodesApprove() *cobra.Command {
	return &cobra.Command{Use: "approve [REQUEST]", Short: "Approve the commands that a node requests", Args: between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.withClient(cmd.Context(), func(l *client.Client) error {
			var id string
			if len(args) == 1 {
				id = args[0]
			} else {
				var pairs wire.NodePairs
				if err := l.Call(cmd.Context(), wire.MethodNodePairList, wire.None{}, &pairs); err != nil {
					return err
				}
				if len(pairs.Pending) == 0 {
					return errors.New("no node is pending approval")
				}
				if len(pairs.Pending) > 1 {
					return c.suggest(errors.New("several nodes are pending approval; choose one by its request id"), "nodes list")
				}
				id = pairs.Pending[0].ID
			}
			var a wire.NodeApprovedResult
			if err := l.Call(cmd.Context(), wire.MethodNodePairApprove, wire.DeviceRequestID{ID: id}, &a); err != nil {
				return c.unknownRequest(err, id, "nodes list")
			}
			fmt.Fprintf(c.stdout, "approved %s: %s\n", shortID(a.Node.ID), commandNames(a.Node.Commands))
			return nil
		})
	}}
}

func (c *commands) nodesReject() *cobra.Command {
	return &cobra.Command{Use: "reject REQUEST", Short: "Reject a request", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		var r wire.NodeRejected
		if err := c.call(cmd.Context(), wire.MethodNodePairReject, wire.DeviceRequestID{ID: args[0]}, &r); err != nil {
			return c.unknownRequest(err, args[0], "nodes list")
		}
		fmt.Fprintln(c.stdout, "rejected "+shortID(r.Node))
		return nil
	}}
}

func (c *commands) nodesRemove() *cobra.Command {
	return &cobra.Command{Use: "remove NODE", Short: "Remove a node", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.withDevice(cmd.Context(), args[0], func(l *client.Client, id string) error {
			var n wire.NodeID
			if err := l.Call(cmd.Context(), wire.MethodNodePairRemove, wire.NodeID{ID: id}, &n); err != nil {
				return err
			}
			fmt.Fprintln(c.stdout, "removed "+shortID(n.ID))
			return nil
		})
	}}
}
