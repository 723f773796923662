package gateway

import (
	"container/list"
	"slices"
	"time"

	"github.com/chela-ai/chela/wire"
)

// Limits of the replay log.
const (
	maxRetained      = 4096            // events
	maxRetainedBytes = 2 << 20         // of all events
	maxDisconnected  = 1024            // disconnected clients
	resumeWindow     = 2 * time.Minute // how long a connection can be resumed after its end
)

// replayLog retains events that clients with CapCursor may have missed, and the
// subscriptions of their recent connections. An event is retained only if such
// a client is in its audience. The server's lock guards it.
//
// Of streamed text only the latest state is retained, as a delta that replaces
// the client's text.
type replayLog struct {
	pos          int64          // of the last event; 0: there was none
	evicted      int64          // of the last evicted event: who has read less has lost something
	events       list.List      // of *retained, oldest first
	bytes        int            // of all events
	disconnected []disconnected // ordered by time of disconnection
}

// retained is an event in the replay log.
type retained struct {
	pos    int64
	to     audience
	encode func() frame
	bytes  int
	at     *list.Element // nil: removed from the log; a slot may still refer to it
}

// disconnected is the subscriber of a connection that ended.
type disconnected struct {
	*subscriber
	until time.Time
}

// needed reports whether a resumable subscriber is in the audience.
func (r *replayLog) needed(to audience, conns []*conn) bool {
	for _, c := range conns {
		if c.resumable && to(c.subscriber) {
			return true
		}
	}
	return slices.ContainsFunc(r.disconnected, func(d disconnected) bool { return to(d.subscriber) })
}

// add appends an event. If old is not nil, it is removed.
func (r *replayLog) add(k, old *retained) {
	if old != nil && old.at != nil {
		r.remove(old)
	}
	k.pos, k.at = r.pos, r.events.PushBack(k)
	r.bytes += k.bytes
	for r.events.Len() > maxRetained || r.bytes > maxRetainedBytes {
		oldest := r.events.Front().Value.(*retained)
		r.evicted = oldest.pos
		r.remove(oldest)
	}
}

func (r *replayLog) remove(k *retained) {
	r.events.Remove(k.at)
	r.bytes -= k.bytes
	*k = retained{}
}

// since returns the events after pos with v in their audience, in order. It searches from the
// end, because a client has usually missed little.
func (r *replayLog) since(pos int64, v *subscriber) []*retained {
	var out []*retained
	for at := r.events.Back(); at != nil; at = at.Prev() {
		k := at.Value.(*retained)
		if k.pos <= pos {
			break
		}
		if k.to(v) {
			out = append(out, k)
		}
	}
	slices.Reverse(out)
	return out
}

// disconnect records that a connection ended.
func (r *replayLog) disconnect(v *subscriber, now time.Time) {
	r.expire(now)
	if len(r.disconnected) == maxDisconnected {
		r.disconnected = r.disconnected[1:]
	}
	r.disconnected = append(r.disconnected, disconnected{v, now.Add(resumeWindow)})
}

// expire removes subscribers whose connection ended too long ago.
func (r *replayLog) expire(now time.Time) {
	n := 0
	for n < len(r.disconnected) && !now.Before(r.disconnected[n].until) {
		n++
	}
	r.disconnected = slices.Delete(r.disconnected, 0, n)
}

// clear removes all events.
func (r *replayLog) clear() {
	r.evicted, r.bytes = r.pos, 0
	r.events.Init()
}

// takeDisconnected removes and returns the subscriber of a connection; nil if
// it is unknown.
func (r *replayLog) takeDisconnected(id string) *subscriber {
	i := slices.IndexFunc(r.disconnected, func(d disconnected) bool { return d.hasID(id) })
	if i < 0 {
		return nil
	}
	v := r.disconnected[i].subscriber
	r.disconnected = slices.Delete(r.disconnected, i, i+1)
	return v
}

// resumeLocked restores the subscriptions of an earlier connection for c and
// returns the missed events.
func (s *Server) resumeLocked(c *conn, q wire.Resume) ([]*retained, *wire.Resumed) {
	if q.BootID != s.bootID {
		return nil, &wire.Resumed{Reset: wire.ResetBoot}
	}
	s.replay.expire(time.Now())
	// The client may notice the end of its connection before the server
	// does.
	if i := slices.IndexFunc(s.conns, func(old *conn) bool { return old.resumable && old.hasID(q.ConnID) }); i >= 0 &&
		c.sameIdentity(s.conns[i].subscriber) {
		old := s.conns[i]
		s.leaveLocked(old)
		s.wg.Go(old.abandon)
	}
	old := s.replay.takeDisconnected(q.ConnID)
	switch {
	case old == nil || !c.sameIdentity(old):
		return nil, &wire.Resumed{Reset: wire.ResetGone}
	case q.Cursor < s.replay.evicted || q.Cursor > s.replay.pos:
		return nil, &wire.Resumed{Reset: wire.ResetOld}
	}
	missed := s.replay.since(q.Cursor, old)
	size := 0
	for _, k := range missed {
		size += k.bytes
	}
	if size > c.max/2 { // more than a slow client could take
		return nil, &wire.Resumed{Reset: wire.ResetOld}
	}
	c.restore(old)
	c.resumedID = q.ConnID
	return missed, &wire.Resumed{Missed: len(missed)}
}
