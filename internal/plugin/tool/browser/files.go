package browser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxUploads  = 10
	maxPixels   = 24_000_000 // of a screenshot
	maxHeight   = 16_000     // of a screenshot, in pixels
	maxFileName = 120
)

// picture is a screenshot.
type picture struct {
	data []byte
	kind string
	cut  bool // only the beginning of the page
}

// screenshot takes a picture of the window, the whole page, or an element.
func (t *tab) screenshot(ctx context.Context, n *node, full bool, kind string) (picture, error) {
	_, at := t.state()
	if err := allowed(at); err != nil {
		return picture{}, err
	}
	format := "png"
	if kind == "jpeg" || kind == "jpg" {
		format = "jpeg"
	}
	params := map[string]any{"format": format}
	p := picture{kind: "image/" + format}
	if !t.browser.process.headless {
		if err := t.browser.call(ctx, "Target.activateTarget", map[string]any{"targetId": t.target}, nil); err != nil {
			return p, err
		}
	}
	if n != nil || full {
		clip, cut, err := t.clip(ctx, n)
		if err != nil {
			return p, err
		}
		p.cut = cut
		params["clip"], params["captureBeyondViewport"] = clip, true
	}
	for {
		var out struct {
			Data []byte `json:"data"`
		}
		if err := t.call(ctx, "Page.captureScreenshot", params, &out); err != nil {
			return p, err
		}
		p.data = out.Data
		switch {
		case len(p.data) <= media.MaxImage:
			return p, nil
		case params["format"] == "png":
			params["format"], params["quality"], p.kind = "jpeg", 70, "image/jpeg"
		default:
			return p, fmt.Errorf("the picture has %s; at most %s are allowed. Take one of the window or an element",
				humanize.Bytes(int64(len(p.data))), humanize.Bytes(media.MaxImage))
		}
	}
}

// clip returns the part of the page that a picture shows.
func (t *tab) clip(ctx context.Context, n *node) (clip map[string]any, cut bool, err error) {
	var m struct {
		Viewport struct {
			X float64 `json:"pageX"`
			Y float64 `json:"pageY"`
		} `json:"cssLayoutViewport"`
		Content struct {
			Width  float64 `json:"width"`
			Height float64 `json:"height"`
		} `json:"cssContentSize"`
	}
	if n != nil {
		// what has no box is found below
		_ = t.callIn(ctx, n.session, "DOM.scrollIntoViewIfNeeded", map[string]any{"backendNodeId": n.id}, nil)
	}
	if err := t.call(ctx, "Page.getLayoutMetrics", nil, &m); err != nil {
		return nil, false, err
	}
	x, y, w, h := 0.0, 0.0, m.Content.Width, m.Content.Height
	if n != nil {
		var box struct {
			Model struct {
				Border []float64 `json:"border"`
			} `json:"model"`
		}
		if err := t.callIn(ctx, n.session, "DOM.getBoxModel", map[string]any{"backendNodeId": n.id}, &box); err != nil {
			return nil, false, errors.New("the element is not visible; take a snapshot")
		}
		off, err := t.offset(ctx, n.session, 0)
		if err != nil {
			return nil, false, err
		}
		b := box.Model.Border
		if len(b) != 8 {
			return nil, false, errors.New("the element is not visible; take a snapshot")
		}
		x, y = min(b[0], b[2], b[4], b[6]), min(b[1], b[3], b[5], b[7])
		w, h = max(b[0], b[2], b[4], b[6])-x, max(b[1], b[3], b[5], b[7])-y
		x, y = x+off.x+m.Viewport.X, y+off.y+m.Viewport.Y
	}
	w = min(max(1, w), maxHeight)
	limit := min(maxHeight, math.Floor(maxPixels/w))
	cut = h > limit
	return map[string]any{"x": x, "y": y, "width": w, "height": min(max(1, h), limit), "scale": 1}, cut, nil
}

// pdf prints the page.
func (t *tab) pdf(ctx context.Context) ([]byte, error) {
	_, at := t.state()
	if err := allowed(at); err != nil {
		return nil, err
	}
	var out struct {
		Data []byte `json:"data"`
	}
	if err := t.call(ctx, "Page.printToPDF", map[string]any{"printBackground": true, "preferCSSPageSize": true},
		&out); err != nil {
		return nil, err
	}
	if len(out.Data) > media.MaxFile {
		return nil, fmt.Errorf("the PDF has %s; at most %s are allowed", humanize.Bytes(int64(len(out.Data))),
			humanize.Bytes(media.MaxFile))
	}
	return out.Data, nil
}

// upload gives files to a page: to the file input, or to the one that the element opens.
func (t *tab) upload(ctx context.Context, n node, paths []string, trigger bool) error {
	var isInput bool
	if err := t.js(ctx, n, `function() { return this.localName === "input" && this.type === "file" }`,
		&isInput); err != nil {
		return err
	}
	switch {
	case isInput:
	case !trigger:
		return errors.New("the element is no file input")
	default:
		if err := t.call(ctx, "Page.setInterceptFileChooserDialog", map[string]any{"enabled": true}, nil); err != nil {
			return err
		}
		defer func() {
			// the tab may be gone
			_ = t.call(context.WithoutCancel(ctx), "Page.setInterceptFileChooserDialog", map[string]any{"enabled": false}, nil)
		}()
		t.mu.Lock()
		t.chooser = nil
		t.mu.Unlock()
		at, err := t.reach(ctx, n)
		if err != nil {
			return err
		}
		if err := t.click(ctx, at, "left", 1, 0, 0); err != nil {
			return err
		}
		wait, cancel := context.WithTimeoutCause(ctx, hitTime, errors.New("the element does not ask for a file"))
		defer cancel()
		if err := t.until(wait, func() bool { return t.chooser != nil }); err != nil {
			return err
		}
		t.mu.Lock()
		n.id = *t.chooser
		t.mu.Unlock()
	}
	return t.callIn(ctx, n.session, "DOM.setFileInputFiles", map[string]any{"files": paths, "backendNodeId": n.id}, nil)
}

// uploads copies files to a folder of their own, so that the page gets what was read under the
// rules about files. The page may read them as long as the document is there.
func (r *browser) uploads(paths []string, read func(string) ([]byte, error)) ([]string, error) {
	switch {
	case len(paths) == 0:
		return nil, errors.New("paths is missing")
	case len(paths) > maxUploads:
		return nil, fmt.Errorf("paths: at most %d files", maxUploads)
	}
	base := filepath.Join(r.all.o.State, "browser", r.name)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(base, "upload-")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range paths {
		data, err := read(p)
		if err == nil {
			to := filepath.Join(dir, cleanName(filepath.Base(p)))
			out = append(out, to)
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			_ = os.RemoveAll(dir) // only copies
			return nil, err
		}
	}
	return out, nil
}

// download is one that is expected or in progress.
type download struct {
	tab    *tab // nil: not expected any more
	dir    string
	guid   string // "": it has not begun
	name   string
	url    string
	err    error
	done   chan struct{} // closed when it has ended
	closed bool
}

func (d *download) end(err error) {
	if !d.closed {
		d.closed, d.err = true, err
		close(d.done)
	}
}

// deny has downloads refused.
func (r *browser) deny(ctx context.Context) error {
	return r.call(ctx, "Browser.setDownloadBehavior", map[string]any{"behavior": "deny", "eventsEnabled": true}, nil)
}

// fetched is a file that was downloaded.
type fetched struct {
	name string
	url  string
	data []byte
}

// fetch downloads what begin leads to.
func (r *browser) fetch(ctx context.Context, t *tab, begin func() error) (f fetched, err error) {
	select {
	case r.downloading <- struct{}{}:
		defer func() { <-r.downloading }()
	case <-ctx.Done():
		return f, context.Cause(ctx)
	}
	base := filepath.Join(r.all.o.State, "browser", r.name)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return f, err
	}
	dir, err := os.MkdirTemp(base, "download-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	d := &download{tab: t, dir: dir, done: make(chan struct{})}
	r.mu.Lock()
	r.download = d
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.download = nil
		guid, over := d.guid, d.closed
		r.mu.Unlock()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if guid != "" && !over {
			_ = r.call(last, "Browser.cancelDownload", map[string]any{"guid": guid}, nil) // it may have ended
		}
		_ = r.deny(last) // the browser may have ended
	}()
	err = r.call(ctx, "Browser.setDownloadBehavior",
		map[string]any{"behavior": "allowAndName", "downloadPath": dir, "eventsEnabled": true}, nil)
	if err != nil {
		return f, err
	}
	if err := begin(); err != nil {
		return f, err
	}
	select {
	case <-d.done:
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		if d.guid == "" {
			return f, errors.New("no download began")
		}
		return f, errors.New("the download did not end in time; give a longer timeoutMs")
	case <-t.gone:
		return f, errGone
	case <-r.process.conn.done:
		return f, r.process.conn.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.err != nil {
		return f, d.err
	}
	file, err := os.Open(filepath.Join(dir, filepath.Base(d.guid)))
	if err != nil {
		return f, fmt.Errorf("download: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, fmt.Errorf("download: %w", err)
	}
	if info.Size() > media.MaxFile {
		return f, tooLarge(info.Size())
	}
	data := make([]byte, info.Size())
	if _, err := file.ReadAt(data, 0); err != nil && len(data) > 0 {
		return f, fmt.Errorf("download: %w", err)
	}
	return fetched{cleanName(d.name), d.url, data}, nil
}

func tooLarge(n int64) error {
	return fmt.Errorf("the download has %s; at most %s are allowed", humanize.Bytes(n), humanize.Bytes(media.MaxFile))
}

// downloadBegins notes a download. One that nobody expects is refused, and its tab told.
func (r *browser) downloadBegins(frame, guid, name, url string) {
	r.mu.Lock()
	d := r.download
	tabs := r.tabs
	expected := d != nil && d.guid == "" && d.from(tabs, frame)
	if expected {
		d.guid, d.name, d.url = guid, name, url
	}
	r.mu.Unlock()
	if expected {
		return
	}
	if d != nil { // another one is allowed, so that this one must be cancelled
		r.tell("Browser.cancelDownload", map[string]any{"guid": guid})
	}
	for _, t := range tabs {
		if t.target == frame {
			t.notice(fmt.Sprintf("A download was not allowed: %q. Use the action download with the ref that leads to it.",
				cleanName(name)))
		}
	}
}

// from reports whether a download that begins in a frame is the expected one: it is in the
// tab, in a tab of the same session, or in a frame of a page.
func (d *download) from(tabs []*tab, frame string) bool {
	for _, t := range tabs {
		if t.target == frame {
			return t == d.tab || t.owner() == d.tab.owner()
		}
	}
	return true
}

// downloadGoesOn notes the progress of the download that is expected.
func (r *browser) downloadGoesOn(guid, state string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.download
	switch {
	case d == nil || d.guid != guid:
	case size > media.MaxFile:
		d.end(tooLarge(size))
		r.tell("Browser.cancelDownload", map[string]any{"guid": guid})
	case state == "completed":
		d.end(nil)
	case state == "canceled":
		d.end(errors.New("the download was cancelled by the page or the server"))
	}
}

// cleanName returns a name for a file from outside: no folders, nothing hidden, no characters
// that a shell or a terminal reads.
func cleanName(s string) string {
	s = strings.ToValidUTF8(s, "_")
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("-_.()+ ", r):
			return r
		}
		return '_'
	}, s)
	s = strings.TrimLeft(s, "-._ ")
	if len(s) > maxFileName {
		ext := filepath.Ext(s)
		if len(ext) > 10 {
			ext = ""
		}
		s = string(humanize.TrimPartial([]byte(strings.TrimSuffix(s, ext))[:maxFileName-len(ext)])) + ext
	}
	if strings.Trim(s, "_. ") == "" {
		return "file"
	}
	return s
}
