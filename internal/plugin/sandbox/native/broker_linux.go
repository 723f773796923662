package native

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

const (
	readyTime = 5 * time.Minute  // how long a cage is kept ready
	buildTime = time.Minute      // limit for building one: many may be built at once on a busy machine
	slotTime  = time.Second      // how long a cage waits for the folders of the one before it
	watchTime = 5 * time.Second  // how often the workspace of a command that takes long is looked at
	useTime   = 30 * time.Second // how long after its making a cage is used again: what it shows of the host may have been replaced
	maxUses   = 32               // commands of one cage
)

// Broker is a sandbox.Broker that confines programs.
type Broker struct {
	o         Options
	readyTime time.Duration
	watchTime time.Duration

	mu     sync.Mutex
	closed bool
	ready  *readyCage
	next   *nextCage
	mapped *os.File         // see identify
	slots  map[string][]int // used folders for layers, by workspace
	hidden map[string]*hidden
	wg     sync.WaitGroup

	trial
}

// hidden is what is known of the private files of a workspace.
type hidden struct {
	files []string // where they were last
	moved bool     // one of them is elsewhere, perhaps among the dependencies
}

// want is what a plan needs of a cage.
type want struct {
	rights sandbox.Rights
	path   []string // PATH of the command
	never  []string // see Options
	key    string   // the same for all plans that the same cage can run
}

// readyCage is a cage for plans with the same key.
type readyCage struct {
	*cage
	key   string
	found *privateFiles
	timer *time.Timer
	made  time.Time
	uses  int
}

// nextCage is a cage in the making for the next command.
type nextCage struct {
	key     string
	claimed bool            // a command waits for it
	made    chan *readyCage // receives it, or nil if it was not made, once if it is claimed
}

var _ sandbox.Broker = (*Broker)(nil)

// New returns a Broker. The main of this program must call Launch first. Close
// ends what the Broker keeps ready. New undoes what commands made that ran when
// the process before this one was killed.
func New(o Options) *Broker {
	if o.Layers != "" {
		recoverBefore(o.Layers)
	}
	b := &Broker{o: o, readyTime: readyTime, watchTime: watchTime}
	b.trial.run = b.tryOut
	return b
}

// Name returns "native".
func (*Broker) Name() string { return "native" }

// Close ends the cage that is kept ready. Programs that run are not affected.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	r := b.take()
	b.mu.Unlock()
	if r != nil {
		r.end()
	}
	b.wg.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mapped != nil {
		_ = b.mapped.Close() // nothing was written
		b.mapped = nil
	}
}

// Recreate ends the cage that is kept ready, and makes Level try again.
func (b *Broker) Recreate(context.Context, func(string) bool) (sandbox.Removal, error) {
	b.Reset()
	b.mu.Lock()
	r := b.take()
	b.mu.Unlock()
	if r == nil {
		return sandbox.Removal{}, nil
	}
	r.end()
	return sandbox.Removal{Removed: []string{"the sandbox that was kept ready"}}, nil
}

// take removes the ready cage and returns it. b.mu must be held.
func (b *Broker) take() *readyCage {
	r := b.ready
	if r != nil {
		r.timer.Stop()
		b.ready = nil
	}
	return r
}

// Start starts a plan that has Rights.
func (b *Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Rights == nil {
		return nil, errors.New("the sandbox runs plans with rights only")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := b.wants(*p.Rights, searchPath(p.Env))
	r, fresh, err := b.cage(ctx, w)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	pr, err := b.run(ctx, r, p, fresh, out)
	if err != nil {
		r.end()
		return nil, cmp.Or(ctx.Err(), err)
	}
	pr.finish = func() { b.finish(r, w) }
	return pr.streams.Terminal(pr), nil
}

// cage returns a cage, and private files that appeared since it was built.
func (b *Broker) cage(ctx context.Context, w want) (*readyCage, []mount, error) {
	b.mu.Lock()
	r := b.take()
	n := b.next
	if n != nil && (r != nil || n.key != w.key || n.claimed) {
		n = nil
	}
	if n != nil {
		n.claimed = true
	}
	b.mu.Unlock()
	if n != nil {
		r = b.await(ctx, n)
	}
	var ended <-chan struct{}
	if r != nil {
		if r.key == w.key && r.alive() {
			if fresh, err := r.found.refresh(ctx); err == nil {
				return r, fresh, nil
			}
			b.keepHidden(w.rights.Workspace, r.found)
		}
		ended = b.retire(r)
	}
	r, err := b.build(ctx, w, ended)
	return r, nil, err
}

// await returns a cage that is being made, or nil.
func (b *Broker) await(ctx context.Context, n *nextCage) *readyCage {
	select {
	case r := <-n.made:
		return r
	case <-ctx.Done():
		b.mu.Lock()
		n.claimed = false
		b.mu.Unlock()
		select {
		case r := <-n.made: // in the meantime
			return r
		default:
			return nil
		}
	}
}

// finish prepares a cage for the next command after one that has ended: the
// same cage, if it is as it was, or another.
func (b *Broker) finish(r *readyCage, w want) {
	b.mu.Lock()
	next := !b.closed && b.next == nil && (b.ready == nil || b.ready.key != r.key)
	if next {
		n := &nextCage{key: w.key, made: make(chan *readyCage, 1)}
		b.next = n
		b.wg.Go(func() { b.prepare(n, r, w) })
	}
	b.mu.Unlock()
	if !next {
		b.retire(r)
	}
}

// retire ends a cage without waiting for that, unless the broker is closed.
// The channel is closed at its end.
func (b *Broker) retire(r *readyCage) <-chan struct{} {
	ended := make(chan struct{})
	end := func() {
		defer close(ended)
		r.end()
	}
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.wg.Go(end)
	}
	b.mu.Unlock()
	if closed {
		end()
	}
	return ended
}

// build builds a cage. The folders for its layers may be those of the cage
// before it, if that ends soon.
func (b *Broker) build(ctx context.Context, w want, before <-chan struct{}) (*readyCage, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	for _, path := range slices.Concat(w.rights.Read, w.rights.Change) {
		if n := pathpolicy.Exposed(path, w.rights.Workspace, w.never); n != "" {
			return nil, fmt.Errorf("the sandbox never shows %s", n)
		}
	}
	id, err := b.identify(w.rights.Workspace)
	if err != nil {
		return nil, err
	}
	c, err := newCage(id.uid, id.gid)
	if err != nil {
		return nil, err
	}
	found, err := b.setUp(ctx, c, id, w, before)
	if err != nil {
		c.end()
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("the sandbox was not ready after %v", buildTime)
		}
		return nil, err
	}
	return &readyCage{cage: c, key: w.key, found: found, made: time.Now()}, nil
}

// setUp tells a launcher what its cage is. The launcher starts in the meantime.
func (b *Broker) setUp(ctx context.Context, c *cage, id identity, w want, before <-chan struct{}) (*privateFiles, error) {
	found, err := b.findPrivate(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	s := launch.Setup{Host: "sandbox", Sockets: w.rights.Write}
	if s.Mounts, s.Below, err = layout(b.o.Home, w.rights, w.path, &found); err != nil {
		return nil, err
	}
	if id.ownsHome() {
		s.Layers = homeLayers(b.o.Home, b.layers(w.rights.Workspace), s.Mounts, found.never)
	}
	if before != nil && len(s.Layers) > 0 {
		select {
		case <-before:
		case <-time.After(slotTime):
		}
	}
	if s.Slot, c.release, err = b.slot(w.rights.Workspace, s.Layers); err != nil {
		return nil, err
	}
	trees, err := id.attachTrees(&s)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer launch.CloseAll(trees)
	return &found, c.setUp(ctx, s, trees)
}

// findPrivate searches a workspace. A program can rename the folder of a
// private file, also to that of dependencies, which are searched from then on.
func (b *Broker) findPrivate(ctx context.Context, w want) (privateFiles, error) {
	workspace := w.rights.Workspace
	b.mu.Lock()
	h := b.hidden[workspace]
	if h == nil {
		h = &hidden{}
		if b.hidden == nil {
			b.hidden = map[string]*hidden{}
		}
		b.hidden[workspace] = h
	}
	h.moved = h.moved || gone(h.files)
	all := h.moved
	b.mu.Unlock()
	found, err := findPrivate(ctx, workspace, w.never, all)
	if err == nil {
		b.keepHidden(workspace, &found)
	}
	return found, err
}

// keepHidden keeps in mind where the private files of a workspace are.
func (b *Broker) keepHidden(workspace string, found *privateFiles) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hidden[workspace].files = slices.Clone(found.hide)
}

// prepare makes a cage for the next command and keeps it ready.
func (b *Broker) prepare(n *nextCage, used *readyCage, w want) {
	r := used
	if used.uses++; used.uses >= maxUses || time.Since(used.made) > useTime || used.clean() != nil {
		r, _ = b.build(context.Background(), w, b.retire(used)) // the next command reports the error
	}
	b.mu.Lock()
	b.next = nil
	var old *readyCage
	switch {
	case n.claimed:
		n.made <- r
	case r != nil && b.closed:
		old = r
	case r != nil:
		old = b.take()
		b.ready = r
		r.timer = time.AfterFunc(b.readyTime, func() { b.expire(r) })
	}
	b.mu.Unlock()
	if old != nil {
		old.end()
	}
}

// expire ends a cage that nobody needed.
func (b *Broker) expire(r *readyCage) {
	b.mu.Lock()
	mine := b.ready == r
	if mine {
		b.ready = nil
	}
	b.mu.Unlock()
	if mine {
		r.end()
	}
}

// layers is the folder for what the programs of a workspace write to the
// toolchains; "": there are none.
func (b *Broker) layers(workspace string) string {
	if b.o.Layers == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(b.o.Layers, hex.EncodeToString(sum[:8]))
}

// wants returns what a plan with some rights and a PATH needs.
func (b *Broker) wants(r sandbox.Rights, path []string) want {
	never := slices.Concat(b.o.never(), r.Hide)
	return want{rights: r, path: path, never: never, key: strings.Join([]string{
		r.Workspace, fmt.Sprint(r.Write), strings.Join(r.Read, "\x00"), strings.Join(r.Change, "\x00"), r.Own, strings.Join(path, "\x00"), strings.Join(never, "\x00"),
	}, "\xff")}
}
