package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/store"
)

// Run runs the suite on stores that open makes: empty ones, which open closes
// with the test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, g := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"queue", testQueue},
		{"sessions", testSessions},
		{"transcripts", testTranscripts},
		{"calls", testCalls},
		{"runs", testRuns},
		{"leases", testLeases},
		{"approvals", testApprovals},
		{"decided approvals", testDecided},
		{"outbox", testOutbox},
		{"usage", testUsage},
		{"devices", testDevices},
		{"media", testMedia},
		{"settings", testSettings},
		{"transactions", testTransactions},
		{"concurrency", testConcurrency},
		{"wakes", testWakes},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			g.test(t, open(t))
		})
	}
}

// epoch is the first moment in the suite.
var epoch = time.Date(2026, 11, 21, 8, 30, 0, 123456789, time.UTC)

// at returns the n-th minute.
func at(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// update commits f and fails the test when that fails.
func update(t *testing.T, s store.Store, f func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), store.Ordered, f); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// view reads with f and fails the test when that fails.
func view(t *testing.T, s store.Store, f func(store.Reader) error) {
	t.Helper()
	if err := s.View(t.Context(), f); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// get returns what f reads.
func get[T any](t *testing.T, s store.Store, f func(store.Reader) (T, error)) T {
	t.Helper()
	var v T
	view(t, s, func(r store.Reader) (err error) {
		v, err = f(r)
		return err
	})
	return v
}

// same compares what was read with what was written.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(llm.Message{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// fails wants an error with target in its chain.
func fails(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: have error %v, want %v", what, err, target)
	}
}

var errBoom = errors.New("boom")
