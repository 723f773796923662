//go:build unix

package host_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

func TestConformance(t *testing.T) {
	o := sandboxtest.Options{Variables: []string{"CHELA_RUN"}}
	if runtime.GOOS != "linux" {
		o.Survives = "descendants are found by process group only"
	}
	sandboxtest.Run(t, host.Broker{}, o)
}

func BenchmarkTrue(b *testing.B) {
	p := sandbox.Plan{Path: "/bin/true", Argv: []string{"true"}, Dir: b.TempDir(), Env: []string{"PATH=/bin"}}
	for b.Loop() {
		var out bytes.Buffer
		pr, err := host.Broker{}.Start(b.Context(), p, &out)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := pr.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
