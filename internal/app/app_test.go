package app

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/standard"
)

// conf is a configuration by sections.
type conf map[string]string

func (c conf) Section(path string) json.RawMessage {
	if s, ok := c[path]; ok {
		return json.RawMessage(s)
	}
	above, name, ok := cutLast(path)
	if !ok {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Section(above), &members) != nil {
		return nil
	}
	return members[name]
}

// cutLast cuts the last step off a path.
func cutLast(path string) (above, name string, ok bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// answers is an HTTP transport with responses by URL; other requests fail.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := a[r.URL.String()]
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		Request: r}, nil
}

// on returns the options of an engine.
func on(t *testing.T, env map[string]string, net answers) Options {
	t.Helper()
	return Options{
		Log: slog.New(slog.DiscardHandler), State: t.TempDir(), Config: conf{},
		Env: func(name string) string { return env[name] }, HTTP: &http.Client{Transport: net},
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// standardBuild is the build with the standard parts.
var standardBuild = starter{standard.New()}
