package pairing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/wire"
)

// Issued is a grant that another gateway gave to a device.
type Issued struct {
	Role    string
	Scopes  []string
	Token   secret.Value
	Created time.Time
}

// Adopt returns a device that another gateway had paired, with the rights and the tokens
// that it had there. d needs the id, the key, and what the device said about itself.
func Adopt(d Device, grants []Issued, now time.Time) (Device, error) {
	key, err := parseKey(d.PublicKey)
	if err != nil {
		return Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	if sum := sha256.Sum256(key); hex.EncodeToString(sum[:]) != d.ID {
		return Device{}, fmt.Errorf("device %s: the id is not that of the key", d.ID)
	}
	d.PublicKey, d.Via, d.Grants = base64.RawURLEncoding.EncodeToString(key), ViaImport, nil
	for _, t := range []*time.Time{&d.Created, &d.Approved} {
		if t.IsZero() || t.After(now) {
			*t = now
		}
	}
	for _, g := range grants {
		if g.Role != wire.RoleOperator && g.Role != wire.RoleNode || g.Token.IsZero() {
			continue
		}
		scopes := KnownScopes(g.Scopes)
		if g.Role == wire.RoleNode {
			scopes = []chela.Scope{}
		}
		d.Generation++
		d.set(Grant{
			Role:       g.Role,
			Scopes:     slices.Clip(scopes),
			Generation: d.Generation,
			Created:    g.Created,
			Tokens:     []string{hash(g.Token.Reveal())},
		})
	}
	if !d.Live() {
		return Device{}, fmt.Errorf("device %s: it has no valid token", d.ID)
	}
	return d, nil
}
