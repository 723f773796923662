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

	"github.com/chela-ai/chela/internal/settings"
)

// config is a configuration by sections.
type conf map[string]string

func (c conf) Section(path string) json.RawMessage {
	if s, ok := c[path]; ok {
		return json.RawMessage(s)
	}
	return nil
}

// read returns the settings of a configuration that is good.
func read(t *testing.T, c conf) *settings.Settings {
	t.Helper()
	o, err := settings.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	return &o
}

// answers is an HTTP client that is answered by URL; where nothing is said,
// nobody listens.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := a[r.URL.String()]
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// on returns the options of an engine that is not started.
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
