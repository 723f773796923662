package config

import (
	"bytes"
	"slices"
	"strings"
)

// cold are the keys, with what is below them, that only a start takes: what
// listens, and what is opened once.
var cold = [...]string{
	"gateway", "logging", "agents.defaults.imageMaxDimensionPx",
	"tools.exec.cleanupMs", "tools.exec.notifyOnExit", "tools.exec.notifyOnExitEmptySuccess",
}

// warm are those below a cold one that are taken at once.
var warm = [...]string{"gateway.tools", "gateway.reload"}

// Cold reports whether a change at a path waits for the next start.
func Cold(path string) bool {
	in := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return path == k || below(path, k) })
	}
	return in(cold[:]) && !in(warm[:])
}

// Changes returns the paths at which next differs from t in what is in force:
// the deepest keys, and of arrays the whole.
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

// above reports whether a path holds one that waits for a start.
func above(path string) bool {
	return slices.ContainsFunc(cold[:], func(k string) bool { return strings.HasPrefix(k, path+".") })
}
