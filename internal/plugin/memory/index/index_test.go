package index_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/plugin/memory/index"
)

// vault is a workspace with an index.
type vault struct {
	*index.Index
	t   *testing.T
	dir string
}

func newVault(t *testing.T, notes map[string]string) *vault {
	v := &vault{t: t, dir: t.TempDir()}
	for name, text := range notes {
		v.write(name, text)
	}
	v.Index = index.New(index.Options{Workspace: v.dir, File: v.file(), Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func (v *vault) file() string { return filepath.Join(v.dir, "cache", "memory.db") }

func (v *vault) write(name, text string) {
	v.t.Helper()
	name = filepath.Join(v.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vault) find(q string) []memory.Hit {
	v.t.Helper()
	hits, err := v.Search(context.Background(), memory.Query{Text: q})
	if err != nil {
		v.t.Fatal(err)
	}
	return hits
}

// paths returns the notes that are found, the best one first.
func (v *vault) paths(q string) []string {
	v.t.Helper()
	out := []string{}
	for _, h := range v.find(q) {
		out = append(out, h.Path)
	}
	return out
}

var household = map[string]string{
	"MEMORY.md":                "# Memory\n\n- The router runs on the NAS in the cellar.\n- Anna is allergic to peanuts.\n",
	"memory/2026-01-10.md":     "# Saturday\n\nRepaired the washing machine with Tom; the filter was blocked.\n",
	"memory/2026-02-03-tax.md": "The tax adviser wants the receipts until the end of March.\n",
	"memory/garden.md":         "# Garden\n\n## Tomatoes\nSow the tomatoes in April.\n\n## Hedge\nCut the hedge in autumn, never between March and September.\n",
	"memory/chinese.md":        "# 家里\n\n## 空调\n修空调的王师傅,电话 13800138000。\n\n## 钥匙\n备用钥匙在鞋柜里。\n",
	"memory/projects/lumen.md": "We decided that Vera leads the project Lumen.\n",
	"memory/notes.txt":         "tomatoes in a text file\n",
	"memory/.hidden/secret.md": "tomatoes in a hidden folder\n",
	"workspace-file.md":        "tomatoes in another file\n",
}

func TestSearch(t *testing.T) {
	t.Parallel()
	v := newVault(t, household)
	for _, c := range []struct{ name, question, want string }{
		{"MEM-01 a word", "router", "MEMORY.md"},
		{"a question", "Where was the router again?", "MEMORY.md"},
		{"another form", "what did I repair with Tom", "memory/2026-01-10.md"},
		{"a heading", "tomatoes", "memory/garden.md"},
		{"the name of a file", "tax", "memory/2026-02-03-tax.md"},
		{"a folder", "lumen", "memory/projects/lumen.md"},
		{"a shorter form", "repairs of washing machines", "memory/2026-01-10.md"},
		{"MEM-08 two characters", "空调", "memory/chinese.md"},
		{"MEM-08 a question in Chinese", "修空调的师傅电话是多少?", "memory/chinese.md"},
		{"another language", "where are the keys", "memory/chinese.md"},
		{"another form of a known word", "allergy to peanuts", "MEMORY.md"},
		{"one character", "鞋", "memory/chinese.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := v.find(c.question)
			if len(got) == 0 || got[0].Path != c.want {
				t.Errorf("%q: %+v, want %s", c.question, got, c.want)
			}
		})
	}
	for _, q := range []string{"", "the", "Where does my passport expire?", "护照号码是多少", "!!! ???",
		strings.Repeat("x", 100_000), `" OR "tax`, "NEAR(a b)"} {
		if got := v.paths(q); len(got) > 0 && !strings.Contains(q, "tax") {
			t.Errorf("%.40q: %v", q, got)
		}
	}
	if got := v.find("when to cut the hedge")[0]; got.First != 6 || got.Last != 7 ||
		!strings.HasPrefix(got.Snippet, "## Hedge\nCut the hedge") {
		t.Errorf("%+v", got)
	}
}

// TestOtherWords is about questions in other words than those of the note.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	v := newVault(t, map[string]string{
		"memory/lamp.md": "Bought the lamp in Feb.\n",
		"memory/sale.md": "The sofa was 12 % less.\n",
		"memory/oven.md": "烤箱 180°。\n",
		"memory/dog.md":  "Our puppy chews slippers.\n",
		"memory/pass.md": "护照 2031 年到期。\n",

		"memory/gym.md": "Physio on the third floor.\n",
	})
	for question, want := range map[string]string{
		"when did we buy the lamp":     "memory/lamp.md",
		"lamp february":                "memory/lamp.md",
		"what percentage for the sofa": "memory/sale.md",
		"how many degrees":             "memory/oven.md",
		"dog":                          "memory/dog.md",
		"狗":                            "memory/dog.md",
		"my passport":                  "memory/pass.md",

		"floor of the physiotherapy": "memory/gym.md",
		"the piano of the neighbour": "",
	} {
		if got := strings.Join(v.paths(question), " "); got != want {
			t.Errorf("%q: %s, want %s", question, got, want)
		}
	}
}

func TestFollowsFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := newVault(t, household)
		if got := v.paths("submarine"); len(got) > 0 {
			t.Errorf("before: %v", got)
		}
		wait := func() { time.Sleep(1100 * time.Millisecond) } // files are not compared again within a second
		v.write("memory/garden.md", "# Garden\n\nA submarine in the pond.\n")
		v.write("memory/new.md", "The yellow zeppelin.\n")
		wait()
		if got := fmt.Sprint(v.paths("submarine"), v.paths("zeppelin"), v.paths("hedge")); got !=
			"[memory/garden.md] [memory/new.md] []" {
			t.Errorf("MEM-02 after an edit: %s", got)
		}
		if err := os.Remove(filepath.Join(v.dir, "memory", "new.md")); err != nil {
			t.Fatal(err)
		}
		wait()
		if got := v.paths("zeppelin"); len(got) > 0 {
			t.Errorf("deleted: %v", got)
		}
		if err := os.RemoveAll(filepath.Join(v.dir, "cache")); err != nil {
			t.Fatal(err)
		}
		if err := v.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := v.paths("submarine"); len(got) != 1 {
			t.Errorf("rebuilt: %v", got)
		}
	})
}

func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not a database": strings.Repeat("garbage ", 1000), "empty": "", "short": "SQLite format 3\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, household)
			v.write("cache/memory.db", text)
			if got := v.paths("router"); len(got) != 1 {
				t.Errorf("%v", got)
			}
		})
	}
	t.Run("overwritten after it was used", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, household)
		v.paths("router")
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(v.file())
		if err != nil {
			t.Fatal(err)
		}
		for i := 4096; i < len(b); i++ {
			b[i] = 0xaa
		}
		v.write("cache/memory.db", string(b))
		w := newVault(t, household)
		w.write("cache/memory.db", string(b))
		if got := w.paths("router"); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}
