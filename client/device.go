package client

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/wire"
)

// DeviceID returns the id that gateways derive from the key.
func DeviceID(key ed25519.PrivateKey) string {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return hex.EncodeToString(sum[:])
}

// Sign signs the connect parameters p with the device key. The signature covers
// the nonce of the challenge, the client, role, scopes and token; p must not
// change afterwards.
func Sign(key ed25519.PrivateKey, nonce string, p wire.Connect, now time.Time) *wire.Device {
	d := &wire.Device{
		ID: DeviceID(key), PublicKey: base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey)),
		SignedAt: wire.At(now), Nonce: nonce,
	}
	token := ""
	if p.Auth != nil {
		token = cmp.Or(p.Auth.Token, p.Auth.DeviceToken, p.Auth.Bootstrap)
	}
	text := strings.Join([]string{
		"v3", d.ID, p.Client.ID, p.Client.Mode, cmp.Or(p.Role, wire.RoleOperator), strings.Join(p.Scopes, ","),
		strconv.FormatInt(int64(d.SignedAt), 10), token, nonce, foldASCII(p.Client.Platform), foldASCII(p.Client.Family),
	}, "|")
	d.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
	return d
}

// foldASCII trims s and lowers its ASCII letters.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(s))
}
