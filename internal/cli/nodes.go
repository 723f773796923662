package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/wire"
)

func (c *console) nodes() *cobra.Command {
	return group("nodes", "Decide what devices may do for an agent", c.nodesList(), c.nodesApprove(), c.nodesReject(), c.nodesRemove())
}

func (c *console) nodesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List nodes, what they may do, and what they ask for", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd.Context(), func(l *link) error {
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

func (c *console) printNodes(nodes []wire.Node, pending []wire.NodeRequest) {
	if len(pending) > 0 {
		fmt.Fprintln(c.out, "Waiting for approval")
		rows := [][]string{{"REQUEST", "NODE", "CLIENT", "COMMANDS", "ASKED"}}
		for _, r := range pending {
			rows = append(rows, []string{r.ID, short(r.NodeClient.ID), onWhat(r.DisplayName, r.ClientID, r.Platform), commandNames(r.Commands), ago(r.Time.Time())})
		}
		c.table(rows)
		fmt.Fprintln(c.out)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(c.out, "No node is paired.")
		return
	}
	rows := [][]string{{"NODE", "CLIENT", "MAY", "STATE", "SEEN"}}
	for _, n := range nodes {
		seen := ago(n.LastSeenAt.Time())
		if n.Connected {
			seen = "connected"
		}
		rows = append(rows, []string{short(n.ID), onWhat(n.DisplayName, n.ClientID, n.Platform), commandNames(n.Commands), n.Approval, seen})
	}
	c.table(rows)
}

// commandNames returns the commands of a node in one line.
func commandNames(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ",")
}

func (c *console) nodesApprove() *cobra.Command {
	return &cobra.Command{Use: "approve [REQUEST]", Short: "Let a node do what it asks for", Args: between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.with(cmd.Context(), func(l *link) error {
			id := ""
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
					return hinted{errors.New("which request?"), c.command("nodes list")}
				}
				id = pairs.Pending[0].ID
			}
			var a wire.NodeApprovedResult
			if err := l.Call(cmd.Context(), wire.MethodNodePairApprove, wire.DeviceRequestID{ID: id}, &a); err != nil {
				return err
			}
			fmt.Fprintf(c.out, "approved %s: %s\n", short(a.Node.ID), commandNames(a.Node.Commands))
			return nil
		})
	}}
}

func (c *console) nodesReject() *cobra.Command {
	return &cobra.Command{Use: "reject REQUEST", Short: "Turn a request down", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.with(cmd.Context(), func(l *link) error {
			var r wire.NodeRejected
			if err := l.Call(cmd.Context(), wire.MethodNodePairReject, wire.DeviceRequestID{ID: args[0]}, &r); err != nil {
				return err
			}
			fmt.Fprintln(c.out, "rejected "+short(r.Node))
			return nil
		})
	}}
}

func (c *console) nodesRemove() *cobra.Command {
	return &cobra.Command{Use: "remove NODE", Short: "Take a node's access away", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.device(cmd.Context(), args[0], func(l *link, id string) error {
			var n wire.NodeID
			if err := l.Call(cmd.Context(), wire.MethodNodePairRemove, wire.NodeID{ID: id}, &n); err != nil {
				return err
			}
			fmt.Fprintln(c.out, "removed "+short(n.ID))
			return nil
		})
	}}
}
