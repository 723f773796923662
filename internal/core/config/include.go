package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/kit/json5"
)

// Limits of includes.
const (
	maxIncludes    = 10 // nested
	maxIncludePath = 4096
	maxIncludeSize = 2 << 20
)

// includeKey is the key whose value names the files that replace its object.
const includeKey = "$include"

// reader reads a file with its includes.
type reader struct {
	root   string // directory whose files may be included; without symbolic links
	edited map[string][]byte
	files  []string // that were read
	sum    hash.Hash
}

// file reads a file. chain is the files that include it, outermost first.
func (r *reader) file(path string, chain []string) (any, error) {
	src, ok := r.edited[path]
	if !ok {
		var err error
		if src, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if len(chain) > 0 && len(src) > maxIncludeSize {
		return nil, fmt.Errorf("include %s: %d bytes, at most %d", path, len(src), maxIncludeSize)
	}
	r.files = append(r.files, path)
	fmt.Fprintf(r.sum, "%q %q\n", path, src)
	if blank(src) {
		if len(chain) > 0 {
			return nil, fmt.Errorf("include %s: the file is empty; write {} into it if it has no settings", path)
		}
		return nil, errBlank
	}
	v, err := decode(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r.resolve(v, append(chain[:len(chain):len(chain)], path))
}

// errBlank says that a file has no content.
var errBlank = errors.New("the file is empty")

// blank reports whether a text has no content.
func blank(src []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(src, []byte("\ufeff")))) == 0
}

// decode reads JSON5 into maps, arrays and json.Number.
func decode(src []byte) (any, error) {
	if blank(src) {
		return map[string]any{}, nil
	}
	b, err := json5.ToJSON(src)
	if err != nil {
		return nil, err
	}
	return decodeJSON(b)
}

func decodeJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// resolve replaces the includes in v.
func (r *reader) resolve(v any, chain []string) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			e, err := r.resolve(v[i], chain)
			if err != nil {
				return nil, err
			}
			v[i] = e
		}
	case map[string]any:
		inc, has := v[includeKey]
		delete(v, includeKey)
		for _, k := range sortedKeys(v) { // sorted, because the order of the files determines the hash
			e, err := r.resolve(v[k], chain)
			if err != nil {
				return nil, err
			}
			v[k] = e
		}
		if has {
			return r.include(inc, v, chain)
		}
	}
	return v, nil
}

// include returns the content of the files that inc names, with the sibling keys
// merged over it.
func (r *reader) include(inc any, siblings map[string]any, chain []string) (any, error) {
	from := chain[len(chain)-1]
	names, err := includeNames(inc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	var merged any
	for i, name := range names {
		path, err := r.locate(name, from)
		if err == nil {
			err = checkChain(path, chain)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: include %q: %w", from, name, err)
		}
		v, err := r.file(path, chain)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("%s: include %q: no such file", from, name)
			}
			return nil, err
		}
		if i == 0 {
			merged = v
		} else {
			merged = merge(merged, v)
		}
	}
	if len(siblings) == 0 {
		return merged, nil
	}
	if _, ok := merged.(map[string]any); !ok {
		return nil, fmt.Errorf("%s: include %q has keys beside it, so it must be an object", from, names)
	}
	return merge(merged, siblings), nil
}

func includeNames(inc any) ([]string, error) {
	list, ok := inc.([]any)
	if !ok {
		list = []any{inc}
	}
	var names []string
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, errors.New("$include: want a file name or an array of them")
		}
		names = append(names, s)
	}
	if names == nil {
		return nil, errors.New("$include: the array is empty")
	}
	return names, nil
}

// locate returns the resolved path of an include.
func (r *reader) locate(name, from string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", errors.New("want a file name")
	case len(name) >= maxIncludePath:
		return "", fmt.Errorf("a path of %d bytes, at most %d", len(name), maxIncludePath)
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(from), path)
	}
	if !r.inside(filepath.Clean(path)) && !r.insideResolved(filepath.Dir(path)) {
		return "", errors.New("is outside of the configuration's directory")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", errors.New("no such file")
		}
		return "", err
	}
	if !r.inside(real) {
		return "", errors.New("is outside of the configuration's directory")
	}
	return real, nil
}

func (r *reader) insideResolved(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && r.inside(filepath.Join(real, "x"))
}

// inside reports whether a path lies in the root.
func (r *reader) inside(path string) bool {
	rel, err := filepath.Rel(r.root, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkChain fails when path includes itself or is nested too deeply.
func checkChain(path string, chain []string) error {
	for i, p := range chain {
		if real, err := filepath.EvalSymlinks(p); err == nil && real == path {
			return fmt.Errorf("a cycle: %s", strings.Join(append(chain[i:len(chain):len(chain)], path), " → "))
		}
	}
	if len(chain) > maxIncludes {
		return fmt.Errorf("includes are nested more than %d deep", maxIncludes)
	}
	return nil
}

// merge returns b over a: objects are merged, arrays are joined, and other values
// of b replace those of a.
func merge(a, b any) any {
	switch b := b.(type) {
	case map[string]any:
		if a, ok := a.(map[string]any); ok {
			for k, v := range b {
				if have, ok := a[k]; ok {
					v = merge(have, v)
				}
				a[k] = v
			}
			return a
		}
	case []any:
		if a, ok := a.([]any); ok {
			return append(a[:len(a):len(a)], b...)
		}
	}
	return b
}
