package chelatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/wire"
)

// TestStopFamilies stops 50 trees of subagents, which run commands that try to outlive
// their calls, at random moments.
func TestStopFamilies(t *testing.T) {
	t.Parallel()
	const trees = 50
	mark := fmt.Sprintf("27183%d", os.Getpid())
	marked := regexp.MustCompile(`tree(\d+)x`)
	var mu sync.Mutex
	started := map[int]time.Time{} // by tree, when the last tool was started
	before := hook.Before{Name: "clock", Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		if found := marked.FindStringSubmatch(string(c.Args)); found != nil {
			mu.Lock()
			defer mu.Unlock()
			n, _ := strconv.Atoi(found[1])
			started[n] = time.Now()
		}
		return hook.Verdict{}, nil
	}}
	h := newHousehold(t, `{"maxSpawnDepth": 2, "maxConcurrent": 200}`, Options{Config: full(), Before: []hook.Before{before}})
	command := func(n int) string { // a command that forks twice, into a session of its own, and ignores TERM
		return fmt.Sprintf(`exec {"command":"(setsid sh -c 'trap \"\" TERM HUP INT; sleep %s.%03d' &); sleep 60; echo tree%dx"}`, mark, n, n)
	}
	longest := 300 * time.Millisecond // until the stop
	if raced {
		longest *= 10
	}
	stops := make([]time.Time, trees)
	var all sync.WaitGroup
	limit := make(chan struct{}, 25) // trees at once
	for n := range trees {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			c := h.g.Client()
			key := fmt.Sprint("tree", n)
			leaf := task(command(n))
			c.Send(key, strings.Join([]string{task(command(n)), task(leaf + "\n" + command(n)), task(leaf + "\nsessions_yield {}"), command(n)}, "\n"))
			time.Sleep(rand.N(longest))
			c.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "agent:main:" + key}, nil)
			stops[n] = time.Now()
			time.Sleep(2 * time.Second)
			from := time.Now()
			time.Sleep(3 * time.Second)
			if left := stillRunning(t, fmt.Sprintf("%s.%03d", mark, n)); len(left) > 0 {
				t.Errorf("R18 tree %d, 5 s after its stop: %q", n, left)
			}
			mu.Lock()
			defer mu.Unlock()
			if last := started[n]; last.After(from) {
				t.Errorf("R17 tree %d: a tool was started %s after the stop", n, last.Sub(stops[n]))
			}
		})
	}
	all.Wait()
	h.quiet()
	if left := stillRunning(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	for _, c := range h.children() {
		if c.Silent != subagent.Stopped {
			t.Errorf("%s of %s is %q: %s", c.Label, c.Requester, c.Silent, c.Outcome)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(started) < trees/4 {
		t.Errorf("only %d of %d trees had started a tool when they were stopped", len(started), trees)
	}
}

// stillRunning returns the processes with the mark in their arguments.
func stillRunning(t *testing.T, mark string) []string {
	t.Helper()
	return slices.DeleteFunc(survivors(t, mark), func(s string) bool { return !strings.Contains(s, mark) }) // zombies have no arguments
}
