package openclaw

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"
)

// includeKey is the key of an object that names files to be merged into it.
const includeKey = "$include"

// maxIncludes is the depth of includes.
const maxIncludes = 10

// Config returns the configuration with its includes; nil: there is none that can be read.
// Variables are not replaced.
func (h *Home) Config() map[string]any {
	for _, name := range configNames {
		if _, err := h.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		v, err := h.include(name, 0)
		if err == nil {
			if m, ok := v.(map[string]any); ok {
				return m
			}
			err = errors.New("not an object")
		}
		h.problem(name, err)
		return nil
	}
	return nil
}

// include reads a file of the configuration.
func (h *Home) include(name string, depth int) (any, error) {
	if depth > maxIncludes {
		return nil, errors.New("the includes are too deep")
	}
	b, err := h.read(name, maxText)
	if err != nil {
		return nil, err
	}
	var v any
	if err := decode(b, &v); err != nil {
		return nil, err
	}
	return h.resolve(v, name, depth)
}

// resolve replaces the includes in a value of a file.
func (h *Home) resolve(v any, from string, depth int) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			var err error
			if v[i], err = h.resolve(v[i], from, depth); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		names := includes(v[includeKey])
		delete(v, includeKey)
		for k := range v {
			var err error
			if v[k], err = h.resolve(v[k], from, depth); err != nil {
				return nil, err
			}
		}
		var merged any
		for _, n := range names {
			file, err := h.locate(n, from)
			if err != nil {
				return nil, err
			}
			more, err := h.include(file, depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n, err)
			}
			merged = merge(merged, more)
		}
		if len(names) > 0 {
			return merge(merged, v), nil
		}
	}
	return v, nil
}

// includes returns the files that the value of includeKey names.
func includes(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var names []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				names = append(names, s)
			}
		}
		return names
	}
	return nil
}

// locate returns the path in the folder of an included file.
func (h *Home) locate(name, from string) (string, error) {
	if filepath.IsAbs(name) {
		rel, ok := h.Inside(name)
		if !ok {
			return "", fmt.Errorf("%s is outside of the folder", name)
		}
		return rel, nil
	}
	return path.Join(path.Dir(from), filepath.ToSlash(name)), nil
}

// Inside returns the path in the folder, with slashes, of an absolute path, which need not
// exist.
func (h *Home) Inside(file string) (string, bool) {
	rel, err := filepath.Rel(h.Dir, filepath.Clean(file))
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// merge returns a with b over it.
func merge(a, b any) any {
	x, ok := a.(map[string]any)
	y, both := b.(map[string]any)
	if !ok || !both {
		return b
	}
	x = maps.Clone(x)
	for k, v := range y {
		if old, ok := x[k]; ok {
			v = merge(old, v)
		}
		x[k] = v
	}
	return x
}
