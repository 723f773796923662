package mcpserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestEvents(t *testing.T) {
	t.Run("what is not kept any more is counted", func(t *testing.T) {
		q := newEvents()
		for i := range maxEvents + 5 {
			q.add(Event{Type: "message", SessionKey: fmt.Sprint("s", i%2)})
		}
		p := q.after(2, "", 3)
		if p.missed != 3 || p.next != 8 || len(p.events) != 3 || p.events[0].Cursor != 6 {
			t.Errorf("%+v", p)
		}
		if p := q.after(p.next, "", maxEvents); p.missed != 0 || len(p.events) != maxEvents-3 || p.next != maxEvents+5 {
			t.Errorf("the rest: %d events, next %d, missed %d", len(p.events), p.next, p.missed)
		}
		if p := q.after(maxEvents, "s1", 10); len(p.events) != 2 || p.next != maxEvents+5 {
			t.Errorf("of one conversation: %+v", p)
		}
		if p := q.after(1<<40, "", 10); p.missed == 0 || len(p.events) != 0 || p.next != maxEvents+5 {
			t.Errorf("a cursor of another start: %+v", p)
		}
	})
	t.Run("waiting ends with an event of the conversation, or in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newEvents()
			go func() {
				time.Sleep(time.Second)
				q.add(Event{SessionKey: "other"})
				time.Sleep(time.Second)
				q.add(Event{SessionKey: "mine"})
			}()
			begin := time.Now()
			if p := q.wait(t.Context(), 0, "mine", time.Minute); len(p.events) != 1 || p.next != 2 ||
				time.Since(begin) != 2*time.Second {
				t.Errorf("after %v: %+v", time.Since(begin), p)
			}
			if p := q.wait(t.Context(), 2, "mine", time.Minute); len(p.events) != 0 || p.next != 2 ||
				time.Since(begin) != 62*time.Second {
				t.Errorf("after %v: %+v", time.Since(begin), p)
			}
		})
	})
}
