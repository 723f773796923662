//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// withUI returns the configuration of a gateway that serves the published
// Control UI.
func withUI(t testing.TB) section {
	t.Helper()
	root := filepath.Join(packages(t, current()), "openclaw", "dist", "control-ui")
	return section{"gateway": section{"controlUi": section{"root": root}}}
}

const composer = `textarea[placeholder^="Message"]`

// say writes a message and sends it.
func (b *browser) say(text string) {
	b.t.Helper()
	b.do("write "+text, chromedp.WaitVisible(composer), chromedp.Click(composer), chromedp.SendKeys(composer, text),
		chromedp.KeyEvent("\r"))
}

// write writes into a field and presses Enter. It repeats this if the page is
// redrawn and loses the text.
func (b *browser) write(field, text string) {
	b.t.Helper()
	for range 50 {
		if evaluate[string](b, fmt.Sprintf("(e => (e.focus(), e.value))(%s)", field)) == text {
			b.do("enter "+text, chromedp.KeyEvent("\r"))
			return
		}
		b.do("write "+text, chromedp.Evaluate[chromedp.Void](field+".select()"), chromedp.KeyEvent(text),
			chromedp.Sleep(200*time.Millisecond))
	}
	b.t.Fatalf("cannot write %q", text)
}

// menu selects an item in the menu of the open session. It opens the menu again
// if the page is redrawn and closes it.
func (b *browser) menu(item string) {
	b.t.Helper()
	chosen := fmt.Sprintf(`[...document.querySelectorAll("[role=menuitem]")].find(e => e.getClientRects().length && e.innerText.trim().startsWith(%s))`, quote(item))
	b.Await("no "+item+" in the menu", fmt.Sprintf(`(() => {
		const item = %s;
		if (item) { item.click(); return true; }
		if (Date.now() - (window.opened || 0) > 2000) {
			window.opened = Date.now();
			[...document.querySelectorAll('button[aria-label^="Actions for"]')].filter(e => e.getClientRects().length).at(-1)?.click();
		}
		return false;
	})()`, chosen))
}

// press clicks a button.
func (b *browser) press(label string) {
	b.t.Helper()
	find := fmt.Sprintf(
		`[...document.querySelectorAll("button")].find(e => e.offsetParent && !e.disabled && e.innerText.trim() == %s)`,
		quote(label))
	b.Await("no button "+label, "!!"+find)
	b.do(label, chromedp.Evaluate[chromedp.Void](find+".click()"))
}

// picture returns a PNG of the given size.
func picture(t testing.TB, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestControlUI(t *testing.T) {
	t.Parallel()
	s := newGateway(t, merge(withUI(t), section{"tools": section{"exec": section{"mode": "ask"}}}))
	s.File("notes.txt", "the tide turns at six\n")
	b := newBrowser(t)
	b.Open(s.HTTP() + "/#token=" + url.QueryEscape(token))

	step := func(name string, f func(t *testing.T)) {
		if !t.Run(name, func(t *testing.T) { b.t = t; f(t) }) {
			t.FailNow()
		}
		b.t = t
	}
	step("it connects, and its device is paired without approval", func(t *testing.T) {
		b.Await("no message field", `!!document.querySelector('`+composer+`')`)
		b.Shows("What can you do?")
		if list := s.Chela("devices", "list"); !strings.Contains(list, "openclaw-control-ui") {
			t.Errorf("devices:\n%s", list)
		}
	})
	step("an answer is shown", func(t *testing.T) {
		b.say("count")
		b.Shows("39 40")
		b.Await("it is still sending", `!document.body.innerText.includes("Sending message")`)
	})
	step("a tool call and its result are shown", func(t *testing.T) {
		b.say("read notes.txt")
		b.Shows("The tool said: ")
		b.Await("the tool call is not shown", `!!document.querySelector(".chat-tool-row, .chat-tool-msg-summary")`)
		b.Await("the result is not shown", `(() => {
			if ([...document.querySelectorAll("[class*=tool]")].some(e => e.innerText.includes("the tide turns at six"))) return true;
			const call = [...document.querySelectorAll(".chat-tool-msg-summary")].map(e => e.querySelector("button[aria-expanded]") || e).at(-1);
			if (call && call.getAttribute("aria-expanded") != "true" && Date.now() - (window.opened || 0) > 2000) { // the page may be redrawn, and close it
				window.opened = Date.now();
				call.click();
			}
			return false;
		})()`)
	})
	step("a call that needs approval is shown and can be allowed", func(t *testing.T) {
		b.say("run touch made-by-a-click")
		b.Shows("touch made-by-a-click")
		b.Await("no button to allow it",
			`[...document.querySelectorAll("button")].some(e => /allow once/i.test(e.innerText))`)
		b.do("allow",
			chromedp.Evaluate[chromedp.Void](
				`[...document.querySelectorAll("button")].find(e => /allow once/i.test(e.innerText)).click()`))
		b.Await("the allowed call was not run", `[...document.querySelectorAll(".chat-bubble, .chat-text")].some(e => e.innerText.includes("The tool said")) && document.body.innerText.split("The tool said").length > 2`)
	})
	step("an answer is shown while it is streamed, and can be stopped", func(t *testing.T) {
		b.say("wait")
		b.Await("nothing of the answer is shown before its end", `document.body.innerText.split("1 2").length > 2`)
		b.Await("no button to stop",
			`[...document.querySelectorAll("button")].some(e => /stop/i.test(e.getAttribute("aria-label") || e.title))`)
		b.do("stop",
			chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("button")].find(e => /stop/i.test(e.getAttribute("aria-label") || e.title)).click()`))
		b.Shows("Interrupted")
	})
	step("everything is there after a reload", func(t *testing.T) {
		b.do("reload", chromedp.Reload())
		b.Shows("39 40")
		b.Shows("The tool said: ")
	})
	step("a session can be created, renamed, found and deleted", func(t *testing.T) {
		b.do("begin", chromedp.Click(".sidebar-new-session"))
		b.Await("no page for the session",
			`location.pathname == "/new" && [...document.querySelectorAll("textarea")].some(e => e.offsetParent)`)
		b.write(`[...document.querySelectorAll("textarea")].filter(e => e.offsetParent).at(-1)`, "echo in another one")
		b.Await("the session was not created", `location.pathname.startsWith("/chat/main/chat-")`)
		b.Await("no answer in the session",
			`document.body.innerText.split("\n").some(line => line.trim() == "in another one")`)
		b.menu("Rename")
		b.Await("no field for the name", `document.activeElement.matches("input, textarea")`)
		b.do("rename", chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`), chromedp.KeyEvent("Tea talk"),
			chromedp.KeyEvent("\r"))
		b.Shows("Tea talk")
		b.do("reload", chromedp.Reload())
		b.Shows("in another one")
		b.Shows("Tea talk")
		b.menu("Delete")
		b.Await("it does not ask for confirmation", `!!document.querySelector("button.btn.danger")`)
		b.do("delete", chromedp.Evaluate[chromedp.Void](`document.querySelector("button.btn.danger").click()`))
		b.Await("the session is still shown", `!document.body.innerText.includes("Tea talk")`)
		if list := s.Chela("sessions", "list"); strings.Contains(list, "Tea talk") {
			t.Errorf("sessions:\n%s", list)
		}
	})
	step("a subagent is shown below its session, with its task, and can be stopped", func(t *testing.T) {
		const field = `[...document.querySelectorAll("textarea")].filter(e => e.offsetParent).at(-1)`
		b.write(field, "spawn wait")
		b.Shows("A helper was started.")
		const row = `[...document.querySelectorAll(".chat-subagent-activity__row")].find(e => e.innerText.trim() == "helper")`
		b.Await("no row for the subagent", "!!"+row)
		b.do("open its task", chromedp.Evaluate[chromedp.Void](row+".click()"))
		const detail = `[...document.querySelectorAll(".chat-task-detail__heading")].map(e => e.parentElement.innerText).join()`
		b.Await("the task is not shown as running", detail+`.includes("Running")`)
		b.do("stop it",
			chromedp.Evaluate[chromedp.Void](
				`[...document.querySelectorAll("button")].find(e => e.innerText.trim() == "Stop").click()`))
		b.Await("the task is still running", `!`+detail+`.includes("Running")`)
		if list := s.Chela("tasks", "list"); !strings.Contains(list, "helper") || !strings.Contains(list, "cancelled") {
			t.Errorf("tasks:\n%s", list)
		}
		b.write(field, "spawn echo found it")
		b.Shows("The helper has ended.")
	})
	step("the plan of a conversation is shown beside it", func(t *testing.T) {
		const steps = `[...document.querySelectorAll(".session-progress-card__step")].map(e => e.innerText.trim()).join()`
		b.write(`[...document.querySelectorAll("textarea")].filter(e => e.offsetParent).at(-1)`, "plan")
		b.Await("the steps of the plan are not shown", steps+` == "water the plants,feed the fish"`)
		b.do("reload", chromedp.Reload())
		b.Await("the plan is not there after a reload", steps+` == "water the plants,feed the fish"`)
	})
	step("pictures are shown, sent from here and from elsewhere", func(t *testing.T) {
		const shown = `[...document.querySelectorAll("img")].filter(e => e.naturalWidth == 3 && e.naturalHeight == 2).length`
		s.File("dot.png", picture(t, 3, 2))
		file := filepath.Join(s.Work, "dot.png")
		s.Chela("agent", "--image", file, "-m", "echo seen elsewhere")
		b.Shows("seen elsewhere")
		b.Await("the picture is not shown", shown+" > 0")
		b.do("attach", chromedp.SetUploadFiles(`input[type=file]`, []string{file}))
		b.write(`[...document.querySelectorAll("textarea")].filter(e => e.offsetParent).at(-1)`, "echo seen here")
		b.Await("the message was not answered",
			`[...document.querySelectorAll(".chat-bubble, .chat-text")].some(e => e.innerText.trim() == "seen here")`)
		b.do("reload", chromedp.Reload())
		b.Shows("seen here")
		b.Await("not both pictures are shown", shown+" > 1")
	})
	step("an automation can be created, run, paused, resumed and removed", func(t *testing.T) {
		const switched = `[...document.querySelectorAll("wa-switch")].find(e => e.innerText.includes("Morning brief"))`
		set := func(id, text string) {
			b.do("fill in "+id, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
				const e = document.getElementById(%q);
				Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), "value").set.call(e, %q);
				e.dispatchEvent(new Event("input", {bubbles: true}));
			})()`, id, text)))
		}
		b.do("open",
			chromedp.Evaluate[chromedp.Void](
				`[...document.querySelectorAll("a")].find(e => e.innerText.trim() == "Automations").click()`))
		b.press("New automation")
		b.Await("no form", `!!document.getElementById("cron-payload-text")`)
		set("cron-payload-text", "echo good morning")
		set("cron-name", "Morning brief")
		b.press("Create & run now")
		b.Await("the automation is not shown with its run",
			`!!document.querySelector(".cron-table__row .cron-last-glyph--ok")`)
		if list := s.Chela("cron", "runs", "Morning brief"); !strings.Contains(list, "ok") {
			t.Errorf("runs:\n%s", list)
		}
		b.do("pause", chromedp.Evaluate[chromedp.Void](switched+".click()"))
		b.Await("it is not paused", `document.querySelector(".cron-table__row").innerText.includes("Paused")`)
		if list := s.Chela("cron", "list", "--all"); !strings.Contains(list, "off") {
			t.Errorf("jobs:\n%s", list)
		}
		b.do("resume", chromedp.Evaluate[chromedp.Void](switched+".click()"))
		b.Await("it is not resumed", `!document.querySelector(".cron-table__row").innerText.includes("Paused")`)
		s.Chela("cron", "edit", "Morning brief", "--name", "Evening brief") // the page hears of it
		b.Shows("Evening brief")
		b.do("open the menu",
			chromedp.Evaluate[chromedp.Void](`document.querySelector('[aria-label="More actions for Evening brief"]').click()`))
		b.do("remove",
			chromedp.Evaluate[chromedp.Void](
				`[...document.querySelectorAll("wa-dropdown-item")].find(e => e.innerText.trim() == "Remove").click()`))
		b.press("Remove")
		b.Await("it is still shown", `!document.body.innerText.includes("Evening brief")`)
		if list := s.Chela("cron", "list", "--all"); strings.Contains(list, "brief") {
			t.Errorf("jobs:\n%s", list)
		}
		b.do("back", chromedp.Evaluate[chromedp.Void](`history.back()`))
	})
	step("an idle page does not poll", func(t *testing.T) {
		time.Sleep(5 * time.Second)
		n := len(b.Frames(0))
		time.Sleep(12 * time.Second)
		asked := map[string]int{}
		for _, f := range b.Frames(n) {
			if f.Sent && f.Type == wire.TypeRequest {
				asked[f.Method]++
			}
		}
		for method, n := range asked {
			if n > 2 {
				t.Errorf("%s was called %d times in 12 s", method, n)
			}
		}
	})
	t.Run("advertised methods succeed", func(t *testing.T) { b.succeeded(t) })
}

// succeeded checks that the gateway refused nothing but methods that it does not have, and a
// search in a registry of skills that is not configured.
func (b *browser) succeeded(t *testing.T) {
	method := map[string]string{}
	for _, f := range b.Frames(0) {
		if f.Sent {
			method[f.ID] = f.Method
		} else if f.Type == wire.TypeResponse && f.Error != nil && !strings.HasPrefix(f.Error.Message, "unknown method: ") &&
			!strings.HasPrefix(f.Error.Message, "no registry of skills is configured") {
			t.Errorf("%s: %v", method[f.ID], f.Error)
		}
	}
}

// attempt is what a page of another origin received.
type attempt struct {
	What string
	Got  string // "": nothing
}

// evil is a page that tries everything that a page can do.
const evil = `<!doctype html><title>evil</title><script>
async function all(gateway, ws, paths) {
	const out = [];
	for (const path of paths) for (const method of ["GET", "POST"]) for (const headers of [{}, {"Authorization": "Bearer x"}]) {
		let got = "";
		try {
			const r = await fetch(gateway + path, {method, headers, credentials: "include", body: method == "POST" ? "{}" : undefined});
			got = r.status + " " + (await r.text()).slice(0, 80);
		} catch (e) {}
		out.push({What: method + " " + path, Got: got});
	}
	for (const path of ["/", "/ws", "/chat/main"]) out.push({What: "WebSocket " + path, Got: await new Promise(done => {
		let got = "";
		try {
			const c = new WebSocket(ws + path);
			c.onopen = () => got += "open ";
			c.onmessage = m => { got += m.data.slice(0, 80); c.close(); };
			c.onclose = () => done(got);
			setTimeout(() => done(got), 3000);
		} catch (e) { done(got); }
	})});
	return out;
}
</script>`

func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	t.Run("the Control UI", func(t *testing.T) { foreignOrigin(t, newGateway(t, withUI(t))) })
}

// TestWebForeignOrigin is the same with the gateway's own page.
func TestWebForeignOrigin(t *testing.T) {
	t.Parallel()
	foreignOrigin(t, newGateway(t, nil))
}

// foreignOrigin tries from pages of other origins what a page can do.
func foreignOrigin(t *testing.T, s *gateway) {
	t.Helper()
	b := newBrowser(t, "evil.example", "localhost")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, evil)
	}))
	defer page.Close()
	at, err := url.Parse(page.URL)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := json.Marshal([]string{
		"/", "/healthz", "/readyz", "/metrics", "/control-ui-config.json", "/__openclaw__/control-ui-config.json",
		"/chat/main", "/favicon.ico",
		"/v1/models", "/v1/chat/completions", "/v1/responses", "/tools/invoke", "/hooks/wake", "/hooks/agent",
		"/sessions/main/history", "/api/x",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"127.0.0.1", "localhost", "evil.example"} {
		t.Run("a page of evil.example gets nothing from "+to, func(t *testing.T) {
			b.Open("http://evil.example:" + at.Port() + "/")
			to := fmt.Sprintf("%s:%d", to, s.Port)
			for _, a := range evaluate[[]attempt](b,
				fmt.Sprintf("all(%s, %s, %s)", quote("http://"+to), quote("ws://"+to), paths)) {
				if a.Got != "" {
					t.Errorf("%s: %s", a.What, a.Got)
				}
			}
		})
	}
	t.Run("a host name that resolves to this machine gets nothing", func(t *testing.T) {
		b.Open(fmt.Sprintf("http://evil.example:%d/", s.Port))
		if text := evaluate[string](b, "document.documentElement.innerText"); !strings.Contains(text, "host") {
			t.Errorf("the page: %s", text)
		}
		if n := evaluate[int](b, "document.scripts.length"); n != 0 {
			t.Errorf("the page has %d scripts", n)
		}
	})
	if slices.ContainsFunc(b.Frames(0), func(f wsFrame) bool { return f.Event == wire.EventChallenge }) {
		t.Error("a challenge was sent")
	}
}

// TestControlUICuts restarts the gateway ten times below a page. After each restart the page
// connects again by itself and sends a message, once.
func TestControlUICuts(t *testing.T) {
	t.Parallel()
	s := newGateway(t, withUI(t))
	b := newBrowser(t)
	b.Open(s.HTTP() + "/#token=" + url.QueryEscape(token))
	b.Await("no message field", `!!document.querySelector('`+composer+`')`)
	b.say("echo before the cuts")
	b.Shows("before the cuts")
	loads := b.Loads()
	const cuts = 10
	for i := range cuts {
		n := len(b.Frames(0))
		s.Stop()
		s.Start()
		b.receives("a hello", n, func(f wsFrame) bool { return strings.Contains(f.Text, wire.HelloOK) })
		b.say(fmt.Sprintf("echo after cut %d.", i))
		b.receives("an answer", n, func(f wsFrame) bool {
			return f.Event == wire.EventChat && strings.Contains(f.Text, `"final"`) &&
				strings.Contains(f.Text, fmt.Sprintf("after cut %d.", i))
		})
	}
	var h wire.History
	s.operator(t).Must("chat.history", map[string]any{"sessionKey": "main", "limit": 4 * cuts}, &h)
	for i := range cuts {
		asked := 0
		for _, m := range h.Messages {
			if m.Role == "user" && strings.Contains(m.Text(), fmt.Sprintf("after cut %d.", i)) {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("message %d is in the history %d times", i, asked)
		}
	}
	b.succeeded(t)
	// The page reloads itself, once, if it loads a module while the gateway is away.
	t.Logf("the page was loaded %d times during the cuts", b.Loads()-loads)
}

// receives waits for a frame from index n.
func (b *browser) receives(what string, n int, f func(wsFrame) bool) {
	b.t.Helper()
	waittest.Until(b.t, what, func() bool {
		return slices.ContainsFunc(b.Frames(n), func(w wsFrame) bool { return !w.Sent && f(w) })
	})
}
