package power

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/store"
)

// Fact checks that something that was reported is in the store that is opened after a cut.
type Fact func(store.Reader) error

// Scenario runs the code under test on s, and calls report when the outside learns
// of something. It must stop everything that it started before it returns.
type Scenario func(t testing.TB, s store.Store, report func(Fact))

// Commit is one commit of a scenario.
type Commit struct {
	Sync   store.Sync // as requested
	Caller string     // function that requested it
	Image  Image      // synced content of the disk after it
}

// String describes the commit.
func (c Commit) String() string {
	if c.Sync == store.Synced {
		return "synced commit of " + c.Caller
	}
	return "ordered commit of " + c.Caller
}

// Store records the commits to a disk. It does not batch commits.
type Store struct {
	store.Store
	disk  *Disk
	weak  func(n int, caller string) bool
	order sync.Mutex

	mu      sync.Mutex
	commits []Commit
	synced  int
	reports []report
}

type report struct {
	after int // number of commits before the report
	check Fact
}

// Record returns a store on the disk that records its commits. weak selects the
// synced commits, counted from 0, that are made ordered; nil selects none.
func Record(t testing.TB, d *Disk, weak func(n int, caller string) bool) *Store {
	t.Helper()
	if weak == nil {
		weak = func(int, string) bool { return false }
	}
	s := &Store{Store: d.Open(t), disk: d, weak: weak}
	s.commits = []Commit{{Caller: "the opening", Image: d.Cut()}}
	return s
}

// Update commits f and records the content of the disk.
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

// Commits returns the recorded commits. The first is the opening of the store.
func (s *Store) Commits() []Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Commit{}, s.commits...)
}

// Report records a promise that must hold from now on.
func (s *Store) Report(p Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, report{len(s.commits) - 1, p})
}

// caller returns the function outside of the store that requested the commit.
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

// Broken cuts the power after each commit and returns the promises that are broken.
func (s *Store) Broken(t testing.TB) []string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var broken []string
	for k, c := range s.commits {
		due := 0
		for due < len(s.reports) && s.reports[due].after <= k {
			due++
		}
		// For images with the same content only the last is checked, which has the
		// most promises.
		if due == 0 || k+1 < len(s.commits) && same(c.Image, s.commits[k+1].Image) {
			continue
		}
		if err := check(t, c.Image, s.reports[:due]); err != nil {
			broken = append(broken, fmt.Sprintf("a cut after the %s (commit %d): %v", c, k, err))
		}
	}
	return broken
}

// check opens the database after a cut and checks the promises.
func check(t testing.TB, image Image, reports []report) error {
	db := image.Disk(t).Open(t)
	defer db.Close()
	return db.View(context.Background(), func(r store.Reader) error {
		for i, p := range reports {
			if err := p.check(r); err != nil {
				return fmt.Errorf("promise %d: %w", i+1, err)
			}
		}
		return nil
	})
}

func same(a, b Image) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}

// replays is how often a scenario is played in search of a broken promise. Another goroutine's
// commit, which syncs this one as well, may come between the answer that makes a promise and its
// report. A commit that need not be synced breaks none, however often it is played.
const replays = 20

// Sweep checks that no cut breaks a promise of the scenario, and that each of its
// synced commits is needed for that.
func Sweep(t *testing.T, run Scenario) {
	t.Helper()
	s := play(t, run, nil)
	for _, b := range s.Broken(t) {
		t.Error(b)
	}
	if len(s.reports) == 0 {
		t.Error("the scenario reports nothing")
	}
	n := 0
	for _, c := range s.Commits() {
		if c.Sync != store.Synced {
			continue
		}
		weak := n
		n++
		t.Run(fmt.Sprintf("needs the %s (synced %d)", c, weak), func(t *testing.T) {
			for range replays {
				s := play(t, run, func(n int, _ string) bool { return n == weak })
				if s.synced <= weak {
					t.Fatalf("%d synced commits: the scenario is not deterministic", s.synced)
				}
				if len(s.Broken(t)) > 0 {
					return
				}
			}
			t.Error("no promise is broken if this commit is ordered: it need not be synced, or a promise is missing")
		})
	}
}

func play(t testing.TB, run Scenario, weak func(int, string) bool) *Store {
	t.Helper()
	s := Record(t, New(t), weak)
	run(t, s, s.Report)
	return s
}
