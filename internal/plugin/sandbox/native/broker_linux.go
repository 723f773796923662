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
	readyTime = 5 * time.Minute // how long a cage is kept ready
	buildTime = time.Minute     // limit for building one: many may be built at once on a busy machine
	watchTime = time.Second     // how often the workspace of a command that takes long is looked at
	// how long after its making a cage is used again: what it shows of the host may have been replaced
	useTime  = 30 * time.Second
	maxUses  = 32 // commands of one cage
	maxReady = 4  // cages that are kept ready
)

// Broker is a sandbox.Broker that confines programs.
type Broker struct {
	o          Options
	readyTime  time.Duration
	recovered  chan struct{} // closed when what killed commands left was undone
	watchTime  time.Duration
	maxFolders int // that are searched for private files

	mu     sync.Mutex
	closed bool
	ready  []*readyCage         // each with a key of its own, in the order of their use
	next   map[string]*nextCage // by key
	mapped *os.File             // see identify
	layers map[string]*layers   // by workspace
	slots  map[string][]int     // used folders for layers, by workspace
	hidden map[string]*hidden
	wg     sync.WaitGroup

	peers    map[string][]*process  // running, by key; see peersKey
	compared map[string]launch.Mask // hidden files, by path; see settle

	secrets secrets
	trial
}

// hidden is what is known of the private files and the repositories of a workspace.
type hidden struct {
	files []string // where they were last
	many  bool     // there are so many folders that the system is asked which of them change
	moved bool     // one of them is elsewhere, perhaps among the dependencies
	made  made     // nil: it was not loaded
}

// want is what a plan needs of a cage.
type want struct {
	rights sandbox.Rights
	path   []string // PATH of the command
	never  []string // see Options
	link   string   // another path of the workspace, which the command uses; "": none
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

// end ends the cage and what watches its workspace.
func (r *readyCage) end() {
	r.cage.end()
	r.found.close()
}

// nextCage is a cage in the making for the next command.
type nextCage struct {
	claimed bool            // a command waits for it
	made    chan *readyCage // receives it, or nil if it was not made, once if it is claimed
}

var _ sandbox.Broker = (*Broker)(nil)

// New returns a Broker. The main of this program must call Launch first. Close
// ends what the Broker keeps ready. New undoes what commands made that ran when
// the process before this one was killed.
func New(o Options) *Broker {
	o.Watch = cmp.Or(o.Watch, 200)
	b := &Broker{
		o:          o,
		readyTime:  readyTime,
		watchTime:  watchTime,
		maxFolders: maxFolders,
		recovered:  make(chan struct{}),
		compared:   map[string]launch.Mask{},
	}
	b.wg.Go(func() {
		if o.Layers != "" {
			recoverBefore(o.Layers)
		}
		close(b.recovered)
		if o.Layers != "" {
			b.removeRest()
		}
	})
	b.trial.run = b.tryOut
	return b
}

// Name returns "native".
func (*Broker) Name() string { return "native" }

// Close ends the cages that are kept ready. Programs that run are not affected.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.forget()
	b.wg.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mapped != nil {
		_ = b.mapped.Close() // nothing was written
		b.mapped = nil
	}
}

// Recreate ends the cages that are kept ready, removes what commands wrote to toolchains
// and caches, and makes Level try again.
func (b *Broker) Recreate(context.Context, func(string) bool) (sandbox.Removal, error) {
	b.Reset()
	var r sandbox.Removal
	switch n := b.forget(); n {
	case 0:
	case 1:
		r.Removed = append(r.Removed, "the sandbox that was kept ready")
	default:
		r.Removed = append(r.Removed, fmt.Sprintf("%d sandboxes that were kept ready", n))
	}
	n, busy, err := b.dropLayers()
	switch n {
	case 0:
	case 1:
		r.Removed = append(r.Removed, "what commands wrote to caches and toolchains, for one workspace")
	default:
		r.Removed = append(r.Removed, fmt.Sprintf("what commands wrote to caches and toolchains, for %d workspaces", n))
	}
	r.Busy = busy
	if err != nil {
		err = fmt.Errorf("remove what commands wrote to caches: %w", err)
	}
	return r, err
}

// forget ends the ready cages and returns how many there were.
func (b *Broker) forget() int {
	b.mu.Lock()
	all := b.ready
	b.ready = nil
	b.mu.Unlock()
	for _, r := range all {
		r.timer.Stop()
		r.end()
	}
	return len(all)
}

// takeLocked removes the ready cage with a key and returns it, or nil.
func (b *Broker) takeLocked(key string) *readyCage {
	i := slices.IndexFunc(b.ready, func(r *readyCage) bool { return r.key == key })
	if i < 0 {
		return nil
	}
	r := b.ready[i]
	r.timer.Stop()
	b.ready = slices.Delete(b.ready, i, i+1)
	return r
}

// keepLocked keeps a cage ready, and returns those that have to go for it.
func (b *Broker) keepLocked(r *readyCage) (gone []*readyCage) {
	if old := b.takeLocked(r.key); old != nil {
		gone = append(gone, old)
	}
	if len(b.ready) >= maxReady {
		gone = append(gone, b.takeLocked(b.ready[0].key))
	}
	b.ready = append(b.ready, r)
	r.timer = time.AfterFunc(b.readyTime, func() { b.expire(r) })
	return gone
}

// Start starts a plan that has Rights.
func (b *Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Rights == nil {
		return nil, errors.New("the sandbox runs plans with rights only")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-b.recovered:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(2 * lookTime): // of a workspace that cannot be looked at
	}
	w := b.wants(*p.Rights, searchPath(p.Env), p.Dir)
	r, fresh, err := b.cage(ctx, w)
	if err != nil {
		if ctx.Err() == nil {
			b.Reset() // user namespaces may be used up: a person is asked about the next command
		}
		return nil, cmp.Or(ctx.Err(), err)
	}
	pr, err := b.run(ctx, r, p, fresh, out)
	if err != nil {
		r.end()
		return nil, cmp.Or(ctx.Err(), err)
	}
	pr.finish = func() {
		pr.mu.Lock()
		shared := pr.shared
		pr.mu.Unlock()
		if shared {
			r.uses = maxUses
		}
		b.finish(r, w)
	}
	return pr.streams.Terminal(pr), nil
}

// cage returns a cage, and private files that appeared since it was built.
func (b *Broker) cage(ctx context.Context, w want) (*readyCage, []mount, error) {
	b.mu.Lock()
	r := b.takeLocked(w.key)
	n := b.next[w.key]
	if n != nil && (r != nil || n.claimed) {
		n = nil
	}
	if n != nil {
		n.claimed = true
	}
	b.mu.Unlock()
	if n != nil {
		r = b.await(ctx, n)
	}
	if r != nil {
		if r.alive() {
			r.found.made = b.madeIn(w.rights.Workspace)
			if fresh, err := r.found.refresh(ctx); err == nil {
				b.settle(ctx, r.found)
				return r, fresh, nil
			}
			b.keepHidden(w.rights.Workspace, r.found)
		}
		b.retire(r)
	}
	r, err := b.build(ctx, w)
	if err == nil {
		b.settle(ctx, r.found)
	}
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
	next := !b.closed && b.next[w.key] == nil &&
		!slices.ContainsFunc(b.ready, func(o *readyCage) bool { return o.key == w.key })
	if next {
		n := &nextCage{made: make(chan *readyCage, 1)}
		if b.next == nil {
			b.next = map[string]*nextCage{}
		}
		b.next[w.key] = n
		b.wg.Go(func() { b.prepare(n, r, w) })
	}
	b.mu.Unlock()
	if !next {
		b.retire(r)
	}
}

// retire ends a cage without waiting for that, unless the broker is closed.
func (b *Broker) retire(r *readyCage) {
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.wg.Go(r.end)
	}
	b.mu.Unlock()
	if closed {
		r.end()
	}
}

// build builds a cage.
func (b *Broker) build(ctx context.Context, w want) (*readyCage, error) {
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
	found, err := b.setUp(ctx, c, id, w)
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
func (b *Broker) setUp(ctx context.Context, c *cage, id identity, w want) (*privateFiles, error) {
	found, err := b.findPrivate(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := found.unsearched(w.rights); err != nil {
		found.close()
		return nil, err
	}
	s := launch.Setup{Host: "sandbox", Sockets: w.rights.Write}
	if s.Mounts, s.Below, err = layout(b.o.Home, w.rights, w.path, &found); err != nil {
		return nil, err
	}
	if all := list(s.Mounts); w.link != "" && !all.holds(filepath.Dir(w.link)) {
		all.add(mount{Kind: link, From: w.rights.Workspace, To: w.link})
		s.Mounts = all
	}
	if id.ownsHome() {
		s.Layers = homeLayers(b.o.Home, b.layersFolder(w.rights.Workspace), s.Mounts, found.never)
	}
	if len(s.Layers) == 0 {
		_, err := c.setUpAs(ctx, id, s, nil)
		return &found, err
	}
	y, err := b.lockLayers(ctx, w.rights.Workspace)
	if err != nil {
		return nil, err
	}
	defer y.unlock()
	return &found, y.setUp(ctx, c, id, s)
}

// findPrivate searches a workspace. A program can rename the folder of a
// private file, also to that of dependencies, which are searched from then on.
func (b *Broker) findPrivate(ctx context.Context, w want) (privateFiles, error) {
	workspace := w.rights.Workspace
	b.mu.Lock()
	h := b.hiddenLocked(workspace)
	h.moved = h.moved || gone(h.files)
	all, many, made := h.moved, h.many, b.madeLocked(workspace)
	b.mu.Unlock()
	found := newPrivate(workspace, b.o.Home, w.never, all)
	found.made = made
	found.most = b.maxFolders
	if workspace != "" && many {
		found.watch = newWatch(workspace)
	}
	err := found.find(ctx)
	if err == nil {
		b.keepHidden(workspace, &found)
	}
	return found, err
}

// hiddenLocked returns what is known of a workspace.
func (b *Broker) hiddenLocked(workspace string) *hidden {
	h := b.hidden[workspace]
	if h == nil {
		h = &hidden{many: b.o.Watch <= 1}
		if b.hidden == nil {
			b.hidden = map[string]*hidden{}
		}
		b.hidden[workspace] = h
	}
	return h
}

// keepHidden keeps in mind where the private files of a workspace are.
func (b *Broker) keepHidden(workspace string, found *privateFiles) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hidden[workspace]
	h.files, h.many = slices.Clone(found.hide), len(found.seen) >= b.o.Watch
}

// prepare makes a cage for the next command and keeps it ready.
func (b *Broker) prepare(n *nextCage, used *readyCage, w want) {
	r := used
	if used.uses++; used.uses >= maxUses || time.Since(used.made) > useTime || used.clean() != nil {
		b.retire(used)
		r, _ = b.build(context.Background(), w) // the next command reports the error
	}
	b.mu.Lock()
	delete(b.next, w.key)
	var gone []*readyCage
	switch {
	case n.claimed:
		n.made <- r
	case r != nil && b.closed:
		gone = []*readyCage{r}
	case r != nil:
		gone = b.keepLocked(r)
	}
	b.mu.Unlock()
	for _, r := range gone {
		r.end()
	}
}

// expire ends a cage that nobody needed.
func (b *Broker) expire(r *readyCage) {
	b.mu.Lock()
	mine := slices.Contains(b.ready, r)
	if mine {
		b.takeLocked(r.key)
	}
	b.mu.Unlock()
	if mine {
		r.end()
	}
}

// layersName is the length of the name of a folder for the layers of a workspace.
const layersName = 16

// layersFolder is the folder for what the programs of a workspace write to the
// toolchains; "": there is none.
func (b *Broker) layersFolder(workspace string) string {
	if b.o.Layers == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(b.o.Layers, hex.EncodeToString(sum[:layersName/2]))
}

// wants returns what a plan with some rights, a PATH and a working directory
// needs.
func (b *Broker) wants(r sandbox.Rights, path []string, dir string) want {
	never, link := slices.Concat(b.o.never(), r.Hide), linkOf(r.Workspace, dir)
	return want{rights: r, path: path, never: never, link: link, key: strings.Join([]string{
		r.Workspace, link, fmt.Sprint(r.Write), strings.Join(r.Read, "\x00"), strings.Join(r.Change, "\x00"), r.Own,
		strings.Join(path, "\x00"), strings.Join(never, "\x00"),
	}, "\xff")}
}

// linkOf returns the folder above a path, or the path itself, that is the
// workspace by way of links. "": the path is in the workspace, or elsewhere.
func linkOf(workspace, dir string) string {
	if workspace == "" || pathpolicy.Inside(dir, workspace) {
		return ""
	}
	for at := filepath.Clean(dir); at != filepath.Dir(at); at = filepath.Dir(at) {
		switch real, err := filepath.EvalSymlinks(at); {
		case err != nil:
			return ""
		case real == workspace:
			return at
		}
	}
	return ""
}
