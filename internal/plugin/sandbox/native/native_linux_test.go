package native_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

func TestMain(m *testing.M) {
	if code, ok := sandboxtest.Act(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func newBroker(t testing.TB) *native.Broker {
	t.Helper()
	sandboxtest.NeedsNamespaces(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	b := native.New(native.Options{Home: home, Layers: t.TempDir()})
	t.Cleanup(b.Close)
	return b
}

func TestConformance(t *testing.T) {
	sandboxtest.Run(t, newBroker(t), sandboxtest.Options{Confined: true, Variables: []string{
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "TMPDIR",
	}})
}

// BenchmarkPlain is the command of the other benchmarks outside of a cage.
func BenchmarkPlain(b *testing.B) { benchmark(b, host.Broker{}, nil, func() {}) }

// BenchmarkTrue is a command with a cage ready.
func BenchmarkTrue(b *testing.B) {
	br := newBroker(b)
	benchmark(b, br, &sandbox.Rights{Write: true}, br.Settle)
}

// BenchmarkRow is a command right after another.
func BenchmarkRow(b *testing.B) { benchmark(b, newBroker(b), &sandbox.Rights{Write: true}, func() {}) }

// BenchmarkCold is a command that waits for its cage.
func BenchmarkCold(b *testing.B) {
	br := newBroker(b)
	benchmark(b, br, &sandbox.Rights{Write: true}, func() {
		br.Settle()
		br.Forget()
	})
}

func benchmark(b *testing.B, br sandbox.Broker, rights *sandbox.Rights, before func()) {
	p := sandbox.Plan{Path: "/bin/true", Argv: []string{"true"}, Dir: b.TempDir(), Env: []string{"PATH=/bin"}, Rights: rights}
	if rights != nil {
		rights.Workspace = p.Dir
	}
	for b.Loop() {
		b.StopTimer()
		before()
		b.StartTimer()
		var out bytes.Buffer
		pr, err := br.Start(b.Context(), p, &out)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := pr.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
