package web

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// prose returns a typical page of about n bytes: scripts, a menu, and
// paragraphs with links.
func prose(n int) []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html><html><head><title>On pages</title><style>" +
		strings.Repeat(".a{color:red}\n", 200) + "</style>")
	b.WriteString("<script>" + strings.Repeat("var x = {\"a\": [1,2,3]};\n", n/120) + "</script></head><body><nav><ul>")
	for i := range 60 {
		fmt.Fprintf(&b, `<li class="menu-item item-%d"><a href="/section/%d">Section %[1]d</a></li>`, i, i)
	}
	b.WriteString("</ul></nav><article><h1>On pages</h1>")
	for i := 0; b.Len() < n; i++ {
		if i%12 == 0 {
			fmt.Fprintf(&b, "<h2 id=\"s%d\">Part %[1]d</h2>\n", i/12)
		}
		fmt.Fprintf(&b, `<p class="text">The %dth paragraph, with <a href="/wiki/%[1]d" title="A link">a link</a>, some <b>bold</b> words, `+
			`and enough of a sentence to be taken for prose, as it is on most pages that people read, with commas, and with dots. `+
			`It goes on for a while<sup>%[1]d</sup>, since paragraphs do, and it ends here.</p>`+"\n", i)
	}
	b.WriteString("</article><footer>" + strings.Repeat("<p>fine print</p>", 20) + "</footer></body></html>")
	return b.Bytes()
}

// peak runs f and returns the maximum growth of the heap.
func peak(f func()) uint64 {
	var m runtime.MemStats
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // count needed memory, not garbage
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	before, highest := m.HeapAlloc, uint64(0)
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				highest = max(highest, m.HeapAlloc)
			}
		}
	}()
	f()
	close(done)
	<-ended
	return highest - min(highest, before)
}

// allocated returns the bytes that f allocates, which unlike the peak do not depend on
// when the garbage collector runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxRatio is the maximum memory that is allocated for a page relative to its size. The
// benchmarks show the peak, whose target is 8. Under the race detector, which uses
// additional memory, the limit is multiplied by slow.
const maxRatio = 16

// TestMemory limits the memory for large pages, which are not parsed into a
// tree.
func TestMemory(t *testing.T) {
	at, _ := url.Parse("https://site.example/page")
	pages := map[string][]byte{
		"prose":   prose(2 << 20),
		"items":   []byte("<title>x</title><ul>" + strings.Repeat(`<li><a href="/x">word</a></li>`, 2<<20/30)),
		"script":  append([]byte("<script>"+strings.Repeat("x=1;", 300_000)+"</script>"), prose(900_000)...),
		"text":    []byte("<p>" + strings.Repeat("some words ", 2<<20/11)),
		"nesting": []byte(strings.Repeat("<div>", 2<<20/5)),
	}
	for name, page := range pages {
		for _, markdown := range []bool{true, false} {
			var text string
			got := float64(allocated(func() { _, text, _ = extract(page, "text/html", at, markdown, true) })) /
				float64(len(page))
			t.Logf("%-8s markdown=%-5v: %8d characters, %4.1f × the page", name, markdown, len(text), got)
			if got > slow*maxRatio {
				t.Errorf("%s: %.1f × the page, want at most %d", name, got, maxRatio)
			}
		}
	}
}

// served is a transport that returns a page.
type served []byte

// RoundTrip returns the page.
func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(bytes.NewReader(s)), Request: r,
	}, nil
}

// fetched returns a function that fetches a page of 2 MB.
func fetched(tb testing.TB) (fetch func(), size int) {
	tb.Helper()
	page := served(prose(2 << 20))
	tl := NewFetch(FetchOptions{HTTP: &http.Client{Transport: page}, MaxBytes: 10 << 20, CacheTTL: -1})
	return func() {
		r, err := tl.Run(tb.Context(), tool.Call{Args: []byte(`{"url":"https://site.example/"}`), Update: func(string) {}})
		if err != nil || len(r.Content[0].Text) < defaultChars {
			tb.Errorf("%d bytes of text, %v", len(r.Content[0].Text), err)
		}
	}, len(page)
}

// TestFetchMemory limits the memory of web_fetch for a page of 2 MB.
func TestFetchMemory(t *testing.T) {
	fetch, size := fetched(t)
	got := float64(allocated(fetch)) / float64(size)
	t.Logf("%.1f × the page", got)
	if got > slow*maxRatio {
		t.Errorf("%.1f × the page, want at most %d", got, maxRatio)
	}
}

func BenchmarkFetch(b *testing.B) {
	fetch, size := fetched(b)
	highest := peak(fetch)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		fetch()
	}
	b.ReportMetric(float64(highest)/float64(size), "peak/page")
}

// TestHostile extracts text from pages that are expensive to process.
func TestHostile(t *testing.T) {
	at, _ := url.Parse("https://site.example/page")
	const n = 200_000
	words := strings.Repeat("some words, and more of them. ", 20)
	for name, page := range map[string]string{
		"nested blocks": strings.Repeat("<div>", 500) + strings.Repeat("<p>"+words+"</p>", n/700) +
			strings.Repeat("</div>", 500),
		"nested too deep":    strings.Repeat("<div>", n/5) + words,
		"nested lists":       strings.Repeat("<ul><li>a", n/9),
		"nested tables":      strings.Repeat("<table><tr><td>a", n/16),
		"misnested":          strings.Repeat("<b><i><p></b></i>", n/17),
		"formatting":         strings.Repeat("<b>", 250) + strings.Repeat("<p>x</p>", n/8),
		"attributes":         "<p " + strings.Repeat("a=b ", n/4) + ">" + words,
		"many attributes":    "<p " + manyAttributes(n/12) + ">" + words,
		"open tags":          strings.Repeat("<", n),
		"entities":           "<p>" + strings.Repeat("&amp;&#x1F600;", n/14),
		"one link":           `<a href="` + strings.Repeat("/..", n/3) + `">x</a>` + words,
		"links":              strings.Repeat(`<a href="x">[](</a>`, n/19),
		"marks of Markdown":  "<p>" + strings.Repeat("*_`[]()#\\", n/9),
		"line breaks":        "<pre>" + strings.Repeat("\n", n),
		"brs":                "<p>" + strings.Repeat("x<br>", n/5),
		"cells":              "<table><tr>" + strings.Repeat("<td>x", n/5),
		"rows":               "<table>" + strings.Repeat("<tr><td>x", n/9),
		"wide and long":      "<table><tr>" + strings.Repeat("<td>x", 2000) + strings.Repeat("<tr><td>y", n/12),
		"headings":           strings.Repeat("<h1>x</h1>", n/10),
		"comments":           strings.Repeat("<!--", n/4),
		"linked data":        `<script type="application/ld+json">` + strings.Repeat("[", n) + "</script>" + words,
		"spaces":             "<p>" + strings.Repeat(" ", n) + "x",
		"a title":            "<title>" + strings.Repeat("a | b - ", n/8) + "</title><p>" + words,
		"classes":            strings.Repeat(`<div class="article body content comment">`+words+"</div>", n/650),
		"paragraphs":         strings.Repeat("<p>a, b, c, d", n/13),
		"images in noscript": strings.Repeat(`<img src="x"><noscript><img src="y"></noscript>`, n/47),
		"fonts":              strings.Repeat("<font>x</font>", n/14),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, text, by := extract([]byte(page), "text/html", at, true, true)
			if strings.Contains(page, words) && !strings.Contains(text, "some words, and more of them.") {
				t.Errorf("the text is missing: %.100q by %s", text, by)
			}
			if took := time.Since(began); took > waittest.Limit {
				t.Errorf("%d bytes by %s took %v", len(page), by, took)
			} else if took > 500*time.Millisecond {
				t.Logf("%d bytes by %s took %v", len(page), by, took)
			}
		})
	}
}

// TestSkim converts pages without building a tree.
func TestSkim(t *testing.T) {
	at, _ := url.Parse("https://site.example/page")
	for _, tt := range []struct{ page, text, markdown string }{
		{"one<p>two</p>three", "one\n\ntwo\n\nthree", ""},
		{"one<div>two<div>three</div></div>four", "one\ntwo\nthree\nfour", ""},
		{"<ul><li><p>one</p><li><div><p>two</p></div></ul>", "one\n\ntwo", "- one\n\n- two"},
		{"<ul><li>one<ul><li>two</ul><li>three</ul>", "one\ntwo\n\nthree", "- one\n- two\n\n- three"},
		{"one<br>two<hr>three", "one\ntwo\n\nthree", ""},
		{"one<pre>a  b\n  c</pre>two", "one\n\na  b\n  c\n\ntwo", "one\n\n```\na  b\n  c\n```\n\ntwo"},
		{"one<ul><li>a<li>b</ul>two", "one\na\nb\n\ntwo", "one\n- a\n- b\n\ntwo"},
		{"one<h2>A  title</h2>two", "one\n\nA title\n\ntwo", "one\n\n## A title\n\ntwo"},
		{"<table><tr><td>a<td>b</tr><tr><th>c</th></tr></table>d", "a b\nc\n\nd", ""},
		{`one <a href="/x"> two  words </a> <a href="/y"><img></a> <a href="mailto:z">three</a>`, "one two words three",
			"one [two words](https://site.example/x) three"},
		{"one<script>two</script><style>three</style><svg>four</svg>five", "onefive", ""},
	} {
		for markdown, want := range map[bool]string{false: tt.text, true: cmp.Or(tt.markdown, tt.text)} {
			if _, got := skim(strings.NewReader(tt.page), at, markdown); got != want {
				t.Errorf("%.100s: got %.100q, want %.100q (%d and %d bytes)", tt.page, got, want, len(got), len(want))
			}
		}
	}
}

// TestNesting reads pages up to the depth to which they are parsed into a tree, and
// beyond it, where the text is still found.
func TestNesting(t *testing.T) {
	at, _ := url.Parse("https://site.example/page")
	for depth, want := range map[int]string{
		1:               "readability",
		maxNesting - 10: "readability",
		maxNesting + 10: "html",
		600:             "html",
	} {
		page := strings.Repeat("<div>", depth) + "<article>" +
			strings.Repeat("<p>"+strings.Repeat("some words, and more of them. ", 20)+"</p>", 5) + "</article>"
		if _, text, by := extract([]byte(page), "text/html", at, true, true); by != want ||
			strings.Count(text, "and more") != 100 {
			t.Errorf("%d deep: by %s, want %s; %.100q", depth, by, want, text)
		}
	}
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d=b ", i)
	}
	return b.String()
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"<p>x", "<title>a</title><article><h1>b</h1><p>c <b>d</b> <a href='/e'>f</a></p></article>",
		"<pre><code>a\n b</code></pre>", "<ul><li>a<ol><li>b",
		"<table><tr><th>a<th>b<tr><td>c<td>d|e</table>", "<script>x</script><style>y</style><!-- z -->",
		"<p>&lt;script&gt; &amp;&#0;&#xd800;", "\xff\xfe<\x00p\x00>\x00",
		"<a href='javascript:x'>y</a><a href='http://['>z</a><a><a href=''>", "<svg><title>x</title></svg><math><mi>",
		"<base href='http://evil/'><img src=x>",
	} {
		f.Add([]byte(s), "text/html")
	}
	f.Add([]byte("<p>\x93\xfa"), "text/html; charset=shift_jis")
	at, _ := url.Parse("https://site.example/page")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		for _, markdown := range []bool{true, false} {
			began := time.Now()
			_, text, by := extract(body, contentType, at, markdown, true)
			if took := time.Since(began); took > waittest.Limit {
				t.Errorf("%d bytes by %s took %v", len(body), by, took)
			}
			if !utf8.ValidString(text) {
				t.Errorf("invalid UTF-8 by %s: %q", by, text)
			}
		}
		if _, text := skim(bytes.NewReader(body), at, false); strings.Contains(text, "\n\n\n") ||
			strings.ContainsRune(text, verbatim) {
			t.Errorf("not tidied: %q", text)
		}
	})
}

func BenchmarkExtract(b *testing.B) {
	at, _ := url.Parse("https://site.example/page")
	for _, n := range []int{50_000, 450_000, 2 << 20} {
		page := prose(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = extract(page, "text/html", at, true, true)
			}
		})
	}
}
