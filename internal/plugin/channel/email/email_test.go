package email_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/email"
	"github.com/chela-ai/chela/internal/plugin/channel/email/emailtest"
)

type dialer = func(ctx context.Context, addr string, hosts ...string) (net.Conn, error)

// person is the channel for the suite, in which the sender has an id of its own.
type person struct {
	channel.Channel
	channel.Finder
	mu     sync.Mutex
	sender string
}

// Run implements channel.Channel.
func (p *person) Run(ctx context.Context, sink channel.Sink) error {
	return p.Channel.Run(ctx, func(ctx context.Context, in chela.Inbound) error {
		if in.Sender.ID != in.Address.Peer.ID {
			return fmt.Errorf("the sender is %s, the peer %s", in.Sender.ID, in.Address.Peer.ID)
		}
		p.mu.Lock()
		in.Sender.ID = p.sender
		p.mu.Unlock()
		return sink(ctx, in)
	})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		s := emailtest.New()
		s.Saves = true
		r := newRig(t, s)
		c := r.open(`"sent": "server"`)
		p := &person{Channel: c, Finder: c.(channel.Finder)}
		n := 0
		return channeltest.Harness{
			Channel: p, Address: address(ann), Other: address(ben), Once: true,
			Shown: func(a chela.Address) []string { return s.Shown(a.Peer.ID) },
			Say: func(ctx context.Context, in chela.Inbound) error {
				if err := s.Idle(ctx, 1); err != nil { // older mails are not read
					return err
				}
				p.mu.Lock()
				p.sender = in.Sender.ID
				p.mu.Unlock()
				n++
				return s.Seen(ctx, s.Say(in.Address.Peer.ID, fmt.Sprint(n, "@friends.example"),
					"Content-Type: text/plain; charset=utf-8\n\n"+in.Text))
			},
		}
	})
}

// silent makes a connection to a server that says nothing.
func silent(ctx context.Context, _ string, _ ...string) (net.Conn, error) {
	ours, _ := net.Pipe()
	return ours, nil
}

// TestSocket uses sockets with TLS.
func TestSocket(t *testing.T) {
	t.Parallel()
	pair, roots := certificate(t)
	for _, mode := range []string{`true`, `"starttls"`} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := emailtest.New()
			config := &tls.Config{Certificates: []tls.Certificate{pair}}
			var imapAddr, smtpAddr string
			if mode == "true" {
				s.Wrap = config
			} else {
				s.TLS = config
			}
			imapAddr, smtpAddr = s.ListenLoopback(t)
			r := &rig{t: t, server: s, dir: t.TempDir()}
			r.dial = func(ctx context.Context, addr string, _ ...string) (net.Conn, error) {
				to := imapAddr
				if strings.HasPrefix(addr, emailtest.SMTP) {
					to = smtpAddr
				}
				return new(net.Dialer).DialContext(ctx, "tcp", to)
			}
			keys := `"imap": {"host": "imap.example.org", "tls": ` + mode +
				`}, "smtp": {"host": "smtp.example.org", "tls": ` + mode + `}`
			c := r.open(keys)
			if err := c.(channel.Prober).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("an unknown certificate: %v", err)
			}
			email.Trust(c, roots)
			got := make(chan chela.Inbound, 1)
			stop := channeltest.Run(r.t.Context(), c, func(_ context.Context, in chela.Inbound) error { got <- in; return nil })
			defer stop()
			if err := s.Idle(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			s.Say(ann, "1@friends.example", "\nhello")
			in := <-got
			if _, err := c.Send(t.Context(), channel.Part{Key: "k", Address: in.Address, ReplyTo: in.ID, Text: "hello"}); err !=
				nil {
				t.Error(err)
			}
			if err := s.Seen(t.Context(), "1@friends.example"); err != nil {
				t.Error(err)
			}
			if shown := s.Shown(ann); len(shown) != 1 || shown[0] != "hello" || s.Stored() != 1 {
				t.Errorf("got %q, %d copies", shown, s.Stored())
			}
			// The wrong kind of encryption.
			wrong := map[string]string{"true": `"starttls"`, `"starttls"`: "true"}[mode]
			w := r.open(strings.ReplaceAll(keys, `"tls": `+mode, `"tls": `+wrong))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := w.(channel.Prober).Probe(ctx); err == nil {
				t.Error("the wrong encryption works")
			}
		})
	}
}

// certificate returns a certificate for both servers, and what trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{emailtest.IMAP, emailtest.SMTP}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
