package cert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pair creates a certificate and its key.
func pair(t *testing.T) (certPath, keyPath string) {
	t.Helper()
	dir := t.TempDir()
	certPath, keyPath = filepath.Join(dir, "tls", "cert.pem"), filepath.Join(dir, "tls", "key.pem")
	if err := Make(certPath, keyPath, []string{"localhost", "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	return certPath, keyPath
}

func TestMake(t *testing.T) {
	certPath, keyPath := pair(t)
	for _, path := range []string{certPath, keyPath} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want it readable by its owner only", path, info.Mode(), err)
		}
	}
	c, err := Load(certPath, keyPath)
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Leaf; l.Subject.CommonName != "Chela gateway" || l.KeyUsage != x509.KeyUsageDigitalSignature ||
		!slices.Equal(l.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("%v, usage %v %v", l.Subject, l.KeyUsage, l.ExtKeyUsage)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if err := c.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Run("a missing file is named", func(t *testing.T) {
		if _, err := Load("/nowhere/cert.pem", "/nowhere/key.pem"); err == nil ||
			!strings.Contains(err.Error(), "/nowhere/cert.pem") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a certificate of a later time is rejected", func(t *testing.T) {
		certPath, keyPath := pair(t)
		synctest.Test(t, func(t *testing.T) { // in the year 2000
			if _, err := Load(certPath, keyPath); !errors.Is(err, ErrExpired) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("an expired certificate is rejected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			certPath, keyPath := pair(t)
			time.Sleep(lifetime + time.Hour)
			// valid an hour earlier, for slow clocks
			want := "certificate " + certPath + ", valid from 1999-12-31 to 2009-12-29, has expired"
			if _, err := Load(certPath, keyPath); !errors.Is(err, ErrExpired) || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	})
}

func TestPinned(t *testing.T) {
	certPath, keyPath := pair(t)
	c, err := Load(certPath, keyPath)
	if err != nil {
		t.Fatal(err)
	}
	right := Fingerprint(c.Leaf.Raw)
	if err := Pinned(right).VerifyConnection(tls.ConnectionState{}); err == nil {
		t.Error("a connection without a certificate was accepted")
	}
	for pin, want := range map[string]bool{
		right: true, strings.ToUpper(right[:2] + ":" + right[2:]): true, "": false, strings.Repeat("0", 64): false,
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			near.SetDeadline(time.Now().Add(time.Second)) // for the alert of the side that refuses
			server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{c}})
			go func() { server.Handshake(); io.Copy(io.Discard, far) }()
			if err := tls.Client(near, Pinned(pin)).Handshake(); (err == nil) != want {
				t.Errorf("%q: %v, want success: %v", pin, err, want)
			}
			near.Close()
		})
	}
}
