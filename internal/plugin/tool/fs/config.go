package fs

import (
	"encoding/json"
	"io/fs"
	"os"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Config is the section tools.exec.applyPatch of the configuration.
type Config struct {
	Enabled *bool `json:"enabled"`       // nil: yes
	Inside  *bool `json:"workspaceOnly"` // nil: yes
}

// Configured returns the tools for a section of the configuration (nil: the
// defaults) and the rule of an agent. output opens the complete outputs of tools. docs is
// the documentation, skills the bundled skills, and rec records changes; nil: there is
// none.
func Configured(raw json.RawMessage, rule pathpolicy.Rule, output func(ref string) (*os.File, error),
	docs, skills fs.FS, rec journal.Recorder) ([]tool.Tool, error) {
	var c Config
	if raw != nil {
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
	}
	return New(Options{
		NoPatch:      c.Enabled != nil && !*c.Enabled,
		PatchOutside: c.Inside != nil && !*c.Inside,
		Paths:        rule,
		Output:       output,
		Docs:         docs,
		Skills:       skills,
		Journal:      rec,
	}), nil
}
