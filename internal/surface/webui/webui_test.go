package webui_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/surface/webui"
)

func get(t *testing.T, p *webui.Page, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPage checks what the page is served with, at the root and below a path.
func TestPage(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/", "chela", "/chela/"} {
		p := webui.New(base)
		home := p.Paths()[0]
		if want := map[bool]string{true: "/", false: "/chela/"}[strings.Trim(base, "/") == ""]; home != want {
			t.Errorf("base %q: the page is at %s, want %s", base, home, want)
		}
		res := get(t, p, "GET", home)
		html := body(t, res)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
			res.Header.Get("Cache-Control") != "no-cache" || res.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("the page: %d, %v", res.StatusCode, res.Header)
		}
		csp := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';",
			"frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("the policy lacks %s: %s", want, csp)
			}
		}
		for _, bad := range []string{"unsafe", "*", "http:", "https:"} {
			if strings.Contains(csp, bad) {
				t.Errorf("the policy contains %s: %s", bad, csp)
			}
		}
		// Everything that the page refers to is beside it.
		refs := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1)
		if len(refs) < 4 {
			t.Errorf("the page refers to %v", refs)
		}
		for _, m := range refs {
			path, ok := strings.CutPrefix(m[1], "./")
			if !ok || !slices.Contains(p.Paths(), home+path) {
				t.Errorf("the page refers to %s; served: %v", m[1], p.Paths())
			}
		}
		if strings.Contains(html, "<script>") || strings.Contains(html, "<style") || strings.Contains(html, " style=") ||
			regexp.MustCompile(` on\w+=`).MatchString(html) {
			t.Errorf("the page has inline code:\n%s", html)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	p := webui.New("")
	scripts, size := 0, 0
	kinds := map[string]string{ // on every machine
		"":             "text/html; charset=utf-8",
		".js":          "text/javascript; charset=utf-8",
		".css":         "text/css; charset=utf-8",
		".svg":         "image/svg+xml",
		".webmanifest": "application/manifest+json",
	}
	for _, name := range p.Paths() {
		res := get(t, p, "GET", name)
		content := body(t, res)
		tag := res.Header.Get("ETag")
		if res.StatusCode != http.StatusOK || content == "" || tag == "" ||
			res.Header.Get("Content-Type") != kinds[path.Ext(name)] || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %d bytes, %v", name, res.StatusCode, len(content), res.Header)
		}
		if got, want := strings.Contains(res.Header.Get("Cache-Control"), "immutable"),
			strings.HasPrefix(name, "/assets/"); got != want {
			t.Errorf("%s: Cache-Control %q", name, res.Header.Get("Cache-Control"))
		}
		if res := get(t, p, "GET", name, "If-None-Match", tag); res.StatusCode != http.StatusNotModified ||
			body(t, res) != "" {
			t.Errorf("%s, unchanged: %d", name, res.StatusCode)
		}
		if res := get(t, p, "HEAD", name); res.StatusCode != http.StatusOK || body(t, res) != "" ||
			res.Header.Get("ETag") != tag {
			t.Errorf("HEAD %s: %d, %v", name, res.StatusCode, res.Header)
		}
		if strings.HasSuffix(name, ".js") {
			scripts, size = scripts+1, len(content)
			if strings.Contains(content, "sourceMappingURL") {
				t.Errorf("%s refers to a source map", name)
			}
		}
	}
	if scripts != 1 || size > 250_000 {
		t.Errorf("%d scripts, %d bytes; want one of at most 250 kB", scripts, size)
	}
	for _, path := range []string{"/index.html", "/assets/", "/assets", "/x", "/assets/app.js",
		"/dist/index.html", "/../webui.go"} {
		if res := get(t, p, "GET", path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, res.StatusCode)
		}
	}
}
