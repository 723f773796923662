// Package bundled has the hooks that are part of Chela. Each is off until it is
// enabled with hooks.internal.entries.NAME.enabled.
package bundled

import (
	"encoding/json"
	"log/slog"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/store"
)

// Env is what the hooks may use.
type Env struct {
	Log      *slog.Logger
	State    string          // the state directory
	Instance string          // id of this start
	Store    store.Store     // nil: the hooks are only checked
	Agents   []hookdir.Agent // with their workspaces
	Private  func() []string // files and folders that are never read; nil: there are none
	Redact   func(string) string
}

// Hook is a hook with the function that adds it to points. entry is its
// configuration as JSON; nil: there is none.
type Hook struct {
	hookdir.Hook
	Add func(env Env, entry json.RawMessage, to *hook.Points) error
}

// All returns the hooks.
func All() []Hook {
	of := func(name, emoji, description string, add func(Env, json.RawMessage, *hook.Points) error,
		events ...string) Hook {
		return Hook{hookdir.Hook{Name: name, Key: name, Emoji: emoji, Description: description, Events: events}, add}
	}
	return []Hook{
		of("boot-md", "🚀", "Carry out BOOT.md of each workspace when the gateway starts", addBoot, "gateway:startup"),
		of("bootstrap-extra-files", "📎", "Add further files of the workspace to the system prompt",
			addExtraFiles, "agent:bootstrap"),
		of("command-logger", "📝", "Write each slash command to logs/commands.log", addCommandLogger, "command"),
		of("compaction-notifier", "🧹", "Say in the chat when its history is summarized", addCompactionNotifier,
			"session:compact:before", "session:compact:after"),
		of("session-memory", "💾", "Save the end of a conversation to the workspace when /new or /reset starts another one",
			addSessionMemory, "command:new", "command:reset"),
	}
}

// decode decodes the configuration of a hook.
func decode(entry json.RawMessage, into any) error {
	if len(entry) == 0 {
		return nil
	}
	return json.Unmarshal(entry, into)
}
