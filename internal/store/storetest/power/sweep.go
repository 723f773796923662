package power

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/store"
)

// Promise checks that what the outside was told is in the store that came up
// after a cut.
type Promise func(store.Reader) error

// Scenario runs what is to be tested on s, and tells what the outside learns.
// It ends what it began before it returns.
type Scenario func(t testing.TB, s store.Store, tell func(Promise))

// Commit is one commit of a scenario.
type Commit struct {
	Sync   store.Sync // as it was asked for
	Caller string     // function that asked for it
	Image  Image      // what was certainly on the disk after it
}

// String returns the commit's place.
func (c Commit) String() string {
	if c.Sync == store.Synced {
		return "synced commit of " + c.Caller
	}
	return "ordered commit of " + c.Caller
}

// Store records the commits to a disk. Commits are not joined on it.
type Store struct {
	store.Store
	disk  *Disk
	weak  func(n int, caller string) bool
	order sync.Mutex

	mu      sync.Mutex
	commits []Commit
	synced  int
	told    []told
}

type told struct {
	after int // commits that were there
	check Promise
}

// Record returns a store on the disk that records its commits. weak says
// which synced commits, counted from 0, are made ordered; nil: none.
func Record(t testing.TB, d *Disk, weak func(n int, caller string) bool) *Store {
	t.Helper()
	if weak == nil {
		weak = func(int, string) bool { return false }
	}
	s := &Store{Store: d.Open(t), disk: d, weak: weak}
	s.commits = []Commit{{Caller: "the opening", Image: d.Cut()}}
	return s
}

// Update commits f and records what is on the disk then.
func (s *Store) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	who := caller()
	s.order.Lock()
	defer s.order.Unlock()
	asked := sync
	if sync == store.Synced {
		if s.weak(s.synced, who) {
			sync = store.Ordered
		}
		s.synced++
	}
	err := s.Store.Update(ctx, sync, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = append(s.commits, Commit{Sync: asked, Caller: who, Image: s.disk.Cut()})
	return err
}

// Commits returns what was recorded. The first is the opening.
func (s *Store) Commits() []Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Commit{}, s.commits...)
}

// Tell notes what the outside learnt now.
func (s *Store) Tell(p Promise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, told{len(s.commits) - 1, p})
}

// caller returns the function outside the store that asked for the commit.
func caller() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		if !strings.HasPrefix(name, "store.") || !more {
			return fmt.Sprintf("%s:%d", name, f.Line)
		}
	}
}

// Broken cuts the power after each commit and returns the promises that are
// broken then.
func (s *Store) Broken(t testing.TB) []string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var broken []string
	for k, c := range s.commits {
		due := 0
		for due < len(s.told) && s.told[due].after <= k {
			due++
		}
		// The same content is looked at when most was told of it.
		if due == 0 || k+1 < len(s.commits) && same(c.Image, s.commits[k+1].Image) {
			continue
		}
		if err := check(t, c.Image, s.told[:due]); err != nil {
			broken = append(broken, fmt.Sprintf("a cut after the %s (commit %d): %v", c, k, err))
		}
	}
	return broken
}

// check opens what a cut left and asks for what was told.
func check(t testing.TB, image Image, told []told) error {
	db := image.Disk(t).Open(t)
	defer db.Close()
	return db.View(context.Background(), func(r store.Reader) error {
		for i, p := range told {
			if err := p.check(r); err != nil {
				return fmt.Errorf("told as number %d: %w", i+1, err)
			}
		}
		return nil
	})
}

func same(a, b Image) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}

// Sweep wants that no promise of the scenario is broken by a cut, and that
// each of its synced commits is needed for that.
func Sweep(t *testing.T, run Scenario) {
	t.Helper()
	s := play(t, run, nil)
	for _, b := range s.Broken(t) {
		t.Error(b)
	}
	if len(s.told) == 0 {
		t.Error("the scenario tells nothing")
	}
	n := 0
	for _, c := range s.Commits() {
		if c.Sync != store.Synced {
			continue
		}
		weak := n
		n++
		t.Run(fmt.Sprintf("needs the %s (synced %d)", c, weak), func(t *testing.T) {
			s := play(t, run, func(n int, _ string) bool { return n == weak })
			if s.synced <= weak {
				t.Fatalf("%d synced commits this time: the scenario is not the same each time", s.synced)
			}
			if len(s.Broken(t)) == 0 {
				t.Error("made ordered, no promise is broken: the commit need not be synced, or nothing tells of it")
			}
		})
	}
}

func play(t testing.TB, run Scenario, weak func(int, string) bool) *Store {
	t.Helper()
	s := Record(t, New(t), weak)
	run(t, s, s.Tell)
	return s
}
