package pairing

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Skew is the maximum difference between the time of a signature and the
// gateway's clock.
const Skew = 120 * time.Second

// Codes in the details of an error of [Verify].
const (
	CodeIDMismatch       = "DEVICE_AUTH_DEVICE_ID_MISMATCH"
	CodeSignatureExpired = "DEVICE_AUTH_SIGNATURE_EXPIRED"
	CodeNonceRequired    = "DEVICE_AUTH_NONCE_REQUIRED"
	CodeNonceMismatch    = "DEVICE_AUTH_NONCE_MISMATCH"
	CodeSignatureInvalid = "DEVICE_AUTH_SIGNATURE_INVALID"
	CodeKeyInvalid       = "DEVICE_AUTH_PUBLIC_KEY_INVALID"
)

// Identity is a client whose signature was verified, and its request.
type Identity struct {
	ID     string // of the device
	Key    string // public key, base64url
	Role   string
	Scopes []chela.Scope // requested; known scopes only
	Client wire.ClientInfo
}

// Verify checks that the client holds the key that it presents: that it signed
// the connection's nonce, its client information, role, scopes and token, at
// the current time. p.Device must not be nil. The error is a [*wire.Error]; the
// caller answers with it and closes the connection.
func Verify(p wire.Connect, nonce string, now time.Time) (Identity, error) {
	d := p.Device
	key, err := parseKey(d.PublicKey)
	if err != nil {
		return Identity{}, refused(CodeKeyInvalid, "device-public-key", "device public key invalid")
	}
	sum := sha256.Sum256(key)
	id := Identity{
		ID: hex.EncodeToString(sum[:]), Key: base64.RawURLEncoding.EncodeToString(key),
		Role: cmp.Or(p.Role, wire.RoleOperator), Scopes: KnownScopes(p.Scopes), Client: p.Client,
	}
	if id.Role == wire.RoleNode {
		id.Scopes = []chela.Scope{} // they are an operator's
	}
	switch skew := now.Sub(d.SignedAt.Time()); {
	case d.ID != id.ID:
		return Identity{}, refused(CodeIDMismatch, "device-id-mismatch", "device identity mismatch")
	case skew > Skew || skew < -Skew:
		return Identity{}, refused(CodeSignatureExpired, "device-signature-stale", "device signature expired")
	case d.Nonce == "":
		return Identity{}, refused(CodeNonceRequired, "device-nonce-missing", "device nonce required")
	case nonce == "" || d.Nonce != nonce:
		return Identity{}, refused(CodeNonceMismatch, "device-nonce-mismatch", "device nonce mismatch")
	}
	sig, err := decodeBase64(d.Signature)
	if err != nil || !verifySignature(key, id, p, sig) {
		return Identity{}, refused(CodeSignatureInvalid, "device-signature", "device signature invalid")
	}
	return id, nil
}

func refused(code, reason, message string) error {
	return wire.Errorf(wire.InvalidRequest, "%s", message).With(map[string]any{"code": code, "reason": reason})
}

// verifySignature reports whether sig is the key's signature over p, in version
// 2 or 3.
func verifySignature(key ed25519.PublicKey, id Identity, p wire.Connect, sig []byte) bool {
	v2 := payload(id, p)
	v3 := "v3|" + v2 + "|" + fold(p.Client.Platform) + "|" + fold(p.Client.Family)
	return ed25519.Verify(key, []byte(v3), sig) || ed25519.Verify(key, []byte("v2|"+v2), sig)
}

// payload returns the signed text that both versions share. The fields are
// joined without escaping, so a field that contains a separator is ambiguous;
// therefore the gateway reads no field back from the payload.
func payload(id Identity, p wire.Connect) string {
	token := ""
	if p.Auth != nil {
		token = cmp.Or(p.Auth.Token, p.Auth.DeviceToken, p.Auth.Bootstrap)
	}
	return strings.Join([]string{
		id.ID, p.Client.ID, p.Client.Mode, id.Role, strings.Join(p.Scopes, ","),
		strconv.FormatInt(int64(p.Device.SignedAt), 10), token, p.Device.Nonce,
	}, "|")
}

// fold trims s and converts its ASCII letters to lower case.
func fold(s string) string {
	b := []byte(strings.TrimSpace(s))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// parseKey returns a public key from base64url of its 32 bytes, or from PEM.
func parseKey(s string) (ed25519.PublicKey, error) {
	if strings.Contains(s, "-----BEGIN") {
		return parsePEM(s)
	}
	b, err := decodeBase64(s)
	if err != nil {
		return nil, err
	}
	if len(b) != ed25519.PublicKeySize {
		return nil, errors.New("not the size of a key")
	}
	return b, nil
}

func parsePEM(s string) (ed25519.PublicKey, error) {
	block, _ := pem.Decode([]byte(s))
	if block == nil {
		return nil, errors.New("not PEM")
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := k.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("not an Ed25519 key")
	}
	return key, nil
}

// decodeBase64 decodes both alphabets, padded or not.
func decodeBase64(s string) ([]byte, error) {
	s = strings.TrimRight(strings.TrimSpace(s), "=")
	return base64.RawURLEncoding.Strict().DecodeString(strings.NewReplacer("+", "-", "/", "_").Replace(s))
}
