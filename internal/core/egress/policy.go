package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Policy defines which hosts may be reached. The zero Policy allows the public
// internet only.
type Policy struct {
	// Hosts are names and addresses, each with or without a port, that may be
	// reached whatever they resolve to: "localhost", "10.0.0.5:8080", "[::1]".
	Hosts []string
	// Networks may be reached in addition to the public internet.
	Networks []netip.Prefix
	// Private allows this machine and private networks. Metadata and other
	// special addresses remain refused.
	Private bool
}

// Refused is the error of a request that the policy does not allow. Nothing was
// sent.
type Refused struct {
	Host   string     // as requested
	Addr   netip.Addr // the address it resolves to; invalid: the host itself is refused
	Reason string     // "private", …
}

// Error returns what was refused and why.
func (r *Refused) Error() string {
	if !r.Addr.IsValid() || r.Addr.String() == r.Host {
		return fmt.Sprintf("%s is not allowed: %s", r.Host, r.Reason)
	}
	return fmt.Sprintf("%s is not allowed: it resolves to %s (%s)", r.Host, r.Addr, r.Reason)
}

// rules is a Policy prepared for use.
type rules struct {
	hosts    []string // canonical, with or without a port
	networks []netip.Prefix
	private  bool
	special  []network
}

func compile(p Policy) *rules {
	t := &rules{networks: p.Networks, private: p.Private, special: special()}
	for _, h := range p.Hosts {
		host, port := h, ""
		if a, b, err := net.SplitHostPort(h); err == nil {
			host, port = a, b
		}
		host, err := canonical(strings.Trim(host, "[]"))
		if err != nil {
			continue // not a host: no request can name it
		}
		if port != "" {
			host = net.JoinHostPort(host, port)
		}
		t.hosts = append(t.hosts, host)
	}
	return t
}

// target is the host and the port of a request.
type target struct {
	host   string     // canonical
	addr   netip.Addr // valid if the host is an address
	port   string
	listed bool // in Policy.Hosts: any address is allowed
}

// target returns the target for a host, as a URL has it, and a port. It fails
// if the policy refuses the host without a lookup.
func (t *rules) target(host, port string) (target, error) {
	name, err := canonical(host)
	if err != nil {
		return target{}, &Refused{Host: host, Reason: err.Error()}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '+' {
		return target{}, &Refused{Host: host, Reason: "there is no such port"}
	}
	to := target{host: name, port: port}
	to.addr, _ = netip.ParseAddr(name)
	to.listed = slices.Contains(t.hosts, name) || slices.Contains(t.hosts, net.JoinHostPort(name, port))
	switch {
	case to.listed:
		return to, nil
	case to.addr.IsValid():
		return to, t.check(host, to.addr)
	case isLocal(name) && !t.private:
		return target{}, &Refused{Host: host, Reason: "a local name"}
	}
	return to, nil
}

// check returns an error unless the policy allows all addresses of a host.
func (t *rules) check(host string, addrs ...netip.Addr) error {
	for _, a := range addrs {
		kind, private := t.classify(a)
		if kind == "" || private && t.private {
			continue
		}
		if slices.ContainsFunc(t.networks, func(n netip.Prefix) bool { return n.Contains(a) || n.Contains(a.Unmap()) }) {
			continue
		}
		return &Refused{Host: host, Addr: a, Reason: kind + " address"}
	}
	return nil
}

// urlTarget returns the target of a URL.
func (t *rules) urlTarget(u *url.URL) (target, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return target{}, &Refused{Host: u.Redacted(), Reason: "want http or https"}
	}
	return t.target(u.Hostname(), portOf(u))
}

// isLocal reports whether a name belongs to this machine, its network or its
// cloud.
func isLocal(name string) bool {
	name = "." + name
	return slices.ContainsFunc([]string{".localhost", ".localdomain", ".local", ".internal", ".home.arpa"},
		func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// errHost is the error of a host that is neither a name nor an address in
// standard form.
var errHost = errors.New("not a host name, nor an address in standard form")

// canonical returns a host in the form used for lookups: an address in its
// standard form, or a name in lower case and ASCII, without the final dot. It
// rejects all other spellings of addresses (octal or hexadecimal numbers, fewer
// than four numbers, zones), because their use is to bypass checks.
func canonical(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", errHost
		}
		return a.Unmap().String(), nil
	}
	name := strings.ToLower(host)
	if !isASCII(host) {
		var err error
		if name, err = idna.Lookup.ToASCII(host); err != nil {
			return "", errHost
		}
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return "", errHost
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.IndexFunc(l, func(r rune) bool { return !isNameRune(r) }) >= 0 {
			return "", errHost
		}
	}
	if a, err := netip.ParseAddr(name); err == nil { // "127.0.0.1."
		return a.Unmap().String(), nil
	}
	if isNumber(labels[len(labels)-1]) {
		return "", errHost
	}
	return name, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// isNumber reports whether some resolvers would parse a name with this last
// label as an address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
