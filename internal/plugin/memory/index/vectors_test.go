package index_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/plugin/memory/index"
)

// concepts is an embedder for tests: the words of a concept have the same direction.
type concepts struct {
	name string

	mu     sync.Mutex
	length int
	err    error
	refuse string // a word: texts with it are refused
	hang   bool
	notes  int // texts of notes that were embedded
}

// concept maps words to what they mean.
var concept = map[string]string{
	"router": "network", "box": "network", "nas": "host", "machine": "host", "hosts": "host", "runs": "host",
	"dentist": "teeth", "tooth": "teeth", "doctor": "teeth", "dear": "price", "cost": "price", "bill": "price",
}

func (e *concepts) Model() string { return e.name }

func (e *concepts) Embed(ctx context.Context, p memory.Purpose, texts []string) ([][]float32, error) {
	e.mu.Lock()
	err, hang, length := e.err, e.hang, e.length
	if e.refuse != "" && strings.Contains(strings.Join(texts, " "), e.refuse) {
		err = &llm.Error{Class: llm.ClassContext, Message: "input is too large to process"}
	}
	if p == memory.Document && err == nil && !hang {
		e.notes += len(texts)
	}
	e.mu.Unlock()
	if hang {
		<-ctx.Done()
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = make([]float32, length)
		for w := range strings.FieldsFuncSeq(strings.ToLower(t),
			func(r rune) bool { return (r < 'a' || r > 'z') && r < 128 }) {
			if len(w) < 3 || w == "the" || w == "that" {
				continue
			}
			if c, ok := concept[w]; ok {
				w = c
			}
			h := fnv.New64a()
			h.Write([]byte(w))
			r := rand.New(rand.NewPCG(h.Sum64(), 1))
			for j := range out[i] {
				out[i][j] += float32(r.NormFloat64())
			}
		}
		out[i][0] += 0.001
	}
	return out, nil
}

func (e *concepts) set(f func(*concepts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e)
}

func (e *concepts) embedded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.notes
	e.notes = 0
	return n
}

func newConcepts() *concepts { return &concepts{name: "test/concepts", length: 256} }

// reopen replaces the index by one with the options, over the same file.
func (v *vault) reopen(change func(*index.Options)) {
	v.t.Helper()
	if err := v.Close(); err != nil {
		v.t.Fatal(err)
	}
	o := index.Options{Workspace: v.dir, File: v.file(), Log: slog.New(slog.DiscardHandler)}
	change(&o)
	v.Index = index.New(o)
}

// withEmbedders is a vault whose index uses embedders.
func withEmbedders(t *testing.T, notes map[string]string, required bool, all ...memory.Embedder) *vault {
	v := newVault(t, notes)
	v.reopen(func(o *index.Options) {
		o.Vectors = index.Vectors{Embedders: all, Required: required, Unused: 100}
	})
	return v
}

// withConcepts opens an index with vectors again.
func withConcepts() func(*index.Options) {
	return func(o *index.Options) {
		o.Vectors = index.Vectors{Embedders: []memory.Embedder{newConcepts()}, Required: true, Unused: 100}
	}
}

func (v *vault) status() memory.Status {
	v.t.Helper()
	st, err := v.Status(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	return st
}

// bubble runs a test with its own time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

const hostQuestion = "machine that hosts my network box"

// hosted are the notes of household, and one that answers hostQuestion in other words.
func hosted() map[string]string {
	out := maps.Clone(household)
	out["memory/network.md"] = "The router runs on the NAS.\n"
	return out
}

func TestVectors(t *testing.T) {
	t.Parallel()
	bubble(t, "MEM-01 other words", func(t *testing.T) {
		v := withEmbedders(t, hosted(), true, newConcepts())
		if got := v.paths(hostQuestion); len(got) == 0 || got[0] != "memory/network.md" {
			t.Errorf("by meaning: %v", got)
		}
		st := v.status()
		if s := st.Vectors; s == nil || s.Model != "test/concepts" || s.Dimension != 256 || s.Ready != st.Chunks ||
			s.Waiting != 0 || s.Problem != "" {
			t.Errorf("status %+v of %d chunks", s, st.Chunks)
		}
		v.reopen(func(*index.Options) {})
		if got, want := fmt.Sprint(v.paths(hostQuestion), v.paths("router")),
			"[] [memory/network.md MEMORY.md]"; got != want {
			t.Errorf("by words: %s, want %s", got, want)
		}
		if v.status().Vectors != nil {
			t.Error("there are vectors without a provider")
		}
	})
	bubble(t, "MEM-02 an edited note is found by its meaning at once", func(t *testing.T) {
		e := newConcepts()
		v := withEmbedders(t, hosted(), true, e)
		v.paths("router")
		e.embedded()
		v.write("memory/garden.md", "The bill of the dentist.\n")
		time.Sleep(2 * time.Second)
		if got := v.paths("dear tooth"); len(got) == 0 || got[0] != "memory/garden.md" {
			t.Errorf("%v", got)
		}
		if n := e.embedded(); n != 1 {
			t.Errorf("%d chunks were embedded for a change of one", n)
		}
	})
	bubble(t, "MEM-05 a required provider that fails", func(t *testing.T) {
		e := newConcepts()
		e.err = errors.New("test/concepts: 500 Internal Server Error")
		v := withEmbedders(t, hosted(), true, e)
		_, err := v.Search(t.Context(), memory.Query{Text: "router"})
		if !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "500") {
			t.Errorf("error %v", err)
		}
		e.set(func(e *concepts) { e.err = nil })
		time.Sleep(time.Minute)
		if got := v.paths(hostQuestion); len(got) == 0 || got[0] != "memory/network.md" {
			t.Errorf("it works again: %v", got)
		}
	})
	bubble(t, "a provider that was chosen automatically fails", func(t *testing.T) {
		e := newConcepts()
		e.err = errors.New("test/concepts: 500 Internal Server Error")
		v := withEmbedders(t, hosted(), false, e)
		if got := v.paths("router"); len(got) != 2 {
			t.Errorf("by words: %v", got)
		}
		if s := v.status().Vectors; !strings.Contains(s.Problem, "500") || s.Ready > 0 {
			t.Errorf("status %+v", s)
		}
		e.set(func(e *concepts) { e.err = nil })
		time.Sleep(time.Minute)
		if got := v.paths(hostQuestion); len(got) == 0 || got[0] != "memory/network.md" {
			t.Errorf("it works again: %v", got)
		}
		if s := v.status().Vectors; s.Problem != "" || s.Ready == 0 {
			t.Errorf("status %+v", s)
		}
	})
	bubble(t, "a slow provider", func(t *testing.T) {
		e := newConcepts()
		e.hang = true
		v := withEmbedders(t, hosted(), false, e)
		for _, want := range []time.Duration{2 * time.Second, 0} {
			begun := time.Now()
			if got := v.paths("router"); len(got) != 2 || time.Since(begun) != want {
				t.Errorf("%v in %v, want %v", got, time.Since(begun), want)
			}
		}
		if s := v.status().Vectors; !strings.Contains(s.Problem, "no answer within 2s") {
			t.Errorf("status %+v", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v.reopen(func(o *index.Options) { o.Vectors = index.Vectors{Embedders: []memory.Embedder{e}, Required: true} })
		if _, err := v.Search(ctx, memory.Query{Text: "router"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller gives up: %v", err)
		}
		if _, err := v.Search(t.Context(), memory.Query{Text: "router"}); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
	bubble(t, "another model, and another length", func(t *testing.T) {
		e := newConcepts()
		v := withEmbedders(t, hosted(), true, e)
		v.paths("router")
		all := v.status().Chunks
		if n := e.embedded(); n != all {
			t.Errorf("%d of %d chunks were embedded", n, all)
		}
		check := func(what string, length int) {
			t.Helper()
			for range 2 { // vectors are made after the first one
				v.paths(hostQuestion)
				synctest.Wait()
				time.Sleep(2 * time.Second)
			}
			if got := v.paths(hostQuestion); len(got) == 0 || got[0] != "memory/network.md" {
				t.Errorf("%s: %v", what, got)
			}
			if n, s := e.embedded(), v.status().Vectors; n != all || s.Dimension != length ||
				s.Ready != all || s.Model != e.name {
				t.Errorf("%s: %d chunks were embedded, status %+v", what, n, s)
			}
		}
		e = &concepts{name: "test/other", length: 64}
		v.reopen(func(o *index.Options) { o.Vectors = index.Vectors{Embedders: []memory.Embedder{e}, Required: true} })
		check("another model", 64)
		e.set(func(e *concepts) { e.length = 96 })
		check("another length", 96)
	})
	bubble(t, "lengths that change all the time", func(t *testing.T) {
		e := &restless{}
		v := withEmbedders(t, hosted(), false, e)
		if got := v.paths("router"); len(got) != 2 {
			t.Errorf("%v", got)
		}
		time.Sleep(time.Second)
		if n := e.count(); n > 10 {
			t.Errorf("%d requests", n)
		}
	})
	bubble(t, "a text that the provider refuses", func(t *testing.T) {
		e := newConcepts()
		e.refuse = "Sow"
		v := withEmbedders(t, hosted(), true, e)
		v.paths("router")
		synctest.Wait()
		if got := v.paths(hostQuestion); len(got) == 0 || got[0] != "memory/network.md" {
			t.Errorf("the others by meaning: %v", got)
		}
		if got := v.paths("tomatoes in April"); len(got) == 0 || got[0] != "memory/garden.md" {
			t.Errorf("it by words: %v", got)
		}
		if st := v.status(); st.Vectors.Ready != st.Chunks-1 || st.Vectors.Waiting != 0 || st.Vectors.Problem != "" {
			t.Errorf("%+v of %d chunks", st.Vectors, st.Chunks)
		}
		e.embedded()
		v.write("memory/copy.md", household["memory/garden.md"])
		v.write("memory/garden.md", "")
		time.Sleep(2 * time.Second)
		if got := v.paths("tomatoes in April"); len(got) == 0 || got[0] != "memory/copy.md" || e.embedded() != 0 {
			t.Errorf("it moved: %v", got)
		}
	})
	bubble(t, "a fallback", func(t *testing.T) {
		first, second := newConcepts(), &concepts{name: "test/second", length: 128}
		v := withEmbedders(t, hosted(), true, first, second)
		v.paths("router")
		first.set(func(e *concepts) { e.err = errors.New("down") })
		for range 2 {
			if got := v.paths("router"); len(got) == 0 || got[0] != "memory/network.md" {
				t.Errorf("%v", got)
			}
			time.Sleep(2 * time.Second)
		}
		if s := v.status().Vectors; s.Model != "test/second" || s.Dimension != 128 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if got := v.paths(hostQuestion); len(got) == 0 || got[0] != "memory/network.md" {
			t.Errorf("%v", got)
		}
	})
	bubble(t, "vectors are kept for texts that return", func(t *testing.T) {
		e := newConcepts()
		v := withEmbedders(t, hosted(), true, e)
		v.paths("router")
		e.embedded()
		text := household["memory/garden.md"]
		for _, c := range []struct {
			name, note, text string
			want             int
		}{
			{"a copy", "memory/copy.md", text, 0},
			{"one section changes", "memory/garden.md", strings.Replace(text, "April", "May", 1), 1},
			{"it changes back", "memory/garden.md", text, 0},
			{"it is emptied", "memory/garden.md", "", 0},
			{"the copy, too", "memory/copy.md", "", 0},
			{"the texts return", "memory/again.md", text, 0},
		} {
			v.write(c.note, c.text)
			time.Sleep(2 * time.Second)
			v.paths("hedge")
			if n := e.embedded(); n != c.want {
				t.Errorf("%s: %d texts were embedded, want %d", c.name, n, c.want)
			}
		}
		if got := v.paths("hedge"); fmt.Sprint(got) != "[memory/again.md]" {
			t.Errorf("%v", got)
		}
		v.reopen(func(o *index.Options) { o.Vectors = index.Vectors{Embedders: []memory.Embedder{e}} })
		v.write("memory/again.md", "")
		v.paths("hedge")
		v.write("memory/garden.md", text)
		time.Sleep(2 * time.Second)
		v.paths("hedge")
		if n := e.embedded(); n == 0 {
			t.Error("nothing is kept, but the vectors are there")
		}
	})
	bubble(t, "a search does not wait for many vectors", func(t *testing.T) {
		notes := map[string]string{}
		for i := range 100 {
			notes[fmt.Sprintf("memory/%03d.md", i)] = fmt.Sprintf("The router number %d.\n", i)
		}
		e := newConcepts()
		v := withEmbedders(t, notes, false, e)
		if got := v.find("router number 77"); len(got) == 0 || got[0].Path != "memory/077.md" {
			t.Errorf("%+v", got)
		}
		synctest.Wait()
		if s := v.status().Vectors; s.Ready != 100 {
			t.Errorf("%+v", s)
		}
	})
}

// restless is an embedder whose vectors never have the same length.
type restless struct {
	mu sync.Mutex
	n  int
}

func (*restless) Model() string { return "test/restless" }

func (e *restless) Embed(_ context.Context, _ memory.Purpose, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = make([]float32, 10+e.n)
		out[i][0] = 1
	}
	return out, nil
}

func (e *restless) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n
}

func TestRanking(t *testing.T) {
	t.Parallel()
	bubble(t, "MEM-06 nearly the same notes", func(t *testing.T) {
		same := "Met Vera about the project Lumen: she wants the prototype in May, with the blue housing and the long cable."
		v := newVault(t, map[string]string{
			"memory/2000-01-01.md": same + "\n", "memory/2000-01-02.md": same + " Again.\n",
			"memory/budget.md": "Vera pays the prototype of the project Lumen from a budget of 40,000 that the board agreed on in winter, before the new prices of steel were known to anybody, and long after the first offers of the three suppliers had come in.\n",
		})
		question := "What about Vera and the project Lumen and the prototype?"
		top := func() string { return fmt.Sprint(v.paths(question)[:2]) }
		if got := top(); strings.Count(got, "2000-01-0") != 1 {
			t.Errorf("both are first: %s", got)
		}
		v.reopen(func(o *index.Options) {
			r := index.DefaultRanking()
			r.Diversity = false
			o.Ranking = &r
		})
		if got := top(); strings.Count(got, "2000-01-0") != 2 {
			t.Errorf("switched off: %s", got)
		}
	})
	bubble(t, "MEM-07 newer daily notes first", func(t *testing.T) {
		v := newVault(t, map[string]string{
			"memory/1999-11-02.md": "The code of the gate is 4071.\n", "memory/1999-12-31.md": "The code of the gate is 8812.\n",
			"MEMORY.md": "The code of the gate is 5555.\n",
		})
		if got := v.paths("the code of the gate"); fmt.Sprint(got) !=
			"[MEMORY.md memory/1999-12-31.md memory/1999-11-02.md]" {
			t.Errorf("%v", got)
		}
		if got := v.find("the code of the gate"); len(got) != 3 || got[2].Score < 0.9 {
			t.Errorf("an old note has lost its score: %+v", got)
		}
		v.reopen(func(o *index.Options) {
			r := index.DefaultRanking()
			r.Decay, r.Diversity = false, false
			o.Ranking = &r
		})
		// all are equal: in the order of their paths
		if got := v.paths("the code of the gate"); got[1] != "memory/1999-11-02.md" {
			t.Errorf("switched off: %v", got)
		}
	})
	bubble(t, "by vectors alone", func(t *testing.T) {
		v := newVault(t, household)
		v.reopen(func(o *index.Options) {
			r := index.DefaultRanking()
			r.VectorsAlone = true
			o.Ranking, o.Vectors = &r, index.Vectors{Embedders: []memory.Embedder{newConcepts()}}
		})
		hits := v.find("router machine")
		if len(hits) == 0 || hits[0].Path != "MEMORY.md" || hits[0].Score > 0.95 {
			t.Errorf("%+v", hits)
		}
	})
}
