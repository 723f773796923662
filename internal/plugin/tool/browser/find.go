package browser

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// programs are the names of Chromium and its relatives, best first.
var programs = [...]string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
	"brave-browser", "microsoft-edge", "microsoft-edge-stable"}

// places returns where the programs are installed outside of PATH.
func places(environ []string) []string {
	switch runtime.GOOS {
	case "darwin":
		var out []string
		for _, name := range [...]string{"Google Chrome", "Chromium", "Brave Browser", "Microsoft Edge"} {
			for _, dir := range [...]string{"/Applications", filepath.Join(sandbox.Variable(environ, "HOME"), "Applications")} {
				out = append(out, filepath.Join(dir, name+".app", "Contents", "MacOS", name))
			}
		}
		return out
	case "linux":
		return []string{"/usr/lib/chromium/chromium", "/opt/google/chrome/chrome", "/snap/bin/chromium"}
	}
	return nil
}

// expand returns a path of the configuration, in which ~/ stands for the home folder.
func expand(path string, environ []string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(sandbox.Variable(environ, "HOME"), rest)
	}
	return path
}

// errNone says that there is no Chromium.
var errNone = errors.New("no Chromium or Chrome was found; looked in PATH for " + strings.Join(programs[:], ", ") +
	". Install one, for example with: apt install chromium. Or name it: chela config set browser.executablePath /path/to/chromium")

// Check returns the path of the browser that the default profile uses, or why there is none.
func Check(c *Config, environ []string) (string, error) {
	_, p, err := c.profile("")
	if err != nil {
		return "", err
	}
	path, err := Find(p.Executable, environ)
	if err != nil {
		return "", err
	}
	return path, problem(c)
}

// Find returns the path of the browser that is used; configured: its path in the
// configuration, if any.
func Find(configured string, environ []string) (string, error) {
	if configured != "" {
		path := expand(configured, environ)
		if info, err := os.Stat(path); err != nil || info.IsDir() || !filepath.IsAbs(path) {
			return "", errors.New("browser.executablePath: " + configured +
				" is not a program; correct it, or remove it with: chela config unset browser.executablePath")
		}
		return path, nil
	}
	look := sandbox.Look(environ)
	for _, name := range programs {
		if path := look(name); path != "" {
			return path, nil
		}
	}
	for _, path := range places(environ) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", errNone
}
