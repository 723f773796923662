package exec

import (
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	updateEvery = 100 * time.Millisecond
	maxUpdate   = 16 << 10 // bytes of one update
)

// output keeps the beginning and the end of what a command writes, and passes
// it on while the command runs.
type output struct {
	half   int // characters that are shown of each end
	update func(string)

	mu      sync.Mutex
	head    []byte // the first bytes, up to room
	tail    []byte // the last bytes of the rest, up to 2 × room
	chars   int64  // characters written
	lost    bool   // bytes were dropped
	pending []byte // not yet passed on
	skipped bool   // pending lost its beginning
	timer   *time.Timer
	last    time.Time
	closed  bool // nothing is kept any more
}

func newOutput(most int, update func(string)) *output {
	if update == nil {
		update = func(string) {}
	}
	return &output{half: most / 2, update: update}
}

// room is how many bytes of each end are kept: enough for its characters.
func (o *output) room() int { return 2 * o.half * utf8.UTFMax }

// Write keeps p. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	o.chars += starts(p)
	rest := p
	if free := o.room() - len(o.head); free > 0 {
		n := min(free, len(rest))
		o.head = append(o.head, rest[:n]...)
		rest = rest[n:]
	}
	o.tail = append(o.tail, rest[max(0, len(rest)-o.room()):]...)
	o.lost = o.lost || len(rest) > o.room()
	if n := len(o.tail) - o.room(); n > o.room() {
		o.tail = append(o.tail[:0], o.tail[n:]...)
		o.lost = true
	}
	o.passLocked(p)
	return len(p), nil
}

// passLocked passes p on: at once, or when the last update is old enough.
func (o *output) passLocked(p []byte) {
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

// sendLocked gives what is pending, but for a character that is not whole yet.
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

// flush passes on what is left; nothing is passed on after it.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
	o.sendLocked(true)
	o.update = func(string) {}
}

// release passes on what is left and forgets all: somebody else keeps the
// output from now on.
func (o *output) release() {
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
		return o.ends(s, s, int64(total)), true
	}
	tail := o.tail[max(0, len(o.tail)-o.room()):]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	head := o.head[:len(o.head)-partial(o.head)]
	return o.ends(plain(head), plain(tail), o.chars), true
}

// ends joins the beginning of head and the end of tail.
func (o *output) ends(head, tail string, total int64) string {
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
	return fmt.Sprintf("%s\n\n[… output cut: %d characters in all, the first and the last %d are shown …]\n\n%s",
		head[:i], total, o.half, tail[j:])
}

// partial returns how many bytes at the end of b begin a character that is not
// whole.
func partial(b []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}
