//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// kit is a set of npm packages that are installed together. testdata/locks has the
// versions of all that they depend on, in a file with the name of the kit, which
//
//	npm install --package-lock-only --omit-lockfile-registry-resolved
//
// makes. A kit without such a file depends on nothing.
type kit struct {
	name      string
	Needs     map[string]string `json:"dependencies"`
	Overrides map[string]string `json:"overrides,omitempty"` // packages that npm would have to fetch from elsewhere
}

// current are the versions that a person installs today, older those that speak
// protocol 3.
func current() kit {
	return kit{name: "current", Needs: map[string]string{
		"openclaw":                   "2026.9.6",
		"@openclaw/gateway-client":   "2026.9.1",
		"@openclaw/gateway-protocol": "2026.9.1",
	}}
}

func older() kit {
	return kit{
		name: "older", Needs: map[string]string{"openclaw": "2026.3.13"},
		Overrides: map[string]string{
			"libsignal": "6.0.0",
			"cssomnom":  "npm:empty-npm-package@1.0.0",
			"linkedom":  "0.18.12",
		},
	}
}

// libraries are the libraries of model services that OpenClaw's packages do not depend on,
// or in another version.
func libraries() kit {
	return kit{name: "libraries", Needs: map[string]string{"@google/genai": "3.3.0", "ollama": "0.6.4"}}
}

func runtimeKit() kit {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return kit{name: "node", Needs: map[string]string{"node-linux-" + arch: "26.10.0"}}
}

// packages returns the directory of a kit's packages.
func packages(t testing.TB, k kit) string {
	t.Helper()
	dir, err := install(t.Context(), k)
	if err != nil {
		t.Fatalf("install %s: %v", k.name, err)
	}
	return filepath.Join(dir, "node_modules")
}

// node returns the program that runs the packages: on Linux, the npm package of
// the version that they need.
func node(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		p, err := exec.LookPath("node")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	found, err := filepath.Glob(filepath.Join(packages(t, runtimeKit()), "*", "bin", "node"))
	if err != nil || len(found) != 1 {
		t.Fatalf("node: %v, %v", found, err)
	}
	return found[0]
}

// installing serializes installation among the tests; the lock file does so
// among processes.
var installing sync.Mutex

// cacheDir contains installed packages, for all runs.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "chela-conformance")
	return dir, os.MkdirAll(dir, 0o755)
}

// install returns the directory of a kit. It runs npm if the kit is not
// installed yet.
func install(ctx context.Context, k kit) (string, error) {
	manifest, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return "", err
	}
	lockfile, err := os.ReadFile(filepath.Join("testdata", "locks", k.name+".json"))
	command := "ci"
	switch {
	case errors.Is(err, os.ErrNotExist):
		command = "install"
	case err != nil:
		return "", err
	}
	root, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, fmt.Sprintf("%s-%x", k.name, sha256.Sum256(append(lockfile, manifest...)))[:len(k.name)+13])
	done := filepath.Join(dir, "installed")

	installing.Lock()
	defer installing.Unlock()
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer lock.Unlock()
	if _, err := os.Stat(done); !errors.Is(err, os.ErrNotExist) {
		return dir, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "tmp"), 0o755),
		os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644)); err != nil {
		return "", err
	}
	if len(lockfile) > 0 {
		if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), lockfile, 0o644); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", command, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, bytes.TrimSpace(out))
	}
	return dir, os.WriteFile(done, nil, 0o644)
}
