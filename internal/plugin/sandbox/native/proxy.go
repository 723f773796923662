package native

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/splice"
)

const (
	dialTime  = 20 * time.Second
	helloTime = 10 * time.Second
	// maxConns limits the connections of one cage.
	maxConns = 256
)

// proxyEnv are the variables that make programs use the proxy at an address.
func proxyEnv(addr string) []string {
	web, socks := "http://"+addr, "socks5h://"+addr
	return []string{
		"HTTP_PROXY=" + web, "HTTPS_PROXY=" + web, "http_proxy=" + web, "https_proxy=" + web,
		"ALL_PROXY=" + socks, "all_proxy=" + socks, "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1",
	}
}

// proxy connects the programs of one cage to the hosts that they may reach. It
// speaks HTTP, with CONNECT, and SOCKS5.
type proxy struct {
	hosts  []string
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	conns  int
	denied []string
	misled bool
}

func newProxy(hosts []string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *proxy {
	p := &proxy{hosts: hosts, dial: dial}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// close ends all connections.
func (p *proxy) close() { p.cancel() }

// report adds to how a program ended which rights were missing.
func (p *proxy) report(e *sandbox.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.denied)
	e.Refused, e.Misled = slices.Clone(p.denied), p.misled
}

// serve serves a connection from the cage.
func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	p.conns++
	full := p.conns > maxConns
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.conns--
		p.mu.Unlock()
	}()
	if full {
		return
	}
	defer context.AfterFunc(p.ctx, func() { _ = c.Close() })() // ends the copying
	_ = c.SetDeadline(time.Now().Add(helloTime))               // without a deadline the program's own limits apply
	in := bufio.NewReader(c)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	if first[0] == 5 {
		p.socks(c, in)
		return
	}
	p.http(c, in)
}

// connect connects to an address that the rights name.
func (p *proxy) connect(addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !validHost(host) || !validPort(port) {
		return nil, errRefused // nobody is asked about it
	}
	if p.dial == nil || !slices.ContainsFunc(p.hosts, func(h string) bool { return allows(h, host, port) }) {
		p.deny(host, port)
		return nil, errRefused
	}
	ctx, cancel := context.WithTimeout(p.ctx, dialTime)
	defer cancel()
	return p.dial(ctx, "tcp", net.JoinHostPort(host, port))
}

var errRefused = errors.New("the sandbox does not allow this host")

// validHost reports whether a host is an address or a name that can be shown to
// people.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return !strings.Contains(host, "%")
	}
	return host != "" && len(host) <= 253 && !strings.ContainsFunc(host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}

// allows reports whether an entry of Rights.Hosts names a host and port. An
// entry without a port names the ports of the web.
func allows(entry, host, port string) bool {
	name, want, hasPort := strings.Cut(entry, ":")
	if hasPort && want != port || !hasPort && port != "443" && port != "80" {
		return false
	}
	if domain, ok := strings.CutPrefix(name, "*."); ok {
		return strings.HasSuffix(host, "."+domain)
	}
	return name == host
}

// deny records a missing right.
func (p *proxy) deny(host, port string) {
	right := "net:" + host
	if port != "443" && port != "80" {
		right += ":" + port
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.denied) < 16 && !slices.Contains(p.denied, right) {
		p.denied = append(p.denied, right)
	}
}

// http serves one HTTP request; a connection is not used again for a second
// one, which could be for another host.
func (p *proxy) http(c net.Conn, in *bufio.Reader) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	addr := r.Host
	if r.Method != http.MethodConnect {
		if addr = r.URL.Host; r.URL.Scheme != "http" || addr == "" {
			answer(c, http.StatusBadRequest, "this is a proxy")
			return
		}
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), "80")
	}
	to, err := p.connect(addr)
	if err != nil {
		status := http.StatusBadGateway
		if errors.Is(err, errRefused) {
			status = http.StatusForbidden
			p.mu.Lock()
			p.misled = p.misled || r.Method != http.MethodConnect
			p.mu.Unlock()
		}
		answer(c, status, err.Error())
		return
	}
	defer to.Close()
	_ = c.SetDeadline(time.Time{})
	if r.Method == http.MethodConnect {
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
			splice.Both(c, in, to)
		}
		return
	}
	for _, name := range [...]string{"Proxy-Connection", "Proxy-Authorization", "Connection"} {
		r.Header.Del(name)
	}
	r.Close = true
	if r.Write(to) == nil {
		_, _ = io.Copy(c, to) // either side may end
	}
}

// answer sends an error to the program. Its text is what people see.
func answer(c net.Conn, status int, text string) {
	text = "chela: " + text + "\n"
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nX-Proxy-Error: blocked-by-sandbox\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text) // the program may be gone
}

// Replies of SOCKS5.
const (
	socksOK      = 0
	socksDenied  = 2
	socksFailed  = 4
	socksCommand = 7
	socksAddress = 8
)

// socks serves a SOCKS5 connection.
func (p *proxy) socks(c net.Conn, in *bufio.Reader) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return
	}
	ways := make([]byte, head[1])
	if _, err := io.ReadFull(in, ways); err != nil {
		return
	}
	if _, err := c.Write([]byte{5, 0}); err != nil { // nobody has to say who they are
		return
	}
	addr, code := socksTarget(in)
	if code != socksOK {
		socksReply(c, code)
		return
	}
	to, err := p.connect(addr)
	switch {
	case errors.Is(err, errRefused):
		socksReply(c, socksDenied)
		return
	case err != nil:
		socksReply(c, socksFailed)
		return
	}
	defer to.Close()
	_ = c.SetDeadline(time.Time{})
	socksReply(c, socksOK)
	splice.Both(c, in, to)
}

// socksTarget reads the address to connect to.
func socksTarget(in io.Reader) (addr string, code byte) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(in, head); err != nil || head[0] != 5 {
		return "", socksFailed
	}
	if head[1] != 1 {
		return "", socksCommand
	}
	var size int
	switch head[3] {
	case 1:
		size = net.IPv4len
	case 4:
		size = net.IPv6len
	case 3:
		length := make([]byte, 1)
		if _, err := io.ReadFull(in, length); err != nil {
			return "", socksFailed
		}
		size = int(length[0])
	default:
		return "", socksAddress
	}
	b := make([]byte, size+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return "", socksFailed
	}
	host := string(b[:size])
	if head[3] != 3 {
		host = net.IP(b[:size]).String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(b[size:])))), socksOK
}

func socksReply(c net.Conn, code byte) {
	_, _ = c.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0}) // the program may be gone
}
