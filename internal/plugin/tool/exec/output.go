package exec

import (
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	updateEvery = 100 * time.Millisecond
	maxUpdate   = 16 << 10 // bytes of one update
)

// output retains the beginning and the end of a command's output, and
// forwards the output while the command runs.
type output struct {
	half   int // characters shown of each end
	update func(string)

	mu      sync.Mutex
	head    []byte // the first bytes, up to limit
	tail    []byte // the last bytes of the rest, up to 2 × limit
	chars   int64  // characters written
	lost    bool   // bytes were dropped
	pending []byte // not forwarded yet
	skipped bool   // pending lost its beginning
	timer   *time.Timer
	last    time.Time
	closed  bool // output is no longer retained
}

func newOutput(maxChars int, update func(string)) *output {
	if update == nil {
		update = func(string) {}
	}
	return &output{half: maxChars / 2, update: update}
}

// limit returns how many bytes of each end are retained, enough for its
// characters.
func (o *output) limit() int { return 2 * o.half * utf8.UTFMax }

// Write retains and forwards p. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	o.chars += countRunes(p)
	rest := p
	if free := o.limit() - len(o.head); free > 0 {
		n := min(free, len(rest))
		o.head = append(o.head, rest[:n]...)
		rest = rest[n:]
	}
	o.tail = append(o.tail, rest[max(0, len(rest)-o.limit()):]...)
	o.lost = o.lost || len(rest) > o.limit()
	if n := len(o.tail) - o.limit(); n > o.limit() {
		o.tail = append(o.tail[:0], o.tail[n:]...)
		o.lost = true
	}
	o.forwardLocked(p)
	return len(p), nil
}

// forwardLocked forwards p, immediately or once the last update is old
// enough.
func (o *output) forwardLocked(p []byte) {
	o.pending = append(o.pending, p[max(0, len(p)-maxUpdate):]...)
	if n := len(o.pending) - maxUpdate; n > 0 || len(p) > maxUpdate {
		o.pending = append(o.pending[:0], o.pending[max(n, 0):]...)
		o.skipped = true
	}
	switch wait := updateEvery - time.Since(o.last); {
	case o.timer != nil:
	case wait <= 0:
		o.sendLocked(false)
	default:
		o.timer = time.AfterFunc(wait, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.timer = nil
			o.sendLocked(false)
		})
	}
}

// sendLocked forwards the pending output except an incomplete character at
// its end.
func (o *output) sendLocked(end bool) {
	n := len(o.pending)
	if !end {
		n -= unfinished(o.pending)
	}
	if n == 0 {
		return
	}
	text := plain(o.pending[:n])
	if o.skipped {
		text = "…" + text
	}
	o.pending = append(o.pending[:0], o.pending[n:]...)
	o.skipped = false
	o.last = time.Now()
	o.update(text)
}

// flush forwards the remaining output. Nothing is forwarded after it.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
	o.sendLocked(true)
	o.update = func(string) {}
}

// discard forwards the remaining output and releases everything: from now on
// only the record retains the output.
func (o *output) discard() {
	o.flush()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.head, o.tail, o.pending, o.closed = nil, nil, nil, true
}

// text returns the output for the model, and whether it was cut.
func (o *output) text() (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lost {
		s := plain(append(o.head[:len(o.head):len(o.head)], o.tail...))
		total := utf8.RuneCountInString(s)
		if total <= 2*o.half {
			return s, false
		}
		return o.joinEnds(s, s, int64(total)), true
	}
	tail := o.tail[max(0, len(o.tail)-o.limit()):]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	head := humanize.TrimPartial(o.head)
	return o.joinEnds(plain(head), plain(tail), o.chars), true
}

// joinEnds joins the beginning of head and the end of tail.
func (o *output) joinEnds(head, tail string, total int64) string {
	i := 0
	for range o.half {
		_, n := utf8.DecodeRuneInString(head[i:])
		i += n
	}
	j := len(tail)
	for range o.half {
		_, n := utf8.DecodeLastRuneInString(tail[:j])
		j -= n
	}
	return fmt.Sprintf("%s\n\n[… output cut: %d characters in total, the first and last %d are shown …]\n\n%s",
		head[:i], total, o.half, tail[j:])
}
