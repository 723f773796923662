package endpoint

import "net"

// LAN returns an address of this machine in a private network, or any
// that is not its own loop; nil when there is none.
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
