package devices

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/wire"
)

func (c commands) devicesInvite() *cobra.Command {
	var url, profile string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "invite", Short: "Make a code with which one device comes in without approval",
		Long: "Make a code with which one device comes in without approval. It is used up by the\n" +
			"first device that shows it, and ends after ten minutes.",
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Dial(cmd.Context(), func(l *client.Client) error {
				p := wire.DeviceSetup{URL: url, Profile: profile}
				if profile == wire.AccessFull {
					p.Profile = ""
				}
				var s wire.DeviceSetupCode
				err := l.Call(cmd.Context(), wire.MethodDeviceSetupCode, p, &s)
				switch e, ok := errors.AsType[*wire.Error](err); {
				case ok && e.Code == wire.Unavailable:
					return c.Hint(err, "gateway run")
				case ok && url == "":
					return c.Hint(err, "devices invite --url wss://HOST:PORT")
				case err != nil:
					return err
				}
				if asJSON {
					return c.JSON(s)
				}
				return c.printInvite(s)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "how the device reaches the gateway, such as `wss://HOST:PORT`; default: where it listens")
	f.StringVar(&profile, "access", wire.AccessLimited, "what it is granted: limited, node or full")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) printInvite(s wire.DeviceSetupCode) error {
	b, err := base64.RawURLEncoding.DecodeString(s.Code)
	var p wire.SetupPayload
	if err != nil || json.Unmarshal(b, &p) != nil {
		return errors.New("the gateway answered with a code that cannot be read")
	}
	fmt.Fprintf(c.Out, "setup code  %s\ntoken       %s\ngateway     %s\naccess      %s\nends        in %s\n",
		s.Code, p.Token, s.URL, s.Access, figure.Span(time.Until(s.Expires.Time()).Round(time.Minute)))
	if s.Downgraded {
		fmt.Fprintln(c.Out, "note        full access is granted only over wss:// or to this machine")
	}
	return nil
}

func (c commands) devicesRename() *cobra.Command {
	return &cobra.Command{Use: "rename DEVICE NAME", Short: "Give a device a name", Args: console.Exactly(2), RunE: func(cmd *cobra.Command, args []string) error {
		return c.device(cmd.Context(), args[0], func(l *client.Client, id string) error {
			var r wire.DeviceRename
			if err := l.Call(cmd.Context(), wire.MethodDevicePairRename, wire.DeviceRename{ID: id, Label: args[1]}, &r); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s is %s\n", short(r.ID), r.Label)
			return nil
		})
	}}
}
