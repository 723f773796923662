package fs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	defaultLines = 2000
	maxLine      = 2000    // bytes shown of a line
	maxRead      = 100_000 // bytes of text in one result
	maxSkip      = 8 << 20 // bytes of a line that are skipped to find its end
	headSize     = 8 << 10 // bytes from which the type of a file is determined
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (a readArgs) paths() []string { return filesOf(a.Path) }

func newRead(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:      "read",
		Label:     "Read file",
		Effect:    tool.Reads,
		Groups:    []string{"group:fs", tool.Reading},
		Sandboxed: tool.Inside,
		Roles:     []tool.Role{tool.ReadsFiles, tool.TakesNotes},
		Parallel:  true,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"path":{"type":"string"},
			"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},
			"limit":{"type":"integer","minimum":1}},
			"required":["path"],"additionalProperties":false}`),
	}, func(ctx context.Context, w *workspace, a readArgs) (tool.Result, error) {
		if ref, ok := media.ParseRef(a.Path); ok {
			return readOutput(ctx, w, a, o, ref)
		}
		if o.Docs != nil && strings.HasPrefix(a.Path, DocsPath) {
			return docs{o.Docs}.read(ctx, a, w.room)
		}
		if name, ok := strings.CutPrefix(a.Path, skill.BundledPath); ok && o.Skills != nil {
			return readBundled(ctx, o.Skills, name, a, w.room)
		}
		return read(ctx, w, a, o.MaxImage)
	})
}

func read(ctx context.Context, w *workspace, a readArgs, maxImage int64) (tool.Result, error) {
	w, name, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := w.OpenFile(a.Path, name)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	head, rest, err := readHead(f, info.Size())
	if err != nil {
		return tool.Result{}, w.PathError(a.Path, err)
	}
	mime := http.DetectContentType(head)
	switch {
	case len(head) == 0:
		return tool.Text(pathpolicy.Show(a.Path) + " is empty."), nil
	case isImage(mime):
		return image(f, head, mime, a.Path, info.Size(), maxImage)
	}
	if rest != nil && info.Size() <= charset.Sample { // then the encoding is certain
		if head, err = io.ReadAll(io.MultiReader(bytes.NewReader(head), rest)); err != nil {
			return tool.Result{}, w.PathError(a.Path, err)
		}
		rest = nil
	}
	chars, ok := charset.Detect(head, rest == nil)
	if !ok {
		return tool.Text(fmt.Sprintf("%s is a binary file (%s, %s); it is not shown.", pathpolicy.Show(a.Path), mime,
			humanize.Bytes(info.Size()))), nil
	}
	p := newPage(a, w.room)
	p.charset = note(chars)
	if pathpolicy.Secret(w.ResolveLinks(name)) {
		p.mask = &masker{}
	}
	if err := p.fill(ctx, linesOf(chars, head, rest)); err != nil {
		return tool.Result{}, err
	}
	return p.result(), nil
}

// readOutput reads the complete output of a tool.
func readOutput(ctx context.Context, w *workspace, a readArgs, o Options, ref string) (tool.Result, error) {
	if o.Output == nil {
		return tool.Result{}, fmt.Errorf("%s: %w", a.Path, media.ErrRemoved)
	}
	f, err := o.Output(ref)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return tool.Result{}, err
	}
	head, rest, err := readHead(f, info.Size())
	if err != nil {
		return tool.Result{}, err
	}
	if mime := http.DetectContentType(head); isImage(mime) {
		return image(f, head, mime, a.Path, info.Size(), o.MaxImage)
	} else if charset.Binary(head) {
		return tool.Text(fmt.Sprintf("%s is a binary file (%s, %s); it is not shown.", pathpolicy.Show(a.Path), mime,
			humanize.Bytes(info.Size()))), nil
	}
	p := newPage(a, w.room)
	if err := p.fill(ctx, wrappedLines(head, rest)); err != nil {
		return tool.Result{}, err
	}
	return p.result(), nil
}

func isImage(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

func image(f *os.File, head []byte, mime, path string, n, maxSize int64) (tool.Result, error) {
	if n > maxSize {
		return tool.Text(fmt.Sprintf("%s is an image (%s, %s); images larger than %s are not shown. Reduce its size first.",
			pathpolicy.Show(path), mime, humanize.Bytes(n), humanize.Bytes(maxSize))), nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxSize-int64(len(head))+1))
	if err != nil {
		return tool.Result{}, fmt.Errorf("read %s: %w", pathpolicy.Show(path), err)
	}
	data := append(head, rest...)
	return tool.Result{Content: []llm.Part{
		llm.Text(fmt.Sprintf("%s (%s, %s)", pathpolicy.Show(path), mime, humanize.Bytes(int64(len(data))))),
		llm.Image(mime, data),
	}}, nil
}

// page is the part of a file in one result.
type page struct {
	path         string
	first, limit int
	most         int     // bytes of text
	mask         *masker // nil: the file holds no secrets
	charset      string  // note about the encoding; "": none

	text   strings.Builder
	lines  int    // number of lines in the text
	seen   int    // number of lines read
	crlf   bool   // a line ended with CR LF
	masked int    // number of masked values
	more   string // note about omitted text; "": none
}

// newPage returns an empty page with the lines that were asked for. room is the number
// of characters that a result may have; 0: unlimited.
func newPage(a readArgs, room int) *page {
	p := &page{path: a.Path, first: max(a.Offset, 1), limit: cmp.Or(max(a.Limit, 0), defaultLines), most: maxRead}
	if room > 0 {
		p.most = min(p.most, room*9/10) // line numbers and notes have room, too
	}
	return p
}

func (p *page) fill(ctx context.Context, l *lines) error {
	for p.mask == nil && p.seen+1 < p.first { // a masker must process every line
		if err := l.skip(ctx); err != nil {
			return p.end(err)
		}
		p.seen++
	}
	for {
		line, err := l.next(ctx)
		if err != nil {
			return p.end(err)
		}
		p.seen++
		text := p.clean(line)
		switch {
		case p.seen < p.first:
			continue
		case p.lines == p.limit || p.text.Len()+len(text) > p.most && p.lines > 0:
			p.more = fmt.Sprintf("More lines follow: use offset %d.", p.seen)
			return nil
		}
		fmt.Fprintf(&p.text, "%6d\t%s\n", p.seen, text)
		p.lines++
		if line.endless {
			p.more = fmt.Sprintf("Line %d is longer than %s; the rest of the file was not read.", p.seen,
				humanize.Bytes(maxSkip))
			return nil
		}
	}
}

// end returns the error at the end of the lines, or nil at the end of the
// file.
func (p *page) end(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("read %s: %w", pathpolicy.Show(p.path), err)
}

// clean returns a line as it is shown.
func (p *page) clean(line line) string {
	text := line.text
	if strings.HasSuffix(text, "\r") {
		p.crlf = true
		text = text[:len(text)-1]
	}
	if p.mask != nil {
		var n int
		text, n = p.mask.line(text)
		p.masked += n
	}
	text = printable(text)
	if line.cut {
		text += " … [line cut]"
	}
	return text
}

func (p *page) result() tool.Result {
	var notes []string
	if p.lines == 0 {
		notes = append(notes, fmt.Sprintf("%s has %d lines; offset %d is past its end.", pathpolicy.Show(p.path),
			p.seen, p.first))
	}
	if p.more != "" {
		notes = append(notes, fmt.Sprintf("Lines %d-%d. %s", p.first, p.first+p.lines-1, p.more))
	}
	if p.crlf {
		notes = append(notes, "Lines end with CR LF.")
	}
	if p.charset != "" {
		notes = append(notes, p.charset)
	}
	if p.masked > 0 {
		notes = append(notes, "Values are masked (***): the file may hold secrets.")
	}
	text := p.text.String()
	if len(notes) > 0 {
		if text != "" {
			text += "\n"
		}
		text += "[" + strings.Join(notes, " ") + "]"
	}
	return tool.Text(text)
}
