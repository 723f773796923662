package skillsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/skill"
)

// TestPasswords checks that an address with a password is refused, and not shown.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://a:hidden@x.example/r", "https://hidden@x.example/r",
		"ssh://a:hidden@x.example/r"} {
		o := skill.Origin{Source: Git, From: address}
		err := (&Fetcher{}).Fetch(t.Context(), filepath.Join(t.TempDir(), "to"), &o)
		if err == nil || !strings.Contains(err.Error(), "must not have a password") ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v", err)
		}
	}
	o := skill.Origin{Source: Git, From: "ssh://git@x.example/r"}
	if err := (&Fetcher{}).Fetch(t.Context(), filepath.Join(t.TempDir(), "to"), &o); err == nil ||
		!strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("a user without a password: %v", err)
	}
}

// TestLimitSize checks that a repository that grows too large ends its clone.
func TestLimitSize(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clone")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := limitSize(t.Context(), dir, 10)
		grow := func(name string) {
			t.Helper()
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 6), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * lookSize)
		}
		time.Sleep(time.Second) // there is no folder yet
		if grow("a"); ctx.Err() != nil {
			t.Error("a small folder ends it")
		}
		if grow("b"); ctx.Err() == nil {
			t.Error("a large folder does not end it")
		}
		if err := stop(); err == nil || err.Error() != "it has more than 10 bytes" {
			t.Error(err)
		}
		if _, stop := limitSize(t.Context(), t.TempDir(), 10); stop() != nil {
			t.Error("an empty folder is too large")
		}
	})
}
