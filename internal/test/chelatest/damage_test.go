package chelatest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/page"
	"github.com/chela-ai/chela/wire"
)

// dbFiles is the content of the files of a database, by the end of their names.
type dbFiles map[string][]byte

func (s dbFiles) write(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(memoryDir(t), "chela.db")
	for suffix, b := range s {
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

const damageEnv = "CHELA_TEST_DAMAGE" // number of copies; set by `make damage`

// TestDamage damages 20 copies of a database (or CHELA_TEST_DAMAGE) at a random place of
// its file, its log or the log's index. The damage is reported at the start, when the
// database is read, or by the check in the background. Otherwise every row is unchanged,
// because the place was not in use.
func TestDamage(t *testing.T) {
	t.Parallel()
	copies := 20
	if s := os.Getenv(damageEnv); s != "" {
		var err error
		if copies, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	var bases []dbFiles
	var rows []string
	for _, s := range usedDatabase(t) {
		d, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.write(t)})
		if err == nil {
			err = errors.Join(d.View(t.Context(), readAll), d.Check(t.Context()), d.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		bases, rows = append(bases, s), append(rows, rowsOf(t, s))
	}
	found := make(map[string]int)
	var mu sync.Mutex
	t.Run("copy", func(t *testing.T) {
		for n := range copies {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				base := min(n%4, 1) // the log replaces most pages of the first
				s, what := damage(rand.New(rand.NewPCG(uint64(n), 1)), bases[base])
				when := whenFound(t, s, rows[base])
				mu.Lock()
				defer mu.Unlock()
				found[when]++
				if when == "never" {
					t.Errorf("%s: a row is different, and it was not noticed", what)
				}
			})
		}
	})
	t.Logf("%d copies, damage found: %v", copies, found)
	if os.Getenv(damageEnv) == "" {
		return // few copies: what they show is chance
	}
	for _, when := range []string{"at the start", "when it was read", "by the check"} {
		if found[when] == 0 {
			t.Errorf("no damage was found %s", when)
		}
	}
	if found["not, and no row is different"] > copies/2 {
		t.Error("most of the damage was in unused places")
	}
}

// whenFound returns when the damage to a database is found.
func whenFound(t *testing.T, s dbFiles, rows string) string {
	d, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.write(t)})
	if err != nil {
		return "at the start"
	}
	defer d.Close()
	when := "when it was read"
	if err = d.View(t.Context(), readAll); err == nil {
		err, when = d.Check(t.Context()), "by the check"
	}
	switch {
	case err == nil && rowsOf(t, s) == rows:
		return "not, and no row is different"
	case err == nil:
		return "never"
	case !errors.As(err, new(*sqlite.DamagedError)):
		t.Errorf("found %s, but reported as %v", when, err)
	case d.Update(t.Context(), store.Ordered, func(store.Tx) error { return nil }) == nil:
		t.Errorf("found %s, but a commit was accepted", when)
	}
	return when
}

// damage returns a damaged copy of the files and a description of the damage.
func damage(rnd *rand.Rand, s dbFiles) (dbFiles, string) {
	s = maps.Clone(s)
	suffix := [...]string{"", "", "", "", "", "", "", "-wal", "-wal", "-shm"}[rnd.IntN(10)]
	if s[suffix] == nil {
		suffix = ""
	}
	b := bytes.Clone(s[suffix])
	s[suffix] = b
	at := rnd.IntN(len(b))
	for b[at] == 0 { // most unused places are zero
		at = rnd.IntN(len(b))
	}
	block := b[at/512*512:]
	block = block[:min(len(block), 512<<rnd.IntN(4))]
	kind := [...]string{"a flipped bit", "a flipped bit", "a flipped bit", "zeros", "noise", "another block",
		"a missing end"}[rnd.IntN(7)]
	switch kind {
	case "a flipped bit":
		b[at] ^= 1 << rnd.IntN(8)
	case "zeros":
		clear(block)
	case "noise":
		for i := range block {
			block[i] = byte(rnd.Uint32())
		}
	case "another block":
		copy(block, b[rnd.IntN(len(b)/512)*512:])
	case "a missing end":
		s[suffix] = b[:at]
	}
	return s, fmt.Sprintf("%s at %d of chela.db%s", kind, at, suffix)
}

// readAll reads all tables through the store.
func readAll(r store.Reader) error {
	sessions, _, err := r.Sessions().List(session.Query{Limit: 1000})
	for _, m := range sessions {
		_, err1 := r.Sessions().Entries(m.ID, 0, 0)
		_, err2 := r.Sessions().Past(m.Key)
		_, err3 := r.Queue().Waiting(m.Key)
		_, err4 := r.Calls().OpenDetached(m.Key)
		err = errors.Join(err, err1, err2, err3, err4)
	}
	_, err1 := r.Queue().Deferred()
	_, err2 := r.Calls().Recent(session.CallQuery{Limit: 1000})
	_, err3 := r.Runs().Active("")
	_, err4 := r.Approvals().Pending("")
	_, err5 := r.Approvals().Decided("", 1000)
	_, err6 := r.Outbox().Open(0)
	_, err7 := r.Usage().Sums(usage.Query{})
	_, err8 := r.Devices().Devices()
	_, err9 := r.Children().Recent(1000)
	_, err10 := r.Media()
	return errors.Join(err, err1, err2, err3, err4, err5, err6, err7, err8, err9, err10)
}

// rowsOf reads all rows of a database without SQLite. It omits the definitions of the
// tables, in which only white space and case can change unnoticed.
func rowsOf(t *testing.T, s dbFiles) string {
	t.Helper()
	p, err := page.Open(s.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all []string
	for r, err := range p.Rows() {
		if r.Table != "" && r.Table != page.Schema {
			all = append(all, fmt.Sprintf("%s %d %q %v", r.Table, r.ID, r.Values, err))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// memoryDir is t.TempDir on a RAM disk if the system has one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "chela-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// usedDatabase returns the files of a database that a gateway has used: those that a
// killed process leaves, and those that remain after a normal end.
func usedDatabase(t *testing.T) []dbFiles {
	t.Helper()
	dir := t.TempDir()
	files := func() dbFiles {
		s := make(dbFiles)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			b, err := os.ReadFile(filepath.Join(dir, "chela.db"+suffix))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err == nil {
				s[suffix] = b
			}
		}
		return s
	}
	day := func(n int) *Gateway {
		chat := new(channeltest.Fake)
		here := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
		g := Start(t, Options{
			Dir: dir, Channels: map[string]channel.Channel{"chat": chat},
			Config: Config{"channels": json.RawMessage(`{"chat": {"allowFrom": ["p"]}}`),
				"tools": json.RawMessage(`{"exec": {"mode": "ask"}}`)},
			Model: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				if name, size, ok := strings.Cut(r.Messages[len(r.Messages)-1].PlainText(), " write "); ok {
					n, _ := strconv.Atoi(size)
					return llmtest.Say(name + strings.Repeat(" The quick brown fox jumps over the lazy dog.", n/45))
				}
				return use(n, r)
			}),
		})
		c := g.Client()
		for i := range 30 {
			key := fmt.Sprintf("s%d", i%5)
			switch i % 6 {
			case 0, 1, 2:
				c.Ask(key, fmt.Sprintf("%d write %d", i, 1<<(i%15)))
			case 3:
				c.Ask(key, `ls {"path":"."}`)
			case 4:
				run := c.Send(key, fmt.Sprintf(`exec {"command":"touch file%d"}`, i))
				c.decide(c.question().ID, wire.Deny)
				c.Await(run)
			case 5:
				in := chela.Inbound{ID: fmt.Sprint(n, i), Address: here, Sender: chela.Sender{ID: "p"},
					Text: fmt.Sprintf("%d write %d", i, 2000)}
				if err := chat.Say(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Send("pending", `exec {"command":"touch file"}`)
		c.question()
		return g
	}
	day(1).Stop()
	ended := files()
	day(2)
	killed := files()
	for again := files(); !maps.EqualFunc(killed, again, bytes.Equal); again = files() { // no commit meanwhile
		killed = again
	}
	return []dbFiles{killed, ended}
}
