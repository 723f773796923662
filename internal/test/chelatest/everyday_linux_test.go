//go:build conformance

package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// TestEveryday runs the commands of a working day in a used project, with the
// default configuration. They were collected by a person who did not know the
// program.
func TestEveryday(t *testing.T) {
	for _, name := range []string{"git", "go", "make", "python3"} {
		needtest.Program(t, name)
	}
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	prepare(t, filepath.Join("testdata", "everyday", "setup.sh"), ws, "HOME="+home)
	g := Start(t, Options{
		Dir: home, Model: executes(), Dial: noHosts, Environ: []string{"PATH=" + os.Getenv("PATH"), "GOTOOLCHAIN=local"},
		Config: Config{"agents.defaults": json.RawMessage(`{"skipBootstrap": true}`),
			"tools.exec": json.RawMessage(`{"backgroundMs": 600000}`)},
	})
	c := g.Client()
	ran, asks := 0, 0
	for _, l := range corpus(t, filepath.Join("testdata", "everyday", "commands.tsv"), 2) {
		marks := strings.Split(l.marks, ",")
		if slices.Contains(marks, "net") {
			continue // it shows nothing without a network
		}
		ran++
		asked, answer := c.execute("s"+l.id, l.command, wire.AllowOnce)
		if len(asked) > 0 {
			asks++
			t.Logf("%s asks %q: %s: %q", l.id, l.marks, l.command, asked[0].Request.Reason)
		}
		failed := strings.Contains(answer, "exit code ") || !strings.HasPrefix(answer, "got: ")
		if strings.Contains(answer, "exit code 127") && slices.Contains(marks, "missing-ok") {
			failed = false
		}
		if want := slices.Contains(marks, "fails"); failed != want {
			t.Errorf("%s %s: fails: %v, want %v: %s", l.id, l.command, failed, want, answer)
		}
	}
	t.Logf("%d of %d commands ask", asks, ran)
	if ran < 90 || asks*20 > ran {
		t.Errorf("%d of %d commands ask, want at most 5 %% of at least 90", asks, ran)
	}
}
