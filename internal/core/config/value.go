package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Source is the layer that a value comes from.
type Source string

// The sources.
const (
	Default  Source = "default"
	FromFile Source = "file"
	FromEnv  Source = "env"
	Override Source = "override"
	LastGood Source = "last-good" // the file is invalid
)

// Value is the value of a key.
type Value struct {
	JSON   json.RawMessage // secrets in it are [redacted]
	Source Source
	Key    *Key // nil: an unknown key
}

// Get returns the effective value at a path, or its default. Secrets are redacted; a
// reference that could not be resolved, such as ${NAME}, is not a secret. It fails
// when there is no value.
func (t *Tree) Get(path string) (Value, error) {
	steps, err := ParsePath(path)
	if err != nil {
		return Value{}, err
	}
	var out Value
	if n := t.known.at(steps); n != nil && n.key != nil {
		k := *n.key
		out.Key = &k
	}
	v, ok := lookup(t.root, steps)
	if !ok {
		if out.Key == nil || out.Key.Default == "" {
			return Value{}, fmt.Errorf("%s is not set%s", path, t.hint(steps))
		}
		out.JSON, out.Source = json.RawMessage(out.Key.Default), Default
		return out, nil
	}
	out.JSON = encode(redact(clone(v), t.known, steps))
	out.Source = t.source(steps)
	return out, nil
}

// hint suggests a known key for an unknown path.
func (t *Tree) hint(steps []string) string {
	for i := range steps {
		if t.known.at(steps[:i+1]) == nil {
			return suggest(steps[i], t.known.at(steps[:i]), steps[:i])
		}
	}
	return ""
}

func (t *Tree) source(steps []string) Source {
	for i := len(steps); i > 0; i-- {
		if s, ok := t.sources[FormatPath(steps[:i])]; ok {
			return s
		}
	}
	if t.broken != nil {
		return LastGood
	}
	return FromFile
}

// sensitive matches names of unknown keys that suggest a secret.
var sensitive = pattern(`(?i)(token|password|passwd|secret|api_?key|private_?key|credential|authorization|cookie|(^|_)key)$`)

// redact replaces the secrets below path in v.
func redact(v any, known *node, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = redact(e, known, join(path, k))
		}
	case []any:
		for i, e := range v {
			v[i] = redact(e, known, join(path, itoa(i)))
		}
	case string:
		if v != "" && !unresolved(v) && secretAt(known, path) {
			return secret.Redacted
		}
	case json.Number:
		if secretAt(known, path) && namedSecret(path) {
			return secret.Redacted
		}
	}
	return v
}

// secretAt reports whether a string at path is a secret.
func secretAt(known *node, path []string) bool {
	n := known.at(path)
	if n == nil || n.key == nil || n.key.Kind == Any || n.key.Kind == Object {
		return namedSecret(path)
	}
	if n.key.Kind == Text && strings.HasSuffix(n.key.Path, ".*") { // the user chooses the name
		return namedSecret(path)
	}
	return n.key.Kind == Secret
}

// namedSecret reports whether a name on the path suggests a secret.
func namedSecret(path []string) bool {
	for i := len(path) - 1; i >= 0 && i >= len(path)-2; i-- {
		if isIndex(path[i]) {
			continue
		}
		return sensitive().MatchString(path[i])
	}
	return false
}
