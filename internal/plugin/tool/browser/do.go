package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Args are the arguments of the tool, and of requests of the command line.
type Args struct {
	Action   string `json:"action"`
	Kind     string `json:"kind"` // of act
	Request  *Args  `json:"request"`
	Target   string `json:"target"`
	Profile  string `json:"profile"`
	TargetID string `json:"targetId"`
	URL      string `json:"url"`
	Other    string `json:"targetUrl"` // the same as URL
	Label    string `json:"label"`

	MaxChars    int    `json:"maxChars"`
	Limit       int    `json:"limit"`
	Mode        string `json:"mode"`
	Format      string `json:"snapshotFormat"`
	Refs        string `json:"refs"`
	Interactive *bool  `json:"interactive"`
	Compact     *bool  `json:"compact"`
	URLs        bool   `json:"urls"`
	Depth       int    `json:"depth"`
	Frame       string `json:"frame"`
	Selector    string `json:"selector"`
	Element     string `json:"element"` // a selector, of a screenshot or upload
	FullPage    bool   `json:"fullPage"`
	Type        string `json:"type"`
	Level       string `json:"level"`
	Clear       bool   `json:"clear"`

	Ref       string   `json:"ref"`
	InputRef  string   `json:"inputRef"`
	StartRef  string   `json:"startRef"`
	EndRef    string   `json:"endRef"`
	Double    bool     `json:"doubleClick"`
	Button    string   `json:"button"`
	Modifiers []string `json:"modifiers"`
	X         *float64 `json:"x"`
	Y         *float64 `json:"y"`
	DelayMS   int      `json:"delayMs"`
	Text      string   `json:"text"`
	TextGone  string   `json:"textGone"`
	Submit    bool     `json:"submit"`
	Slowly    bool     `json:"slowly"`
	Key       string   `json:"key"`
	Values    []string `json:"values"`
	Fields    []field  `json:"fields"`
	Width     int      `json:"width"`
	Height    int      `json:"height"`
	TimeMS    int      `json:"timeMs"`
	LoadState string   `json:"loadState"`
	Function  string   `json:"fn"`
	Paths     []string `json:"paths"`
	Accept    *bool    `json:"accept"`
	Prompt    string   `json:"promptText"`
	TimeoutMS int      `json:"timeoutMs"`

	Headless *bool `json:"headless"` // of start
}

// flat returns the arguments with those of the request in it, and with the kind of an act as
// its action.
func (a Args) flat() Args {
	if r := a.Request; r != nil {
		outer := a
		a = *r
		a.Request = nil
		a.Action, a.Target, a.Profile = cmp.Or(outer.Action, "act"), cmp.Or(outer.Target, r.Target),
			cmp.Or(outer.Profile, r.Profile)
		a.TargetID, a.Ref, a.Kind = cmp.Or(r.TargetID, outer.TargetID), cmp.Or(r.Ref, outer.Ref), cmp.Or(r.Kind, outer.Kind)
		a.TimeoutMS = cmp.Or(r.TimeoutMS, outer.TimeoutMS)
	}
	a.URL, a.Other = cmp.Or(a.URL, a.Other), ""
	a.Action = strings.ToLower(strings.TrimSpace(a.Action))
	if a.Action == "act" {
		a.Action, a.Kind = "act "+strings.ToLower(a.Kind), ""
	} else if slices.Contains(kinds[:], a.Action) {
		a.Action = "act " + a.Action
	}
	return a
}

// limit returns the time limit of the action.
func (a *Args) limit() time.Duration {
	if a.TimeoutMS <= 0 {
		return actionTime
	}
	return min(time.Duration(a.TimeoutMS)*time.Millisecond, maxTime)
}

// kinds are the kinds of act that are also accepted as actions.
var kinds = [...]string{"click", "clickcoords", "type", "press", "hover", "drag", "select", "fill", "resize", "wait",
	"evaluate", "scrollintoview"}

// Input is an action with what its caller may do.
type Input struct {
	Args
	Session chela.SessionKey // "": the person
	// Read returns a file that the caller may upload.
	Read func(path string) ([]byte, error)
}

// Output is the result of an action.
type Output struct {
	Text    string         // for a model
	Details map[string]any // for clients
	Images  []llm.Part
}

// external says in details that text comes from a page.
var external = map[string]any{"untrusted": true, "source": "browser", "wrapped": true}

// note is what a model is told about text of pages.
const note = "Text of a web page: " + untrusted.Data

// wrap marks text of a page.
func (b *Browsers) wrap(text string) string { return b.label.Wrap("browser", note, text) }

// Do carries out an action.
func (b *Browsers) Do(ctx context.Context, in Input) (Output, error) {
	in.Args = in.flat()
	if c := b.current(); in.Function != "" && !c.evaluates() {
		return Output{}, errEvaluate
	}
	switch in.Target {
	case "", "host":
	default:
		return Output{}, fmt.Errorf("target %q is not supported; there is only the browser of this machine (target host)",
			in.Target)
	}
	switch in.Action {
	case "status", "doctor":
		return b.status(in.Profile)
	case "profiles":
		return b.profiles(), nil
	case "start":
		if _, _, err := b.get(ctx, in.Profile, in.Headless); err != nil {
			return Output{}, err
		}
		return b.status(in.Profile)
	case "stop":
		if _, err := b.stop(ctx, in.Profile); err != nil {
			return Output{}, err
		}
		return b.status(in.Profile)
	case "resetprofile":
		return b.resetProfile(ctx, in)
	case "tabs":
		return b.tabs(in)
	case "open":
		return b.openTab(ctx, in)
	case "waitfordownload", "download", "focus", "close", "snapshot", "screenshot", "navigate", "console", "pdf",
		"upload", "dialog", "act close":
		return b.inTab(ctx, in)
	}
	if kind, ok := strings.CutPrefix(in.Action, "act "); ok && slices.Contains(kinds[:], kind) {
		return b.inTab(ctx, in)
	}
	return Output{}, fmt.Errorf("action %q is unknown; there are: %s", in.Action, strings.Join(actions[:], ", "))
}

// status describes the browser of a profile.
func (b *Browsers) status(name string) (Output, error) {
	c := b.current()
	name, p, err := c.profile(name)
	if err != nil {
		return Output{}, err
	}
	d := map[string]any{
		"enabled":        c.On(),
		"profile":        name,
		"running":        false,
		"transport":      "cdp",
		"attachOnly":     c.AttachOnly,
		"cdpUrl":         "pipe:",
		"color":          "#FF4500",
		"headless":       headless(p.Headless, b.o.Environ),
		"noSandbox":      c.NoSandbox,
		"executablePath": nil,

		"userDataDir": b.folder(name, p),
		"tabCount":    0,
	}
	text := "The browser (profile " + name + ") is not running."
	path, err := Find(p.Executable, b.o.Environ)
	if err == nil {
		err = problem(&c)
	}
	switch {
	case err != nil:
		d["detectError"] = err.Error()
		text += " It cannot be started: " + err.Error()
	default:
		d["detectedExecutablePath"], d["detectedBrowser"] = path, filepath.Base(path)
	}
	if r, _, _ := b.find(name); r != nil {
		d["running"], d["pid"], d["headless"], d["chosenBrowser"], d["executablePath"] = true, r.process.pid,
			r.process.headless, r.process.version, r.process.path
		d["tabCount"] = len(r.list())
		text = fmt.Sprintf("The browser (profile %s) is running: %s, %s.", name, r.process.version,
			humanize.Many(len(r.list()), "tab"))
	}
	return Output{Text: text, Details: d}, nil
}

// profiles lists the profiles.
func (b *Browsers) profiles() Output {
	c := b.current()
	list := []map[string]any{}
	var text []string
	for _, name := range c.names() {
		r, _, err := b.find(name)
		d := map[string]any{
			"name":      name,
			"running":   r != nil,
			"isDefault": name == canonical(cmp.Or(c.Default, DefaultProfile)),
			"tabCount":  0,
			"isRemote":  false,
			"transport": "cdp",
		}
		line := name + ": "
		switch {
		case err != nil:
			d["error"] = err.Error()
			line += err.Error()
		case r != nil:
			d["tabCount"] = len(r.list())
			line += "running, " + humanize.Many(len(r.list()), "tab")
		default:
			line += "not running"
		}
		list, text = append(list, d), append(text, line)
	}
	return Output{Text: strings.Join(text, "\n"), Details: map[string]any{"profiles": list}}
}

// resetProfile puts the data of a profile aside.
func (b *Browsers) resetProfile(ctx context.Context, in Input) (Output, error) {
	if in.Session != "" {
		return Output{}, errors.New("only the person can reset a profile: chela browser reset-profile")
	}
	from, to, err := b.reset(ctx, in.Profile)
	if err != nil {
		return Output{}, err
	}
	return Output{Text: "The profile was reset.", Details: map[string]any{
		"ok":    true,
		"moved": to != "",
		"from":  from,
		"to":    to,
	}}, nil
}

// visible returns the tabs that a caller sees: its own and those of the person. The person
// sees all.
func (r *browser) visible(session chela.SessionKey) []*tab {
	var out []*tab
	for _, t := range r.list() {
		if t.isVisible(session) {
			out = append(out, t)
		}
	}
	return out
}

// tabs lists the tabs that a caller sees.
func (b *Browsers) tabs(in Input) (Output, error) {
	r, _, err := b.find(in.Profile)
	if err != nil {
		return Output{}, err
	}
	list := []map[string]any{}
	var lines []string
	if r != nil {
		for _, t := range r.visible(in.Session) {
			d := t.details()
			list = append(list, d)
			lines = append(lines, fmt.Sprintf("%s: %s %s", t.handle(), d["title"], d["url"]))
		}
	}
	out := Output{Text: "No tab is open.", Details: map[string]any{"running": r != nil, "tabs": list}}
	if len(lines) > 0 {
		out.Text, out.Details["externalContent"] = b.wrap(strings.Join(lines, "\n")), external
	}
	return out, nil
}

// details describes a tab for clients.
func (t *tab) details() map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := map[string]any{
		"targetId":          t.target,
		"tabId":             t.handle(),
		"suggestedTargetId": cmp.Or(t.label, t.handle()),
		"title":             t.title,
		"url":               t.url,
		"type":              "page",
	}
	if t.label != "" {
		d["label"] = t.label
	}
	return d
}

// pick returns a tab by its handle, label or target, or the one that was used last.
func (r *browser) pick(session chela.SessionKey, id string) (*tab, error) {
	var best *tab
	var byPrefix []*tab
	for _, t := range r.visible(session) {
		t.mu.Lock()
		exact, prefix := id == t.handle() || id == t.target || t.label != "" && id == t.label, len(id) >= 4 &&
			strings.HasPrefix(t.target, id)
		own, used := t.session == session, t.used
		t.mu.Unlock()
		switch {
		case exact:
			return t, nil
		case prefix:
			byPrefix = append(byPrefix, t)
		case id == "" && own && (best == nil || !used.Before(best.lastUse())):
			best = t
		}
	}
	switch {
	case len(byPrefix) == 1:
		return byPrefix[0], nil
	case id != "":
		return nil, fmt.Errorf("there is no tab %q; list them with the action tabs", id)
	case best != nil:
		return best, nil
	}
	if all := r.visible(session); len(all) > 0 {
		return all[len(all)-1], nil
	}
	return nil, errNoTab
}

var errNoTab = errors.New("no tab is open; open a page with the action open and a url")

// openTab opens a page in a new tab.
func (b *Browsers) openTab(ctx context.Context, in Input) (Output, error) {
	to := blank
	if in.URL != "" {
		var err error
		if to, err = address(in.URL); err != nil {
			return Output{}, err
		}
	}
	r, news, err := b.get(ctx, in.Profile, nil)
	if err != nil {
		return Output{}, err
	}
	ctx, cancel := in.timed(ctx)
	defer cancel()
	t, err := r.newTab(ctx, in.Session)
	if err != nil {
		return Output{}, explain(err)
	}
	t.mu.Lock()
	t.label = humanize.Truncate(in.Label, 60)
	t.mu.Unlock()
	out, err := b.load(ctx, r, t, to)
	if err != nil {
		r.closeTab(ctx, t) // nothing is in it
		return Output{}, err
	}
	if news != "" {
		out.Text = news + "\n" + out.Text
	}
	return out, nil
}

// errTime is the cause of the end of an action that takes too long.
type errTime struct{ after time.Duration }

// Error returns what the model is told.
func (e errTime) Error() string {
	return fmt.Sprintf("the page did not answer within %v. It may hang: try again, or close the tab", e.after)
}

func (a *Args) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.limit(), errTime{a.limit()})
}

// load navigates a tab and returns a snapshot of the page.
func (b *Browsers) load(ctx context.Context, r *browser, t *tab, to string) (Output, error) {
	var out Output
	err := t.use(ctx, func() error {
		late, err := t.navigate(ctx, to)
		if err != nil {
			return err
		}
		o := snapshotOptions{compact: true, maxChars: efficientChar}
		if r.config.Snapshot.Mode == efficient {
			o.interactive = true
		}
		s, err := t.snapshot(ctx, o)
		head := "Opened in tab " + t.handle() + "."
		if late {
			head += " The page is still loading."
		}
		if err != nil {
			var d asked
			if errors.As(err, &d) {
				return err
			}
			s, head = shot{}, head+" Its content could not be read yet: "+explain(err).Error()
		}
		out = b.result(t, head, s.shown())
		return nil
	})
	return b.finish(t, out, err)
}

// shown returns the snapshot, with a note if it is incomplete.
func (s shot) shown() string {
	if s.left == 0 {
		return s.text
	}
	return s.text + fmt.Sprintf("\n[%s left out; use maxChars (up to %d), selector, frame, depth, or interactive]",
		humanize.Many(s.left, "line"), maxSnapshot)
}

// result returns the result of an action in a tab. head is from us, body from the page.
func (b *Browsers) result(t *tab, head, body string) Output {
	title, at := t.state()
	lines := []string{"URL: " + humanize.Truncate(at, maxText)}
	if title != "" {
		lines = append(lines, "Title: "+humanize.Truncate(title, maxName))
	}
	news := t.news()
	lines = append(lines, news...)
	if body != "" {
		lines = append(lines, "", body)
	}
	text := head + "\n" + b.wrap(strings.Join(lines, "\n"))
	if slices.ContainsFunc(news, func(s string) bool { return strings.HasPrefix(s, "Blocked: ") }) {
		text += "\nTo allow a blocked host, the person can run: chela config set browser.ssrfPolicy.allowedHostnames '[\"HOST\"]'"
	}
	d := t.details()
	d["ok"], d["externalContent"] = true, external
	return Output{Text: text, Details: d}
}

// finish turns the error of an action in a tab into a result or an error for the model.
func (b *Browsers) finish(t *tab, out Output, err error) (Output, error) {
	var d asked
	switch {
	case err == nil:
		return out, nil
	case errors.As(err, &d):
		out = b.result(t, "Tab "+t.handle()+": "+d.Error()+".",
			fmt.Sprintf("Dialog %s (%s): %s", d.dialog.id, d.dialog.kind, d.dialog.message))
		out.Details["blockedByDialog"] = true
		out.Details["browserState"] = map[string]any{
			"dialogs": map[string]any{"pending": []any{map[string]any{
				"id":      d.dialog.id,
				"type":    d.dialog.kind,
				"message": d.dialog.message,
			}}}}
		return out, nil
	}
	var script thrown
	if errors.As(err, &script) {
		return out, fmt.Errorf("the script failed:\n%s", b.wrap(script.text))
	}
	return out, explain(err)
}

// explain returns an error in words that help.
func explain(err error) error {
	if p, ok := errors.AsType[*protocolError](err); ok {
		switch m := p.Message; {
		case strings.Contains(m, "No node"), strings.Contains(m, "Could not find node"), strings.Contains(m, "detached"),
			strings.Contains(m, "does not belong to the document"), strings.Contains(m, "Cannot find context"):
			return errors.New("the element is not on the page any more: take a snapshot and use a ref from it")
		case strings.Contains(m, "Could not compute"), strings.Contains(m, "does not have a layout object"):
			return errors.New("the element is not visible; take a snapshot")
		case strings.Contains(m, "Session with given id not found"):
			return errGone
		}
		return fmt.Errorf("the browser refused: %s", p.Message)
	}
	return err
}

// inTab carries out an action in a tab.
func (b *Browsers) inTab(ctx context.Context, in Input) (Output, error) {
	if in.Action == "navigate" {
		to, err := address(in.URL)
		if err != nil {
			return Output{}, err
		}
		in.URL = to
	}
	r, name, err := b.find(in.Profile)
	if err != nil {
		return Output{}, err
	}
	if r == nil {
		if in.Action == "navigate" {
			return b.openTab(ctx, in)
		}
		if s, err := b.slot(name); err == nil {
			if dead := s.running(); dead != nil && len(dead.list()) > 0 {
				return Output{}, fmt.Errorf("the browser has ended (%w), and its tabs are lost; open the page again",
					dead.process.conn.err)
			}
		}
		return Output{}, errNoTab
	}
	r.rest()
	t, err := r.pick(in.Session, in.TargetID)
	if errors.Is(err, errNoTab) && in.Action == "navigate" {
		return b.openTab(ctx, in)
	}
	if err != nil {
		return Output{}, err
	}
	ctx, cancel := in.timed(ctx)
	defer cancel()
	switch in.Action {
	case "navigate":
		return b.load(ctx, r, t, in.URL)
	case "close", "act close":
		d := t.details()
		r.closeTab(ctx, t)
		return Output{Text: "Closed tab " + t.handle() + ".",
			Details: map[string]any{"ok": true, "targetId": d["targetId"], "tabId": d["tabId"]}}, nil
	case "dialog":
		return b.answer(ctx, t, in)
	case "console":
		return b.console(t, in), nil
	}
	var out Output
	err = t.use(ctx, func() error {
		var err error
		out, err = b.act(ctx, r, t, in)
		return err
	})
	return b.finish(t, out, err)
}

// answer answers a dialog.
func (b *Browsers) answer(ctx context.Context, t *tab, in Input) (Output, error) {
	t.mu.Lock()
	d := t.dialog
	t.mu.Unlock()
	if d == nil {
		return Output{}, errors.New("no dialog is open in this tab")
	}
	accept := in.Accept == nil || *in.Accept
	if err := t.answer(accept, in.Prompt); err != nil {
		return Output{}, explain(err)
	}
	head := "Dismissed the dialog."
	if accept {
		head = "Accepted the dialog."
	}
	changed, err := t.settle(ctx, t.at())
	if changed {
		head += " Another page has loaded; take a snapshot."
	}
	return b.finish(t, b.result(t, head, ""), err)
}

// console returns the lines of the console.
func (b *Browsers) console(t *tab, in Input) Output {
	rank := map[string]int{"error": 3, "warning": 2, "warn": 2, "info": 1, "log": 1}
	t.mu.Lock()
	lines := slices.Clone(t.lines)
	if in.Clear {
		t.lines = nil
	}
	t.mu.Unlock()
	lines = slices.DeleteFunc(lines,
		func(l line) bool { return in.Level != "" && rank[l.Level] < rank[strings.ToLower(in.Level)] })
	if n := in.Limit; n > 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	var text []string
	for _, l := range lines {
		text = append(text, strings.TrimSpace(fmt.Sprintf("[%s] %s %s", l.Level, l.Text, l.URL)))
	}
	out := b.result(t, fmt.Sprintf("Console of tab %s: %s.", t.handle(), humanize.Many(len(lines), "message")),
		strings.Join(text, "\n"))
	out.Details["messages"] = lines
	return out
}

// keep stores a file and adds where it is to a result.
func (b *Browsers) keep(out *Output, data []byte) (ref string, err error) {
	if ref, err = b.o.Files.Put(data); err != nil {
		return "", err
	}
	out.Details["ref"], out.Details["path"] = ref, filepath.Join(b.o.State, media.Dir, ref)
	return ref, nil
}

// act carries out an action in a tab whose turn it is.
func (b *Browsers) act(ctx context.Context, r *browser, t *tab, in Input) (out Output, err error) {
	switch in.Action {
	case "focus":
		if err := r.call(ctx, "Target.activateTarget", map[string]any{"targetId": t.target}, nil); err != nil {
			return out, err
		}
		return b.result(t, "Tab "+t.handle()+" is in front.", ""), nil
	case "snapshot":
		return b.snapshot(ctx, r, t, in)
	case "screenshot":
		return b.screenshot(ctx, t, in)
	case "pdf":
		data, err := t.pdf(ctx)
		if err != nil {
			return out, err
		}
		out = b.result(t, "", "")
		ref, err := b.keep(&out, data)
		out.Text = fmt.Sprintf("Saved the page as a PDF (%s): %s%s%s", humanize.Bytes(int64(len(data))),
			media.Scheme, ref, out.Text)
		return out, err
	case "upload":
		return b.upload(ctx, r, t, in)
	case "download", "waitfordownload":
		return b.download(ctx, r, t, in)
	}
	before := t.at()
	head, result, err := b.do(ctx, t, in)
	if err != nil {
		return out, err
	}
	changed, err := t.settle(ctx, before)
	if err != nil {
		return out, err
	}
	body := result
	if changed {
		head += " Another page has loaded; refs from before are invalid."
		s, err := t.snapshot(ctx, snapshotOptions{compact: true, maxChars: efficientChar})
		if err == nil {
			body = strings.TrimSpace(body + "\n\n" + s.shown())
		}
	}
	out = b.result(t, head, body)
	if in.Action == "act evaluate" {
		out.Details["result"] = json.RawMessage(cmp.Or(result, "null"))
		if !json.Valid([]byte(result)) {
			out.Details["result"] = result
		}
	}
	return out, nil
}

// snapshot takes a snapshot.
func (b *Browsers) snapshot(ctx context.Context, r *browser, t *tab, in Input) (Output, error) {
	mode := in.Mode
	if mode == "" && in.Interactive == nil && in.Compact == nil && in.Depth == 0 && in.Selector == "" && in.Frame == "" {
		mode = r.config.Snapshot.Mode
	}
	o := snapshotOptions{
		interactive: mode == efficient,
		compact:     mode == efficient,
		urls:        in.URLs,
		depth:       in.Depth,
		maxChars:    in.MaxChars,
		maxLines:    in.Limit,
		selector:    cmp.Or(in.Selector, in.Element),
		frame:       in.Frame,
	}
	if in.Interactive != nil {
		o.interactive = *in.Interactive
	}
	if in.Compact != nil {
		o.compact = *in.Compact
	}
	s, err := t.snapshot(ctx, o)
	if err != nil {
		return Output{}, err
	}
	out := b.result(t, "Snapshot of tab "+t.handle()+".", cmp.Or(s.shown(), "[the page is empty]"))
	out.Details["format"], out.Details["snapshot"], out.Details["truncated"] = "ai", s.shown(), s.left > 0
	out.Details["stats"] = map[string]int{"lines": s.lines, "chars": len([]rune(s.text)), "refs": s.refs}
	return out, nil
}

// screenshot takes a picture.
func (b *Browsers) screenshot(ctx context.Context, t *tab, in Input) (out Output, err error) {
	var n *node
	if in.Ref != "" || in.Element != "" || in.Selector != "" {
		found, err := t.find(ctx, in.Ref, cmp.Or(in.Element, in.Selector))
		if err != nil {
			return out, err
		}
		n = &found
	}
	p, err := t.screenshot(ctx, n, in.FullPage, in.Type)
	if err != nil {
		return out, err
	}
	head := "Screenshot of tab " + t.handle() + "."
	if p.cut {
		head += " The page is longer than the picture."
	}
	out = b.result(t, head, "")
	out.Details["imageType"] = p.kind
	out.Images = []llm.Part{llm.Image(p.kind, p.data)}
	_, err = b.keep(&out, p.data)
	return out, err
}

// upload gives files to the page.
func (b *Browsers) upload(ctx context.Context, r *browser, t *tab, in Input) (out Output, err error) {
	n, err := t.find(ctx, cmp.Or(in.InputRef, in.Ref), cmp.Or(in.Element, in.Selector))
	if err != nil {
		return out, err
	}
	paths, err := r.uploads(in.Paths, in.Read)
	if err != nil {
		return out, err
	}
	if err := t.upload(ctx, n, paths, in.InputRef == ""); err != nil {
		return out, err
	}
	changed, err := t.settle(ctx, t.at())
	head := "Gave the page " + humanize.Many(len(paths), "file") + "."
	if changed {
		head += " Another page has loaded; take a snapshot."
	}
	return b.result(t, head, ""), err
}

// download saves a file that the page offers.
func (b *Browsers) download(ctx context.Context, r *browser, t *tab, in Input) (out Output, err error) {
	begin := func() error { return nil }
	switch {
	case in.Action == "waitfordownload":
	case in.Ref == "" && in.Selector == "" && in.URL != "":
		to, err := address(in.URL)
		if err != nil {
			return out, err
		}
		begin = func() error {
			var nav struct {
				Error    string `json:"errorText"`
				Download bool   `json:"isDownload"`
			}
			err := t.call(ctx, "Page.navigate", map[string]any{"url": to}, &nav)
			switch {
			case err != nil:
				return err
			case nav.Download, nav.Error == "net::ERR_ABORTED":
				return nil
			case nav.Error != "":
				return t.loadError(ctx, nav.Error, to)
			}
			return errors.New("this address is a page, not a download; the tab shows it now")
		}
	default:
		n, err := t.find(ctx, in.Ref, in.Selector)
		if err != nil {
			return out, err
		}
		begin = func() error {
			at, err := t.reach(ctx, n)
			if err != nil {
				return err
			}
			return t.click(ctx, at, "left", 1, 0, 0)
		}
	}
	f, err := r.fetch(ctx, t, begin)
	if err != nil {
		return out, err
	}
	out = b.result(t, "", "File: "+f.name)
	ref, err := b.keep(&out, f.data)
	out.Text = fmt.Sprintf("Downloaded %s (%s): %s%s%s", "a file", humanize.Bytes(int64(len(f.data))),
		media.Scheme, ref, out.Text)
	out.Details["download"] = map[string]any{"url": f.url, "suggestedFilename": f.name, "path": out.Details["path"]}
	return out, err
}

// do carries out a kind of act, and returns what was done and what the page returned.
func (b *Browsers) do(ctx context.Context, t *tab, in Input) (head, result string, err error) {
	kind := strings.TrimPrefix(in.Action, "act ")
	mods := 0
	for _, m := range in.Modifiers {
		bit, ok := modifiers[strings.ToLower(m)]
		if !ok {
			return "", "", fmt.Errorf("modifiers: %q is unknown; there are Control, Shift, Alt, Meta", m)
		}
		mods |= bit
	}
	switch kind {
	case "wait":
		return b.wait(ctx, t, in)
	case "resize":
		if in.Width < 100 || in.Height < 100 || in.Width > 8192 || in.Height > 8192 {
			return "", "", errors.New("width and height must be between 100 and 8192")
		}
		err := t.call(ctx, "Emulation.setDeviceMetricsOverride",
			map[string]any{"width": in.Width, "height": in.Height, "deviceScaleFactor": 0, "mobile": false}, nil)
		return fmt.Sprintf("The page has %d × %d pixels now.", in.Width, in.Height), "", err
	case "press":
		k, m, err := parseKey(in.Key)
		if err != nil {
			return "", "", err
		}
		return "Pressed " + in.Key + ".", "", t.press(ctx, k, m|mods)
	case "fill":
		if len(in.Fields) == 0 {
			return "", "", errors.New(`fields is missing: [{"ref":"e1","value":"…"}, …]`)
		}
		for i, f := range in.Fields {
			if err := t.fill(ctx, f); err != nil {
				return "", "", fmt.Errorf("field %d (%s), after %d were filled: %w", i+1, cmp.Or(f.Ref, f.Selector), i, err)
			}
		}
		return "Filled " + humanize.Many(len(in.Fields), "field") + ".", "", nil
	case "clickcoords":
		if in.X == nil || in.Y == nil {
			return "", "", errors.New("x and y are missing")
		}
		return "Clicked.", "", t.click(ctx, point{*in.X, *in.Y}, in.Button, clicks(in.Double), mods, in.hold())
	case "drag":
		from, err := t.find(ctx, in.StartRef, "")
		if err != nil {
			return "", "", err
		}
		to, err := t.find(ctx, in.EndRef, "")
		if err != nil {
			return "", "", err
		}
		return "Dragged.", "", t.drag(ctx, from, to)
	case "evaluate":
		var n *node
		if in.Ref != "" {
			found, err := t.find(ctx, in.Ref, "")
			if err != nil {
				return "", "", err
			}
			n = &found
		}
		_, at := t.state()
		if err := allowed(at); err != nil {
			return "", "", err
		}
		out, err := t.evaluate(ctx, in.Function, n)
		return "The function was run.", humanize.Truncate(out, snapshotChars), err
	}
	n, err := t.find(ctx, in.Ref, in.Selector)
	if err != nil {
		return "", "", err
	}
	what := cmp.Or(cleanRef(in.Ref), "the element")
	switch kind {
	case "click", "hover":
		at, err := t.reach(ctx, n)
		if err != nil {
			return "", "", err
		}
		if kind == "hover" {
			return "The mouse is over " + what + ".", "", t.mouse(ctx, "mouseMoved", at, "none", 0, mods)
		}
		return "Clicked " + what + ".", "", t.click(ctx, at, in.Button, clicks(in.Double), mods, in.hold())
	case "type":
		if err := t.write(ctx, n, in.Text, in.Slowly); err != nil {
			return "", "", err
		}
		if in.Submit {
			return "Typed into " + what + " and pressed Enter.", "", t.press(ctx, named["enter"], 0)
		}
		return "Typed into " + what + ".", "", nil
	case "select":
		return "Selected.", "", t.choose(ctx, n, in.Values)
	}
	return "Scrolled " + what + " into view.", "",
		t.callIn(ctx, n.session, "DOM.scrollIntoViewIfNeeded", map[string]any{"backendNodeId": n.id}, nil)
}

func clicks(double bool) int {
	if double {
		return 2
	}
	return 1
}

// hold returns how long the button of the mouse is held down.
func (a *Args) hold() time.Duration {
	return time.Duration(min(max(0, a.DelayMS), 5000)) * time.Millisecond
}

// wait waits for a time or a condition.
func (b *Browsers) wait(ctx context.Context, t *tab, in Input) (head, result string, err error) {
	c := condition{
		text:     in.Text,
		gone:     in.TextGone,
		selector: in.Selector,
		url:      in.URL,
		load:     in.LoadState,
		function: in.Function,
	}
	if in.TimeMS > 0 {
		select {
		case <-time.After(min(time.Duration(in.TimeMS)*time.Millisecond, in.limit())):
		case <-t.gone:
			return "", "", errGone
		case <-ctx.Done():
			return "", "", context.Cause(ctx)
		}
	} else if c == (condition{}) {
		return "", "", errors.New("give timeMs, text, textGone, selector, url, loadState or fn to wait for")
	}
	if err := t.waitFor(ctx, c); err != nil {
		if _, timedOut := errors.AsType[errTime](err); timedOut {
			err = fmt.Errorf("it did not happen within %v; take a snapshot to see the page as it is", in.limit())
		}
		return "", "", err
	}
	return "It has happened.", "", nil
}
