package pairing_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/kit/secret"
)

func TestAdopt(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	sum := sha256.Sum256(key)
	d := pairing.Device{ID: hex.EncodeToString(sum[:]), PublicKey: base64.RawURLEncoding.EncodeToString(key),
		Platform: "macos"}
	now := time.Now()
	token := secret.New("a token of another gateway")
	got, err := pairing.Adopt(d,
		[]pairing.Issued{{Role: "operator", Scopes: []string{"operator.write", "operator.read", "root"}, Token: token,
			Created: now}, {Role: "root", Token: token}}, now)
	if err != nil {
		t.Fatal(err)
	}
	if want := []chela.Scope{chela.ScopeRead, chela.ScopeWrite}; !maps.Equal(set(got.Scopes()), set(want)) ||
		got.Via != pairing.ViaImport || len(got.Grants) != 1 {
		t.Errorf("%+v", got)
	}
	table := &memory{devices: map[string]pairing.Device{got.ID: got}, requests: map[string]pairing.Request{}}
	if p, ok, err := pairing.Bearer(table, token.Reveal()); err != nil || !ok || p.Device != d.ID {
		t.Errorf("the token is not accepted: %+v, %v", p, err)
	}
	other := d
	other.ID = strings.Repeat("0", 64)
	for name, f := range map[string]func() error{
		"another id": func() error {
			_, err := pairing.Adopt(other, []pairing.Issued{{Role: "operator", Token: token}}, now)
			return err
		},
		"no token": func() error { _, err := pairing.Adopt(d, []pairing.Issued{{Role: "operator"}}, now); return err },
		"no key":   func() error { _, err := pairing.Adopt(pairing.Device{ID: d.ID}, nil, now); return err },
	} {
		if f() == nil {
			t.Errorf("%s: adopted", name)
		}
	}
}

func set(scopes []chela.Scope) map[chela.Scope]bool {
	m := map[chela.Scope]bool{}
	for _, s := range scopes {
		m[s] = true
	}
	return m
}
