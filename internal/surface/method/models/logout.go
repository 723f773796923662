package models

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// logout deletes saved keys of a provider. The answer warns about keys stored
// elsewhere.
func (o Options) logout(ctx context.Context, _ rpc.Peer, in wire.ModelsLogout) (wire.ModelsLoggedOut, error) {
	in.Provider = strings.TrimSpace(in.Provider)
	switch {
	case in.Provider == "":
		return wire.ModelsLoggedOut{}, rpc.Invalid("provider is required")
	case in.Credential != "" && in.Credential != "api_key", in.Credential != "" && in.Keys != nil:
		return wire.ModelsLoggedOut{}, rpc.Invalid("choose either API keys or specific profiles")
	case in.Keys != nil && len(in.Keys) == 0:
		return wire.ModelsLoggedOut{}, rpc.Invalid("at /profileIds: must NOT have fewer than 1 items")
	}
	if err := o.known(in.AgentID, ""); err != nil {
		return wire.ModelsLoggedOut{}, err
	}
	out := wire.ModelsLoggedOut{Provider: in.Provider, Aborted: []string{}}
	var err error
	if out.Removed, err = o.Forget(ctx, in.Provider, in.Keys); err != nil {
		return out, err
	}
	for _, p := range o.Providers() {
		switch {
		case p.ID != in.Provider:
		case p.From == "config":
			out.Warning = "The key in the configuration was not removed: models.providers." + p.ID + ".apiKey"
		case p.From == "env":
			out.Warning = "The key was not removed from the variable " + p.Env + "."
		}
	}
	return out, nil
}
