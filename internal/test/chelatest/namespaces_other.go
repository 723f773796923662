//go:build !linux

package chelatest

import "testing"

// needsNamespaces skips a test of confined commands where there can be none.
func needsNamespaces(t testing.TB) {
	t.Helper()
	t.Skip("commands cannot be confined on this system")
}
