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

// DeviceID returns the id by which a gateway knows the device with the key.
func DeviceID(key ed25519.PrivateKey) string {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return hex.EncodeToString(sum[:])
}

// Sign proves to a gateway that the device with the key asks to connect with
// the parameters p, which must not change after it: the signature covers the
// nonce of the challenge, the client, role, scopes and token.
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
		strconv.FormatInt(int64(d.SignedAt), 10), token, nonce, fold(p.Client.Platform), fold(p.Client.Family),
	}, "|")
	d.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
	return d
}

// fold trims s and lowers its ASCII letters.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(s))
}
