package egress

import (
	"encoding/binary"
	"net/netip"
)

// network is a block of addresses that are not part of the public internet.
type network struct {
	prefix  netip.Prefix
	kind    string
	private bool // a private network, with no other special use
}

// special returns the blocks of the IANA special-purpose registries that are
// not public, and the metadata addresses that clouds use elsewhere.
func special() []network {
	at := netip.MustParsePrefix
	return []network{
		{at("127.0.0.0/8"), "loopback", true},
		{at("10.0.0.0/8"), "private", true},
		{at("172.16.0.0/12"), "private", true},
		{at("192.168.0.0/16"), "private", true},
		{at("100.64.0.0/10"), "shared (CGNAT)", true},
		{at("169.254.0.0/16"), "link-local or metadata", false},
		{at("168.63.129.16/32"), "metadata", false}, // Azure's host, in a public block
		{at("0.0.0.0/8"), "unspecified", false},
		{at("192.0.0.0/24"), "reserved", false},
		{at("192.0.2.0/24"), "documentation", false},
		{at("192.88.99.0/24"), "6to4 relay", false},
		{at("198.18.0.0/15"), "benchmark", false},
		{at("198.51.100.0/24"), "documentation", false},
		{at("203.0.113.0/24"), "documentation", false},
		{at("224.0.0.0/4"), "multicast", false},
		{at("240.0.0.0/4"), "reserved", false},

		{at("::1/128"), "loopback", true},
		{at("fc00::/7"), "private", true},
		{at("fe80::/10"), "link-local", false},
		{at("fec0::/10"), "site-local", false},
		{at("ff00::/8"), "multicast", false},
		{at("::/96"), "IPv4-compatible", false},
		{at("2001::/32"), "Teredo", false},
		{at("2001::/23"), "reserved", false},
		{at("2001:db8::/32"), "documentation", false},
		{at("2002::/16"), "6to4", false},
		{at("3fff::/20"), "documentation", false},
	}
}

var (
	public6 = netip.MustParsePrefix("2000::/3")     // all global unicast addresses
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // the IPv6 form of IPv4 addresses (RFC 6052)
)

// embedded returns the IPv4 address that a embeds, if any.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	isatap := binary.BigEndian.Uint32(b[8:12])&^0x02000000 == 0x5efe
	if nat64.Contains(a) || isatap {
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}

// classify returns the kind of a special address and whether it is merely
// private. The kind of a public address is "".
func (t *rules) classify(a netip.Addr) (kind string, private bool) {
	a = a.Unmap()
	if a.Zone() != "" {
		return "scoped", false
	}
	if a.Is6() {
		if v4, ok := embedded(a); ok {
			if kind, _ := t.classify(v4); kind != "" {
				return kind + ", in another form", false
			}
			if nat64.Contains(a) {
				return "", false
			}
		}
	}
	for _, n := range t.special {
		if n.prefix.Contains(a) {
			return n.kind, n.private
		}
	}
	if a.Is6() && !public6.Contains(a) {
		return "reserved", false
	}
	return "", false
}
