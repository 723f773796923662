// Package beacon announces the gateway on the local network, and finds others, by multicast DNS
// (RFC 6762 and 6763). What others announce is untrusted: it is a name and a place, and no
// reason to send a credential there.
package beacon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/chela-ai/chela/internal/surface/cli"
)

// Modes of discovery.mdns.mode.
const (
	Off     = "off"
	Minimal = "minimal" // what a client needs
	Full    = "full"    // also the path of the program, and the port for SSH
)

// Mode returns the mode of the section discovery. The variables CHELA_DISABLE_BONJOUR and
// OPENCLAW_DISABLE_BONJOUR switch it off.
func Mode(section json.RawMessage, env func(string) string) (string, error) {
	var d struct {
		MDNS struct {
			Mode string `json:"mode"`
		} `json:"mdns"`
	}
	if section != nil {
		if err := json.Unmarshal(section, &d); err != nil {
			return "", fmt.Errorf("configuration, discovery: %w", err)
		}
	}
	switch v := strings.ToLower(cmp.Or(env("CHELA_DISABLE_BONJOUR"), env("OPENCLAW_DISABLE_BONJOUR"))); v {
	case "", "0", "false", "no", "off":
		return cmp.Or(d.MDNS.Mode, Minimal), nil
	}
	return Off, nil
}

// Limit returns a beacon without what a mode does not announce.
func Limit(b cli.Beacon, mode string) cli.Beacon {
	if mode != Full {
		b.SSHPort, b.Program = 0, ""
	}
	return b
}

// group is where questions and answers of multicast DNS go.
var group = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}

const (
	// maxPacket is the size of the largest message.
	maxPacket = 9000
	// maxAnswers is the number of answers in a second.
	maxAnswers = 20
	// maxFound is the number of beacons that are shown.
	maxFound = 64
	// again is the time after which the question is repeated.
	again = time.Second
)

// Announce announces a beacon until ctx ends, and then takes it back. It costs nothing while
// nobody asks.
func Announce(ctx context.Context, b cli.Beacon) error {
	conn, err := net.ListenMulticastUDP("udp4", nil, group)
	if err != nil {
		return fmt.Errorf("announce the gateway on the local network: %w", err)
	}
	p := ipv4.NewPacketConn(conn)
	links := interfaces()
	for i := range links {
		_ = p.JoinGroup(&links[i], group) // already done for one of them
	}
	return serve(ctx, conn, links, group, b)
}

// serve is [Announce] on a socket and interfaces, for a group.
func serve(ctx context.Context, conn *net.UDPConn, links []net.Interface, group *net.UDPAddr, b cli.Beacon) error {
	defer conn.Close()
	p := ipv4.NewPacketConn(conn)
	_ = p.SetControlMessage(ipv4.FlagInterface, true) // where it is not supported, the system chooses
	all, err := answer(b, ttl, 0, nil)
	if err != nil {
		return err
	}
	tell := func(packet []byte) {
		for i := range links {
			_, _ = p.WriteTo(packet, &ipv4.ControlMessage{IfIndex: links[i].Index}, group) // those who ask get an answer
		}
	}
	tell(all)
	defer context.AfterFunc(ctx, func() {
		if bye, err := answer(b, 0, 0, nil); err == nil {
			tell(bye)
		}
		conn.Close()
	})()
	packet := make([]byte, maxPacket)
	var second time.Time
	answers := 0
	for {
		n, cm, from, err := p.ReadFrom(packet)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("announce the gateway on the local network: %w", err)
		}
		to, ok := from.(*net.UDPAddr)
		if !ok || !near(to.IP) {
			continue
		}
		id, questions, only := asked(packet[:n], b)
		if len(questions) == 0 {
			continue
		}
		if now := time.Now(); now.Sub(second) > time.Second {
			second, answers = now, 0
		}
		if answers++; answers > maxAnswers {
			continue
		}
		back := &ipv4.ControlMessage{}
		if cm != nil {
			back.IfIndex = cm.IfIndex
		}
		switch {
		case to.Port != group.Port: // a program that speaks no multicast DNS itself
			if one, err := answer(b, ttl, id, questions); err == nil {
				_, _ = p.WriteTo(one, back, to)
			}
		case only:
			_, _ = p.WriteTo(all, back, to)
		default:
			_, _ = p.WriteTo(all, back, group)
		}
	}
}

// Find asks the local network for gateways, and returns those that answered when ctx ended.
func Find(ctx context.Context) ([]cli.Beacon, error) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the local network: %w", err)
	}
	return find(ctx, conn, interfaces(), group)
}

// find is [Find] on a socket and interfaces, for a group.
func find(ctx context.Context, conn *net.UDPConn, links []net.Interface, group *net.UDPAddr) ([]cli.Beacon, error) {
	defer conn.Close()
	packet, err := question()
	if err != nil {
		return nil, err
	}
	p := ipv4.NewPacketConn(conn)
	ask := func() error {
		var last error
		sent := false
		for i := range links {
			if _, err := p.WriteTo(packet, &ipv4.ControlMessage{IfIndex: links[i].Index}, group); err != nil {
				last = err
			} else {
				sent = true
			}
		}
		if sent {
			return nil
		}
		return last
	}
	if len(links) == 0 {
		return nil, errors.New("ask the local network: this machine has no network with multicast")
	}
	if err := ask(); err != nil {
		return nil, fmt.Errorf("ask the local network: %w", err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	repeat := time.AfterFunc(again, func() { _ = ask() }) // a message may be lost
	defer repeat.Stop()
	known := map[string]cli.Beacon{}
	in := make([]byte, maxPacket)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(in)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("ask the local network: %w", err)
		}
		if near(net.IP(from.Addr().Unmap().AsSlice())) {
			found(in[:n], from.Addr().Unmap(), known)
		}
	}
	out := []cli.Beacon{}
	for _, b := range known {
		out = append(out, b)
	}
	slices.SortFunc(out, func(x, y cli.Beacon) int { return strings.Compare(x.Name+" "+x.Host, y.Name+" "+y.Host) })
	return out, nil
}

// interfaces returns the interfaces of this machine that have multicast and IPv4, without the
// loopback one.
func interfaces() []net.Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(i net.Interface) bool {
		const want = net.FlagUp | net.FlagMulticast
		return i.Flags&want != want || i.Flags&net.FlagLoopback != 0 || len(addresses(i)) == 0
	})
}

// addresses returns the IPv4 addresses of an interface.
func addresses(i net.Interface) (out []netip.Addr) {
	list, err := i.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			out = append(out, p.Addr())
		}
	}
	return out
}

// Addresses returns the addresses of this machine on its local networks.
func Addresses() (out []netip.Addr) {
	for _, i := range interfaces() {
		out = append(out, addresses(i)...)
	}
	return out
}

// near reports whether an address is of a network that this machine is in (RFC 6762, section
// 11): others get no answer.
func near(ip net.IP) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.Contains(ip)
	})
}
