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

// Policy says what may be reached. The zero Policy is the public internet.
type Policy struct {
	// Hosts are names and addresses that may be reached wherever they lead,
	// each with or without a port: "localhost", "10.0.0.5:8080", "[::1]".
	Hosts []string
	// Networks may be reached beside the public internet.
	Networks []netip.Prefix
	// Private allows the host itself and the networks that are somebody's own.
	// Metadata and other special addresses stay out.
	Private bool
}

// Refused is the error of a request that the policy does not allow. Nothing
// was sent.
type Refused struct {
	Host string     // as it was asked for
	Addr netip.Addr // what it leads to; invalid: the host itself is refused
	Why  string     // "private", …
}

// Error says what was refused and why.
func (r *Refused) Error() string {
	if !r.Addr.IsValid() || r.Addr.String() == r.Host {
		return fmt.Sprintf("%s is not allowed: %s", r.Host, r.Why)
	}
	return fmt.Sprintf("%s is not allowed: it leads to %s (%s)", r.Host, r.Addr, r.Why)
}

// table is a Policy that is ready for use.
type table struct {
	hosts    []string // canonical, with or without a port
	networks []netip.Prefix
	private  bool
	special  []network
}

func newTable(p Policy) *table {
	t := &table{networks: p.Networks, private: p.Private, special: special()}
	for _, h := range p.Hosts {
		host, port := h, ""
		if a, b, err := net.SplitHostPort(h); err == nil {
			host, port = a, b
		}
		host, err := canonical(strings.Trim(host, "[]"))
		if err != nil {
			continue // it is no host, so nobody can ask for it
		}
		if port != "" {
			host = net.JoinHostPort(host, port)
		}
		t.hosts = append(t.hosts, host)
	}
	return t
}

// target is a host and a port that a URL leads to.
type target struct {
	host  string     // canonical
	addr  netip.Addr // when the host is an address
	port  string
	named bool // one of the policy's hosts: any address will do
}

// target returns where the host, as a URL has it, and the port lead, when the
// policy allows it as far as it can be told without a lookup.
func (t *table) target(host, port string) (target, error) {
	name, err := canonical(host)
	if err != nil {
		return target{}, &Refused{Host: host, Why: err.Error()}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '+' {
		return target{}, &Refused{Host: host, Why: "there is no such port"}
	}
	to := target{host: name, port: port}
	to.addr, _ = netip.ParseAddr(name)
	to.named = slices.Contains(t.hosts, name) || slices.Contains(t.hosts, net.JoinHostPort(name, port))
	switch {
	case to.named:
		return to, nil
	case to.addr.IsValid():
		return to, t.check(host, to.addr)
	case isLocal(name) && !t.private:
		return target{}, &Refused{Host: host, Why: "a local name"}
	}
	return to, nil
}

// check says whether the addresses that a host leads to are all allowed.
func (t *table) check(host string, addrs ...netip.Addr) error {
	for _, a := range addrs {
		kind, private := t.kind(a)
		if kind == "" || private && t.private {
			continue
		}
		if slices.ContainsFunc(t.networks, func(n netip.Prefix) bool { return n.Contains(a) || n.Contains(a.Unmap()) }) {
			continue
		}
		return &Refused{Host: host, Addr: a, Why: kind + " address"}
	}
	return nil
}

// ofURL returns where a URL leads.
func (t *table) ofURL(u *url.URL) (target, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return target{}, &Refused{Host: u.Redacted(), Why: "want http or https"}
	}
	return t.target(u.Hostname(), portOf(u))
}

// isLocal reports whether a name is one of this machine, its network or its
// cloud: what it leads to is nobody else's matter.
func isLocal(name string) bool {
	name = "." + name
	for _, suffix := range [...]string{".localhost", ".localdomain", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// errHost says that a host is neither a name nor an address in its plain form.
var errHost = errors.New("not a host name, nor an address in its plain form")

// canonical returns a host as a resolver is asked for it: an address in its
// usual form, or a name in lower case and ASCII, without the root's dot. Other
// spellings of addresses (numbers in octal or hexadecimal, fewer than four of
// them, zones) are not taken: whoever uses them means to hide something.
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

// isNumber reports whether a system might take a name with this last label for
// an address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
