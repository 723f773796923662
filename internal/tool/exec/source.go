package exec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/shell"
)

// maxSource bounds the files that are read; of a longer one its size and when
// it was changed stand for its content.
const maxSource = 4 << 20

// source is a file whose content says what a command does.
type source struct{ path, sum string }

// sources looks at the files of a plan as they are now: who allows the command
// allows what is in them.
func sources(sp shell.Plan, dir string) []source {
	var out []source
	for _, name := range operands(sp) {
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(name, "~/") {
			name = filepath.Join(home, name[2:])
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if sum, err := content(name); err == nil {
			out = append(out, source{name, sum})
		}
	}
	return out
}

// content identifies what is in a file.
func content(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", os.ErrInvalid // reading it may wait, or change something
	}
	h := sha256.New()
	if info.Size() > maxSource {
		fmt.Fprintf(h, "%d bytes of %d", info.Size(), info.ModTime().UnixNano())
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, io.LimitReader(f, maxSource)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// bound is the hash of a plan together with the content of its files.
func bound(hash string, files []source) string {
	if len(files) == 0 {
		return hash
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %s\x00", f.sum, f.path)
	}
	return hash + "." + hex.EncodeToString(h.Sum(nil))
}
