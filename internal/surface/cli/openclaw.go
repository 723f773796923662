package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/shell"
)

// isNew reports whether the installation was never started.
func isNew(s Start) bool {
	_, err := os.Stat(filepath.Join(s.State, "chela.db"))
	return errors.Is(err, os.ErrNotExist)
}

// openClaw returns lines that say how to take over an installation of OpenClaw in the home
// directory; nil: there is none, or there is a configuration already.
func (c *commands) openClaw(s Start) []string {
	home := c.env("HOME")
	if home == "" {
		return nil
	}
	if _, err := os.Stat(s.Config); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, name := range [...]string{"openclaw", "clawdbot"} {
		dir := filepath.Join(home, "."+name)
		file := filepath.Join(dir, name+".json")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		lines := []string{"OpenClaw was found in " + dir + ". To use its settings: cp " + shell.Quote(file) + " " + shell.Quote(s.Config)}
		if sessions := filepath.Join(dir, "agents", "main", "sessions"); isDir(sessions) {
			lines = append(lines, "and its conversations: "+c.commandLine("sessions import "+shell.Quote(sessions)))
		}
		return lines
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
