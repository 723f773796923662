package inbound

import (
	"testing"
)

func TestParseSpawn(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]acpSpawn{
		"":       {},
		"claude": {agent: "claude"},
		"claude --cwd ~/my shop --label The shop": {agent: "claude", dir: "~/my shop", label: "The shop"},
		"—cwd \"/a b\" —mode oneshot":             {dir: "/a b", once: true},
		"x --thread AUTO --bind off":              {agent: "x", thread: "auto", bind: "off"},
		"x --bind here --mode persistent":         {agent: "x", bind: "here"},
	} {
		if got, err := parseSpawn(args); err != nil || got != want {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
	for _, args := range []string{"a b", "--cwd", "x --mode twice", "x --bind here --thread auto", "x --color red", "--"} {
		if got, err := parseSpawn(args); err == nil {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
