package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	blank       = "about:blank"
	prepareTime = 20 * time.Second // for a new tab
	dialogTime  = 30 * time.Second // until a dialog is dismissed
	maxLines    = 200              // of the console that are kept
	maxLine     = 500              // characters of one
	maxNotices  = 8                // of blocked downloads and hosts that are kept
)

// tab is a tab of a browser.
type tab struct {
	browser *browser
	conn    string        // session of the connection
	target  string        // also the id of its main frame
	number  int           // its handle is t and the number
	ready   chan struct{} // closed when it can be used, or when it ended before
	gone    chan struct{} // closed when it was closed
	turn    chan struct{} // holds an element during an action

	mu       sync.Mutex
	session  chela.SessionKey // that opened it; "": the person did
	fresh    bool             // the first tab of the browser, which nobody has used
	made     bool             // it is being opened for a session, which is not known yet
	opening  bool             // it was opened for an action that begins soon
	label    string
	title    string
	url      string
	used     time.Time
	leaving  bool // it may close or load another page without being asked
	err      error
	opened   []*tab // tabs that its page opened and that nobody was told of
	changed  chan struct{}
	dialog   *dialog
	cancels  map[int]func(error) // of the calls in progress
	nextCall int

	document string          // id of the loader of the document
	reached  map[string]bool // lifecycle events of the document
	loading  bool
	children map[string]string // sessions of frames in other processes, by frame

	nodes   map[string]node // by ref
	refs    map[node]string
	lastRef int

	lines   []line
	notices []string
	chooser *int            // node of the file input that a page wants to be filled
	dragged json.RawMessage // what is being dragged
}

// node is a node of a document.
type node struct {
	session string // of the connection
	id      int    // backend id
}

// line is a line of the console.
type line struct {
	Level string `json:"type"`
	Text  string `json:"text"`
	URL   string `json:"url,omitempty"`
	Time  int64  `json:"timestamp"` // ms
}

// dialog is a question of a page.
type dialog struct {
	id      string
	kind    string // alert, confirm, prompt, beforeunload
	message string
	timer   *time.Timer
}

// errGone says that a tab was closed.
var errGone = errors.New("the tab was closed")

// asked is the error of an action that a dialog interrupted.
type asked struct{ dialog *dialog }

// Error returns what the model is told.
func (asked) Error() string {
	return fmt.Sprintf("a dialog of the page is open; answer it with the action dialog (accept true or false, promptText), or it is dismissed after %d seconds", int(dialogTime.Seconds()))
}

func newTab(r *browser, session string, info targetInfo) *tab {
	return &tab{
		browser:  r,
		conn:     session,
		target:   info.ID,
		title:    info.Title,
		url:      info.URL,
		used:     time.Now(),
		fresh:    info.URL == blank && info.Opener == "" && len(r.list()) == 0,
		ready:    make(chan struct{}),
		gone:     make(chan struct{}),
		turn:     make(chan struct{}, 1),
		changed:  make(chan struct{}),
		cancels:  map[int]func(error){},
		reached:  map[string]bool{},
		children: map[string]string{},
		nodes:    map[string]node{},
		refs:     map[node]string{},
	}
}

// handle is the name of the tab for models.
func (t *tab) handle() string { return fmt.Sprintf("t%d", t.number) }

// call carries out a command in the tab. A dialog, and the end of the tab, interrupt it.
func (t *tab) call(ctx context.Context, method string, params, result any) error {
	return t.callIn(ctx, t.conn, method, params, result)
}

// callIn is call for a frame that may be in another process.
func (t *tab) callIn(ctx context.Context, session, method string, params, result any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.mu.Lock()
	if t.err != nil {
		defer t.mu.Unlock()
		return t.err
	}
	t.nextCall++
	id := t.nextCall
	t.cancels[id] = cancel
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.cancels, id)
		t.mu.Unlock()
	}()
	return t.browser.process.conn.call(ctx, session, method, params, result)
}

// prepare makes a new tab ready.
func (t *tab) prepare() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), prepareTime, errors.New("the tab does not answer"))
	defer cancel()
	conn := t.browser.process.conn
	var err error
	for _, c := range [...]struct {
		method string
		params any
	}{
		{"Page.enable", nil},
		{"Page.setLifecycleEventsEnabled", map[string]any{"enabled": true}},
		{"Runtime.enable", nil},
		{"Log.enable", nil},
		{"Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}},
		{"Target.setAutoAttach", childFrames},
		{"Runtime.runIfWaitingForDebugger", nil},
	} {
		if err = conn.call(ctx, t.conn, c.method, c.params, nil); err != nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.err == nil {
		t.err = err
	}
	select {
	case <-t.ready:
	default:
		close(t.ready)
	}
}

// childFrames has frames in other processes attached.
var childFrames = map[string]any{
	"autoAttach":             true,
	"waitForDebuggerOnStart": false,
	"flatten":                true,
	"filter":                 filter("iframe"),
}

// await waits until the tab can be used.
func (t *tab) await(ctx context.Context) error {
	select {
	case <-t.ready:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// owner returns the session that the tab belongs to.
func (t *tab) owner() chela.SessionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session
}

func (t *tab) assign(session chela.SessionKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.fresh, t.made, t.opening = session, false, false, true
}

// take gives the tab to a session if nobody has used it.
func (t *tab) take(session chela.SessionKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.fresh || t.url != blank {
		return false
	}
	t.session, t.fresh, t.opening = session, false, true
	return true
}

func (t *tab) isNew() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fresh && t.url == blank
}

// isVisible reports whether a session sees the tab; "": the person, who sees all that are
// in use.
func (t *tab) isVisible(session chela.SessionKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (session == "" || t.session == "" || t.session == session) && !((t.fresh || t.made) && t.url == blank)
}

// expired reports whether a tab of a session was not used for a time, and keeps it from being
// used in that case.
func (t *tab) expired(idle time.Duration) (left time.Duration, yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left = idle - time.Since(t.used); left > 0 || t.opening || t.session == "" {
		return max(left, time.Second), false
	}
	select {
	case t.turn <- struct{}{}:
		return 0, true
	default: // an action is in progress
		return time.Second, false
	}
}

func (t *tab) lastUse() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used
}

// opens notes that the page has opened a tab.
func (t *tab) opens(o *tab) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened = append(t.opened, o)
}

func (t *tab) describe(info targetInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.title, t.url = info.Title, info.URL
}

// crash notes that the process of the page has died.
func (t *tab) crash() {
	t.fail(errors.New("the page crashed; close the tab and open the page again"))
}

// end notes that the tab was closed.
func (t *tab) end() {
	t.fail(errGone)
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.gone:
	default:
		close(t.gone)
	}
	select {
	case <-t.ready:
	default:
		close(t.ready)
	}
	if t.dialog != nil {
		t.dialog.timer.Stop()
		t.dialog = nil
	}
}

// fail ends the calls in progress and refuses later ones.
func (t *tab) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	for _, cancel := range t.cancels {
		cancel(err)
	}
	t.changeLocked()
}

// changeLocked wakes those that wait for a change.
func (t *tab) changeLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// until waits until the condition holds. It is evaluated with mu held.
func (t *tab) until(ctx context.Context, holds func() bool) error {
	for {
		t.mu.Lock()
		done, changed, err, d := holds(), t.changed, t.err, t.dialog
		t.mu.Unlock()
		switch {
		case done:
			return nil
		case err != nil:
			return err
		case d != nil:
			return asked{d}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.browser.process.conn.done:
			return t.browser.process.conn.err
		}
	}
}

// use carries out an action when those before it have ended.
func (t *tab) use(ctx context.Context, f func() error) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.gone:
		return errGone
	}
	defer func() {
		t.mu.Lock()
		t.used, t.opening = time.Now(), false
		t.mu.Unlock()
		<-t.turn
		t.browser.rest()
	}()
	t.mu.Lock()
	err, d := t.err, t.dialog
	t.mu.Unlock()
	switch {
	case err != nil:
		return err
	case d != nil:
		return asked{d}
	}
	return f()
}

// event handles an event of the tab.
func (t *tab) event(method string, raw json.RawMessage) { t.eventIn(t.conn, method, raw) }

// eventIn handles an event of the tab, or of a frame of it in another process.
func (t *tab) eventIn(session, method string, raw json.RawMessage) {
	switch method {
	case "Page.javascriptDialogOpening":
		t.asks(raw)
	case "Page.javascriptDialogClosed":
		t.answered()
	case "Page.frameStartedLoading", "Page.frameStoppedLoading", "Page.lifecycleEvent":
		t.loads(method, raw)
	case "Page.frameNavigated":
		t.navigated(raw)
	case "Page.fileChooserOpened":
		var e struct {
			Node int `json:"backendNodeId"`
		}
		_ = json.Unmarshal(raw, &e) // 0: there is no node
		t.mu.Lock()
		t.chooser = &e.Node
		t.changeLocked()
		t.mu.Unlock()
	case "Input.dragIntercepted":
		var e struct {
			Data json.RawMessage `json:"data"`
		}
		_ = json.Unmarshal(raw, &e) // without data nothing is dragged
		t.mu.Lock()
		t.dragged = e.Data
		t.changeLocked()
		t.mu.Unlock()
	case "Target.attachedToTarget", "Target.detachedFromTarget":
		t.frame(method, raw)
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
		t.prints(method, raw)
	}
}

// frame adds or removes a frame in another process.
func (t *tab) frame(method string, raw json.RawMessage) {
	var e struct {
		Session string     `json:"sessionId"`
		Info    targetInfo `json:"targetInfo"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	conn := t.browser.process.conn
	t.mu.Lock()
	defer t.mu.Unlock()
	if method == "Target.detachedFromTarget" {
		conn.on(e.Session, nil)
		for frame, s := range t.children {
			if s == e.Session {
				delete(t.children, frame)
			}
		}
		return
	}
	if e.Info.Type != "iframe" || len(t.children) >= maxFrames {
		return
	}
	t.children[e.Info.ID] = e.Session
	conn.on(e.Session, func(method string, raw json.RawMessage) { t.eventIn(e.Session, method, raw) })
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), prepareTime)
		defer cancel()
		_ = conn.call(ctx, e.Session, "Target.setAutoAttach", childFrames, nil) // the frame may be gone
		_ = conn.call(ctx, e.Session, "Runtime.enable", nil, nil)
	}()
}

// asks notes that the page shows a dialog.
func (t *tab) asks(raw json.RawMessage) {
	var e struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Type == "beforeunload" && t.leaving {
		go t.answer(true, "")
		return
	}
	d := &dialog{id: fmt.Sprintf("d%d", time.Now().UnixMilli()), kind: e.Type, message: humanize.Truncate(e.Message, 1000)}
	d.timer = time.AfterFunc(dialogTime, func() { t.answer(false, "") })
	if t.dialog != nil {
		t.dialog.timer.Stop()
	}
	t.dialog = d
	for _, cancel := range t.cancels {
		cancel(asked{d})
	}
	t.changeLocked()
}

func (t *tab) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dialog != nil {
		t.dialog.timer.Stop()
		t.dialog = nil
	}
	t.changeLocked()
}

// answer answers the dialog of the page.
func (t *tab) answer(accept bool, text string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), stopTime,
		errors.New("the page does not take the answer"))
	defer cancel()
	err := t.browser.process.conn.call(ctx, t.conn, "Page.handleJavaScriptDialog",
		map[string]any{"accept": accept, "promptText": text}, nil)
	t.answered()
	return err
}

// leave says whether the tab may close without being asked.
func (t *tab) leave(yes bool) {
	t.mu.Lock()
	t.leaving = yes
	d := t.dialog
	t.mu.Unlock()
	if yes && d != nil {
		_ = t.answer(d.kind == "beforeunload", "") // the page is left anyway
	}
}

// loads notes how far the page is loaded.
func (t *tab) loads(method string, raw json.RawMessage) {
	var e struct {
		Frame  string `json:"frameId"`
		Loader string `json:"loaderId"`
		Name   string `json:"name"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Frame != t.target {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch method {
	case "Page.frameStartedLoading":
		t.loading = true
	case "Page.frameStoppedLoading":
		t.loading = false
	default:
		if e.Loader != t.document {
			t.documentLocked(e.Loader)
		}
		t.reached[e.Name] = true
	}
	t.changeLocked()
}

// documentLocked begins another document. The refs of the one before are invalid.
func (t *tab) documentLocked(loader string) {
	t.document = loader
	clear(t.reached)
	clear(t.nodes)
	clear(t.refs)
}

func (t *tab) navigated(raw json.RawMessage) {
	var e struct {
		Frame struct {
			ID     string `json:"id"`
			Parent string `json:"parentId"`
			Loader string `json:"loaderId"`
			URL    string `json:"url"`
			Failed string `json:"unreachableUrl"`
		} `json:"frame"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Frame.Parent != "" || e.Frame.ID != t.target {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.url = cmp.Or(e.Frame.Failed, e.Frame.URL)
	if e.Frame.Loader != t.document {
		t.documentLocked(e.Frame.Loader)
	}
	t.changeLocked()
}

// prints keeps a line of the console.
func (t *tab) prints(method string, raw json.RawMessage) {
	var e struct {
		Type string `json:"type"`
		Args []struct {
			Type        string          `json:"type"`
			Value       json.RawMessage `json:"value"`
			Description string          `json:"description"`
		} `json:"args"`
		Details struct {
			Text      string `json:"text"`
			URL       string `json:"url"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
		Entry struct {
			Source string `json:"source"`
			Level  string `json:"level"`
			Text   string `json:"text"`
			URL    string `json:"url"`
		} `json:"entry"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	l := line{Level: e.Type, Time: time.Now().UnixMilli()}
	switch method {
	case "Runtime.consoleAPICalled":
		var parts []string
		for _, a := range e.Args {
			var s string
			switch {
			case json.Unmarshal(a.Value, &s) == nil:
			case a.Description != "":
				s = a.Description
			default:
				s = string(a.Value)
			}
			parts = append(parts, s)
		}
		l.Text = strings.Join(parts, " ")
	case "Runtime.exceptionThrown":
		l.Level, l.URL = "error", e.Details.URL
		l.Text = strings.TrimSpace(e.Details.Text + " " + e.Details.Exception.Description)
	case "Log.entryAdded":
		l.Level, l.Text, l.URL = e.Entry.Level, e.Entry.Text, e.Entry.URL
	}
	l.Text, l.URL = humanize.Truncate(strings.ToValidUTF8(l.Text, "\uFFFD"), maxLine), humanize.Truncate(l.URL, maxLine)
	var why string
	if method == "Log.entryAdded" && e.Entry.Source == "network" {
		why = t.browser.process.proxy.why(hostOf(e.Entry.URL))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) >= maxLines {
		t.lines = slices.Delete(t.lines, 0, 1)
	}
	t.lines = append(t.lines, l)
	if why != "" {
		t.noticeLocked("Blocked: " + why)
	}
}

// noticeLocked keeps something that the next result says.
func (t *tab) noticeLocked(s string) {
	if len(t.notices) < maxNotices && !slices.Contains(t.notices, s) {
		t.notices = append(t.notices, s)
	}
}

func (t *tab) notice(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noticeLocked(s)
}

// news returns what happened since the last result, for models.
func (t *tab) news() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.notices
	for _, o := range t.opened {
		out = append(out, "The page opened another tab: "+o.handle())
	}
	t.notices, t.opened = nil, nil
	return out
}
