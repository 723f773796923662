// Package webui is Chela's own page in a browser. It speaks the gateway protocol over a
// WebSocket, like any other client, and asks the server for nothing else than its files.
//
// The sources are in web/ (TypeScript); dist/ is what `npm run build` makes of them there. It
// is committed, so that building the program needs no Node.
package webui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed dist
var dist embed.FS

// policy allows the page its own scripts, styles and connections, and nothing from elsewhere:
// no inline code, no pictures of other servers, no frames around it. Frames in it show the
// canvas, whose pages get an origin of their own. Trusted Types keep text
// from becoming code; the two names are those of Lit and DOMPurify.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; frame-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html dompurify"

// Page is the page and its files. Use [New].
type Page struct {
	base  string
	files map[string]file // by their path below base
}

type file struct {
	content []byte
	kind    string // media type
	tag     string
}

// New returns the page below a path; "": at the root.
func New(base string) *Page {
	p := &Page{base: "/" + strings.Trim(base, "/"), files: map[string]file{}}
	if p.base != "/" {
		p.base += "/"
	}
	err := fs.WalkDir(dist, "dist", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := dist.ReadFile(name)
		sum := sha256.Sum256(b)
		p.files[strings.TrimPrefix(name, "dist/")] = file{b, kind(name),
			`"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	p.files[""] = p.files[index]
	delete(p.files, index)
	return p
}

const index = "index.html"

// kind returns the media type of a file of the page. The tables of the machine are not
// asked: reading them is a twentieth of a start, and they differ.
func kind(name string) string {
	return map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
	}[path.Ext(name)]
}

// Paths returns the paths at which the page serves something, sorted; the first is that of
// the page itself.
func (p *Page) Paths() []string {
	var out []string
	for name := range p.files {
		out = append(out, p.base+name)
	}
	slices.Sort(out)
	return out
}

// ServeHTTP serves a file.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, p.base)
	f, ok := p.files[name]
	if !below || !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case name == "":
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	case strings.HasPrefix(name, "assets/"): // their names change with their content
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.content))
}
