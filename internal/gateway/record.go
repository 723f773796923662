package gateway

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/wire"
)

// Bounds of what is kept for clients that come back.
const (
	maxKept      = 4096            // events
	maxKeptBytes = 2 << 20         // of all events
	maxAway      = 1024            // connections that ended
	awayFor      = 2 * time.Minute // how long after its end a connection is gone on with
)

// record keeps events that clients which are told where events stand may have
// missed, and which of their connections ended not long ago. Nothing is kept
// when there is no such client that an event is for. All of it is guarded by
// the server's lock.
//
// Of an answer that grows only the latest text is kept, as a delta that
// replaces what the client has of it.
type record struct {
	pos   int64 // of the last event
	lost  int64 // of the last event that was let go
	first *kept // the oldest; nil: none
	last  *kept
	count int
	bytes int
	away  []departed // in the order in which they left
}

// kept is an event that may have been missed.
type kept struct {
	pos   int64
	to    audience
	make  func() frame
	bytes int

	prev, next *kept
	gone       bool // it is in the record no more
}

// departed is a connection that ended.
type departed struct {
	*viewer
	until time.Time
}

// wanted reports whether somebody may come back and miss the event.
func (r *record) wanted(to audience, conns []*conn) bool {
	for _, c := range conns {
		if c.marks && to(c.viewer) {
			return true
		}
	}
	return slices.ContainsFunc(r.away, func(d departed) bool { return to(d.viewer) })
}

// add appends an event, in the place of old when that is not nil.
func (r *record) add(k, old *kept) {
	if old != nil && !old.gone {
		r.remove(old)
	}
	k.pos = r.pos
	k.prev = r.last
	if r.last == nil {
		r.first = k
	} else {
		r.last.next = k
	}
	r.last = k
	r.count++
	r.bytes += k.bytes
	for r.count > maxKept || r.bytes > maxKeptBytes {
		r.lost = r.first.pos
		r.remove(r.first)
	}
}

func (r *record) remove(k *kept) {
	if k.prev == nil {
		r.first = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		r.last = k.prev
	} else {
		k.next.prev = k.prev
	}
	r.count--
	r.bytes -= k.bytes
	*k = kept{gone: true}
}

// since returns the events after a place that are for v, in order.
func (r *record) since(pos int64, v *viewer) []*kept {
	var out []*kept
	for k := r.last; k != nil && k.pos > pos; k = k.prev {
		if k.to(v) {
			out = append(out, k)
		}
	}
	slices.Reverse(out)
	return out
}

// leave notes that a connection ended.
func (r *record) leave(v *viewer, now time.Time) {
	r.expire(now)
	if len(r.away) == maxAway {
		r.away = r.away[1:]
	}
	r.away = append(r.away, departed{v, now.Add(awayFor)})
}

// expire forgets connections that ended too long ago, and all events when
// nobody is left who may come back.
func (r *record) expire(now time.Time) {
	n := 0
	for n < len(r.away) && !now.Before(r.away[n].until) {
		n++
	}
	r.away = slices.Delete(r.away, 0, n)
}

// clear forgets all events.
func (r *record) clear() {
	r.lost, r.first, r.last, r.count, r.bytes = r.pos, nil, nil, 0, 0
}

// returned takes a connection that ended out of the record; nil: it is not
// known.
func (r *record) returned(id string) *viewer {
	i := slices.IndexFunc(r.away, func(d departed) bool { return d.called(id) })
	if i < 0 {
		return nil
	}
	v := r.away[i].viewer
	r.away = slices.Delete(r.away, i, i+1)
	return v
}

// resumeLocked goes on where an earlier connection of the client of c ended:
// it returns what the client missed.
func (s *Server) resumeLocked(c *conn, q wire.Resume) ([]*kept, *wire.Resumed) {
	if q.BootID != s.bootID {
		return nil, &wire.Resumed{Reset: wire.ResetBoot}
	}
	s.record.expire(time.Now())
	// The client may know of the end of its connection before this side does.
	if i := slices.IndexFunc(s.conns, func(old *conn) bool { return old.marks && old.called(q.ConnID) }); i >= 0 && c.same(s.conns[i].viewer) {
		old := s.conns[i]
		s.leaveLocked(old)
		s.wg.Go(old.abandon)
	}
	old := s.record.returned(q.ConnID)
	switch {
	case old == nil || !c.same(old):
		return nil, &wire.Resumed{Reset: wire.ResetGone}
	case q.Cursor < s.record.lost || q.Cursor > s.record.pos:
		return nil, &wire.Resumed{Reset: wire.ResetOld}
	}
	c.inherit(old)
	c.alias = q.ConnID
	missed := s.record.since(q.Cursor, c.viewer)
	size := 0
	for _, k := range missed {
		size += k.bytes
	}
	if size > c.max/2 { // it would be too slow at once
		return nil, &wire.Resumed{Reset: wire.ResetOld}
	}
	return missed, &wire.Resumed{Missed: len(missed)}
}
