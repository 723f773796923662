package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Beacon is a gateway on the local network, as it announces itself. Nothing of it is certain.
type Beacon struct {
	Name        string       `json:"displayName"`
	Host        string       `json:"host"`
	Addrs       []netip.Addr `json:"addresses"`
	Port        int          `json:"port"`
	TLS         bool         `json:"tls"`
	Fingerprint string       `json:"tlsFingerprint,omitempty"`
	Tailnet     string       `json:"tailnetDns,omitempty"`
	SSHPort     int          `json:"sshPort,omitempty"`
	Program     string       `json:"cliPath,omitempty"`
}

// URL returns the address of the gateway.
func (b Beacon) URL() string {
	scheme, host := "ws", b.Host
	if b.TLS {
		scheme = "wss"
	}
	if len(b.Addrs) > 0 {
		host = b.Addrs[0].String()
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(b.Port))
}

func (c *commands) gatewayDiscover() *cobra.Command {
	var timeout time.Duration
	cmd := c.withJSON(&cobra.Command{
		Use: "discover", Short: "Find gateways on the local network", Args: exactly(0),
		Long: "Ask the local network for gateways (multicast DNS). Anybody in it can answer: compare the\n" +
			"fingerprint of the certificate before you use one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			list, err := c.app.Discover(ctx)
			if err == nil {
				err = cmd.Context().Err()
			}
			if err != nil {
				return err
			}
			return c.print(map[string]any{"beacons": list, "count": len(list)}, func() { c.printBeacons(list) })
		},
	})
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "wait for answers for `DURATION`")
	return cmd
}

func (c *commands) printBeacons(list []Beacon) {
	if len(list) == 0 {
		fmt.Fprintln(c.stdout, "no gateway answers; one that listens for its own machine only is not announced")
		return
	}
	rows := [][]string{{"NAME", "URL", "CERTIFICATE"}}
	for _, b := range list {
		rows = append(rows, []string{ansi.Line(b.Name), ansi.Line(b.URL()), ansi.Line(b.Fingerprint)})
	}
	c.printTable(rows)
	line := "onboard --mode remote --remote-url " + list[0].URL()
	if list[0].TLS && regexp.MustCompile("^[0-9a-fA-F:]{32,}$").MatchString(list[0].Fingerprint) {
		line += " --remote-tls-fingerprint " + shell.Quote(strings.ToLower(list[0].Fingerprint))
	}
	c.printHint(c.commandLine(line) + " --remote-token TOKEN")
}
