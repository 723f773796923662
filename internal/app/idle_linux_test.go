package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/store/sqlite"
)

// loaded returns how much of the program is in the process's memory, in KB.
func loaded(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(after, &kb); !ok || err != nil {
		t.Skipf("the kernel does not tell: %v", err)
	}
	return kb
}

// use brings much of the program into memory.
func use(t *testing.T) {
	t.Helper()
	e := begun(t, home(t, offlineConf))
	health(t, e)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnload(t *testing.T) {
	use(t)
	before := loaded(t)
	unload()
	if after := loaded(t); after > before/2 {
		t.Errorf("%d KB are still loaded of %d", after, before)
	}
	use(t)
}

func TestRest(t *testing.T) {
	use(t)
	synctest.Test(t, func(t *testing.T) {
		all := loaded(t)
		events := bus.New(slog.New(slog.DiscardHandler))
		run := func() {
			for _, phase := range []string{chela.PhaseStart, chela.PhaseEnd} {
				e := chela.Event{Run: "r", Session: "agent:main:main", Stream: chela.StreamLifecycle, Phase: phase}
				if phase == chela.PhaseEnd {
					e.End = &chela.EndEvent{}
				}
				events.Publish(e)
			}
			d, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		after := func(d time.Duration) int {
			time.Sleep(d)
			synctest.Wait()
			return loaded(t)
		}
		go rest(t.Context(), events)

		rested := after(restAfter)
		if rested > all/2 {
			t.Errorf("after the start: %d KB are loaded of %d", rested, all)
		}
		time.Sleep(sleepAfter - 2*restAfter)
		run()
		used := loaded(t)
		if kept := after(restAfter); kept < (rested+used)/2 {
			t.Errorf("soon after a run: %d KB are loaded, %d in it", kept, used)
		}
		if slept := after(sleepAfter); slept > (rested+used)/2 {
			t.Errorf("long after a run: %d KB are loaded, %d in it", slept, used)
		}
	})
}
