package cli

import (
	"errors"
	"os"
	"path/filepath"
)

// isNew reports whether the installation was never started.
func isNew(s Start) bool {
	_, err := os.Stat(filepath.Join(s.State, "chela.db"))
	return errors.Is(err, os.ErrNotExist)
}

// openClaw returns a line that says how to take over an installation of OpenClaw in the
// home directory; nil: there is none, or there is a configuration already.
func (c *commands) openClaw(s Start) []string {
	home := c.env("HOME")
	if home == "" {
		return nil
	}
	if _, err := os.Stat(s.Config); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	found := c.app.Migrate.Find(home)
	if len(found) == 0 {
		return nil
	}
	return []string{"OpenClaw was found in " + found[0] + ". To see what can be migrated: " +
		c.commandLine("migrate openclaw")}
}
