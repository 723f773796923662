//go:build conformance

package conformance

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// pagePath matches the address of a page in the modules of the Control UI.
var pagePath = regexp.MustCompile("path:`(/[a-z/-]*)`")

// pages returns the addresses of all pages of the Control UI.
func pages(t testing.TB) []string {
	t.Helper()
	assets, err := filepath.Glob(filepath.Join(packages(t, current()), "openclaw", "dist", "control-ui", "assets",
		"control-ui-*.js"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range assets {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "path:`/settings/channels`") {
			continue
		}
		for _, m := range pagePath.FindAllSubmatch(b, -1) {
			out = append(out, string(m[1]))
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) < 40 {
		t.Fatalf("the Control UI has %d pages: %q", len(out), out)
	}
	return out
}

// TestControlUIPages opens each page of the Control UI. None reports an error, and none
// waits for an answer; the methods that a page asks for in vain are printed at the end of
// the tests.
func TestControlUIPages(t *testing.T) {
	t.Parallel()
	s := newGateway(t, withUI(t))
	s.Chela("agent", "-m", "echo hello")
	b := newBrowser(t)
	b.Open(s.HTTP() + "/#token=" + url.QueryEscape(token))
	b.Await("no message field", `!!document.querySelector('`+composer+`')`)
	for _, path := range pages(t) {
		t.Run(strings.TrimPrefix(path, "/"), func(t *testing.T) {
			b.t = t
			defer func() { b.t = t }()
			frames, errors := len(b.Frames(0)), len(b.Errors(0))
			b.Open(s.HTTP() + path)
			b.receives("a hello", frames, func(f wsFrame) bool { return strings.Contains(f.Text, wire.HelloOK) })
			b.Await("the page stands still", `document.body.innerText.trim().length > 40`)
			b.settles(frames)
			for _, e := range b.Errors(errors) {
				if !strings.Contains(e, "/__openclaw__/workspace-icon/") { // an icon that the workspace does not have
					t.Error(e)
				}
			}
			for _, method := range b.unknown(frames) {
				inVain.add(method, "the page "+path)
			}
		})
	}
	b.t = t
	b.succeeded(t)
}

// settles waits until all requests after the last hello from frame n on have been answered.
func (b *browser) settles(n int) {
	b.t.Helper()
	open := map[string]string{}
	defer func() {
		if b.t.Failed() {
			b.t.Logf("without an answer: %v", open)
		}
	}()
	waittest.Until(b.t, "answers", func() bool {
		clear(open)
		for _, f := range b.Frames(n) {
			switch {
			case strings.Contains(f.Text, wire.HelloOK): // what the page before asked for is not answered
				clear(open)
			case f.Sent && f.Type == wire.TypeRequest:
				open[f.ID] = f.Method
			case f.Type == wire.TypeResponse:
				delete(open, f.ID)
			}
		}
		return len(open) == 0
	})
}

// unknown returns the methods from frame n on that the gateway does not have.
func (b *browser) unknown(n int) (out []string) {
	for _, f := range b.Frames(n) {
		if f.Error == nil {
			continue
		}
		if method, ok := strings.CutPrefix(f.Error.Message, "unknown method: "); ok {
			out = append(out, method)
		}
	}
	return out
}

// TestControlUISetup follows the links to what Chela sets up with commands.
func TestControlUISetup(t *testing.T) {
	t.Parallel()
	s := newGateway(t, withUI(t))
	b := newBrowser(t)
	b.Open(s.HTTP() + "/#token=" + url.QueryEscape(token))
	b.Await("no message field", `!!document.querySelector('`+composer+`')`)
	t.Run("New agent", func(t *testing.T) {
		b.t = t
		b.Open(s.HTTP() + "/agents")
		const link = `[...document.querySelectorAll("a")].find(e => e.href.includes("intent=new-agent"))`
		b.Await("no link", "!!"+link)
		evaluate[any](b, fmt.Sprintf("(%s).click(), 1", link))
		b.Shows("chela agents add NAME")
	})
	t.Run("Set up a channel", func(t *testing.T) {
		b.t = t
		b.Open(s.HTTP() + "/settings/channels")
		const button = `[...document.querySelectorAll("button")].find(e => e.offsetParent && !e.disabled && /^(set up|add channel|connect)/i.test(e.innerText.trim()))`
		b.Await("no button", "!!"+button)
		evaluate[any](b, fmt.Sprintf("(%s).click(), 1", button))
		b.Shows("chela channels add")
	})
	b.t = t
}
