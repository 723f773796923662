package beacon

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/chela-ai/chela/internal/surface/cli"
)

const (
	service = "_openclaw-gw._tcp.local."
	// ttl is how long others may remember the beacon, in seconds.
	ttl = 120
	// cacheFlush says that a record has no others beside it (RFC 6762, section 10.2), and
	// unicast, in a question, that the answer is for the asker only (section 5.4).
	cacheFlush = 0x8000
	unicast    = 0x8000
	// maxText is the maximum size of a text of a TXT record in bytes, and maxLabel that of a
	// part of a name.
	maxText, maxLabel = 255, 63
)

// texts returns the content of the TXT record.
func texts(b cli.Beacon) []string {
	pairs := [][2]string{{"role", "gateway"}, {"transport", "gateway"}, {"displayName", b.Name}, {"lanHost", b.Host},
		{"gatewayPort", strconv.Itoa(b.Port)}}
	if b.TLS {
		pairs = append(pairs, [2]string{"gatewayTls", "1"}, [2]string{"gatewayTlsSha256", b.Fingerprint})
	}
	pairs = append(pairs, [2]string{"tailnetDns", b.Tailnet}, [2]string{"cliPath", b.Program})
	if b.SSHPort != 0 {
		pairs = append(pairs, [2]string{"sshPort", strconv.Itoa(b.SSHPort)})
	}
	var out []string
	for _, p := range pairs {
		if s := p[0] + "=" + p[1]; p[1] != "" && len(s) <= maxText {
			out = append(out, s)
		}
	}
	return out
}

// label returns a text as a part of a name.
func label(s string) string {
	s = strings.ReplaceAll(s, ".", "-")
	for len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "")
}

// names are the names of a beacon.
type names struct{ service, instance, host dnsmessage.Name }

func namesOf(b cli.Beacon) (n names, err error) {
	if n.service, err = dnsmessage.NewName(service); err != nil {
		return n, err
	}
	if n.instance, err = dnsmessage.NewName(label(b.Name) + "." + service); err != nil {
		return n, fmt.Errorf("name %q: %w", b.Name, err)
	}
	if n.host, err = dnsmessage.NewName(label(strings.TrimSuffix(b.Host, ".local")) + ".local."); err != nil {
		return n, fmt.Errorf("host %q: %w", b.Host, err)
	}
	return n, nil
}

// answer returns the message about a beacon. A query is answered with its id and questions if
// it is not one of mDNS itself (RFC 6762, section 6.7).
func answer(b cli.Beacon, seconds uint32, id uint16, questions []dnsmessage.Question) ([]byte, error) {
	n, err := namesOf(b)
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: id, Response: true, Authoritative: true}, Questions: questions}
	head := func(name dnsmessage.Name, class dnsmessage.Class) dnsmessage.ResourceHeader {
		if len(questions) > 0 {
			class = dnsmessage.ClassINET // the asker does not know the bit
		}
		return dnsmessage.ResourceHeader{Name: name, Class: class, TTL: seconds}
	}
	const own = dnsmessage.ClassINET | cacheFlush
	m.Answers = []dnsmessage.Resource{{Header: head(n.service, dnsmessage.ClassINET),
		Body: &dnsmessage.PTRResource{PTR: n.instance}}}
	m.Additionals = []dnsmessage.Resource{
		{Header: head(n.instance, own), Body: &dnsmessage.SRVResource{Port: uint16(b.Port), Target: n.host}},
		{Header: head(n.instance, own), Body: &dnsmessage.TXTResource{TXT: texts(b)}},
	}
	for _, a := range b.Addrs {
		if a.Is4() {
			m.Additionals = append(m.Additionals,
				dnsmessage.Resource{Header: head(n.host, own), Body: &dnsmessage.AResource{A: a.As4()}})
		} else {
			m.Additionals = append(m.Additionals,
				dnsmessage.Resource{Header: head(n.host, own), Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return m.Pack()
}

// question returns the message that asks for beacons.
func question() ([]byte, error) {
	name, err := dnsmessage.NewName(service)
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypePTR,
		Class: dnsmessage.ClassINET | unicast}}}
	return m.Pack()
}

// asked returns the questions of a message that are about a beacon, and whether the answer is
// for the asker only.
func asked(packet []byte, b cli.Beacon) (id uint16, out []dnsmessage.Question, only bool) {
	var m dnsmessage.Message
	n, err := namesOf(b)
	if err != nil || m.Unpack(packet) != nil || m.Response || m.OpCode != 0 {
		return 0, nil, false
	}
	for _, q := range m.Questions {
		is := func(name dnsmessage.Name, types ...dnsmessage.Type) bool {
			for _, t := range types {
				if strings.EqualFold(q.Name.String(), name.String()) && (q.Type == t || q.Type == dnsmessage.TypeALL) {
					return true
				}
			}
			return false
		}
		if is(n.service, dnsmessage.TypePTR) || is(n.instance, dnsmessage.TypeSRV, dnsmessage.TypeTXT) ||
			is(n.host, dnsmessage.TypeA, dnsmessage.TypeAAAA) {
			only = only || q.Class&unicast != 0
			q.Class &^= unicast
			out = append(out, q)
		}
	}
	return m.ID, out, only
}

// found adds the beacons in a message to those that are known, by their names.
func found(packet []byte, from netip.Addr, known map[string]cli.Beacon) {
	var m dnsmessage.Message
	if m.Unpack(packet) != nil || !m.Response {
		return
	}
	all := append(append(m.Answers, m.Authorities...), m.Additionals...)
	addrs := map[string][]netip.Addr{}
	for _, r := range all {
		host := strings.ToLower(r.Header.Name.String())
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			addrs[host] = append(addrs[host], netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			addrs[host] = append(addrs[host], netip.AddrFrom16(body.AAAA))
		}
	}
	for _, r := range all {
		ptr, ok := r.Body.(*dnsmessage.PTRResource)
		if !ok || !strings.EqualFold(r.Header.Name.String(), service) {
			continue
		}
		instance := ptr.PTR.String()
		if r.Header.TTL == 0 { // a goodbye
			delete(known, instance)
			continue
		}
		if _, ok := known[instance]; !ok && len(known) >= maxFound {
			continue
		}
		b := cli.Beacon{Name: strings.TrimSuffix(instance, "."+service)}
		host := ""
		for _, r := range all {
			if !strings.EqualFold(r.Header.Name.String(), instance) {
				continue
			}
			switch body := r.Body.(type) {
			case *dnsmessage.SRVResource:
				b.Port, host = int(body.Port), body.Target.String()
				b.Host = strings.TrimSuffix(host, ".")
				b.Addrs = addrs[strings.ToLower(host)]
			case *dnsmessage.TXTResource:
				read(body.TXT, &b)
			}
		}
		if b.Port == 0 {
			continue // the rest comes with another message, or not at all
		}
		if len(b.Addrs) == 0 {
			b.Addrs = []netip.Addr{from}
		}
		known[instance] = b
	}
}

// read reads the content of a TXT record. It does not say where the gateway is: the SRV record
// does.
func read(txt []string, b *cli.Beacon) {
	for _, s := range txt {
		name, value, _ := strings.Cut(s, "=")
		switch name {
		case "displayName":
			b.Name = value
		case "gatewayTls":
			b.TLS = value == "1" || value == "true"
		case "gatewayTlsSha256":
			b.Fingerprint = value
		case "tailnetDns":
			b.Tailnet = value
		case "cliPath":
			b.Program = value
		case "sshPort":
			if n, err := strconv.ParseUint(value, 10, 16); err == nil {
				b.SSHPort = int(n)
			}
		}
	}
}
