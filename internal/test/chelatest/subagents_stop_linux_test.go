package chelatest

import (
	"context"
	"fmt"
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

// TestStopFamilies stops trees of subagents, which run commands that try to outlive their
// calls: one tree as soon as it was asked, the others when they start their first tool, or
// their second, and so on.
func TestStopFamilies(t *testing.T) {
	t.Parallel()
	const most = 8 // tools that each tree starts at least
	trees := rounds(most+1, 50)
	mark := fmt.Sprintf("27183%d", os.Getpid())
	marked := regexp.MustCompile(`tree(\d+)x`)
	var mu sync.Mutex
	started := make([]int, trees) // tools, by tree
	reached := make([]chan struct{}, trees)
	for n := range reached {
		reached[n] = make(chan struct{})
	}
	before := hook.Before{Name: "count", Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		if found := marked.FindStringSubmatch(string(c.Args)); found != nil {
			mu.Lock()
			defer mu.Unlock()
			n, _ := strconv.Atoi(found[1])
			if started[n]++; started[n] == n%(most+1) {
				close(reached[n])
			}
		}
		return hook.Verdict{}, nil
	}}
	h := newHousehold(t, `{"maxSpawnDepth": 2, "maxConcurrent": 200}`,
		Options{Config: full(), Before: []hook.Before{before}})
	command := func(n int) string { // a command that forks twice, into a session of its own, and ignores TERM
		return fmt.Sprintf(
			`exec {"command":"(setsid sh -c 'trap \"\" TERM HUP INT; sleep %s.%03d' &); sleep 9999; echo tree%dx"}`, mark, n, n)
	}
	var all sync.WaitGroup
	limit := make(chan struct{}, 25) // trees at once
	for n := range trees {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			c := h.g.Client()
			key := fmt.Sprint("tree", n)
			leaf := task(command(n))
			c.Send(key, strings.Join([]string{task(command(n)), task(leaf + "\n" + command(n)),
				task(leaf + "\nsessions_yield {}"), command(n)}, "\n"))
			if n%(most+1) > 0 {
				<-reached[n]
			}
			c.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "agent:main:" + key}, nil)
		})
	}
	all.Wait()
	h.quiet()                                                 // R17: a tool that was started after the stop would not end
	none(t, func() []string { return stillRunning(t, mark) }) // R18
	mu.Lock()
	last := slices.Clone(started)
	mu.Unlock()
	time.Sleep(300 * time.Millisecond) // the absence of a start has no event
	mu.Lock()
	defer mu.Unlock()
	if t.Logf("tools that were started: %v", started); !slices.Equal(started, last) {
		t.Errorf("R17 tools were started after the stop: %v, then %v", last, started)
	}
	for _, c := range h.children() {
		if c.Silent != subagent.Stopped {
			t.Errorf("%s of %s is %q: %s", c.Label, c.Requester, c.Silent, c.Outcome)
		}
	}
}

// stillRunning returns the processes with the mark in their arguments.
func stillRunning(t *testing.T, mark string) []string {
	t.Helper()
	// zombies have no arguments
	return slices.DeleteFunc(survivors(t, mark), func(s string) bool { return !strings.Contains(s, mark) })
}
