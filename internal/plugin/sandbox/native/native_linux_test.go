package native_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

func TestMain(m *testing.M) {
	if code, ok := sandboxtest.Act(); ok {
		os.Exit(code)
	}
	if len(os.Args) == 5 && os.Args[1] == peerArg {
		os.Exit(actPeer(os.Args[2], os.Args[3], os.Args[4]))
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
func BenchmarkPlain(b *testing.B) { benchmark(b, host.Broker{}, func() {}) }

// BenchmarkWork is a command that can change the workspace, with a cage ready.
func BenchmarkWork(b *testing.B) {
	br := newBroker(b)
	benchmark(b, br, br.Settle, sandbox.Rights{Write: true})
}

// BenchmarkLook is a command that cannot, with a cage ready.
func BenchmarkLook(b *testing.B) {
	br := newBroker(b)
	benchmark(b, br, br.Settle, sandbox.Rights{})
}

// BenchmarkInTurn is a command that looks after one that works, and the other way
// round, with a pause before each in which a cage is made ready.
func BenchmarkInTurn(b *testing.B) {
	br := newBroker(b)
	benchmark(b, br, br.Settle, sandbox.Rights{}, sandbox.Rights{Write: true})
}

// BenchmarkRow is a command right after another.
func BenchmarkRow(b *testing.B) { benchmark(b, newBroker(b), func() {}, sandbox.Rights{Write: true}) }

// BenchmarkCold is a command that waits for its cage.
func BenchmarkCold(b *testing.B) {
	br := newBroker(b)
	benchmark(b, br, func() {
		br.Settle()
		br.Forget()
	}, sandbox.Rights{Write: true})
}

// BenchmarkFirst is the first command of a process, before which the sandbox is
// tried out.
func BenchmarkFirst(b *testing.B) {
	for b.Loop() {
		br := newBroker(b)
		if level := br.Level(b.Context()); !level.Complete {
			b.Fatal(level)
		}
		runTrue(b, br, b.TempDir(), &sandbox.Rights{Write: true})
		b.StopTimer()
		br.Close()
		b.StartTimer()
	}
}

// benchmark runs commands, with each of the rights in turn; without rights, they
// are not confined.
func benchmark(b *testing.B, br sandbox.Broker, before func(), rights ...sandbox.Rights) {
	dir := b.TempDir()
	var times []time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		before()
		var r *sandbox.Rights
		if len(rights) > 0 {
			r = &rights[n%len(rights)]
		}
		b.StartTimer()
		start := time.Now()
		runTrue(b, br, dir, r)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
}

func runTrue(b *testing.B, br sandbox.Broker, dir string, r *sandbox.Rights) {
	p := sandbox.Plan{Path: "/bin/true", Argv: []string{"true"}, Dir: dir, Env: []string{"PATH=/bin"}, Rights: r}
	if r != nil {
		r.Workspace = dir
	}
	var out bytes.Buffer
	pr, err := br.Start(b.Context(), p, &out)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := pr.Wait(); err != nil {
		b.Fatal(err)
	}
}
