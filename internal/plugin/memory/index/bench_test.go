package index_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/plugin/memory/index"
)

// largeVault returns a workspace with n chunks in notes of some.
func largeVault(tb testing.TB, n, some int) string {
	dir := tb.TempDir()
	r := rand.New(rand.NewPCG(1, 1))
	word := func() string { return fmt.Sprintf("w%d", int(r.ExpFloat64()*2000)) }
	if err := os.MkdirAll(filepath.Join(dir, "memory"), 0o700); err != nil {
		tb.Fatal(err)
	}
	for i := range n / some {
		var b strings.Builder
		for j := range some {
			fmt.Fprintf(&b, "## Section %d\n\n", j)
			for range 12 {
				for range 12 {
					b.WriteString(word() + " ")
				}
				b.WriteString("家里的空调\n")
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "memory", fmt.Sprintf("note-%05d.md", i)),
			[]byte(b.String()), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// random is an embedder with vectors of any direction, the same for the same text.
type random struct{ length int }

func (random) Model() string { return "random" }

func (e random) Embed(_ context.Context, _ memory.Purpose, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		r := rand.New(rand.NewPCG(uint64(len(t)), uint64(t[len(t)/2])))
		out[i] = make([]float32, e.length)
		for j := range out[i] {
			out[i][j] = float32(r.NormFloat64())
		}
	}
	return out, nil
}

const benchQuestion = "where did we put the w120 and w2800 and w15 of the 空调 w5500?"

func open(b *testing.B, dir string, v index.Vectors) *index.Index {
	x := index.New(index.Options{Workspace: dir, File: filepath.Join(dir, "cache", "memory.db"), Vectors: v,
		Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(func() { _ = x.Close() })
	if _, err := x.Search(context.Background(), memory.Query{Text: "w1"}); err != nil {
		b.Fatal(err)
	}
	for {
		st, err := x.Status(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if st.Vectors == nil || st.Vectors.Waiting == 0 {
			return x
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func search(b *testing.B, x *index.Index) {
	for b.Loop() {
		if _, err := x.Search(context.Background(), memory.Query{Text: benchQuestion}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIndex has 10,000 chunks in 2,000 notes: words and hybrid are searches when no
// note was changed, build is the first build.
func BenchmarkIndex(b *testing.B) {
	dir := largeVault(b, 10_000, 5)
	b.Run("words", func(b *testing.B) { search(b, open(b, dir, index.Vectors{})) })
	b.Run("hybrid",
		func(b *testing.B) { search(b, open(b, dir, index.Vectors{Embedders: []memory.Embedder{random{1536}}})) })
	b.Run("build", func(b *testing.B) {
		x := open(b, dir, index.Vectors{})
		for b.Loop() {
			if err := x.Rebuild(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFiles has 10,000 notes: unchanged is a comparison of all of them, change one
// after a note was changed.
func BenchmarkFiles(b *testing.B) {
	dir := largeVault(b, 10_000, 1)
	x := open(b, dir, index.Vectors{})
	compare := func(b *testing.B) {
		if _, err := x.Status(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			compare(b)
		}
	})
	b.Run("change", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := os.WriteFile(filepath.Join(dir, "memory", "note-00007.md"),
				fmt.Appendf(nil, "a change %d\n", i), 0o600); err != nil {
				b.Fatal(err)
			}
			compare(b)
		}
	})
}

// BenchmarkResident has 50,000 chunks with vectors. It reports the memory of the process
// with the index in use and after it was closed, besides that of a process that has used a
// small index.
func BenchmarkResident(b *testing.B) {
	small := largeVault(b, 100, 10)
	open(b, small, index.Vectors{Embedders: []memory.Embedder{random{1536}}}).Close()
	dir := largeVault(b, 50_000, 10)
	debug.FreeOSMemory()
	before := resident(b)
	open(b, dir, index.Vectors{Embedders: []memory.Embedder{random{1536}}}).Close()
	x := open(b, dir, index.Vectors{Embedders: []memory.Embedder{random{1536}}})
	search(b, x)
	debug.FreeOSMemory()
	b.ReportMetric(float64(resident(b)-before)/1e6, "MB-open")
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	debug.FreeOSMemory()
	b.ReportMetric(float64(resident(b)-before)/1e6, "MB-closed")
}

// resident returns the resident memory of this process in bytes, without files that are
// mapped, such as the program.
func resident(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("the resident memory is not known here")
	}
	var all, in, files int64
	if _, err := fmt.Sscan(string(text), &all, &in, &files); err != nil {
		b.Fatal(err)
	}
	return (in - files) * int64(os.Getpagesize())
}
