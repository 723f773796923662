package chelatest

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
)

// needsNamespaces skips a test of confined commands where there can be none.
func needsNamespaces(t testing.TB) {
	t.Helper()
	sandboxtest.NeedsNamespaces(t)
}
