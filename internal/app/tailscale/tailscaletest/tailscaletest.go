// Package tailscaletest is a program that stands for Tailscale's in tests. It is connected to a
// network in which this machine is Name, and the only other one is Ann's.
package tailscaletest

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
)

// What is in the network.
const (
	Name    = "box.tail1.ts.net" // this machine
	Machine = "100.64.0.9"       // address of Ann's machine
	Ann     = "ann@example.com"
)

// Log is the variable with the file to which the program adds its arguments.
const Log = "TAILSCALETEST_LOG"

// Main is the main function of the program. It returns the exit status.
func Main() int {
	args := os.Args[1:]
	f, err := os.OpenFile(os.Getenv(Log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, strings.Join(args, " "))
		err = f.Close()
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case slices.Equal(args, []string{"status", "--json"}):
		fmt.Printf("{\"BackendState\": \"Running\", \"Self\": {\"DNSName\": \"%s.\"}}\n", Name)
	case slices.Equal(args, []string{"whois", "--json", Machine}):
		fmt.Printf("{\"Node\": {}, \"UserProfile\": {\"LoginName\": %q}}\n", Ann)
	case args[0] == "whois":
		fmt.Fprintln(os.Stderr, "peer not found")
		return 1
	}
	return 0
}

// Forward returns a handler that forwards to the gateway at a URL what the machine at an
// address sends, as of a user.
func Forward(gateway *url.URL, from, user string) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(gateway)
		r.Out.Host = Name
		r.Out.Header.Set("X-Forwarded-For", from)
		r.Out.Header.Set("X-Forwarded-Proto", "https")
		r.Out.Header.Set("Tailscale-User-Login", user)
	}}
}
