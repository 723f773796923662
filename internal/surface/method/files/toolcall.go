package files

import (
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/wire"
)

// usesOf returns the files named in a tool call.
func usesOf(c llm.ToolCall) []use {
	var in struct {
		Path  string `json:"path"`
		Input string `json:"input"`
	}
	if json.Unmarshal(c.Args, &in) != nil {
		return nil
	}
	switch c.Name {
	case "read":
		return named(in.Path, wire.FileRead)
	case "write", "edit":
		return named(in.Path, wire.FileModified)
	case "apply_patch":
		return patched(in.Input)
	}
	return nil
}

func named(path, kind string) []use {
	if path = strings.TrimSpace(path); path == "" {
		return nil
	}
	return []use{{path, kind}}
}

// patched returns the files of a patch.
func patched(text string) []use {
	var out []use
	for line := range strings.Lines(text) {
		for _, head := range [...]string{"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"} {
			if name, ok := strings.CutPrefix(line, head); ok {
				out = append(out, named(name, wire.FileModified)...)
			}
		}
	}
	return out
}
