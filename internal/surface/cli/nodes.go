package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/wire"
)

func (c *commands) nodes() *cobra.Command {
	status := c.nodesList()
	status.Use = "status"
	return group("nodes", "Manage nodes, devices that carry out commands, and call them",
		c.nodesList(), status, c.nodesPending(), c.nodesApprove(), c.nodesReject(), c.nodesRemove(), c.nodesRename(),
		c.nodesDescribe(), c.nodesInvoke(), c.nodesRun(),
		c.nodesNotify(), c.nodesCamera(), c.nodesScreen(), c.nodesCanvas(), c.nodesLocation())
}

func (c *commands) nodesList() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "list", Short: "List nodes, their commands and their requests", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withNodeRequests(cmd.Context(), func(l *link, pairs wire.NodePairs) error {
				var list wire.Nodes
				if err := l.Call(cmd.Context(), wire.MethodNodeList, wire.None{}, &list); err != nil {
					return err
				}
				return c.print(map[string]any{"nodes": list.Nodes, "pending": pairs.Pending},
					func() { c.printNodes(list.Nodes, pairs.Pending) })
			})
		}})
}

// withNodeRequests connects and calls f with the nodes that are pending approval.
func (c *commands) withNodeRequests(ctx context.Context, f func(*link, wire.NodePairs) error) error {
	return c.withLink(ctx, func(l *link) error {
		return callOn(ctx, l, wire.MethodNodePairList, wire.None{}, func(pairs wire.NodePairs) error { return f(l, pairs) })
	})
}

func (c *commands) printNodes(nodes []wire.Node, pending []wire.NodeRequest) {
	if len(pending) > 0 {
		fmt.Fprintln(c.stdout, "Pending approval")
		rows := [][]string{{"REQUEST", "NODE", "CLIENT", "COMMANDS", "REQUESTED"}}
		for _, r := range pending {
			rows = append(rows, []string{r.ID, shortID(r.NodeClient.ID), clientLabel(r.DisplayName, r.ClientID, r.Platform),
				commandNames(r.Commands), ago(r.Time.Time())})
		}
		c.printTable(rows)
		fmt.Fprintln(c.stdout)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(c.stdout, "there are no paired nodes")
		return
	}
	rows := [][]string{{"NODE", "CLIENT", "COMMANDS", "STATE", "LAST SEEN"}}
	for _, n := range nodes {
		seen := ago(n.LastSeenAt.Time())
		if n.Connected {
			seen = "connected"
		}
		rows = append(rows, []string{shortID(n.ID), clientLabel(n.DisplayName, n.ClientID, n.Platform),
			commandNames(n.Commands), n.Approval, seen})
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
	return &cobra.Command{Use: "approve [REQUEST]", Short: "Approve the commands that a node requests",
		Args: between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
			return c.withNodeRequests(cmd.Context(), func(l *link, pairs wire.NodePairs) error {
				var id string
				switch {
				case len(args) == 1:
					id = args[0]
				case len(pairs.Pending) == 0:
					return errors.New("no node is pending approval")
				case len(pairs.Pending) > 1:
					return c.suggest(errors.New("several nodes are pending approval; choose one by its request id"), "nodes list")
				default:
					id = pairs.Pending[0].ID
				}
				err := queryOn(cmd.Context(), l, wire.MethodNodePairApprove, wire.DeviceRequestID{ID: id},
					func(a wire.NodeApprovedResult) {
						fmt.Fprintf(c.stdout, "approved %s: %s\n", shortID(a.Node.ID), commandNames(a.Node.Commands))
					})
				return c.unknownRequest(err, id, "nodes list")
			})
		}}
}

func (c *commands) nodesReject() *cobra.Command {
	return &cobra.Command{Use: "reject REQUEST", Short: "Reject a request", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := query(cmd.Context(), c, wire.MethodNodePairReject, wire.DeviceRequestID{ID: args[0]},
				func(r wire.NodeRejected) {
					fmt.Fprintln(c.stdout, "rejected "+shortID(r.Node))
				})
			return c.unknownRequest(err, args[0], "nodes list")
		}}
}

func (c *commands) nodesRemove() *cobra.Command {
	return &cobra.Command{Use: "remove NODE", Short: "Remove a node", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				found, err := findNode(cmd.Context(), l, args[0], "")
				if err != nil {
					return err
				}
				return queryOn(cmd.Context(), l, wire.MethodNodePairRemove, wire.NodeID{ID: found.ID}, func(n wire.NodeID) {
					fmt.Fprintln(c.stdout, "removed "+shortID(n.ID))
				})
			})
		}}
}
