package fs

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/tool"
)

// DocsPath is the path under which the tool read has the documentation of Chela: alone
// it is the list of pages, and with a name behind it a page.
const DocsPath = "docs:"

// docs is the documentation.
type docs struct{ pages fs.FS }

// list returns the pages with their titles.
func (d docs) list() string {
	names, err := fs.Glob(d.pages, "*.md") // sorted
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(d.pages, name)
		if err != nil {
			continue
		}
		title, _, _ := strings.Cut(string(text), "\n")
		fmt.Fprintf(&b, "%s%s: %s\n", DocsPath, strings.TrimSuffix(name, ".md"), strings.TrimLeft(title, "# "))
	}
	return b.String()
}

// read returns lines of a page, or the list of pages.
func (d docs) read(ctx context.Context, a readArgs, room int) (tool.Result, error) {
	name := strings.TrimSpace(strings.TrimPrefix(a.Path, DocsPath))
	if name == "" {
		return tool.Text(d.list()), nil
	}
	f, err := d.pages.Open(strings.TrimSuffix(name, ".md") + ".md")
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s does not exist; the pages are:\n%s", pathpolicy.Show(a.Path), d.list())
	}
	defer f.Close()
	return readPage(ctx, f, a, room)
}

// readPage returns lines of a file.
func readPage(ctx context.Context, f fs.File, a readArgs, room int) (tool.Result, error) {
	p := newPage(a, room)
	if err := p.fill(ctx, newLines(nil, f)); err != nil {
		return tool.Result{}, err
	}
	return p.result(), nil
}

// readBundled returns lines of a file of a bundled skill. The name of a skill stands for
// its SKILL.md.
func readBundled(ctx context.Context, skills fs.FS, name string, a readArgs, room int) (tool.Result, error) {
	name = path.Clean(strings.TrimSpace(name))
	if !strings.HasSuffix(name, ".md") {
		name = path.Join(name, skill.FileName)
	}
	f, err := skills.Open(name)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s does not exist", pathpolicy.Show(a.Path))
	}
	defer f.Close()
	return readPage(ctx, f, a, room)
}
