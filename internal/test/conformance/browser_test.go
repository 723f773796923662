//go:build conformance

package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// browser is a headless Chromium with one page and an empty profile. It makes
// no requests to the internet.
type browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	frames   []wsFrame
	errors   []string // of the page and its console
	requests []string // addresses
	loads    int      // documents that the page loaded
}

// wsFrame is a WebSocket frame that the page sent or received.
type wsFrame struct {
	Sent bool
	frameHead
	Text string
}

// frameHead contains fields that frames of different types have.
type frameHead struct {
	Type   string      `json:"type"`
	ID     string      `json:"id"`
	Method string      `json:"method"`
	Event  string      `json:"event"`
	OK     bool        `json:"ok"`
	Error  *wire.Error `json:"error"`
}

// chromium returns the path of the program, or skips the test.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	needtest.Missing(t, "Chromium")
	return ""
}

// newBrowser starts a browser. names are host names that resolve to this
// machine.
func newBrowser(t testing.TB, names ...string) *browser {
	t.Helper()
	rules := []string{"MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1"}
	for _, n := range names {
		rules = append([]string{"MAP " + n + " 127.0.0.1"}, rules...)
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.WindowSize(1280, 900), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("host-resolver-rules", strings.Join(rules, ",")),
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(alloc)
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			b.dump()
		}
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("close the browser: %v", err)
		}
		end()
		stop()
	})
	if err := chromedp.Listen(ctx, b.see); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return b
}

// see records the WebSocket frames, errors and loaded documents.
func (b *browser) see(ev any) {
	var s wsFrame
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.fault(fmt.Sprint(ev.ExceptionDetails.Text, " ", describe(ev.ExceptionDetails.Exception)))
		return
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" {
			b.fault(describe(ev.Args...))
		}
		return
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError {
			b.fault(ev.Entry.Text + " " + ev.Entry.URL)
		}
		return
	case *page.EventFrameNavigated:
		if ev.Frame.ParentID == "" {
			b.mu.Lock()
			b.loads++
			b.mu.Unlock()
		}
		return
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests = append(b.requests, ev.Request.URL)
		b.mu.Unlock()
		return
	case *network.EventWebSocketFrameSent:
		s.Sent, s.Text = true, string(ev.Response.PayloadData)
	case *network.EventWebSocketFrameReceived:
		s.Text = string(ev.Response.PayloadData)
	default:
		return
	}
	_ = json.Unmarshal([]byte(s.Text), &s.frameHead) // a frame of another protocol has none of the fields
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames = append(b.frames, s)
}

func (b *browser) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, strings.TrimSpace(text))
}

// describe returns objects of the page as text.
func describe(objects ...*runtime.RemoteObject) string {
	var out []string
	for _, o := range objects {
		if o != nil {
			out = append(out, cmp.Or(o.Description, string(o.Value)))
		}
	}
	return strings.Join(out, " ")
}

// Errors returns the errors from index n.
func (b *browser) Errors(n int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.errors[min(n, len(b.errors)):])
}

// Loads returns the number of documents that the page has loaded.
func (b *browser) Loads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loads
}

// Frames returns the frames from index n.
func (b *browser) Frames(n int) []wsFrame {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.frames[min(n, len(b.frames)):len(b.frames):len(b.frames)]
}

func (b *browser) dump() {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	b.t.Logf("the page (%v):\n%s", err, text)
	for _, f := range b.Frames(0) {
		b.t.Logf("sent %v: %.300s", f.Sent, f.Text)
	}
}

// Open loads an address.
func (b *browser) Open(url string) {
	b.t.Helper()
	b.do("open "+url, chromedp.Navigate(url))
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waittest.Limit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// Await waits until a JavaScript expression is true.
func (b *browser) Await(what, expr string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waittest.Limit+10*time.Second)
	defer cancel()
	poll := chromedp.Poll[bool](expr, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(waittest.Limit))
	if _, err := chromedp.Run(ctx, poll); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// Shows waits until the page shows a text.
func (b *browser) Shows(text string) {
	b.t.Helper()
	b.Await("the page does not show "+text, fmt.Sprintf("document.body.innerText.includes(%s)", quote(text)))
}

// quote returns a string as a JavaScript literal.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings only
	}
	return string(b)
}

// evaluate returns the value of an expression, which may be a promise.
func evaluate[T any](b *browser, expr string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waittest.Limit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expr, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expr, err)
	}
	return v
}
