package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// dashboardPage is the result of `dashboard`.
type dashboardPage struct {
	URL     string      `json:"url"`
	Access  string      `json:"access,omitempty"` // that the address grants; "": none
	Expires wire.Millis `json:"expiresAtMs,omitempty"`
	Opened  bool        `json:"opened"`
}

func (c *commands) dashboard() *cobra.Command {
	var url string
	var stay bool
	cmd := &cobra.Command{
		Use: "dashboard", Short: "Open the web page, signed in",
		Long: "Open the gateway's web page in a browser. The address contains a code that signs in\n" +
			"one browser, once, within ten minutes.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, done := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer done()
			page, serve, err := c.page(ctx, url)
			if err != nil {
				return err
			}
			url = page
			return c.withGateway(ctx, func(l *client.Client) error {
				var s wire.DeviceSetupCode
				err := l.Call(ctx, wire.MethodDeviceSetupCode, wire.DeviceSetup{URL: url, Profile: wire.AccessPage}, &s)
				switch e, ok := errors.AsType[*wire.Error](err); {
				case ok && e.Code == wire.Unavailable:
					return c.suggest(err, "gateway run")
				case ok && e.Detail() == wire.DetailNoPage:
					return c.suggest(err, "config set gateway.controlUi.enabled true")
				case err != nil:
					return err
				}
				out := dashboardPage{URL: s.Page, Access: s.Access, Expires: s.Expires}
				var why error
				if !stay {
					why = c.app.OpenPage(s.Page)
					out.Opened = why == nil
				}
				if err := c.print(out, func() { c.printDashboard(out, why) }); err != nil || serve == nil {
					return err
				}
				return serve(ctx)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "address of the page for another machine, such as `https://HOST:PORT`")
	f.BoolVar(&stay, "no-open", false, "print the address instead of opening it")
	return c.withJSON(cmd)
}

// printDashboard prints the address, and why it was not opened if it should have been.
func (c *commands) printDashboard(p dashboardPage, why error) {
	if why != nil {
		fmt.Fprintln(c.stderr, "No browser was opened: "+why.Error())
	}
	fmt.Fprintln(c.stdout, p.URL)
	switch {
	case p.Access == "":
		fmt.Fprintln(c.stderr, "The page asks for the gateway's token or password.")
	case p.Access == wire.AccessLimited:
		fmt.Fprintln(c.stderr, "The address is not encrypted: it signs in one browser to read, write and answer questions.")
	}
	if p.Expires != 0 && !p.Opened {
		fmt.Fprintf(c.stderr, "It signs in one browser, once, within %s.\n",
			humanize.Span(time.Until(p.Expires.Time()).Round(time.Minute)))
	}
}
