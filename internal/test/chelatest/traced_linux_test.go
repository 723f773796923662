package chelatest

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/test/strace"
	"github.com/chela-ai/chela/wire"
)

// TestTracedAttacks runs hostile commands and judges the system calls of all
// programs that ran, as strace recorded them: it does not depend on where effects
// are looked for. CHELA_TEST_TRACED is the number of commands; the default is a
// sample.
func TestTracedAttacks(t *testing.T) {
	if out, err := exec.Command(needtest.Program(t, "strace"),
		append(strace.Arguments(os.DevNull, 64, witnessed()...), "true")...).CombinedOutput(); err != nil {
		t.Logf("strace: %v %s", err, out)
		needtest.Missing(t, "strace that may trace processes")
	}
	needsNamespaces(t)
	t.Parallel()
	lines := hostile(t)
	// With this seed the first 20 are of all kinds, and none takes long.
	rand.New(rand.NewPCG(282, 0)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	n, err := strconv.Atoi(os.Getenv("CHELA_TEST_TRACED"))
	if err != nil {
		n = 20
	}
	n = min(n, len(lines))
	lines = lines[:n]
	g := newMachine(t)
	for _, mode := range []string{"auto", "allowlist"} {
		t.Run("commands have no effect outside of the sandbox in mode "+mode, func(t *testing.T) {
			g.t = t
			w := g.trace(lines, mode, "")
			for _, c := range w.commands {
				for _, f := range c.faults {
					t.Errorf("%s\n%s", f, c.text)
				}
			}
			if w.programs < n/4 || w.changed < n/4 || w.cages == 0 {
				t.Errorf("it shows nothing: %d programs ran and changed files %d times", w.programs, w.changed)
			}
		})
	}
	t.Run("a sandbox that grants one folder too many is found", func(t *testing.T) {
		g.t = t
		writes := slices.DeleteFunc(slices.Clone(lines), func(l trial) bool { return l.fields[2] != "write" })
		w := g.trace(writes[:min(3, len(writes))], "auto", g.vars["MARK"])
		if _, kinds := w.guilty(); kinds["change"] == 0 {
			t.Errorf("none of %d commands changed the folder", len(w.commands))
		}
	})
	t.Run("the same commands have effects without a sandbox", func(t *testing.T) {
		g.t = t
		w := g.trace(lines, "full", "")
		all, kinds := w.guilty()
		for kind, want := range map[string]int{"change": n / 3, "read": n / 10, "connect": n / 20, "signal": n / 40} {
			if kinds[kind] < max(want, 1) {
				t.Errorf("%d of %d commands are found by kind %q, want at least %d", kinds[kind], n, kind, max(want, 1))
			}
		}
		if all < n*2/3 {
			t.Errorf("%d of %d commands are found, want two thirds", all, n)
		}
	})
}

// trace runs commands in a mode and judges their system calls. grant is a folder
// that their sandbox grants and the witness does not know of.
func (g *machine) trace(lines []trial, mode, grant string) *witness {
	g.t.Helper()
	o := g.options(mode)
	env, err := json.Marshal(confinedOptions{
		Dir:     o.Dir,
		Home:    o.Home,
		File:    o.File,
		Grant:   grant,
		Config:  o.Config,
		Environ: o.Environ,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	record := filepath.Join(g.t.TempDir(), "record")
	cmd := exec.Command("strace", append(strace.Arguments(record, 64, witnessed()...), os.Args[0])...)
	cmd.Env = append(os.Environ(), childConfined+"="+string(env))
	p := start(g.t, cmd, "")
	g.t.Cleanup(p.kill)
	cl, err := client.Dial(g.t.Context(), client.Options{Dial: dial(o.Dir), Once: true})
	if err != nil {
		g.t.Fatal(err)
	}
	c := &Client{Client: cl, t: g.t}
	c.execute("first", "true "+attackSecret, wire.Deny)
	effective := 0
	for _, l := range lines {
		effects, _, answer := g.attack(c, l)
		effective += min(len(effects), 1)
		if len(effects) > 0 && mode != "full" && grant == "" {
			g.t.Errorf("%s %s had the effects %v: %s", l.id, l.command, effects, answer)
		}
	}
	cl.Close()
	late := time.AfterFunc(waittest.Limit, p.kill) // strace ends with the last process
	p.stop(g.t)
	if !late.Stop() {
		g.t.Error("processes were left when the gateway had ended")
	}
	w := newWitness(g, mode == "full")
	if err := strace.Read(record, w.call); err != nil {
		g.t.Fatal(err)
	}
	all, kinds := w.guilty()
	g.t.Logf("%s: %d commands, of which %d ran with %d programs in %d sandboxes; judged: %d changes of files, %d reads, %d connections and signals; "+
		"effects: %d %v; found otherwise: %d", mode, len(lines), len(w.commands), w.programs, w.cages, w.changed, w.read,
		w.asked, all, kinds, effective)
	return w
}
