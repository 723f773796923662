package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// beats is the interval of the heartbeats of a day, the events that start one, and those
// that were claimed.
type beats struct {
	every   time.Duration
	events  []*wakeEvent
	file    bool      // a person writes and empties HEARTBEAT.md
	emptied time.Time // when that was emptied; zero: it has content
	claimed []claimedBeat
	endless bool // a tick was used twice
}

// claimedBeat is a heartbeat whose run was put into the queue, as the state of its agent
// said after the commit.
type claimedBeat struct {
	heartbeat.Run
	at      time.Time
	emptied time.Time // since when HEARTBEAT.md was empty; zero: it had content, or did not exist
}

// beatAddress is where alerts go.
var beatAddress = chela.Address{Channel: "able", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}

// wakeEvent is an event that a person has sent to the main session.
type wakeEvent struct {
	tag   string
	next  bool // it waits for the next heartbeat
	sent  time.Time
	tries int
	acked bool
}

// beatTag is in the prompt of a heartbeat.
const beatTag = "beat"

// ring sends an event until it is accepted.
func (w *world) ring(e *wakeEvent) {
	e.sent = time.Now()
	in := wire.Wake{Mode: wire.WakeNow, Text: "please do <<" + e.tag + ">>"}
	if e.next {
		in.Mode = wire.WakeNext
	}
	w.tell("terminal: the event %s, %s", e.tag, in.Mode)
	for {
		e.tries++
		err := w.client.Call(context.Background(), wire.MethodWake, in, nil)
		if err == nil {
			break
		}
		w.tell("terminal: the event %s is not accepted: %v", e.tag, err)
		time.Sleep(3 * time.Second)
	}
	e.acked = true
	w.learned()
}

// beatAnswer is what the model does in a heartbeat.
func (w *world) beatAnswer(n int) string {
	return pick(w.rnd(beatTag, n), weighted[string]{3, "ok"}, weighted[string]{1, "say"}, weighted[string]{1, "refuse"})
}

// fill writes HEARTBEAT.md, with something to do or without.
func (w *world) fill(full bool) {
	text := "# Checks\n\n<!-- nothing now -->\n"
	if full {
		text = "# Checks\n\n- Is the door closed?\n"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	path := filepath.Join(w.dir, "workspace", heartbeat.FileName)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".new", []byte(text), 0o600),
		os.Rename(path+".new", path))
	if err != nil {
		panic(err)
	}
	switch {
	case full:
		w.beats.emptied = time.Time{}
	case w.beats.emptied.IsZero():
		w.beats.emptied = time.Now()
	}
	w.tellLocked("terminal: HEARTBEAT.md has content: %t", full)
}

// beatClaimed notes the heartbeats that were claimed. Two for one tick are a violation,
// which is recorded at once, because such a day may never be quiet.
func (w *world) beatClaimed(l *life) {
	if w.beats == nil || l.dead() {
		return
	}
	st, err := store.Get(context.Background(), l.db,
		func(r store.Reader) (heartbeat.State, error) { return r.Heartbeats().State(chela.DefaultAgent) })
	if err != nil {
		w.broken("HEARTBEAT: %v", err)
		return
	}
	for _, r := range st.Runs {
		w.mu.Lock()
		known := slices.ContainsFunc(w.beats.claimed, func(c claimedBeat) bool { return c.ID == r.ID })
		var tooClose *claimedBeat
		if !known {
			for _, c := range w.beats.claimed {
				if !r.Tick.IsZero() && !c.Tick.IsZero() && r.Tick.Sub(c.Tick).Abs() < w.beats.every {
					tooClose = &c
				}
			}
			w.beats.endless = w.beats.endless || tooClose != nil
			w.beats.claimed = append(w.beats.claimed, claimedBeat{r, time.Now(), w.beats.emptied})
		}
		w.mu.Unlock()
		if tooClose != nil {
			w.broken("HEARTBEAT: %s is for a tick %s after that of %s, of an interval of %s", r.ID, r.Tick.Sub(tooClose.Tick),
				tooClose.ID, w.beats.every)
		}
	}
}

// endless reports whether heartbeats may never end, because of a mistake.
func (w *world) endless() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.beats != nil && w.beats.endless
}

// leftBeats returns the heartbeats that are not finished.
func leftBeats(r store.Reader) (left []string, err error) {
	wakes, err := r.Heartbeats().Wakes()
	for _, k := range wakes {
		if k.Mode == heartbeat.Now {
			left = append(left, fmt.Sprintf("a wake of %s because of %s is due at %s", k.Session, k.Reason, k.Due))
		}
	}
	return left, err
}

// readBeats reads the heartbeats, oldest first.
func (s *state) readBeats(r store.Reader) error {
	ids := map[chela.RunID]bool{}
	for _, list := range s.entries {
		for _, e := range list {
			if heartbeat.IsRun(e.Run) {
				ids[e.Run] = true
			}
		}
	}
	for id := range ids {
		it, err := r.Queue().Get(string(id))
		if err != nil {
			return err
		}
		s.beats = append(s.beats, it)
		kept, err := r.Queue().ByKey("undelivered:" + string(id))
		if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		s.kept[id] = err == nil && kept.Kind == queue.Event
	}
	slices.SortFunc(s.beats, func(a, b queue.Item) int { return a.Created.Compare(b.Created) })
	return nil
}

// probeBeats checks that a heartbeat runs when nothing else does.
func (w *world) probeBeats(l *life) {
	if w.beats.file {
		w.fill(true)
	}
	from := time.Now()
	time.Sleep(w.beats.every + 2*time.Minute)
	st, err := store.Get(context.Background(), l.db,
		func(r store.Reader) (heartbeat.State, error) { return r.Heartbeats().State(chela.DefaultAgent) })
	if err != nil {
		w.broken("HEARTBEAT: %v", err)
	}
	if st.Last.Time.Before(from) && len(st.Runs) == 0 {
		w.broken("HEARTBEAT: none ran in %s, the last one is %+v", time.Since(from), st.Last)
	}
}

// hadEvent reports whether an event reached a session with a heartbeat, or between its tick
// and its claim.
func (s *state) hadEvent(key chela.SessionKey, c claimedBeat) bool {
	for id, list := range s.entries {
		if s.home[id] == key && slices.ContainsFunc(list, func(e session.Entry) bool {
			event := e.Kind == session.KindMessage && strings.HasPrefix(e.Message.PlainText(), llm.EventPrefix)
			return event && (e.Run == c.ID || !e.Time.Before(c.Tick) && !e.Time.After(c.at))
		}) {
			return true
		}
	}
	return false
}

// checkBeats checks that no tick of the interval made two heartbeats, or one with nothing
// to do, that two have a gap, that each event was told, and that alerts were delivered and
// nothing else.
func (s *state) checkBeats() {
	const main = chela.SessionKey("agent:main:main")
	w := s.w
	if w.beats == nil {
		return
	}
	broken := func(format string, args ...any) { w.broken("HEARTBEAT: "+format, args...) }
	before := map[chela.SessionKey]time.Time{}
	for _, it := range s.beats {
		if gap := it.Created.Sub(before[it.Session]); gap < heartbeat.MinGap {
			broken("%s of %s began %s after another one", it.ID, it.Session, gap)
		}
		before[it.Session] = it.Created
	}
	for _, it := range s.beats {
		r, ok := s.runs[it.Run]
		switch {
		case it.State != queue.Done:
			broken("%s is %s", it.ID, it.State)
		case !ok || r.State != run.OK:
		case slices.ContainsFunc(s.rows[r.ID], func(row outbox.Row) bool { return row.Address != beatAddress }):
			broken("%s was delivered to %s", it.ID, chatName(s.rows[r.ID][0].Address))
		case r.Silent && len(s.rows[r.ID]) > 0:
			broken("%s found nothing, and something was delivered: %q", it.ID, s.rows[r.ID][0].Text)
		case !r.Silent && strings.TrimSpace(r.Text) != "" && len(s.rows[r.ID]) == 0 && !s.kept[r.ID]:
			broken("the alert %q of %s was not delivered, and no event says so", r.Text, it.ID)
		case slices.ContainsFunc(s.rows[r.ID], func(row outbox.Row) bool { return row.State == outbox.Failed }) &&
			!s.kept[r.ID]:
			broken("the delivery of %s failed, and no event says so", it.ID)
		}
	}
	for _, c := range w.beats.claimed {
		// The tick was used at once, after the file was emptied, and without an event that waited.
		idle := c.Reason == heartbeat.ReasonInterval && c.at.Sub(c.Tick) < 5*time.Second && !c.emptied.IsZero() &&
			c.emptied.Before(c.Tick)
		if idle && !s.stopped(main, c.Tick) && !s.hadEvent(main, c) {
			broken("%s of the tick at %s has nothing to do: HEARTBEAT.md is empty since %s", c.ID, s.at(c.Tick), s.at(c.emptied))
		}
	}
	for _, e := range w.beats.events {
		n, dropped := 0, false
		for id, list := range s.entries {
			for _, entry := range list {
				if entry.Kind == session.KindMessage && entry.Message.Role == llm.RoleUser && s.home[id] == main &&
					strings.Contains(entry.Message.PlainText(), "<<"+e.tag+">>") {
					n++
				}
				// Only the newest events wait for the next turn, and that says how many others there were.
				dropped = dropped || s.home[id] == main && entry.Kind == session.KindMessage && entry.Time.After(e.sent) &&
					strings.Contains(entry.Message.PlainText(), "were dropped")
			}
		}
		if n > e.tries || n == 0 && e.acked && !dropped && !s.stopped(main, e.sent) {
			broken("the event %s was sent %d times, and is in the transcript %d times", e.tag, e.tries, n)
		}
	}
}
