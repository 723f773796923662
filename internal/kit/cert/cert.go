// Package cert loads, creates and pins TLS certificates. A self-signed
// certificate is identified by its fingerprint.
package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrExpired reports a certificate that has expired or is not yet valid.
var ErrExpired = errors.New("has expired")

// lifetime is the validity period of certificates created by [Make].
const lifetime = 10 * 365 * 24 * time.Hour

// Load reads a certificate and its key. An expired certificate is ErrExpired.
func Load(certPath, keyPath string) (tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return c, fmt.Errorf("certificate %s with key %s: %w", certPath, keyPath, err)
	}
	if now := time.Now(); now.After(c.Leaf.NotAfter) || now.Before(c.Leaf.NotBefore) {
		return c, fmt.Errorf("certificate %s, valid from %s to %s, %w", certPath,
			c.Leaf.NotBefore.Format(time.DateOnly), c.Leaf.NotAfter.Format(time.DateOnly), ErrExpired)
	}
	return c, nil
}

// Make creates a self-signed certificate and its key for the hosts, names or
// addresses. The files are readable by their owner only. Existing files are
// replaced.
func Make(certPath, keyPath string, hosts []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	t := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Chela gateway"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	if err := write(keyPath, "PRIVATE KEY", secret); err != nil {
		return err
	}
	return write(certPath, "CERTIFICATE", der)
}

// write writes a PEM block to a file that only its owner can read.
func write(path, kind string, der []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // an existing file may have a wider mode
		return fmt.Errorf("certificate: %w", err)
	}
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// Fingerprint returns the SHA-256 of a certificate in hexadecimal.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Pinned returns a TLS configuration that accepts only the certificate with the
// fingerprint, with or without colons, whoever signed it.
func Pinned(fingerprint string) *tls.Config {
	want := strings.ToLower(strings.ReplaceAll(fingerprint, ":", ""))
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // the fingerprint is verified instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || Fingerprint(s.PeerCertificates[0].Raw) != want {
				return errors.New("the server's certificate does not match the pinned fingerprint")
			}
			return nil
		},
	}
}
