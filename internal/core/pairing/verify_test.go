package pairing_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/wire"
)

const nonce = "6be635be-ff2f-4cee-b97e-2ad98a1372a6"

var now = time.UnixMilli(1_795_000_000_000)

// key returns a key derived from n.
func key(n byte) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte{n})
	return ed25519.NewKeyFromSeed(seed[:])
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func deviceID(k ed25519.PrivateKey) string {
	sum := sha256.Sum256(public(k))
	return hex.EncodeToString(sum[:])
}

// sign returns p with the device of the key and its signature of the text.
func sign(k ed25519.PrivateKey, p wire.Connect, text string) wire.Connect {
	p.Device = &wire.Device{
		ID: deviceID(k), PublicKey: base64.RawURLEncoding.EncodeToString(public(k)), SignedAt: wire.At(now), Nonce: nonce,
		Signature: base64.RawURLEncoding.EncodeToString(ed25519.Sign(k, []byte(text))),
	}
	return p
}

// terminal returns the connect request of a terminal client.
func terminal() wire.Connect {
	return wire.Connect{
		Client: wire.ClientInfo{ID: "openclaw-tui", Mode: "ui", Platform: " Linux", Family: "LINUX "},
		Role:   wire.RoleOperator, Scopes: []string{"operator.write", "operator.read", "operator.nonsense"},
		Auth: &wire.Auth{Token: "secret", DeviceToken: "other"},
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	k := key(1)
	id := deviceID(k)
	const asked = "operator.write,operator.read,operator.nonsense"
	v2 := "v2|" + id + "|openclaw-tui|ui|operator|" + asked + "|1795000000000|secret|" + nonce
	v3 := "v3" + v2[2:] + "|linux|linux"
	node := wire.Connect{Client: wire.ClientInfo{ID: "node-host", Mode: "node", Platform: "Linux"},
		Role: wire.RoleNode, Scopes: []string{}}
	foreign := func(p wire.Connect) wire.Connect { // the key of another device, the signature of ours
		p.Device.PublicKey = base64.RawURLEncoding.EncodeToString(public(key(2)))
		return p
	}
	with := func(p wire.Connect, f func(d *wire.Device)) wire.Connect {
		f(p.Device)
		return p
	}
	good := func() wire.Connect { return sign(k, terminal(), v3) }
	der, err := x509.MarshalPKIXPublicKey(public(k))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		p    wire.Connect
		code string // "": verified
	}{
		{"v3", good(), ""},
		{"v2", sign(k, terminal(), v2), ""},
		{"v3 of a node without a token", sign(k, node, "v3|"+id+"|node-host|node|node||1795000000000||"+nonce+"|linux|"), ""},
		{"key as PEM", with(good(), func(d *wire.Device) {
			d.PublicKey = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		}), ""},
		{"key and signature in the other alphabet", with(good(), func(d *wire.Device) {
			b := strings.NewReplacer("-", "+", "_", "/")
			d.PublicKey, d.Signature = b.Replace(d.PublicKey)+"=", b.Replace(d.Signature)+"=="
		}), ""},
		{"clock two minutes behind", with(good(), func(d *wire.Device) {
			p := sign(k, terminal(), strings.Replace(v3, "1795000000000", "1794999880000", 1))
			d.Signature, d.SignedAt = p.Device.Signature, wire.At(now.Add(-pairing.Skew))
		}), ""},

		{"v1", sign(k, terminal(), "v1"+v2[2:]), pairing.CodeSignatureInvalid},
		{"v3 without the platform", sign(k, terminal(), "v3"+v2[2:]), pairing.CodeSignatureInvalid},
		{"more scopes than signed", sign(k, func() wire.Connect {
			p := terminal()
			p.Scopes = append(p.Scopes, "operator.admin")
			return p
		}(), v3), pairing.CodeSignatureInvalid},
		{"another role", sign(k, func() wire.Connect { p := terminal(); p.Role = wire.RoleNode; return p }(), v3),
			pairing.CodeSignatureInvalid},
		{"another token", sign(k, func() wire.Connect { p := terminal(); p.Auth.Token = "x"; return p }(), v3),
			pairing.CodeSignatureInvalid},
		{"another client", sign(k, func() wire.Connect { p := terminal(); p.Client.ID = "cli"; return p }(), v3),
			pairing.CodeSignatureInvalid},
		{"a foreign signature", with(good(), func(d *wire.Device) {
			d.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key(2), []byte(v3)))
		}), pairing.CodeSignatureInvalid},
		{"no signature", with(good(), func(d *wire.Device) { d.Signature = "" }), pairing.CodeSignatureInvalid},
		{"a signature that is no base64", with(good(), func(d *wire.Device) { d.Signature = "%" }),
			pairing.CodeSignatureInvalid},
		{"a time that was not signed", with(good(), func(d *wire.Device) { d.SignedAt++ }), pairing.CodeSignatureInvalid},

		{"expired", with(good(), func(d *wire.Device) { d.SignedAt = wire.At(now.Add(-pairing.Skew - time.Millisecond)) }),
			pairing.CodeSignatureExpired},
		{"from the future",
			with(good(), func(d *wire.Device) { d.SignedAt = wire.At(now.Add(pairing.Skew + time.Millisecond)) }),
			pairing.CodeSignatureExpired},
		{"no time", with(good(), func(d *wire.Device) { d.SignedAt = 0 }), pairing.CodeSignatureExpired},
		{"no nonce", with(good(), func(d *wire.Device) { d.Nonce = "" }), pairing.CodeNonceRequired},
		{"replayed on another connection", with(good(), func(d *wire.Device) { d.Nonce = "another" }),
			pairing.CodeNonceMismatch},
		{"the key of another device", foreign(good()), pairing.CodeIDMismatch},
		{"another id", with(good(), func(d *wire.Device) { d.ID = deviceID(key(2)) }), pairing.CodeIDMismatch},
		{"an id in capitals", with(good(), func(d *wire.Device) { d.ID = strings.ToUpper(d.ID) }), pairing.CodeIDMismatch},
		{"an invalid key", with(good(), func(d *wire.Device) { d.PublicKey = "AAAA" }), pairing.CodeKeyInvalid},
		{"invalid PEM",
			with(good(), func(d *wire.Device) { d.PublicKey = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n" }),
			pairing.CodeKeyInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := pairing.Verify(c.p, nonce, now)
			if code := detail(err); code != c.code {
				t.Fatalf("error %v (%s), want %q", err, code, c.code)
			}
			if c.code == "" && (got.ID != id || got.Key != base64.RawURLEncoding.EncodeToString(public(k)) ||
				got.Role != c.p.Role) {
				t.Errorf("identity %+v", got)
			}
		})
	}
	got, err := pairing.Verify(good(), nonce, now)
	if err != nil || len(got.Scopes) != 2 || got.Scopes[0] != chela.ScopeRead || got.Scopes[1] != chela.ScopeWrite {
		t.Errorf("scopes %v, %v: want the known ones", got.Scopes, err)
	}
	if _, err := pairing.Verify(good(), "", now); detail(err) != pairing.CodeNonceMismatch {
		t.Errorf("empty gateway nonce: %v", err)
	}
}

// detail returns the code in the details of a wire error.
func detail(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Code != wire.InvalidRequest {
		return "not an answer: " + err.Error()
	}
	return e.Detail()
}

// FuzzVerify checks that every change to a correctly signed request is refused.
func FuzzVerify(f *testing.F) {
	k := key(1)
	p := terminal()
	p.Scopes = []string{"operator.read"}
	text := "v3|" + deviceID(k) + "|openclaw-tui|ui|operator|operator.read|1795000000000|secret|" + nonce + "|linux|linux"
	p = sign(k, p, text)
	d := *p.Device
	f.Add(d.ID, d.PublicKey, d.Signature, int64(d.SignedAt), d.Nonce)
	f.Add(d.ID, d.PublicKey+"=", d.Signature, int64(d.SignedAt), d.Nonce)
	f.Add("", "-----BEGIN", "", int64(0), "")
	f.Add(d.ID, "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----", "AA", int64(d.SignedAt), nonce)
	f.Fuzz(func(t *testing.T, id, public, signature string, at int64, n string) {
		q := p
		q.Device = &wire.Device{ID: id, PublicKey: public, Signature: signature, SignedAt: wire.Millis(at), Nonce: n}
		got, err := pairing.Verify(q, nonce, now)
		switch {
		case err != nil && detail(err) == "":
			t.Errorf("error without a code: %v", err)
		case err == nil && (got.ID != d.ID || id != d.ID || at != int64(d.SignedAt) || n != nonce):
			t.Errorf("accepted: %q %q %q %d %q", id, public, signature, at, n)
		}
	})
}
