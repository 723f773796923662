package sim

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// Variables of the environment that choose the days.
const (
	seedEnv  = "CHELA_SIM_SEED"  // of the first day
	seedsEnv = "CHELA_SIM_SEEDS" // number of days, which are long
)

// TestMain collects garbage less often, because each day begins with an empty heap.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestDays simulates 40 days. With CHELA_SIM_SEEDS there are that many longer ones.
func TestDays(t *testing.T) {
	days, s := 40, size{messages: 6, crashes: 3, jobs: 3}
	if raced {
		days = 10
	}
	first := 1
	number := func(name string, n int) int {
		if text := os.Getenv(name); text != "" {
			var err error
			if n, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	switch {
	case os.Getenv(seedEnv) != "" || os.Getenv(seedsEnv) != "":
		first, days = number(seedEnv, 1), number(seedsEnv, 1)
		if os.Getenv(seedsEnv) != "" {
			s = large
		}
	case testing.Short():
		days = 20
	}
	for seed := first; seed < first+days; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, uint64(seed), s, os.Getenv(seedEnv) != "" && days == 1)
		})
	}
}

// large is the size of the days of `make sim`.
var large = size{messages: 60, crashes: 4, jobs: 10}

// simulate simulates a day, and tells its story if a promise was broken, or if told.
func simulate(t *testing.T, seed uint64, s size, told bool) {
	dir := tempDir(t)
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, dir)
		w.day(s)
	})
	if len(w.faults) == 0 && !told {
		return
	}
	more := ""
	if s == large {
		more = " " + seedsEnv + "=1"
	}
	t.Logf("the day:\n%s\nrepeat it with: %s=%d%s go test -run '^TestDays$' ./internal/test/sim",
		strings.Join(w.log, "\n"), seedEnv, seed, more)
	for _, f := range w.faults {
		t.Error(f)
	}
}

// tempDir is t.TempDir on a RAM disk if the system has one.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "chela-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	return dir
}
