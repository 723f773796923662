package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) devices() *cobra.Command {
	return group("devices", "Manage the devices that may connect",
		c.devicesList(), c.devicesInvite(), c.devicesApprove(), c.devicesReject(), c.devicesRename(), c.devicesRemove(),
		c.devicesRotate(), c.devicesRevoke())
}

func (c *commands) devicesList() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "list", Short: "List pending and paired devices", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withDevices(cmd.Context(), func(_ *link, list wire.DevicePairs) error {
				return c.print(list, func() { c.printDevices(list) })
			})
		}})
}

// withDevices connects and calls f with the pending and paired devices.
func (c *commands) withDevices(ctx context.Context, f func(*link, wire.DevicePairs) error) error {
	return c.withLink(ctx, func(l *link) error {
		return callOn(ctx, l, wire.MethodDevicePairList, wire.None{}, func(list wire.DevicePairs) error { return f(l, list) })
	})
}

func (c *commands) printDevices(list wire.DevicePairs) {
	if len(list.Pending) > 0 {
		fmt.Fprintln(c.stdout, "Pending approval")
		rows := [][]string{{"REQUEST", "DEVICE", "CLIENT", "ROLE", "SCOPES", "REQUESTED"}}
		for _, r := range list.Pending {
			rows = append(rows, []string{
				r.ID, shortID(r.Device), clientLabel(r.DisplayName, r.ClientID, r.Platform), ansi.Line(r.Role),
				scopeList(r.Scopes), ago(r.Time.Time()),
			})
		}
		c.printTable(rows)
		fmt.Fprintln(c.stdout)
	}
	if len(list.Paired) == 0 {
		fmt.Fprintln(c.stdout, "there are no paired devices")
		return
	}
	rows := [][]string{{"DEVICE", "CLIENT", "ROLES", "SCOPES", "APPROVED", "LAST SEEN"}}
	for _, d := range list.Paired {
		seen := ago(d.LastSeenAt.Time())
		if d.Connected {
			seen = "connected"
		}
		rows = append(rows, []string{
			shortID(d.ID), clientLabel(d.DisplayName, d.ClientID, d.Platform), cmp.Or(strings.Join(d.Roles, ","), "revoked"),
			scopeList(d.Scopes),
			ago(d.ApprovedAt.Time()) + " (" + d.ApprovedVia + ")", seen,
		})
	}
	c.printTable(rows)
}

// shortID returns the prefix of a device id that commands print.
func shortID(id string) string { return id[:min(len(id), 12)] }

// clientLabel returns the name of a client and its platform.
func clientLabel(name, id, platform string) string {
	s := ansi.Truncate(ansi.Line(cmp.Or(name, id)), 30)
	if platform != "" {
		s += " on " + ansi.Truncate(ansi.Line(platform), 16)
	}
	return s
}

// scopeList returns scopes without their common prefix.
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

func (c *commands) devicesApprove() *cobra.Command {
	var latest bool
	cmd := &cobra.Command{
		Use: "approve [REQUEST]", Short: "Approve a device with the scopes that it requests",
		Long: "Approve a device with the scopes that it requests. `chela devices list` shows them.",
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withDevices(cmd.Context(), func(l *link, list wire.DevicePairs) error {
				id, err := c.pickRequest(list.Pending, args, latest)
				if err != nil {
					return err
				}
				err = queryOn(cmd.Context(), l, wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: id},
					func(a wire.DeviceApproved) {
						fmt.Fprintf(c.stdout, "approved %s: %s\n", shortID(a.Device.ID), scopeList(a.Device.Scopes))
					})
				return c.unknownRequest(err, id, "devices list")
			})
		},
	}
	cmd.Flags().BoolVar(&latest, "latest", false, "approve the latest request")
	return cmd
}

// pickRequest returns the id of the request to approve.
func (c *commands) pickRequest(waiting []wire.PairRequest, args []string, latest bool) (string, error) {
	switch {
	case len(args) == 1:
		return args[0], nil
	case len(waiting) == 0:
		return "", errors.New("no device is pending approval")
	case !latest:
		return "", c.suggest(errors.New("no request id given"), "devices list")
	}
	return waiting[len(waiting)-1].ID, nil // sorted by time
}

// unknownRequest adds a hint to an error about a request that does not exist:
// the command that lists requests.
func (c *commands) unknownRequest(err error, id, list string) error {
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Detail() == wire.DetailNotFound {
		return c.suggest(fmt.Errorf("no pending request %s", id), list)
	}
	return err
}

func (c *commands) devicesReject() *cobra.Command {
	return &cobra.Command{Use: "reject REQUEST", Short: "Reject a request", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := query(cmd.Context(), c, wire.MethodDevicePairReject, wire.DeviceRequestID{ID: args[0]},
				func(r wire.DeviceRejected) {
					fmt.Fprintln(c.stdout, "rejected "+shortID(r.Device))
				})
			return c.unknownRequest(err, args[0], "devices list")
		}}
}

func (c *commands) devicesRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove DEVICE", Short: "Remove a device",
		Long: "Remove a device. Its connections are closed at once, and it must be approved again\nbefore it can reconnect.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withDevice(cmd.Context(), args[0], func(l *link, id string) error {
				return queryOn(cmd.Context(), l, wire.MethodDevicePairRemove, wire.DeviceID{ID: id}, func(d wire.DeviceID) {
					fmt.Fprintln(c.stdout, "removed "+shortID(d.ID))
				})
			})
		},
	}
}

// withDevice connects and calls f with the full id of the paired device whose
// id begins with name.
func (c *commands) withDevice(ctx context.Context, name string, f func(*link, string) error) error {
	return c.withDevices(ctx, func(l *link, list wire.DevicePairs) error {
		var ids []string
		for _, d := range list.Paired {
			if name != "" && strings.HasPrefix(d.ID, strings.ToLower(name)) {
				ids = append(ids, d.ID)
			}
		}
		switch len(ids) {
		case 0:
			return c.suggest(fmt.Errorf("no device %s is paired", name), "devices list")
		case 1:
			return f(l, ids[0])
		}
		return c.suggest(fmt.Errorf("%d device ids begin with %s", len(ids), name), "devices list --json")
	})
}

func (c *commands) devicesRotate() *cobra.Command {
	var device, role string
	var scopes []string
	var none bool
	cmd := &cobra.Command{
		Use: "rotate --device DEVICE", Short: "Replace the token of a device",
		Long: "Invalidate the token of a device and close its connections. The device gets a new\n" +
			"token when it next connects with the gateway token. With --scope, it keeps only\nthese scopes.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := wire.DeviceRotate{Role: role}
			if none {
				scopes = []string{}
			}
			if none || cmd.Flags().Changed("scope") {
				p.Scopes = &scopes
			}
			return c.withDevice(cmd.Context(), device, func(l *link, id string) error {
				p.ID = id
				return queryOn(cmd.Context(), l, wire.MethodDeviceTokenRotate, p, func(r wire.DeviceRotated) {
					fmt.Fprintf(c.stdout, "rotated %s as %s: %s\n", shortID(r.ID), r.Role, scopeList(r.Scopes))
				})
			})
		},
	}
	c.roleFlags(cmd, &device, &role)
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "keep only this `SCOPE`, such as operator.read; may be repeated")
	cmd.Flags().BoolVar(&none, "no-scopes", false, "keep no scopes")
	cmd.MarkFlagsMutuallyExclusive("scope", "no-scopes")
	return cmd
}

func (c *commands) devicesRevoke() *cobra.Command {
	var device, role string
	cmd := &cobra.Command{
		Use: "revoke --device DEVICE", Short: "Revoke the access of a device in one role", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withDevice(cmd.Context(), device, func(l *link, id string) error {
				return queryOn(cmd.Context(), l, wire.MethodDeviceTokenRevoke, wire.DeviceRole{ID: id, Role: role},
					func(r wire.DeviceRevoked) {
						fmt.Fprintf(c.stdout, "revoked %s as %s\n", shortID(r.ID), r.Role)
					})
			})
		},
	}
	c.roleFlags(cmd, &device, &role)
	return cmd
}

// roleFlags adds --device and --role to a command.
func (c *commands) roleFlags(cmd *cobra.Command, device, role *string) {
	cmd.Flags().StringVar(device, "device", "", "id of the `DEVICE`, or a prefix of it")
	cmd.Flags().StringVar(role, "role", wire.RoleOperator, "`ROLE` of the device: operator or node")
	_ = cmd.MarkFlagRequired("device") // fails only for an unknown flag
}

func (c *commands) devicesInvite() *cobra.Command {
	var url, profile string
	cmd := &cobra.Command{
		Use: "invite", Short: "Create a setup code that admits one device without approval",
		Long: "Create a setup code that admits one device without approval. It is valid for one\n" +
			"device and expires after ten minutes.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := wire.DeviceSetup{URL: url, Profile: profile}
			if profile == wire.AccessFull {
				p.Profile = ""
			}
			var s wire.DeviceSetupCode
			err := c.call(cmd.Context(), wire.MethodDeviceSetupCode, p, &s)
			switch e, ok := errors.AsType[*wire.Error](err); {
			case ok && e.Code == wire.Unavailable:
				return c.suggest(err, "gateway run")
			case ok && url == "":
				return c.suggest(err, "devices invite --url wss://HOST:PORT")
			case err != nil:
				return err
			case c.json:
				return c.printJSON(s)
			}
			return c.printInvite(s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "gateway address for the device, such as `wss://HOST:PORT` (default: the listen address)")
	f.StringVar(&profile, "access", wire.AccessLimited, "`ACCESS` to grant: limited, node or full")
	return c.withJSON(cmd)
}

func (c *commands) printInvite(s wire.DeviceSetupCode) error {
	b, err := base64.RawURLEncoding.DecodeString(s.Code)
	var p wire.SetupPayload
	if err != nil || json.Unmarshal(b, &p) != nil {
		return errors.New("the gateway returned an invalid setup code")
	}
	fmt.Fprintf(c.stdout, "setup code  %s\ntoken       %s\ngateway     %s\naccess      %s\nexpires in  %s\n",
		s.Code, p.Token, s.URL, s.Access, humanize.Span(time.Until(s.Expires.Time()).Round(time.Minute)))
	if s.Downgraded {
		fmt.Fprintln(c.stdout, "note        full access is granted only over wss:// or to this machine")
	}
	if s.Access == wire.AccessNode {
		fmt.Fprintln(c.stdout, "\non the other machine:\n  chela node run --pair "+s.Code)
	}
	return nil
}

func (c *commands) devicesRename() *cobra.Command {
	return &cobra.Command{Use: "rename DEVICE NAME", Short: "Rename a device", Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withDevice(cmd.Context(), args[0], func(l *link, id string) error {
				return queryOn(cmd.Context(), l, wire.MethodDevicePairRename, wire.DeviceRename{ID: id, Label: args[1]},
					func(r wire.DeviceRename) {
						fmt.Fprintf(c.stdout, "renamed %s to %s\n", shortID(r.ID), r.Label)
					})
			})
		}}
}
