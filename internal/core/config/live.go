package config

import (
	"bytes"
	"slices"
	"strings"
)

// cold is the keys whose changes take effect after a restart, with all keys below
// them: listeners, and resources that are opened once.
var cold = [...]string{
	"gateway", "discovery", "hooks.path", "logging", "agents.defaults.imageMaxDimensionPx",
	"tools.exec.cleanupMs", "tools.exec.notifyOnExit", "tools.exec.notifyOnExitEmptySuccess", "storage",
}

// warm is the keys below a cold one whose changes take effect immediately.
var warm = [...]string{"gateway.tools", "gateway.reload", "gateway.nodes.commands", "gateway.mode", "gateway.remote"}

// Cold reports whether a change at a path takes effect after a restart only.
func Cold(path string) bool {
	in := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return path == k || below(path, k) })
	}
	return in(cold[:]) && !in(warm[:])
}

// Changes returns the paths at which the effective values of next differ from those
// of t: the deepest keys, where an array counts as one value.
func (t *Tree) Changes(next *Tree) []string { return changes(t.root, next.root, nil) }

func changes(a, b any, path []string) []string {
	x, xok := a.(map[string]any)
	y, yok := b.(map[string]any)
	if xok && b == nil {
		y, yok = nil, true
	}
	if yok && a == nil {
		x, xok = nil, true
	}
	if !xok || !yok {
		if bytes.Equal(encode(a), encode(b)) {
			return nil
		}
		return []string{FormatPath(path)}
	}
	keys := sortedKeys(x)
	for _, k := range sortedKeys(y) {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var out []string
	for _, k := range keys {
		out = append(out, changes(x[k], y[k], join(path, k))...)
	}
	return out
}

// above reports whether a key below the path is cold.
func above(path string) bool {
	return slices.ContainsFunc(cold[:], func(k string) bool { return strings.HasPrefix(k, path+".") })
}
