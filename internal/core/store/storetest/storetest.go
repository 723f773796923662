package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/store"
)

// Run runs the suite. open must return an empty store and close it when the test
// ends.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, g := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"queue", testQueue},
		{"sessions", testSessions},
		{"transcripts", testTranscripts},
		{"calls", testCalls},
		{"blocked calls", testBlocked},
		{"runs", testRuns},
		{"leases", testLeases},
		{"approvals", testApprovals},
		{"decided approvals", testDecided},
		{"spawn", testSpawn},
		{"outbox", testOutbox},
		{"usage", testUsage},
		{"holds", testHolds},
		{"devices", testDevices},
		{"guests", testGuests},
		{"children", testChildren},
		{"jobs", testJobs},
		{"runs of jobs", testJobRuns},
		{"heartbeats", testHeartbeats},
		{"changes", testChanges},
		{"invocations", testInvocations},
		{"media", testMedia},
		{"settings", testSettings},
		{"texts", testTexts},
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

// epoch is the start time of the tests.
var epoch = time.Date(2026, 11, 21, 8, 30, 0, 123456789, time.UTC)

// at returns the time n minutes after epoch.
func at(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// update commits f and fails the test on an error.
func update(t *testing.T, s store.Store, f func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), store.Ordered, f); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// view reads with f and fails the test on an error.
func view(t *testing.T, s store.Store, f func(store.Reader) error) {
	t.Helper()
	if err := s.View(t.Context(), f); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// get returns the result of f.
func get[T any](t *testing.T, s store.Store, f func(store.Reader) (T, error)) T {
	t.Helper()
	var v T
	view(t, s, func(r store.Reader) (err error) {
		v, err = f(r)
		return err
	})
	return v
}

// each calls f with each of the values.
func each[T any](f func(T) error, vs ...T) error {
	for _, v := range vs {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// same compares a result with the expected value.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(llm.Message{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// fails checks that err wraps target.
func fails(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: have error %v, want %v", what, err, target)
	}
}

var errBoom = errors.New("boom")
