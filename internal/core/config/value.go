package config

import (
	"encoding/json"
	"fmt"
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
	v, ok := ValueAt(t.root, steps)
	if !ok {
		if out.Key == nil || out.Key.Default == "" {
			return Value{}, fmt.Errorf("%s is not set%s", path, t.hint(steps))
		}
		out.JSON, out.Source = json.RawMessage(out.Key.Default), Default
		return out, nil
	}
	w := viewer{t: t, used: true, owner: true}
	hidden := false
	for i := range steps {
		hidden = hidden || w.secret(steps[:i+1])
	}
	out.JSON = encode(w.show(Clone(v), steps, hidden))
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
