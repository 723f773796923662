package wireview

import (
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/wire"
)

// PairRequest returns a device that requests pairing.
func PairRequest(r pairing.Request) wire.PairRequest {
	out := wire.PairRequest{
		ID:          r.ID,
		Device:      r.Device,
		PublicKey:   r.PublicKey,
		DisplayName: r.DisplayName,
		Platform:    r.Platform,
		Family:      r.Family,
		ClientID:    r.ClientID,
		ClientMode:  r.ClientMode,
		Role:        r.Role,
		Roles:       []string{r.Role},

		Silent: r.Silent,
		Repair: r.Repair,
		Time:   wire.At(r.Time),
	}
	for _, s := range r.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	return out
}
