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
		if fixedIn(now, account) != "" {
			return now.Draft()
		}
		for _, at := range sectionsOf(account) {
			var groups map[string]json.RawMessage
			if raw := now.Section(at + ".groups"); raw == nil || json.Unmarshal(raw, &groups) != nil {
				continue
			}
			if section, ok := groups[from]; ok && groups[to] == nil {
				edits = append(edits, config.Edit{Path: at + ".groups." + to, Value: section},
					config.Edit{Path: at + ".groups." + from})
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

// sectionsOf returns the paths of the sections of an account in the configuration.
func sectionsOf(a chela.Address) []string {
	channel := "channels." + a.Channel
	return []string{channel, channel + ".accounts." + string(a.Account)}
}

// fixedIn returns the key that forbids an account to change the configuration, or "".
func fixedIn(t *config.Tree, account chela.Address) string {
	for _, at := range sectionsOf(account) {
		if key := at + ".configWrites"; bytes.Equal(bytes.TrimSpace(t.Section(key)), []byte("false")) {
			return key
		}
	}
	return ""
}

// fixedConfig returns the key that forbids changes of the configuration from a chat, or "".
func (e *Engine) fixedConfig(a chela.Address) string {
	if t := e.tree(); t != nil && !a.Local() {
		return fixedIn(t, a)
	}
	return ""
}
