// Package devices is the commands by which a person decides which devices may
// connect, and what nodes may do.
package devices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the commands: devices and nodes.
func Commands(k *console.Console) []*cobra.Command {
	c := commands{k}
	return []*cobra.Command{c.devices(), c.nodes()}
}

type commands struct{ *console.Console }

func (c commands) devices() *cobra.Command {
	return console.Group("devices", "Decide which devices may connect",
		c.devicesList(), c.devicesInvite(), c.devicesApprove(), c.devicesReject(), c.devicesRename(), c.devicesRemove(), c.devicesRotate(), c.devicesRevoke())
}

func (c commands) devicesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List devices that wait for approval and those that have it", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.paired(cmd.Context(), func(_ *client.Client, list wire.DevicePairs) error {
			if asJSON {
				return c.JSON(list)
			}
			c.printDevices(list)
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// paired connects and calls f with the devices.
func (c commands) paired(ctx context.Context, f func(*client.Client, wire.DevicePairs) error) error {
	return c.Dial(ctx, func(l *client.Client) error {
		var list wire.DevicePairs
		if err := l.Call(ctx, wire.MethodDevicePairList, wire.None{}, &list); err != nil {
			return err
		}
		return f(l, list)
	})
}

func (c commands) printDevices(list wire.DevicePairs) {
	if len(list.Pending) > 0 {
		fmt.Fprintln(c.Out, "Waiting for approval")
		rows := [][]string{{"REQUEST", "DEVICE", "CLIENT", "ROLE", "SCOPES", "ASKED"}}
		for _, r := range list.Pending {
			rows = append(rows, []string{
				r.ID, short(r.Device), onWhat(r.DisplayName, r.ClientID, r.Platform), ansi.Line(r.Role), scopeList(r.Scopes), console.Ago(r.Time.Time()),
			})
		}
		c.Table(rows)
		fmt.Fprintln(c.Out)
	}
	if len(list.Paired) == 0 {
		fmt.Fprintln(c.Out, "No device is paired.")
		return
	}
	rows := [][]string{{"DEVICE", "CLIENT", "ROLES", "SCOPES", "APPROVED", "SEEN"}}
	for _, d := range list.Paired {
		seen := console.Ago(d.LastSeenAt.Time())
		if d.Connected {
			seen = "connected"
		}
		rows = append(rows, []string{
			short(d.ID), onWhat(d.DisplayName, d.ClientID, d.Platform), strings.Join(d.Roles, ","), scopeList(d.Scopes),
			console.Ago(d.ApprovedAt.Time()) + " (" + d.ApprovedVia + ")", seen,
		})
	}
	c.Table(rows)
}

// short returns the beginning of a device's id, by which commands know it.
func short(id string) string { return id[:min(len(id), 12)] }

// onWhat names a client and its machine.
func onWhat(name, id, platform string) string {
	s := ansi.Truncate(ansi.Line(cmp.Or(name, id)), 30)
	if platform != "" {
		s += " on " + ansi.Truncate(ansi.Line(platform), 16)
	}
	return s
}

// scopeList returns scopes without what they have in common.
func scopeList(scopes []string) string {
	if len(scopes) == 0 {
		return "none"
	}
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = strings.TrimPrefix(s, "operator.")
	}
	return strings.Join(out, ",")
}

func (c commands) devicesApprove() *cobra.Command {
	var latest bool
	cmd := &cobra.Command{
		Use: "approve [REQUEST]", Short: "Let a device in, with the scopes that it asks for",
		Long: "Let a device in, with the scopes that it asks for. `chela devices list` shows them.",
		Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.paired(cmd.Context(), func(l *client.Client, list wire.DevicePairs) error {
				id, err := c.request(list.Pending, args, latest)
				if err != nil {
					return err
				}
				var a wire.DeviceApproved
				if err := l.Call(cmd.Context(), wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: id}, &a); err != nil {
					return c.unknown(err, id, "devices list")
				}
				fmt.Fprintf(c.Out, "approved %s: %s\n", short(a.Device.ID), scopeList(a.Device.Scopes))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&latest, "latest", false, "the device that asked last")
	return cmd
}

// request returns the id of the request that is meant.
func (c commands) request(waiting []wire.PairRequest, args []string, latest bool) (string, error) {
	switch {
	case len(args) == 1:
		return args[0], nil
	case len(waiting) == 0:
		return "", errors.New("no device waits for approval")
	case !latest:
		return "", c.Hint(errors.New("which request?"), "devices list")
	}
	return waiting[len(waiting)-1].ID, nil // they are in order of time
}

// unknown says of a request that is not there where those are that are.
func (c commands) unknown(err error, id, list string) error {
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Detail() == wire.DetailNotFound {
		return c.Hint(fmt.Errorf("nothing waits as %s", id), list)
	}
	return err
}

func (c commands) devicesReject() *cobra.Command {
	return &cobra.Command{Use: "reject REQUEST", Short: "Turn a request down", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		var r wire.DeviceRejected
		if err := c.Call(cmd.Context(), wire.MethodDevicePairReject, wire.DeviceRequestID{ID: args[0]}, &r); err != nil {
			return c.unknown(err, args[0], "devices list")
		}
		fmt.Fprintln(c.Out, "rejected "+short(r.Device))
		return nil
	}}
}

func (c commands) devicesRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove DEVICE", Short: "Take a device's access away",
		Long: "Take a device's access away. Its connections end at once, and it comes back only\nwhen it is approved again.",
		Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.device(cmd.Context(), args[0], func(l *client.Client, id string) error {
				var d wire.DeviceID
				if err := l.Call(cmd.Context(), wire.MethodDevicePairRemove, wire.DeviceID{ID: id}, &d); err != nil {
					return err
				}
				fmt.Fprintln(c.Out, "removed "+short(d.ID))
				return nil
			})
		},
	}
}

// device connects and calls f with the whole id of a paired device that begins
// with name.
func (c commands) device(ctx context.Context, name string, f func(*client.Client, string) error) error {
	return c.paired(ctx, func(l *client.Client, list wire.DevicePairs) error {
		var ids []string
		for _, d := range list.Paired {
			if name != "" && strings.HasPrefix(d.ID, strings.ToLower(name)) {
				ids = append(ids, d.ID)
			}
		}
		switch len(ids) {
		case 0:
			return c.Hint(fmt.Errorf("no device %s is paired", name), "devices list")
		case 1:
			return f(l, ids[0])
		}
		return c.Hint(fmt.Errorf("%d devices begin with %s", len(ids), name), "devices list --json")
	})
}

func (c commands) devicesRotate() *cobra.Command {
	var device, role string
	var scopes []string
	var none bool
	cmd := &cobra.Command{
		Use: "rotate --device DEVICE", Short: "Make a device's token worthless",
		Long: "Make a device's token worthless and end its connections. The device is told a new\n" +
			"one when it next connects with the gateway's token. With --scope, it keeps only\nthese scopes.",
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := wire.DeviceRotate{Role: role}
			if none {
				scopes = []string{}
			}
			if none || cmd.Flags().Changed("scope") {
				p.Scopes = &scopes
			}
			return c.device(cmd.Context(), device, func(l *client.Client, id string) error {
				p.ID = id
				var r wire.DeviceRotated
				if err := l.Call(cmd.Context(), wire.MethodDeviceTokenRotate, p, &r); err != nil {
					return err
				}
				fmt.Fprintf(c.Out, "rotated %s as %s: %s\n", short(r.ID), r.Role, scopeList(r.Scopes))
				return nil
			})
		},
	}
	c.roleFlags(cmd, &device, &role)
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "keep this `SCOPE`, such as operator.read; may be repeated")
	cmd.Flags().BoolVar(&none, "no-scopes", false, "keep no scope")
	cmd.MarkFlagsMutuallyExclusive("scope", "no-scopes")
	return cmd
}

func (c commands) devicesRevoke() *cobra.Command {
	var device, role string
	cmd := &cobra.Command{
		Use: "revoke --device DEVICE", Short: "Take away what a device may do in one role", Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.device(cmd.Context(), device, func(l *client.Client, id string) error {
				var r wire.DeviceRevoked
				if err := l.Call(cmd.Context(), wire.MethodDeviceTokenRevoke, wire.DeviceRole{ID: id, Role: role}, &r); err != nil {
					return err
				}
				fmt.Fprintf(c.Out, "revoked %s as %s\n", short(r.ID), r.Role)
				return nil
			})
		},
	}
	c.roleFlags(cmd, &device, &role)
	return cmd
}

func (c commands) roleFlags(cmd *cobra.Command, device, role *string) {
	cmd.Flags().StringVar(device, "device", "", "the `DEVICE`, or how its id begins")
	cmd.Flags().StringVar(role, "role", wire.RoleOperator, "the `ROLE`: operator or node")
	_ = cmd.MarkFlagRequired("device") // it was made above
}
