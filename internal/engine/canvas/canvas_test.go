package canvas

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
)

func newHost(t *testing.T) (*Host, string, *[]canvas.View) {
	t.Helper()
	work, seen := t.TempDir(), new([]canvas.View)
	return New(Options{
		Log:       slog.New(slog.DiscardHandler),
		Config:    func() canvas.Config { return canvas.Config{} },
		Workspace: func(chela.AgentID) string { return work },
		Publish:   func(e chela.Event) { *seen = append(*seen, e.Data.(canvas.Changed).View) },

		URL: func() string { return "http://127.0.0.1:1" },
	}), work, seen
}

func secretIn(address string) string {
	_, rest, _ := strings.Cut(address, canvas.CapabilityPath)
	secret, _, _ := strings.Cut(rest, "/")
	return secret
}

const key = chela.SessionKey("agent:main:main")

func push(t *testing.T, h *Host, key chela.SessionKey, lines string) {
	t.Helper()
	m, err := canvas.Parse(lines)
	if err == nil {
		_, err = h.Push(key, m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newHost(t)
		valid := func(address string) bool { _, ok := h.Find(secretIn(address)); return ok }

		link, _ := h.Link(key)
		other, _ := h.Link("agent:main:other")
		if again, _ := h.Link(key); again != link || other == link || len(secretIn(link)) < 40 {
			t.Fatalf("links %s, %s, %s", link, again, other)
		}
		for range 20 { // each use prolongs it
			time.Sleep(50 * time.Minute)
			if !valid(link) {
				t.Fatal("a link that is used has ended")
			}
		}
		if valid(other) {
			t.Error("a link that was not used for an hour is valid")
		}
		for range 9 {
			time.Sleep(50 * time.Minute)
			valid(link)
		}
		if valid(link) {
			t.Error("a link is valid after a day")
		}

		own := h.Open("c1", "phone", "http://10.0.0.1:2")
		if !strings.HasPrefix(own, "http://10.0.0.1:2"+canvas.CapabilityPath) || !valid(own) {
			t.Fatal(own)
		}
		fresh, expires, ok := h.Renew("c1", key)
		if !ok || fresh == own || !expires.Equal(time.Now().Add(connLifetime)) || !valid(own) {
			t.Errorf("renewed: %s, %v, %v", fresh, expires, ok)
		}
		time.Sleep(connLifetime + time.Second)
		if valid(own) || valid(fresh) {
			t.Error("an address of a connection is valid although it was not used")
		}
		first, _, _ := h.Renew("c1", key)
		for range maxPerConn {
			time.Sleep(time.Second)
			h.Renew("c1", key)
		}
		if valid(first) {
			t.Error("a connection has any number of addresses")
		}
		last, _, _ := h.Renew("c1", key)
		g, _ := h.Find(secretIn(last))
		h.Close("c1")
		select {
		case <-g.Done:
		default:
			t.Error("who watches is not told of the end")
		}
		if _, _, ok := h.Renew("c1", key); ok || valid(last) {
			t.Error("a connection that has ended has an address")
		}
		if _, ok := h.Find(""); ok {
			t.Error("no secret is one")
		}

		link, _ = h.Link(key)
		h.Forget(key)
		if valid(link) {
			t.Error("the link of a deleted session is valid")
		}
	})
}

func TestParams(t *testing.T) {
	t.Parallel()
	h, _, _ := newHost(t)
	h.Open("c1", "phone", "http://10.0.0.1:2")
	for in, want := range map[string]string{
		`{}`:                                     `{}`,
		`{"url":"https://example.org/x"}`:        `{"url":"https://example.org/x"}`,
		`{"url":"a b.html","placement":{"x":1}}`: "http://10.0.0.1:2/__openclaw__/cap/",
		`{"url":"javascript:x"}`:                 "error",
		`{"url":7}`:                              "error",
		`{"url":"../x"}`:                         "error",
	} {
		got, err := h.Params("phone", "canvas.present", key, []byte(in))
		if text := string(got); (err != nil) != (want == "error") || err == nil && !strings.Contains(text, want) {
			t.Errorf("%s: %s, %v, want %s", in, text, err, want)
		}
	}
	if got, err := h.Params("phone", "canvas.eval", key, []byte(`{"url":"javascript:x"}`)); err != nil ||
		string(got) != `{"url":"javascript:x"}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := h.Params("unknown", "canvas.navigate", key, []byte(`{"url":"a.html"}`)); err == nil {
		t.Error("a page is shown on a device that is not connected")
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	h, work, seen := newHost(t)
	if _, err := h.Show(t.Context(), key, ""); err == nil ||
		!strings.Contains(err.Error(), "there is no page index.html in "+filepath.Join(work, "canvas")) {
		t.Error(err)
	}
	dir := filepath.Join(work, "canvas", "sub")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{"sub": "sub/", "sub/index.html": "sub/index.html"} {
		if v, err := h.Show(t.Context(), key, page); err != nil || v.Page != want || v.Path() != canvas.PagesPath+want {
			t.Errorf("%s: %+v, %v", page, v, err)
		}
	}
	push(t, h, key, canvas.Text("one"))
	push(t, h, key, canvas.Text("two"))
	h.Hide(key)
	if v, err := h.Show(t.Context(), key, ""); err != nil || v.Kind != canvas.Surfaces {
		t.Errorf("what was pushed is not shown again: %+v, %v", v, err)
	}
	h.Reset(key)
	h.Reset(key)
	var kinds []string
	for i, v := range *seen {
		kinds = append(kinds, fmt.Sprint(v.Version-int64(i), v.Kind))
	}
	if got := strings.Join(kinds, ", "); got != "1page, 1page, 1a2ui, 1, 1a2ui, 1" {
		t.Errorf("published %s", got)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	h, work, _ := newHost(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(work, "canvas")); err != nil {
		t.Skip(err)
	}
	if root, dir, err := h.Folder("main"); err == nil {
		root.Close()
		t.Errorf("%s leads out of the workspace", dir)
	}
	h.o.Config = func() canvas.Config { return canvas.Config{Root: outside} }
	root, dir, err := h.Folder("main")
	if err != nil || dir != outside {
		t.Fatalf("the folder that the configuration names: %s, %v", dir, err)
	}
	root.Close()
	h.o.Config = func() canvas.Config { return canvas.Config{Root: "pages"} }
	if _, _, err := h.Folder("main"); err == nil || !strings.Contains(err.Error(), "is not an absolute path") {
		t.Error(err)
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	h, _, _ := newHost(t)
	push(t, h, key, canvas.Text("one"))
	s, stop := h.Watch(key)
	next := func(what string, reset bool, n int) {
		t.Helper()
		<-s.Ready
		if u, ok := s.Next(); !ok || u.Reset != reset || len(u.Messages) != n {
			t.Errorf("%s: %+v, %v", what, u, ok)
		}
	}
	next("the first one", true, 2)
	push(t, h, key, canvas.Text("two"))
	push(t, h, key, canvas.Text("three"))
	next("two pushes", false, 4)
	for range maxWaiting/2 + 1 {
		push(t, h, key, canvas.Text("more"))
	}
	next("a slow screen", true, 2)
	h.Reset(key)
	next("a reset", true, 0)
	if _, ok := s.Next(); ok {
		t.Error("there is an update, and nothing has changed")
	}
	for i := range 3 * maxCanvases {
		push(t, h, chela.SessionKey(fmt.Sprintf("agent:main:s%d", i)), canvas.Text("x"))
	}
	if len(h.canvases) > maxCanvases || h.canvases[key] == nil {
		t.Errorf("%d canvases are kept, and that of a screen is there: %v", len(h.canvases), h.canvases[key] != nil)
	}
	stop()
	for range maxWatchers {
		if s, _ := h.Watch(key); s == nil {
			t.Fatal("a screen is refused")
		}
	}
	if s, _ := h.Watch(key); s != nil {
		t.Error("there is any number of screens")
	}
}
