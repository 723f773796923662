package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// Options are the parts that Browsers use. All are required.
type Options struct {
	Log     *slog.Logger
	State   string         // the state directory; the profiles are below it
	Broker  sandbox.Broker // runs the browsers
	Environ []string       // variables of this process; see [sandbox.Environment]
	Files   *media.Files   // keeps pictures and downloads
}

// Browsers keeps the browsers of the profiles. It is safe for concurrent use. It costs
// nothing until the first use.
type Browsers struct {
	o     Options
	label untrusted.Labeler
	ctx   context.Context // ends at Close
	end   context.CancelCauseFunc

	mu     sync.Mutex
	config Config
	slots  map[string]*slot // by profile
}

// slot is the place of the browser of a profile.
type slot struct {
	gate chan struct{} // holds an element while the browser is started or stopped

	mu      sync.Mutex
	browser *browser // nil: none runs
}

// errClosed says that the gateway stops.
var errClosed = errors.New("the gateway is stopping")

// New returns Browsers, none of which runs. Close must be called.
func New(o Options) *Browsers {
	b := &Browsers{o: o, label: untrusted.New(), slots: map[string]*slot{}}
	b.ctx, b.end = context.WithCancelCause(context.Background())
	return b
}

// Use puts a configuration in force. A browser that was started with other settings is
// stopped.
func (b *Browsers) Use(c Config) {
	b.mu.Lock()
	old := b.config
	b.config = c
	b.mu.Unlock()
	if old.same(&c) && c.On() {
		return
	}
	for _, s := range b.all() {
		if r := s.running(); r != nil {
			go b.halt(context.Background(), s, r) // Close waits for it
		}
	}
}

// all returns the slots.
func (b *Browsers) all() (out []*slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.slots {
		out = append(out, s)
	}
	return out
}

func (s *slot) running() *browser {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.browser
}

// Forget closes the tabs of a session that has ended.
func (b *Browsers) Forget(session chela.SessionKey) {
	for _, s := range b.all() {
		r := s.running()
		if r == nil {
			continue
		}
		for _, t := range r.list() {
			if t.owner() == session {
				go r.closeTab(context.Background(), t)
			}
		}
	}
}

// Close stops all browsers and waits for their end. If ctx ends before, they are killed.
func (b *Browsers) Close(ctx context.Context) {
	b.end(errClosed)
	var wg sync.WaitGroup
	for _, s := range b.all() {
		wg.Go(func() {
			s.gate <- struct{}{} // a start in progress fails
			defer func() { <-s.gate }()
			if r := s.running(); r != nil {
				r.stop(ctx)
				s.set(nil)
			}
		})
	}
	wg.Wait()
}

func (s *slot) set(r *browser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browser = r
}

// slot returns the slot of a profile.
func (b *Browsers) slot(name string) (*slot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return nil, errClosed
	}
	s := b.slots[name]
	if s == nil {
		s = &slot{gate: make(chan struct{}, 1)}
		b.slots[name] = s
	}
	return s, nil
}

// current returns the configuration in force.
func (b *Browsers) current() Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config
}

// folder returns the folder with the data of a profile.
func (b *Browsers) folder(name string, p Profile) string {
	if p.UserData == "" {
		return filepath.Join(b.o.State, "browser", name, "user-data")
	}
	return expand(p.UserData, b.o.Environ)
}

// get returns the browser of a profile, which is started if necessary. note says what
// happened to the one before; "": nothing.
func (b *Browsers) get(ctx context.Context, name string, show *bool) (r *browser, note string, err error) {
	c := b.current()
	name, p, err := c.profile(name)
	if err != nil {
		return nil, "", err
	}
	s, err := b.slot(name)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.ctx, func() { cancel(errClosed) })()
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	defer func() { <-s.gate }()
	if r = s.running(); r != nil {
		select {
		case <-r.process.ended:
			s.set(nil)
			if n := len(r.list()); n > 0 { // after the last window was closed, it ends by itself
				note = fmt.Sprintf("The browser was started again, because it had ended (%v). Its %d open tabs are lost.",
					r.process.conn.err, n)
			}
		default:
			if r.config.same(&c) {
				r.rest()
				return r, "", nil
			}
			r.stop(ctx) // it has other settings
			s.set(nil)
		}
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	pr, err := b.start(ctx, &c, name, p, show)
	if err != nil {
		return nil, "", err
	}
	r = newBrowser(b, name, c, pr)
	if err := r.open(ctx); err != nil {
		pr.stop(context.WithoutCancel(ctx))
		return nil, "", fmt.Errorf("start the browser: %w", err)
	}
	s.set(r)
	r.rest()
	b.o.Log.Info("browser started", "profile", name, "version", pr.version, "pid", pr.pid, "headless", pr.headless)
	return r, note, nil
}

// find returns the browser of a profile if it runs, or nil, and the profile's name.
func (b *Browsers) find(name string) (*browser, string, error) {
	c := b.current()
	name, _, err := c.profile(name)
	if err != nil {
		return nil, name, err
	}
	s, err := b.slot(name)
	if err != nil {
		return nil, name, err
	}
	r := s.running()
	if r != nil {
		select {
		case <-r.process.ended:
			r = nil
		default:
		}
	}
	return r, name, nil
}

// halt stops a browser, if it is still that of the slot.
func (b *Browsers) halt(ctx context.Context, s *slot, r *browser) {
	s.gate <- struct{}{}
	defer func() { <-s.gate }()
	if s.running() != r {
		return
	}
	r.stop(ctx)
	s.set(nil)
}

// stop stops the browser of a profile, and reports whether one was running.
func (b *Browsers) stop(ctx context.Context, name string) (bool, error) {
	r, name, err := b.find(name)
	if err != nil || r == nil {
		return false, err
	}
	s, err := b.slot(name)
	if err != nil {
		return false, err
	}
	b.halt(ctx, s, r)
	return true, nil
}

// reset stops the browser of a profile and puts its data aside. It returns where the data
// is now; "": there was none.
func (b *Browsers) reset(ctx context.Context, name string) (from, to string, err error) {
	c := b.current()
	name, p, err := c.profile(name)
	if err != nil {
		return "", "", err
	}
	if p.UserData != "" {
		return "", "", fmt.Errorf("browser profile %s: Chela does not remove %s, which the configuration names",
			name, p.UserData)
	}
	s, err := b.slot(name)
	if err != nil {
		return "", "", err
	}
	s.gate <- struct{}{}
	defer func() { <-s.gate }()
	if r := s.running(); r != nil {
		r.stop(ctx)
		s.set(nil)
	}
	from = b.folder(name, p)
	to = filepath.Join(filepath.Dir(from), "user-data.old-"+time.Now().UTC().Format("20060102-150405"))
	switch err := os.Rename(from, to); {
	case errors.Is(err, os.ErrNotExist):
		return from, "", nil
	case err != nil:
		return from, "", fmt.Errorf("browser profile %s: %w", name, err)
	}
	return from, to, nil
}

// browser is a browser that runs, with its tabs.
type browser struct {
	all     *Browsers
	name    string // of the profile
	config  Config // that it was started with
	process *process

	downloading chan struct{} // holds an element while a download is expected

	mu       sync.Mutex
	tabs     []*tab // in the order of their creation
	number   int    // of the last tab
	making   int    // tabs that are being opened for sessions
	changed  chan struct{}
	timer    *time.Timer // looks for unused tabs
	stopped  bool
	download *download // that is expected or in progress
}

func newBrowser(b *Browsers, name string, c Config, p *process) *browser {
	return &browser{
		all:         b,
		name:        name,
		config:      c,
		process:     p,
		downloading: make(chan struct{}, 1),
		changed:     make(chan struct{}),
	}
}

// call carries out a command of the browser as a whole.
func (r *browser) call(ctx context.Context, method string, params, result any) error {
	return r.process.conn.call(ctx, "", method, params, result)
}

// tell carries out a command of the browser without waiting for it. Handlers of events do
// so, because the answer comes after them.
func (r *browser) tell(method string, params any) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		_ = r.call(ctx, method, params, nil) // the browser may have ended
	}()
}

// filter selects the targets of a kind.
func filter(kind string) []map[string]any {
	return []map[string]any{{"type": kind}, {"exclude": true}}
}

// open prepares the browser. Its first tab is ready afterwards.
func (r *browser) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, errors.New("the browser has no first tab"))
	defer cancel()
	r.process.conn.on("", r.event)
	if err := r.call(ctx, "Target.setDiscoverTargets", map[string]any{"discover": true, "filter": filter("page")},
		nil); err != nil {
		return err
	}
	if err := r.deny(ctx); err != nil {
		return err
	}
	return r.call(ctx, "Target.setAutoAttach",
		map[string]any{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": filter("page")}, nil)
}

// targetInfo describes a target of the browser.
type targetInfo struct {
	ID     string `json:"targetId"`
	Type   string `json:"type"`
	Title  string `json:"title"`
	URL    string `json:"url"`
	Opener string `json:"openerId"`
}

// event handles an event of the browser as a whole.
func (r *browser) event(method string, raw json.RawMessage) {
	var e struct {
		Session  string     `json:"sessionId"`
		Target   string     `json:"targetId"`
		Info     targetInfo `json:"targetInfo"`
		Frame    string     `json:"frameId"`
		GUID     string     `json:"guid"`
		URL      string     `json:"url"`
		Name     string     `json:"suggestedFilename"`
		State    string     `json:"state"`
		Total    float64    `json:"totalBytes"`
		Received float64    `json:"receivedBytes"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	switch method {
	case "Target.attachedToTarget":
		if e.Info.Type == "page" {
			r.attached(e.Session, e.Info)
		}
	case "Target.detachedFromTarget":
		r.detached(e.Session)
	case "Target.targetInfoChanged":
		if t := r.byTarget(e.Info.ID); t != nil {
			t.describe(e.Info)
		}
	case "Target.targetCrashed":
		if t := r.byTarget(e.Target); t != nil {
			t.crash()
		}
	case "Browser.downloadWillBegin":
		r.downloadBegins(e.Frame, e.GUID, e.Name, e.URL)
	case "Browser.downloadProgress":
		r.downloadGoesOn(e.GUID, e.State, int64(max(e.Total, e.Received)))
	}
}

// attached adds a tab that the browser opened.
func (r *browser) attached(session string, info targetInfo) {
	t := newTab(r, session, info)
	r.mu.Lock()
	full := len(r.tabs) >= maxTabs
	if !full {
		r.number++
		t.number, t.made = r.number, r.making > 0 && info.Opener == ""
		for _, o := range r.tabs {
			if o.target == info.Opener {
				t.session = o.owner() // a page opened it
				o.opens(t)
			}
		}
		r.tabs = append(r.tabs, t)
		r.changeLocked()
	}
	r.mu.Unlock()
	r.process.conn.on(session, t.event)
	if full {
		r.tell("Target.closeTarget", map[string]any{"targetId": info.ID})
		return
	}
	go t.prepare()
}

func (r *browser) detached(session string) {
	r.mu.Lock()
	i := slices.IndexFunc(r.tabs, func(t *tab) bool { return t.conn == session })
	var t *tab
	if i >= 0 {
		t = r.tabs[i]
		r.tabs = slices.Delete(slices.Clone(r.tabs), i, i+1)
		r.changeLocked()
	}
	r.mu.Unlock()
	r.process.conn.on(session, nil)
	if t != nil {
		t.end()
	}
}

// changeLocked wakes those that wait for a tab.
func (r *browser) changeLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// list returns the tabs in the order of their creation.
func (r *browser) list() []*tab {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tabs
}

func (r *browser) byTarget(id string) *tab {
	for _, t := range r.list() {
		if t.target == id {
			return t
		}
	}
	return nil
}

// await returns the tab of a target when the browser has told of it.
func (r *browser) await(ctx context.Context, id string) (*tab, error) {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if t := r.byTarget(id); t != nil {
			select {
			case <-t.ready:
				return t, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-r.process.conn.done:
				return nil, r.process.conn.err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-r.process.conn.done:
			return nil, r.process.conn.err
		}
	}
}

// newTab opens an empty tab for a session. The first tab of the browser is used if nobody
// has used it.
func (r *browser) newTab(ctx context.Context, session chela.SessionKey) (*tab, error) {
	limit := r.config.tabs()
	var own []*tab
	for _, t := range r.list() {
		if t.take(session) {
			if err := t.await(ctx); err != nil {
				r.closeTab(ctx, t)
				return nil, err
			}
			return t, nil
		}
		if t.owner() == session {
			own = append(own, t)
		}
	}
	if session != "" && len(own) >= limit { // the one that was not used for longest
		slices.SortFunc(own, func(a, b *tab) int { return a.lastUse().Compare(b.lastUse()) })
		r.closeTab(ctx, own[0])
	}
	var created struct {
		ID string `json:"targetId"`
	}
	r.makes(1)
	defer r.makes(-1)
	// A hidden tab draws nothing, so that without a desktop each has a window of its own.
	err := r.call(ctx, "Target.createTarget", map[string]any{"url": blank, "newWindow": r.process.headless}, &created)
	if err != nil {
		return nil, err
	}
	t, err := r.await(ctx, created.ID)
	if err != nil {
		return nil, err
	}
	t.assign(session)
	return t, nil
}

// makes notes that tabs are being opened for sessions: nobody else is to see them before
// they belong to one.
func (r *browser) makes(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.making += n
}

// closeTab closes a tab, and waits a moment for its end.
func (r *browser) closeTab(ctx context.Context, t *tab) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	t.leave(true)
	if err := r.call(ctx, "Target.closeTarget", map[string]any{"targetId": t.target}, nil); err != nil {
		return // it is closed already, or the browser has ended
	}
	select {
	case <-t.gone:
	case <-ctx.Done():
	case <-r.process.conn.done:
	}
}

// rest has unused tabs closed after the idle time, and the browser stopped when it has no
// tabs left that anybody needs.
func (r *browser) rest() {
	idle := r.config.idle()
	if idle == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	if r.timer != nil {
		r.timer.Reset(idle)
		return
	}
	r.timer = time.AfterFunc(idle, func() { r.cleanUp(idle) })
}

// cleanUp closes the tabs that sessions have not used, and stops the browser if there are
// none left. A tab that the person opened by hand, in the window or on the command line, is
// left alone.
func (r *browser) cleanUp(idle time.Duration) {
	next := idle
	kept := 0
	for _, t := range r.list() {
		if t.isNew() {
			continue
		}
		if left, yes := t.expired(idle); yes {
			r.closeTab(context.Background(), t)
		} else {
			kept++
			next = min(next, left)
		}
	}
	if kept == 0 {
		if s, err := r.all.slot(r.name); err == nil {
			r.all.halt(context.Background(), s, r)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.timer.Reset(next)
	}
}

// stop ends the browser.
func (r *browser) stop(ctx context.Context) {
	r.mu.Lock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.process.stop(ctx)
	for _, t := range r.list() {
		t.end()
	}
	r.all.o.Log.Info("browser stopped", "profile", r.name)
}
