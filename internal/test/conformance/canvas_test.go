//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

// canvas makes the assistant call its tool canvas, and waits for the answer, which contains
// want. It returns the answer.
func (b *browser) canvas(args map[string]any, want string) string {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	n := evaluate[int](b, `document.querySelectorAll(".turn.assistant:not(.live)").length`)
	b.do("write", chromedp.WaitVisible(composer), chromedp.Click(composer))
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: "canvas " + string(raw)}); err !=
		nil {
		b.t.Fatal(err)
	}
	b.do("send", chromedp.KeyEvent("\r"))
	b.Await("no answer with "+want, fmt.Sprintf(`document.querySelectorAll(".turn.assistant:not(.live)").length > %d && !document.querySelector(".live, .working") &&
		[...document.querySelectorAll(".turn.assistant:not(.live)")].at(-1).innerText.includes(%s)`, n, quote(want)))
	return evaluate[string](b, `[...document.querySelectorAll(".turn.assistant:not(.live)")].at(-1).innerText`)
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/__openclaw__/cap/\S+`)

// lines returns messages as JSON lines.
func lines(messages ...string) string { return strings.Join(messages, "\n") }

// TestCanvas shows pages and surfaces in the web page and in a tab, as a person sees them.
func TestCanvas(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	s := newGateway(t, section{})
	if err := os.Mkdir(filepath.Join(s.Work, "canvas"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.File("canvas/index.html", fmt.Sprintf(`<!doctype html><body><h1 id="title">First</h1><script src="app.js"></script><script type="module" src="module.js"></script><script>
		const thief = %q;
		(async () => {
			const tried = {};
			const attempt = async (name, f) => { try { tried[name] = String(await f()); } catch (e) { tried[name] = "no: " + e.name; } };
			await attempt("parent", () => parent.document.title);
			await attempt("storage", () => localStorage.length);
			await attempt("database", () => indexedDB.databases().then(d => d.length));
			await attempt("cookie", () => document.cookie);
			await attempt("page", () => fetch("/").then(r => r.text()));
			await attempt("canvas", () => fetch("/__openclaw__/canvas/").then(r => r.status));
			await attempt("elsewhere", () => fetch(thief, {mode: "no-cors"}));
			await attempt("picture", () => new Promise((ok, bad) => { const i = new Image(); i.onload = ok; i.onerror = () => bad(new DOMException("", "blocked")); i.src = thief + "/x.png"; }));
			await attempt("socket", () => new Promise((ok, bad) => { const w = new WebSocket(location.href.replace("http", "ws")); w.onopen = ok; w.onerror = () => bad(new DOMException("", "blocked")); }));
			await attempt("own", () => fetch("data.json").then(r => r.json()).then(d => d.n));
			if (parent !== window) await attempt("top", () => { top.location = thief; return "asked"; });
			document.body.dataset.tried = JSON.stringify(tried);
			parent.postMessage({tried}, "*");
			parent.postMessage({action: {name: "save", surfaceId: "main", sourceComponentId: "save", context: {}}}, "*");
			parent.postMessage("chela-canvas", "*");
			if (parent !== window) location = thief + "/gone";
		})();
	</script></body>`, thief.URL))
	s.File("canvas/app.js", `document.body.dataset.script = "ran"`)
	s.File("canvas/module.js", `document.body.dataset.module = "ran"`)
	s.File("canvas/data.json", `{"n": 7}`)
	b, tab := signedIn(t, s), newBrowser(t)
	step := b.steps(t)

	step("a page is shown beside the conversation, in a sandbox", func(t *testing.T) {
		b.do("listen",
			chromedp.Evaluate[chromedp.Void](
				`addEventListener("message", e => { if (e.data?.tried) window.tried = e.data.tried; })`))
		at := b.canvas(map[string]any{"action": "present"}, "Shown: index.html")
		b.Await("no frame",
			`document.querySelector(".canvas iframe")?.getAttribute("sandbox") === "allow-scripts allow-forms"`)
		b.has(".canvas h2", "index.html")
		b.Await("the page does not say what it tried", `!!window.tried`)
		tab.t = t
		tab.Open(address.FindString(at))
		tab.Shows("First")
	})
	step("S29 its scripts run, and reach nothing of the person", func(t *testing.T) {
		tab.t = t
		tab.Await("its scripts do not run",
			`document.body.dataset.script === "ran" && document.body.dataset.module === "ran" && !!document.body.dataset.tried`)
		for where, tried := range map[string]map[string]string{
			"frame": evaluate[map[string]string](b, `window.tried`),
			"tab":   evaluate[map[string]string](tab, `JSON.parse(document.body.dataset.tried)`),
		} {
			if tried["own"] != "7" {
				t.Errorf("%s: its own file: %s", where, tried["own"])
			}
			for _, what := range []string{"storage", "database", "cookie", "page", "canvas", "elsewhere", "picture", "socket"} {
				if !strings.HasPrefix(tried[what], "no: ") {
					t.Errorf("%s: %s: %s", where, what, tried[what])
				}
			}
			if where == "frame" && !strings.HasPrefix(tried["parent"], "no: ") {
				t.Errorf("%s: the page around it: %s", where, tried["parent"])
			}
		}
		if at := evaluate[string](b, "location.href"); !strings.HasPrefix(at, s.HTTP()) {
			t.Errorf("the page went to %s", at)
		}
		if text := evaluate[string](b, "document.body.innerText"); strings.Contains(text, "I used a control") {
			t.Error("a page invented an action")
		}
	})
	step("it is loaded again when its files change", func(t *testing.T) {
		tab.t = t
		for _, text := range []string{"Second", "Third"} {
			n := tab.Loads()
			s.File("canvas/index.html", "<!doctype html><body><h1>"+text+"</h1></body>")
			waittest.Until(t, "the page to be loaded again", func() bool { return tab.Loads() > n })
			tab.Shows(text)
		}
	})
	step("it can be closed, shown again and hidden", func(t *testing.T) {
		b.click(".canvas header button", "")
		b.Await("it is still shown", `!document.querySelector(".canvas")`)
		b.click(`header.top button[aria-label="Canvas"]`, "")
		b.Await("it is not shown", `!!document.querySelector(".canvas iframe")`)
		b.canvas(map[string]any{"action": "hide"}, "Hidden")
		b.Await("it is still shown", `!document.querySelector(".canvas")`)
	})
	for _, v := range []struct {
		name          string
		begin, change []string
	}{
		{"0.8", []string{
			`{"surfaceUpdate":{"surfaceId":"main","components":[{"id":"root","component":{"Column":{"children":{"explicitList":["save","state","list","name"]}}}},{"id":"state","component":{"Text":{"text":{"path":"/state"},"usageHint":"h2"}}},` +
				`{"id":"label","component":{"Text":{"text":{"literalString":"Save"}}}},{"id":"save","component":{"Button":{"child":"label","action":{"name":"save","context":[{"key":"who","value":{"path":"/name"}}]}}}},` +
				`{"id":"list","component":{"List":{"children":{"template":{"componentId":"item","dataBinding":"/items"}}}}},{"id":"item","component":{"Text":{"text":{"path":"title"}}}},` +
				`{"id":"name","component":{"TextField":{"label":{"literalString":"Name"},"text":{"path":"/name"}}}}]}}`,
			`{"dataModelUpdate":{"surfaceId":"main","contents":[{"key":"state","valueString":"working <b>hard</b>"},{"key":"name","valueString":"Ann"},{"key":"items","valueMap":[{"key":"a","valueMap":[{"key":"title","valueString":"first item"}]}]}]}}`,
			`{"beginRendering":{"surfaceId":"main","root":"root"}}`,
		}, []string{
			`{"dataModelUpdate":{"surfaceId":"main","path":"/state","contents":[{"key":".","valueString":"unused"}]}}`,
			`{"surfaceUpdate":{"surfaceId":"main","components":[{"id":"state","component":{"Text":{"text":{"literalString":"finished"}}}}]}}`,
		}},
		{"0.9", []string{
			`{"version":"v0.9","createSurface":{"surfaceId":"main","catalogId":"https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"}}`,
			`{"version":"v0.9","updateComponents":{"surfaceId":"main","components":[{"id":"root","component":"Column","children":["save","state","list","name"]},{"id":"state","component":"Text","text":{"path":"/state"},"variant":"h2"},` +
				`{"id":"label","component":"Text","text":"Save"},{"id":"save","component":"Button","child":"label","action":{"event":{"name":"save","context":{"who":{"path":"/name"}}}}},` +
				`{"id":"list","component":"List","children":{"componentId":"item","path":"/items"}},{"id":"item","component":"Text","text":{"call":"formatString","args":{"value":"${title} item"}}},` +
				`{"id":"name","component":"TextField","label":"Name","value":{"path":"/name"},"checks":[{"condition":{"call":"required","args":{"value":{"path":"/name"}}},"message":"a name is needed"}]}]}}`,
			`{"version":"v0.9","updateDataModel":{"surfaceId":"main","value":{"state":"working <b>hard</b>","name":"Ann","items":[{"title":"first"}]}}}`,
		}, []string{`{"version":"v0.9","updateDataModel":{"surfaceId":"main","path":"/state","value":"finished"}}`}},
		{"1.0", []string{
			`{"version":"1.0","createSurface":{"surfaceId":"main","components":[{"id":"root","component":"Column","children":["save","state","list","name"]},{"id":"state","component":"Text","text":{"path":"/state"}},` +
				`{"id":"label","component":"Text","text":"Save"},{"id":"save","component":"Button","child":"label","action":{"event":{"name":"save","context":{"who":{"path":"/name"}}}}},` +
				`{"id":"list","component":"List","children":{"componentId":"item","path":"/items"}},{"id":"item","component":"Text","text":{"call":"formatString","args":{"value":"${title} item"}}},` +
				`{"id":"name","component":"TextField","label":"Name","value":{"path":"/name"}}],"dataModel":{"state":"working <b>hard</b>","name":"Ann","items":[{"title":"first"}]}}}`,
		}, []string{`{"version":"1.0","updateDataModel":{"surfaceId":"main","path":"/state","value":"finished"}}`}},
	} {
		step("CV-05 surfaces of A2UI "+v.name+" are shown, changed and removed", func(t *testing.T) {
			at := b.canvas(map[string]any{"action": "a2ui_push", "jsonl": lines(v.begin...)}, "Shown: main")
			tab.t = t
			tab.Open(address.FindString(at))
			tab.Shows("working <b>hard</b>")
			tab.Shows("first item")
			tab.Await("the field has no value", `document.querySelector("input").value === "Ann"`)
			tab.Await("a viewer without the right can press", `document.querySelector("button").disabled`)
			loads := tab.Loads()
			b.canvas(map[string]any{"action": "a2ui_push", "jsonl": lines(v.change...)}, "Pushed")
			tab.Shows("finished")
			if text := evaluate[string](tab, "document.body.innerText"); strings.Contains(text, "working") ||
				tab.Loads() != loads {
				t.Errorf("after the change, %d loads: %s", tab.Loads()-loads, text)
			}

			// The button is the first control of the surface in the frame.
			b.Await("no frame", `!!document.querySelector(".canvas iframe")`)
			asked := `[...document.querySelectorAll(".turn")].filter(e => e.innerText.includes("I used a control of the canvas")).length`
			before := evaluate[int](b, asked)
			waittest.Until(t, "the action of the button", func() bool {
				at := evaluate[struct{ X, Y float64 }](b,
					`(r => ({x: r.x + 50, y: r.y + 35}))(document.querySelector(".canvas iframe").getBoundingClientRect())`)
				b.do("press the button", chromedp.MouseClickXY(at.X, at.Y))
				for range 20 { // the frame may not have been loaded yet; otherwise one press is enough
					if evaluate[int](b, asked) > before {
						return true
					}
					b.do("wait", chromedp.Sleep(100*time.Millisecond))
				}
				return false
			})
			b.Await("it still works", `!document.querySelector(".live, .working")`)
			b.has(".bubble", `"who":"Ann"`)

			b.canvas(map[string]any{
				"action": "a2ui_push",
				"jsonl":  `{"version":"v0.9","updateComponents":{"surfaceId":"main","components":[{"id":"x","component":"Nonsense"}]}}` + "\n{oops",
			}, "line 2")
			b.has(".turn.assistant", `unknown component "Nonsense"`)
			tab.Shows("finished")
			b.canvas(map[string]any{"action": "a2ui_reset"}, "gone")
			tab.Await("the surface is still there", `document.body.innerText.trim() === ""`)
			b.Await("the frame is still there", `!document.querySelector(".canvas")`)
		})
	}
	if n := stolen.Load(); n != 0 {
		t.Errorf("another server got %d requests", n)
	}
}
