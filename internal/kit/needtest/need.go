// Package needtest skips tests that need something this machine doesn't have, in one
// form, so that a run can list what it did not test: each such skip says "needs …".
//
// With CHELA_TEST_STRICT=1, which continuous integration sets where it has installed
// everything, such a test fails instead.
package needtest

import (
	"os"
	"os/exec"
	"testing"
)

// strictEnv makes tests fail that would be skipped.
const strictEnv = "CHELA_TEST_STRICT"

// Program returns the path of a program, or skips the test.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name)
	}
	return path
}

// Missing skips the test, or fails it if the run is strict. what is the program or the
// ability of the system that the test needs, as a noun: "user namespaces".
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(strictEnv) == "1" {
		t.Fatalf("needs %s, which this machine lacks (%s=1)", what, strictEnv)
	}
	t.Skipf("needs %s", what)
}
