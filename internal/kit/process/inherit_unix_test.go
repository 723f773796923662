//go:build unix

package process_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/process"
)

// inheriting is set in a process that was started with descriptors.
const inheriting = "CHELA_TEST_INHERITING"

// TestKeepDescriptors starts a program from a process that was started with a
// descriptor.
func TestKeepDescriptors(t *testing.T) {
	list := func() string {
		out, err := exec.Command("/bin/sh", "-c",
			"for fd in 0 1 2 3 4; do if { true <&$fd; } 2>/dev/null; then echo $fd; fi; done").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	if os.Getenv(inheriting) != "" {
		if got := list(); got != "0 1 2 3 4" {
			t.Errorf("before: %s", got)
		}
		process.KeepDescriptors()
		if got := list(); got != "0 1 2" {
			t.Errorf("after: %s", got)
		}
		if _, err := os.NewFile(3, "three").Stat(); err != nil {
			t.Errorf("this process has lost its own: %v", err)
		}
		return
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKeepDescriptors$", "-test.v")
	cmd.Env = append(os.Environ(), inheriting+"=1")
	cmd.ExtraFiles = []*os.File{file, file}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
