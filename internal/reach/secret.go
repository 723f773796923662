package reach

import (
	"path/filepath"
	"strings"
)

// Secret reports whether a file holds secrets by its name: .env and .env.local,
// but not .env.example.
func Secret(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	if base != ".env" && base != ".envrc" && !strings.HasPrefix(base, ".env.") {
		return false
	}
	switch filepath.Ext(base) {
	case ".example", ".sample", ".template", ".dist", ".md":
		return false
	}
	return true
}
