// Package canvas serves the canvases of sessions over HTTP:
//
//	/__openclaw__/canvas/           the pages of the default agent, with a credential
//	/__openclaw__/a2ui/             the page that draws A2UI, with a credential
//	/__openclaw__/cap/SECRET/…      the same for the session of a capability, with no other credential
//
// The pages are written by a model, which may have read anything. They get an origin of their
// own from the browser (the sandbox of their policy): they cannot read what the gateway's page
// keeps, nor send requests in its name, and there are no cookies. They load nothing from
// other servers and send nothing to them.
//
// The page that draws A2UI is made from web/src/a2ui by `npm run build` in web/.
package canvas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	enginecanvas "github.com/chela-ai/chela/internal/engine/canvas"
	"github.com/chela-ai/chela/internal/surface/access"
)

//go:embed dist
var dist embed.FS

// Limits.
const (
	maxFile    = 64 << 20 // bytes of a file that is served
	maxPage    = 8 << 20  // bytes of a page that is loaded again when files change
	maxWatched = 2000     // files that are watched
	keepAlive  = 15 * time.Second
)

// The policies of the pages of the model, and of the page that draws A2UI, into which no code
// of a model comes.
const (
	pagePolicy = "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	a2uiPolicy = "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'self'; style-src 'self'; " +
		"img-src 'self' data:; media-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)

// Handler serves the canvases. Use [New].
type Handler struct {
	host    *enginecanvas.Host
	files   map[string][]byte // of the page that draws A2UI
	waiting atomic.Int64      // screens that wait for changes of files
}

// New returns a Handler.
func New(host *enginecanvas.Host) *Handler {
	h := &Handler{host: host, files: map[string][]byte{}}
	err := fs.WalkDir(dist, "dist", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := dist.ReadFile(name)
		h.files[strings.TrimPrefix(name, "dist/")] = b
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return h
}

// ServeHTTP serves requests that were authenticated, and those with a capability.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.host.On() {
		notFound(w)
		return
	}
	rest, capable := strings.CutPrefix(r.URL.Path, canvas.CapabilityPath)
	if !capable {
		h.serve(w, r, r.URL.Path, visit{session: chela.MainSession(chela.DefaultAgent)})
		return
	}
	secret, rest, _ := strings.Cut(rest, "/")
	g, ok := h.host.Find(secret)
	if !ok {
		access.Error(w, http.StatusUnauthorized, "unauthorized",
			"this address has expired: ask the assistant to show the page again")
		return
	}
	if r.Header.Get("Origin") == "null" { // a page of the canvas loads a script or data of its folder
		w.Header().Set("Access-Control-Allow-Origin", "null")
	}
	h.serve(w, r, "/"+rest, visit{g.Session, g, canvas.CapabilityPath + secret})
}

// visit is one request.
type visit struct {
	session chela.SessionKey
	grant   *enginecanvas.Grant // nil: it has a credential
	base    string              // path of the capability
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, at string, v visit) {
	w.Header().Set("Cache-Control", "no-store")
	page, isPage := strings.CutPrefix(at+"/", canvas.PagesPath)
	a2ui, isA2UI := strings.CutPrefix(at, canvas.A2UIPath)
	switch {
	case isPage:
		h.page(w, r, strings.TrimSuffix(page, "/"), v)
	case isA2UI && a2ui == "events":
		h.events(w, r, v)
	case isA2UI || at+"/" == canvas.A2UIPath:
		h.a2ui(w, r, a2ui)
	case at == canvas.ReloadPath && v.grant != nil && h.host.Reloads():
		h.reloads(w, r, v)
	case at == canvas.ReloadPath+".js" && v.grant != nil:
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = io.WriteString(w, reloadScript) // the client may be gone
	default:
		notFound(w)
	}
}

func notFound(w http.ResponseWriter) {
	access.Error(w, http.StatusNotFound, "not_found", "there is no such page")
}

// page serves a file of the folder of an agent.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, name string, v visit) {
	if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") || strings.ContainsAny(name, "\\\x00") {
		notFound(w)
		return
	}
	root, dir, err := h.host.Folder(v.session.Agent())
	if err != nil {
		notFound(w)
		return
	}
	defer root.Close()
	local := filepath.FromSlash(path.Clean("./" + name))
	if info, err := root.Stat(local); err == nil && info.IsDir() {
		if !strings.HasSuffix(r.URL.Path, "/") { // links of the page are relative to the folder
			w.Header().Set("Location", path.Base(r.URL.Path)+"/")
			w.WriteHeader(http.StatusFound)
			return
		}
		name, local = path.Join(name, "index.html"), filepath.Join(local, "index.html")
	} else if strings.HasSuffix(r.URL.Path, "/") && name != "" {
		notFound(w) // a file is no folder
		return
	}
	stamp := ""
	ext := strings.ToLower(path.Ext(name))
	html := ext == ".html" || ext == ".htm"
	if html { // before the file is read: a change in between is one
		stamp = h.stamp(v.session.Agent())
	}
	f, info, err := (&pathpolicy.Dir{Root: root, Path: dir}).OpenFile(name, local)
	if err != nil {
		notFound(w)
		return
	}
	defer f.Close()
	if info.Size() > maxFile {
		access.Error(w, http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the file has more than %d MB", maxFile>>20))
		return
	}
	head := w.Header()
	head.Set("Content-Security-Policy", pagePolicy)
	if kind := mime.TypeByExtension(ext); kind != "" {
		head.Set("Content-Type", kind)
	}
	if !html || v.grant == nil || !h.host.Reloads() || info.Size() > maxPage {
		http.ServeContent(w, r, name, time.Time{}, f)
		return
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPage+1))
	if err != nil {
		access.Error(w, http.StatusInternalServerError, "unavailable", "the page cannot be read")
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(reloading(b, v.base, stamp)))
}

// reloading returns a page with the script that loads it again.
func reloading(page []byte, base, stamp string) []byte {
	script := []byte(`<script src="` + base + canvas.ReloadPath + `.js?v=` + stamp + `"></script>`)
	at := bytes.LastIndex(bytes.ToLower(page), []byte("</body>"))
	if at < 0 {
		at = len(page)
	}
	return bytes.Join([][]byte{page[:at], script, page[at:]}, nil)
}

// reloadScript loads a page again when its files have changed.
const reloadScript = `new EventSource(document.currentScript.src.replace(".js?", "?")).onmessage = () => location.reload();
`

// a2ui serves the page that draws A2UI.
func (h *Handler) a2ui(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		if !strings.HasSuffix(r.URL.Path, "/") {
			w.Header().Set("Location", path.Base(r.URL.Path)+"/")
			w.WriteHeader(http.StatusFound)
			return
		}
		name = "a2ui.html"
	}
	f, ok := h.files[name]
	if !ok {
		notFound(w)
		return
	}
	w.Header().Set("Content-Security-Policy", a2uiPolicy)
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f))
}

// stream begins a stream of events, and returns a function that sends one; "" keeps the
// connection alive. The function reports false when the stream has ended.
func stream(w http.ResponseWriter) func(data string) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	c := http.NewResponseController(w)
	return func(data string) bool {
		text := ": \n\n"
		if data != "" {
			text = "data: " + data + "\n\n"
		}
		_ = c.SetWriteDeadline(time.Now().Add(keepAlive)) // not every connection supports deadlines
		_, err := io.WriteString(w, text)
		return err == nil && c.Flush() == nil
	}
}

// follow calls next, which sends what is due, whenever ready has a value, until the client, the
// capability or the stream ends.
func (h *Handler) follow(ctx context.Context, v visit, ready <-chan struct{},
	send func(string) bool, next func() bool) {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	var ended <-chan struct{}
	if v.grant != nil {
		ended = v.grant.Done
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-ready:
			if !next() {
				return
			}
		case <-alive.C:
			if v.grant != nil && !h.host.Use(v.grant) || !send("") {
				return
			}
		}
	}
}

// events sends the messages of the canvas of a session as they are pushed.
func (h *Handler) events(w http.ResponseWriter, r *http.Request, v visit) {
	screen, stop := h.host.Watch(v.session)
	if screen == nil {
		w.Header().Set("Retry-After", "30")
		access.Error(w, http.StatusServiceUnavailable, "unavailable", "too many screens show the canvas")
		return
	}
	defer stop()
	send := stream(w)
	h.follow(r.Context(), v, screen.Ready, send, func() bool {
		u, ok := screen.Next()
		if !ok {
			return true
		}
		b, err := json.Marshal(u)
		return err == nil && send(string(b))
	})
}

// maxReloads is the number of screens that wait for changes of files.
const maxReloads = 64

// How often files are looked at. They must be unchanged once before a page is loaded again, so
// that several saves in a row are one change.
const poll = 400 * time.Millisecond

// reloads sends an event when files of the folder of an agent are not what they were when the
// page was served, whose state is in the address.
func (h *Handler) reloads(w http.ResponseWriter, r *http.Request, v visit) {
	if h.waiting.Add(1) > maxReloads {
		h.waiting.Add(-1)
		w.Header().Set("Retry-After", "30")
		access.Error(w, http.StatusServiceUnavailable, "unavailable", "too many screens show pages")
		return
	}
	defer h.waiting.Add(-1)
	send := stream(w)
	seen, last := r.URL.Query().Get("v"), ""
	ready := make(chan struct{}, 1)
	t := time.AfterFunc(0, func() { ready <- struct{}{} })
	defer t.Stop()
	if !send("") {
		return
	}
	h.follow(r.Context(), v, ready, send, func() bool {
		now := h.stamp(v.session.Agent())
		if now != seen && now == last {
			send("changed") // the page opens another stream
			return false
		}
		last = now
		t.Reset(poll)
		return true
	})
}

// stamp identifies the state of the files of an agent.
func (h *Handler) stamp(id chela.AgentID) string {
	root, dir, err := h.host.Folder(id)
	if err != nil {
		return "none"
	}
	defer root.Close()
	sum := sha256.New()
	fmt.Fprintln(sum, dir)
	n := 0
	_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error { // what cannot be read is not served
		switch {
		case err != nil:
			return nil
		case name != "." && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case n >= maxWatched:
			return fs.SkipAll
		}
		n++
		if info, err := e.Info(); err == nil && !info.IsDir() {
			fmt.Fprintf(sum, "%s\x00%d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:9])
}
