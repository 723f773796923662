package endpoint

import "net"

// LAN returns an IPv4 address of this machine, one in a private network if there
// is one; nil when there is only the loopback address.
func LAN() net.IP {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var found net.IP
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() || n.IP.IsLinkLocalUnicast() || n.IP.To4() == nil {
			continue
		}
		if found == nil || n.IP.IsPrivate() && !found.IsPrivate() {
			found = n.IP
		}
	}
	return found
}
