package doctor

import (
	"path/filepath"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// inProse matches secrets as people write them down.
const inProse = `(?i)\b(?:password|passphrase|pin|token|secret|api[ _-]?key)\s*(?:is|=|:)\s*(\S{6,})`

// heartbeats checks HEARTBEAT.md of each agent.
func (c *checkup) heartbeats(opts *settings.Settings, state, home string, private func() []string) {
	for _, id := range opts.Roster() {
		dir := opts.Workspace(id, state, home)
		f := prompt.Open(dir, private).File(heartbeat.FileName)
		path := filepath.Join(dir, heartbeat.FileName)
		if f.Problem != "" {
			c.warn("heartbeat", "", "%s is not read: %s", path, f.Problem)
			continue
		}
		for _, p := range heartbeat.ParseFile(f.Text).Problems {
			c.warn("heartbeat", "", "%s: %s", path, p)
		}
		if masker, err := secret.NewMasker(inProse); err == nil && string(masker.Mask([]byte(f.Text))) != f.Text {
			c.warn("heartbeat", "", "%s seems to contain a secret; the model gets the file with each heartbeat", path)
		}
	}
}
