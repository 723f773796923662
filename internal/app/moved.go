package app

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
)

// groupMoved moves the section of a group whose id has changed, such as when a group of
// Telegram becomes a supergroup, unless the configuration of the account forbids it
// (configWrites).
func (e *Engine) groupMoved(ctx context.Context, account chela.Address, from, to string) {
	log := e.o.Log.With("channel", account.Channel, "account", string(account.Account), "from", from, "to", to)
	if e.tree() == nil {
		return
	}
	moved := false
	_, err := e.change(ctx, anyBase, func(now *config.Tree) (*config.Draft, error) {
		var edits []config.Edit
		for _, at := range []string{"channels." + account.Channel, "channels." + account.Channel + ".accounts." + string(account.Account)} {
			if bytes.Equal(bytes.TrimSpace(now.Section(at+".configWrites")), []byte("false")) {
				return now.Draft()
			}
			var groups map[string]json.RawMessage
			if raw := now.Section(at + ".groups"); raw == nil || json.Unmarshal(raw, &groups) != nil {
				continue
			}
			if section, ok := groups[from]; ok && groups[to] == nil {
				edits = append(edits, config.Edit{Path: at + ".groups." + to, Value: section}, config.Edit{Path: at + ".groups." + from})
			}
		}
		moved = len(edits) > 0
		return now.Draft(edits...)
	}, e.requestRestart)
	switch {
	case err != nil:
		log.Error("the id of a group has changed, and its section in the configuration could not be moved", "err", err)
	case moved:
		log.Info("the id of a group has changed; its section in the configuration was moved")
	default:
		log.Info("the id of a group has changed")
	}
}
