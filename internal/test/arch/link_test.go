package arch

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoMethodByName reads the linker's dependency dump. If one reachable function
// looks up a method by name at run time, as text/template does, the linker keeps
// all exported methods of all reachable types.
func TestNoMethodByName(t *testing.T) {
	if testing.Short() {
		t.Skip("links the binary")
	}
	cmd := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "chela"), "./cmd/chela")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var deps bytes.Buffer
	cmd.Stdout, cmd.Stderr = &deps, &deps
	if err := cmd.Run(); err != nil {
		t.Fatalf("go build: %v\n%s", err, deps.Bytes()[:min(deps.Len(), 2000)])
	}
	sc := bufio.NewScanner(&deps)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if strings.Contains(sc.Text(), "<ReflectMethod>") {
			t.Errorf("a method is looked up by name at run time: %s", sc.Text())
		}
	}
}
