package methods

import (
	"context"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/config"
	channelmethods "github.com/chela-ai/chela/internal/surface/method/channels"
)

// guests adds how the first person who is admitted becomes the owner.
func (o *Options) guests(c channelmethods.Options) channelmethods.Options {
	c.Owned = func() bool { return len(o.Current.Load().Settings.Slash.Owners) > 0 }
	if o.Config.Tree() == nil {
		return c
	}
	c.Own = func(ctx context.Context, id string) (bool, error) {
		if c.Owned() {
			return false, nil
		}
		text, err := json.Marshal(map[string]any{"commands": map[string]any{"ownerAllowFrom": []string{id}}})
		if err != nil {
			return false, err
		}
		err = o.Config.Edit(ctx, func(now *config.Tree) (*config.Draft, error) { return now.Merge(text, nil) })
		return err == nil, err
	}
	return c
}
