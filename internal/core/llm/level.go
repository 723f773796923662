package llm

import (
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// ParseLevel returns the thinking level with the name s.
func ParseLevel(s string) (Level, bool) {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	for _, l := range Levels {
		if s == string(l) {
			return l, true
		}
	}
	switch s {
	case "none", "no":
		return Off, true
	case "min", "think":
		return Minimal, true
	case "on", "think hard":
		return Low, true
	case "med", "mid", "think harder":
		return Medium, true
	case "highest", "ultrathink", "ultra":
		return High, true
	case "x-high", "x_high", "extra-high":
		return XHigh, true
	}
	return "", false
}

// LevelNames returns the names of the levels that m supports, always including off.
func (m Model) LevelNames() []string {
	out := []string{string(Off)}
	for _, l := range m.Levels {
		if !slices.Contains(out, string(l)) {
			out = append(out, string(l))
		}
	}
	return out
}

// FindLevel returns the thinking level with the name. It must be one of levels, those of
// the model; the error lists them.
func FindLevel(name, model string, levels []string) (Level, error) {
	l, ok := ParseLevel(name)
	if !ok || !slices.Contains(levels, string(l)) {
		return "", chela.Errorf(chela.CodeInvalid, "%q is not a level of %s; use one of %s", name, model,
			strings.Join(levels, ", "))
	}
	return l, nil
}
