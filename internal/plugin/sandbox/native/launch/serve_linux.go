package launch

import (
	"encoding/hex"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/kit/splice"
)

// Limits of what the commands of a session serve each other.
const (
	maxPorts  = 64  // of a command
	maxJoined = 256 // connections to a command at once
	joinTime  = 10 * time.Second
)

// servers are the servers of other commands that a command can reach, and the connections to
// its own.
type servers struct {
	mu     sync.Mutex
	open   map[Port]*net.TCPListener // in the place of the servers of others
	joined int
	accept sync.WaitGroup
}

// set listens on the ports of the servers of other commands, and hands the connections to the
// gateway. A port that the command uses itself is left to it.
func (s *servers) set(w *Wire, ports []Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, ln := range s.open {
		if !slices.Contains(ports, p) {
			_ = ln.Close() // nobody accepts from it any more
			delete(s.open, p)
		}
	}
	for _, p := range ports[:min(len(ports), 2*maxPorts)] {
		if s.open[p] != nil {
			continue
		}
		ln, err := net.ListenTCP(p.network(), p.addr())
		if err != nil {
			continue
		}
		if s.open == nil {
			s.open = map[Port]*net.TCPListener{}
		}
		s.open[p] = ln
		s.accept.Go(func() {
			for {
				c, err := ln.AcceptTCP()
				if err != nil {
					return
				}
				if f, err := c.File(); err == nil {
					_ = w.Send(Reply{Conn: true, Port: p}, int(f.Fd())) // the gateway may have gone
					_ = f.Close()                                       // the gateway has a copy
				}
				_ = c.Close() // as above
			}
		})
	}
}

// close ends the listening. The connections end with their ends.
func (s *servers) close() {
	s.set(nil, nil)
	s.accept.Wait()
}

// ports returns the ports on which the command listens.
func (s *servers) ports() []Port {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[Port]bool{}
	for _, six := range [...]bool{false, true} {
		name := "/proc/net/tcp"
		if six {
			name += "6"
		}
		table, _ := os.ReadFile(name) // the kernel may have no such protocol
		for line := range strings.Lines(string(table)) {
			p, both, ok := listening(line, six)
			if !ok || p.Number == proxyPort {
				continue
			}
			found[p] = true
			if both {
				found[Port{p.Number, !six}] = true
			}
		}
	}
	for p := range s.open {
		delete(found, p)
	}
	out := slices.SortedFunc(maps.Keys(found), func(a, b Port) int { return a.Number - b.Number })
	return out[:min(len(out), maxPorts)]
}

// listening returns the port of a line of /proc/net/tcp that is a socket which listens where
// the loopback interface reaches it. both: it may listen for the other version of IP, too.
func listening(line string, six bool) (p Port, both, ok bool) {
	const listen = "0A"
	f := strings.Fields(line)
	if len(f) < 4 || f[3] != listen {
		return p, false, false
	}
	addr, port, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(port, 16, 16)
	ip, hexErr := hex.DecodeString(addr)
	if err != nil || hexErr != nil || n == 0 {
		return p, false, false
	}
	// words in the order of this processor, which is little-endian where there are cages
	for i := 0; i+4 <= len(ip); i += 4 {
		slices.Reverse(ip[i : i+4])
	}
	at := net.IP(ip)
	return Port{int(n), six}, six && at.IsUnspecified(), at.IsUnspecified() || at.IsLoopback()
}

// join connects a connection of another command to a server of this one.
func (s *servers) join(p Port, files []*os.File) {
	defer CloseAll(files)
	s.mu.Lock()
	full := s.joined >= maxJoined
	if !full {
		s.joined++
	}
	s.mu.Unlock()
	if full || len(files) != 1 {
		return
	}
	defer func() {
		s.mu.Lock()
		s.joined--
		s.mu.Unlock()
	}()
	from, err := net.FileConn(files[0])
	if err != nil {
		return
	}
	defer from.Close()
	dialer := net.Dialer{Timeout: joinTime} // in the network of the cage, from which nothing leaves
	to, err := dialer.Dial(p.network(), p.addr().String())
	if err != nil { // as if nothing listened
		if c, ok := from.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // it is closed in any case
		}
		return
	}
	defer to.Close()
	splice.Both(from, from, to)
}

// network and addr are for the loopback interface.
func (p Port) network() string {
	if p.Six {
		return "tcp6"
	}
	return "tcp4"
}

func (p Port) addr() *net.TCPAddr {
	if p.Six {
		return &net.TCPAddr{IP: net.IPv6loopback, Port: p.Number}
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.Number}
}
