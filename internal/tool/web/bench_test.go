package web

import (
	"bytes"
	"fmt"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// prose is a page of about n bytes as sites have them: scripts, a menu, and
// paragraphs with links.
func prose(n int) []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html><html><head><title>On pages</title><style>" + strings.Repeat(".a{color:red}\n", 200) + "</style>")
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

// peak runs f and returns how much the heap grew at most meanwhile.
func peak(f func()) uint64 {
	var m runtime.MemStats
	runtime.GC()
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
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
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	f()
	close(done)
	<-ended
	return most - min(most, before)
}

func TestMemory(t *testing.T) {
	at, _ := url.Parse("https://site.example/page")
	pages := map[string][]byte{
		"2 MB of prose":    prose(2 << 20),
		"750 kB of prose":  prose(750_000),
		"2 MB of items":    []byte("<title>x</title><ul>" + strings.Repeat(`<li><a href="/x">word</a></li>`, 2<<20/30)),
		"2 MB of script":   append([]byte("<script>"+strings.Repeat("x=1;", 300_000)+"</script>"), prose(900_000)...),
		"2 MB of text":     []byte("<p>" + strings.Repeat("some words ", 2<<20/11)),
		"1.1 MB of text":   []byte("<p>" + strings.Repeat("some words ", 1_150_000/11)),
		"2 MB of nesting":  []byte(strings.Repeat("<div>", 2<<20/5)),
		"300 kB of tables": []byte(strings.Repeat("<table><tr><td>", 20_000)),
	}
	for name, page := range pages {
		for _, mode := range []string{"markdown", "text"} {
			began := time.Now()
			var text, by string
			got := peak(func() { _, text, by = extract(page, "text/html", at, mode == "markdown", true) })
			t.Logf("%-18s %-9s %-12s: %8d characters, %4.1f × the page, %v", name, mode, by, len(text), float64(got)/float64(len(page)), time.Since(began).Round(time.Millisecond))
		}
	}
}
