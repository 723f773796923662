package archtest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoMethodByName reads what the linker kept. One reachable lookup of a
// method by its name at run time (text/template does one) stops the linker from
// dropping unused methods everywhere.
func TestNoMethodByName(t *testing.T) {
	if testing.Short() {
		t.Skip("links the binary")
	}
	cmd := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "chela"), "./cmd/chela")
	cmd.Dir = filepath.Join("..", "..")
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
			t.Errorf("a method is found by name at run time: %s", sc.Text())
		}
	}
}
