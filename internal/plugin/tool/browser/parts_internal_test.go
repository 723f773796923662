package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

// pipe keeps what is written to the browser.
type pipe struct {
	bytes.Buffer
	closed bool
}

func (p *pipe) Close() error { p.closed = true; return nil }

func TestConn(t *testing.T) {
	t.Parallel()
	t.Run("answers and events arrive in any pieces", func(t *testing.T) {
		out := &pipe{}
		c := newConn(out)
		var events []string
		c.on("s", func(method string, params json.RawMessage) { events = append(events, method+" "+string(params)) })
		got := make(chan string, 1)
		go func() {
			var r struct{ A int }
			err := c.call(context.Background(), "s", "X.y", map[string]int{"b": 1}, &r)
			got <- fmt.Sprint(r.A, err)
		}()
		waittest.Until(t, "the command", func() bool {
			c.sending.Lock()
			defer c.sending.Unlock()
			return out.Len() > 0
		})
		if want := `{"id":1,"sessionId":"s","method":"X.y","params":{"b":1}}` + "\x00"; out.String() != want {
			t.Errorf("sent %q, want %q", out.String(), want)
		}
		for _, b := range []byte("not json\x00" + `{"method":"E.f","params":{"c":2},"sessionId":"s"}` + "\x00" +
			`{"id":1,"result":{"A":7},"sessionId":"s"}` + "\x00") {
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if g := waittest.For(t, "the answer", got); g != "7 <nil>" {
			t.Error(g)
		}
		if diff := cmp.Diff([]string{`E.f {"c":2}`}, events); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the end of the browser ends calls", func(t *testing.T) {
		out := &pipe{}
		c := newConn(out)
		got := make(chan error, 1)
		go func() { got <- c.call(context.Background(), "", "X.y", nil, nil) }()
		end := errors.New("it is gone")
		c.close(end)
		if err := waittest.For(t, "the call", got); !errors.Is(err, end) || !out.closed {
			t.Error(err, out.closed)
		}
		if err := c.call(context.Background(), "", "X.y", nil, nil); !errors.Is(err, end) {
			t.Error(err)
		}
	})
	t.Run("the end of the browser is the reason, not what was sent to it after that", func(t *testing.T) {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		c := newConn(out)
		if err := c.call(t.Context(), "", "X.y", nil, nil); err == nil {
			t.Error("the command was taken")
		}
		end := errors.New("it was killed")
		c.close(end)
		if err := c.call(t.Context(), "", "X.y", nil, nil); runtime.GOOS != "windows" && !errors.Is(err, end) {
			t.Errorf("%v, want %v", err, end)
		}
	})
	t.Run("a message is bounded", func(t *testing.T) {
		c := newConn(&pipe{})
		c.part = make([]byte, maxMessage)
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("the message was accepted")
		}
	})
}

// ax makes a node of a recorded tree.
func ax(id, parent, role, name, value string, backend int, properties string, children ...string) string {
	raw, _ := json.Marshal(children)
	if children == nil {
		raw = []byte("[]")
	}
	return fmt.Sprintf(`{"nodeId":%q,"parentId":%q,"ignored":%v,"role":{"value":%q},"name":{"value":%q},"value":{"value":%q},"backendDOMNodeId":%d,"properties":[%s],"childIds":%s}`,
		id, parent, role == "none", role, name, value, backend, properties, raw)
}

// TestPrint prints trees as Chromium 148 gives them, in no order.
func TestPrint(t *testing.T) {
	t.Parallel()
	focusable := `{"name":"focusable","value":{"type":"booleanOrUndefined","value":true}}`
	nodes := []string{
		ax("9", "8", "StaticText", "Hello", "", 9, ""),
		ax("1", "", "RootWebArea", "T", "", 1, focusable, "2"),
		ax("2", "1", "none", "", "", 2, "", "3", "5", "8", "10", "11", "12", "14", "16"),
		ax("3", "2", "heading", "Top", "", 3, `{"name":"level","value":{"type":"integer","value":2}}`, "4"),
		ax("4", "3", "StaticText", "Top", "", 4, ""),
		ax("5", "2", "button", "Go", "", 5, focusable+`,{"name":"disabled","value":{"type":"boolean","value":true}}`, "6"),
		ax("6", "5", "StaticText", "Go", "", 6, ""),
		ax("8", "2", "paragraph", "", "", 8, "", "9"),
		ax("10", "2", "textbox", "Pass", "••••", 10, focusable),
		ax("11", "2", "textbox", "City", "Bern", 11, focusable),
		ax("12", "2", "Iframe", "", "", 12, ""),
		ax("14", "2", "list", "", "", 14, "", "15"),
		ax("15", "14", "listitem", "", "", 15, "", "17"),
		ax("17", "15", "link", "L", "", 17,
			focusable+`,{"name":"url","value":{"type":"string","value":"https://a.example/"}}`),
		ax("16", "2", "generic", "", "", 16, focusable, "18"),
		ax("18", "16", "StaticText", "Clickable", "", 18, ""),
	}
	tree := func(session string, nodes ...string) axTree {
		var list []*axNode
		if err := json.Unmarshal([]byte("["+strings.Join(nodes, ",")+"]"), &list); err != nil {
			t.Fatal(err)
		}
		return newTree(session, list)
	}
	p := &page{
		main: tree("m", nodes...),
		frames: map[node]axTree{{"m", 12}: tree("f", ax("1", "", "RootWebArea", "F", "", 1, "", "2"),
			ax("2", "1", "StaticText", "in the frame", "", 2, ""))},
		hidden: map[node]bool{{"m", 10}: true},
	}
	print := func(o snapshotOptions) string {
		refs := map[node]string{}
		w := &printer{page: p, o: o, ref: func(n node) string {
			if refs[n] == "" {
				refs[n] = fmt.Sprint("e", len(refs)+1)
			}
			return refs[n]
		}}
		w.print(p.main, p.main.root, 0, 0)
		return fmt.Sprintf("%s%d left", w.b.String(), w.left)
	}
	for _, tt := range []struct {
		name string
		o    snapshotOptions
		want string
	}{
		{"all", snapshotOptions{maxChars: 1000}, `- heading "Top" [level=2] [ref=e1]
- button "Go" [disabled] [ref=e2]
- paragraph: Hello
- textbox "Pass" [ref=e3]: [not shown]
- textbox "City" [ref=e4]: Bern
- Iframe [ref=e5]
  - text: in the frame
- list
  - listitem
    - link "L" [ref=e6]
- generic [ref=e7]: Clickable
0 left`},
		{"elements to use, with addresses", snapshotOptions{maxChars: 1000, interactive: true, compact: true, urls: true},
			`- button "Go" [disabled] [ref=e1]
- textbox "Pass" [ref=e2]: [not shown]
- textbox "City" [ref=e3]: Bern
- Iframe [ref=e4]
- link "L" [ref=e5] <https://a.example/>
- generic [ref=e6]: Clickable
0 left`},
		{"to a depth", snapshotOptions{maxChars: 1000, compact: true, depth: 1}, `- heading "Top" [level=2] [ref=e1]
- button "Go" [disabled] [ref=e2]
- paragraph: Hello
- textbox "Pass" [ref=e3]: [not shown]
- textbox "City" [ref=e4]: Bern
- Iframe [ref=e5]
  - text: in the frame
- link "L" [ref=e6]
- generic [ref=e7]: Clickable
0 left`},
		{"lines", snapshotOptions{maxChars: 1000, maxLines: 2}, `- heading "Top" [level=2] [ref=e1]
- button "Go" [disabled] [ref=e2]
9 left`},
		{"characters", snapshotOptions{maxChars: 40}, `- heading "Top" [level=2] [ref=e1]
10 left`},
	} {
		if diff := cmp.Diff(tt.want, print(tt.o)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	for attributes, want := range map[string]bool{
		"type password":                 true,
		"type text":                     false,
		"autocomplete current-password": true,
		"autocomplete one-time-code":    true,
		"autocomplete cc-number":        true,
		"name password":                 false,
		"TYPE Password":                 true,
	} {
		if got := isPassword(strings.Fields(attributes)); got != want {
			t.Errorf("%s: %v", attributes, got)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"Enter":         "Enter Enter 13 \"\\r\" 0",
		"esc":           "Escape Escape 27 \"\" 0",
		"Control+A":     "A KeyA 65 \"A\" 2",
		"ctrl+shift+t":  "T KeyT 84 \"T\" 10",
		"a":             "a KeyA 65 \"a\" 0",
		"F5":            "F5 F5 116 \"\" 0",
		"+":             "+  0 \"+\" 0",
		"Shift++":       "+  0 \"+\" 8",
		"é":             "é  0 \"é\" 0",
		"Cmd+ArrowDown": "ArrowDown ArrowDown 40 \"\" 4",

		"Hyper+A": "no modifier",
		"Foo":     "unknown",
		"":        "unknown",
		"F99":     "unknown",
	} {
		k, mods, err := parseKey(s)
		got := fmt.Sprintf("%s %s %d %q %d", k.name, k.code, k.num, k.text, mods)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"../../etc/passwd":                "passwd",
		`C:\x\bill.pdf`:                   "bill.pdf",
		".bashrc":                         "bashrc",
		"a\x1b[31m.txt":                   "a__31m.txt",
		"":                                "file",
		"...":                             "file",
		"Rechnung März.pdf":               "Rechnung März.pdf",
		"-rf":                             "rf",
		strings.Repeat("x", 300) + ".tar": strings.Repeat("x", 116) + ".tar",
		"\xff.txt":                        "txt",
	} {
		if got := cleanName(in); got != want {
			t.Errorf("cleanName(%q) = %q, want %q (%d bytes)", in, got, want, len(got))
		}
	}
	for in, want := range map[string]string{
		"example.com":          "https://example.com",
		"HTTP://a.example/x y": "http://a.example/x%20y",
		"about:blank":          "about:blank",
		"localhost:8080/a":     "http://localhost:8080/a",
		"127.0.0.1/x":          "http://127.0.0.1/x",
		"file:///etc/passwd":   "",
		"data:text/html,x":     "",
		"chrome://version":     "",
		"javascript:alert(1)":  "",

		"http://u:p@a":          "",
		"":                      "",
		"http://":               "",
		"view-source:https://a": "",
	} {
		if got, err := address(in); got != want || (err == nil) != (want != "") {
			t.Errorf("address(%q) = %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]bool{
		"":                 true,
		"about:blank":      true,
		"https://a":        true,
		"blob:https://a/1": true,
		"chrome://version": false,
		"file:///x":        false,
		"devtools://x":     false,
	} {
		if err := allowed(in); (err == nil) != want {
			t.Errorf("allowed(%q) = %v", in, err)
		}
	}
	for in, want := range map[string]bool{
		"https://a/*": true,
		"https://a/b": true,
		"**/b":        true,
		"https://*/c": false,
		"*":           true,
		"https://a":   false,
	} {
		if got := matches(in, "https://a/b"); got != want {
			t.Errorf("matches(%q) = %v", in, got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``: "",
		`{"profiles":{"openclaw":{"cdpPort":18800,"color":"#FF4500"}}}`: "",
		`{"extraArgs":["--lang=de"]}`:                                   "",
		`{"extraArgs":["--proxy-server=x"]}`:                            "--proxy-server is set by Chela",
		`{"extraArgs":["-no-sandbox"]}`:                                 "is set by Chela",
		`{"extraArgs":["https://a"]}`:                                   "no switch",
		`{"snapshotDefaults":{"mode":"x"}}`:                             "is unknown",
		`{"profiles":{"A/..":{}}}`:                                      "is no name",

		`{"profiles":{"chela":{},"openclaw":{}}}`: "are the same",
		`{"enabled":1}`: "cannot unmarshal",
	} {
		_, err := ParseConfig([]byte(raw))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	c, err := ParseConfig([]byte(`{"defaultProfile":"openclaw","executablePath":"/a","headless":true,"profiles":{"work":{"executablePath":"/b","headless":false},"user":{"driver":"existing-session"},"far":{"cdpUrl":"http://x"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":         "chela /a true",
		"openclaw": "chela /a true",
		"work":     "work /b false",
		"user":     "not supported yet",
		"far":      "cdpUrl is not supported yet",
		"none":     "there is no browser profile",
	} {
		n, p, err := c.profile(name)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(n, " ", p.Executable, " ", *p.Headless)
		}
		if !strings.Contains(got, want) {
			t.Errorf("profile %q: %s, want %s", name, got, want)
		}
	}
	args := strings.Join(arguments(&Config{ExtraArgs: []string{"--lang=de"}}, "/data", "127.0.0.1:1", true), " ")
	for _, want := range []string{"--lang=de ", "--remote-debugging-pipe ", "--user-data-dir=/data ",
		"--proxy-server=http://127.0.0.1:1 ", "--proxy-bypass-list=<-loopback> ", "--disable-quic ",
		"--headless about:blank"} {
		if !strings.Contains(args, want) {
			t.Errorf("%q is missing in %s", want, args)
		}
	}
	if strings.Contains(args, "--no-sandbox") {
		t.Error("the sandbox is off")
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"action":"act","request":{"kind":"click","ref":"e1","targetId":"t2"}}`: "act click e1 t2",
		`{"action":"act","kind":"scrollIntoView","ref":"e1"}`:                    "act scrollintoview e1 ",
		`{"action":"click","ref":"[ref=e1]"}`:                                    "act click [ref=e1] ",
		`{"action":"Open","targetUrl":"x"}`:                                      "open  ",

		`{"action":"act","targetId":"t1","request":{"kind":"press","key":"a"}}`: "act press  t1",
		`{"request":{"kind":"wait"}}`:                                           "act wait  ",
	} {
		a, err := decode(json.RawMessage(raw))
		a = a.flat()
		if got := fmt.Sprintf("%s %s %s", a.Action, a.Ref, a.TargetID); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", raw, got, err, want)
		}
	}
	for in, want := range map[string]bool{
		"e12":       true,
		"[ref=e12]": true,
		"@e1":       true,
		"ref=e3":    true,
		"x1":        false,
		"e":         false,
		"button":    false,
	} {
		if isRef(in) != want {
			t.Errorf("isRef(%q) = %v", in, !want)
		}
	}
}

// through returns a client that goes through a proxy with a configuration.
func through(t *testing.T, section string) (*http.Client, *proxy) {
	t.Helper()
	c, err := ParseConfig([]byte(section))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProxy(&c)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.address()})}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		p.close()
	})
	return &http.Client{Transport: tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, p
}

func TestProxy(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		fmt.Fprint(w, r.Method, " ", r.Header.Get("Proxy-Connection"), r.Header.Get("Cookie"), " ", r.URL)
	})
	plain, tls := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(tls.Close)
	get := func(c *http.Client, u string) string {
		resp, err := c.Get(u)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(b)), resp.Header.Get("X-Hop"), err)
	}
	t.Run("addresses that are not allowed", func(t *testing.T) {
		c, p := through(t, `{}`)
		if got := get(c, plain.URL); got != "403 Chela: 127.0.0.1 is not allowed: loopback address<nil>" {
			t.Error(got)
		}
		if got := get(c, tls.URL); !strings.Contains(got, "Forbidden") {
			t.Error(got)
		}
		for _, u := range []string{"http://10.0.0.1/", "http://[::1]:80/", "http://169.254.169.254/latest",
			"http://localhost:1/", "http://2130706433/"} {
			if got := get(c, u); !strings.HasPrefix(got, "403 Chela: ") {
				t.Errorf("%s: %s", u, got)
			}
		}
		if why := p.why("LOCALHOST"); !strings.Contains(why, "localhost is not allowed") {
			t.Error(why)
		}
		if p.why("other.example") != "" {
			t.Error("a host that nobody asked for is refused")
		}
	})
	t.Run("addresses that are allowed", func(t *testing.T) {
		c, _ := through(t, `{"ssrfPolicy":{"allowedHostnames":["127.0.0.0/8"]}}`)
		if got := get(c, plain.URL+"/a?b=c"); got != "200 GET  /a?b=c<nil>" {
			t.Error(got)
		}
		c.Transport.(*http.Transport).TLSClientConfig = tls.Client().Transport.(*http.Transport).TLSClientConfig
		if got := get(c, tls.URL+"/x"); got != "200 GET  /x1<nil>" { // inside of a tunnel nothing is changed
			t.Error(got)
		}
		c, _ = through(t,
			`{"ssrfPolicy":{"dangerouslyAllowPrivateNetwork":true,"blockedHostnames":["*.localhost","127.0.0.1"]}}`)
		if got := get(c, plain.URL); !strings.Contains(got, "blockedHostnames") {
			t.Error(got)
		}
	})
	t.Run("it is no server", func(t *testing.T) {
		_, p := through(t, `{}`)
		if got := get(http.DefaultClient, "http://"+p.address()+"/"); got != "400 this is a proxy<nil>" {
			t.Error(got)
		}
	})
	t.Run("a part is not taken for the whole", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
				c.Close()
			}
		}()
		c, _ := through(t, `{"ssrfPolicy":{"allowedHostnames":["127.0.0.1"]}}`)
		if got := get(c, "http://"+l.Addr().String()); !strings.Contains(got, "EOF") {
			t.Error(got)
		}
	})
}
