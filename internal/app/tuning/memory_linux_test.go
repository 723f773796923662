package tuning

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// loaded returns the size of the program in memory, in KB.
func loaded(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(after, &kb); !ok || err != nil {
		t.Skipf("RssFile is not available: %v", err)
	}
	return kb
}

// use loads a part of the program into memory.
func use(t *testing.T) {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
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

func TestReleaseMemory(t *testing.T) {
	use(t)
	synctest.Test(t, func(t *testing.T) {
		all := loaded(t)
		events := bus.New(slog.New(slog.DiscardHandler))
		run := func() {
			for _, phase := range []chela.Phase{chela.PhaseStart, chela.PhaseEnd} {
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
		go ReleaseMemory(t.Context(), events)

		released := after(releaseAfter)
		if released > all/2 {
			t.Errorf("after the start: %d KB are loaded of %d", released, all)
		}
		time.Sleep(unloadAfter - 2*releaseAfter)
		run()
		used := loaded(t)
		if kept := after(releaseAfter); kept < (released+used)/2 {
			t.Errorf("soon after a run: %d KB are loaded, %d in it", kept, used)
		}
		if unloaded := after(unloadAfter); unloaded > (released+used)/2 {
			t.Errorf("long after a run: %d KB are loaded, %d in it", unloaded, used)
		}
	})
}
