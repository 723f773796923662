package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// Program is the program of a transform.
type Program struct {
	Path  string   // absolute, without symbolic links
	Args  []string // after the name
	Dir   string   // hooks.transformsDir
	Input []byte
}

// Limits of transforms.
const (
	transformTime = 10 * time.Second
	// MaxOutput limits the output of a program in bytes.
	MaxOutput = 1 << 20
)

// transform runs the program of a mapping and applies its output. It reports whether the
// program decided that nothing is done.
func (a *Acceptor) transform(ctx context.Context, h *Hooks, m *mapping, r Request, payload any,
	o *order) (skip bool, err error) {
	p, err := program(h.c.TransformsDir, m.Transform)
	if err != nil {
		return false, fmt.Errorf("webhook %s: %w", m.label(), err)
	}
	header := map[string]string{}
	for name := range r.Header {
		if !slices.Contains(hidden[:], http.CanonicalHeaderKey(name)) {
			header[name] = r.Header.Get(name)
		}
	}
	if p.Input, err = json.Marshal(map[string]any{
		"path":    r.Name,
		"headers": header,
		"query":   r.Query,
		"payload": payload,
	}); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, transformTime)
	defer cancel()
	out, err := a.o.Run(ctx, p)
	if err != nil {
		return false, fmt.Errorf("webhook %s: transform %s: %v", m.label(), m.Transform.Module,
			err) //nolint:errorlint // its time limit is not that of the request
	}
	out = bytes.TrimSpace(out)
	switch string(out) {
	case "":
		return false, nil
	case "null":
		return true, nil
	}
	var f fields
	var set map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(out, &f), json.Unmarshal(out, &set)); err != nil {
		return false, fmt.Errorf("webhook %s: transform %s: its output is no JSON object with members of a request",
			m.label(), m.Transform.Module)
	}
	o.merge(f, set)
	return false, nil
}

// program returns the program of a transform, which is a file in dir.
func program(dir string, t *Transform) (Program, error) {
	dir = pathpolicy.Real(dir)
	file := pathpolicy.Real(filepath.Join(dir, filepath.FromSlash(t.Module)))
	if !pathpolicy.Inside(file, dir) {
		return Program{}, fmt.Errorf("transform %s: the file is not in hooks.transformsDir", t.Module)
	}
	info, err := os.Stat(file)
	if err != nil {
		return Program{}, fmt.Errorf("transform: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Program{}, fmt.Errorf("transform %s: not a file", t.Module)
	}
	p := Program{Path: file, Dir: dir}
	if t.Export != "" {
		p.Args = []string{t.Export}
	}
	return p, nil
}
