// Package trigger performs the cheap checks that decide whether a scheduled job runs:
// whether a file, a web page or the output of a command has changed. No model takes part.
package trigger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"golang.org/x/net/html"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Options are what a Checker may use. All are required.
type Options struct {
	// Files returns which files an agent may use, and its workspace.
	Files func(chela.AgentID) (pathpolicy.Rule, string)
	// HTTP returns the client for web pages.
	HTTP func() *http.Client
	// Run runs a command like the tool exec, and returns its output. It is refused if a
	// person would have to be asked.
	Run func(ctx context.Context, who chela.Principal, agent chela.AgentID, command string) (string, error)
}

// Checker performs checks. It is safe for concurrent use.
type Checker struct {
	o     Options
	label untrusted.Labeler
}

// New returns a Checker.
func New(o Options) *Checker { return &Checker{o, untrusted.New()} }

// Limits of what a check reads.
const (
	maxFile  = 256 << 20
	maxPage  = 2 << 20
	maxShown = 4000 // characters that the model gets
)

// absent stands for a file that does not exist.
const absent = "absent"

// Check performs the check of a trigger for an agent. seen identifies what was found; it
// is never empty. found describes it for the model.
func (c *Checker) Check(ctx context.Context, who chela.Principal, agent chela.AgentID,
	t job.Trigger) (seen, found string, err error) {
	switch kind, object := t.Parts(); kind {
	case job.CheckFile:
		seen, err = c.file(ctx, agent, object)
		found = fmt.Sprintf("The file %s has changed.", object)
		if seen == absent {
			found = fmt.Sprintf("The file %s does not exist any more.", object)
		}
	case job.CheckURL:
		var text string
		if text, err = c.page(ctx, object); err == nil {
			seen = sum(text)
			found = fmt.Sprintf("The page %s has changed. It begins now:\n%s", object, c.wrap(object, text))
		}
	case job.CheckCommand:
		var text string
		if text, err = c.o.Run(ctx, who, agent, object); err == nil {
			seen = sum(text)
			found = fmt.Sprintf("The output of the command %s has changed. It is now:\n%s", object, c.wrap("command", text))
		}
	default:
		err = fmt.Errorf("unknown check %q", kind)
	}
	return seen, found, err
}

func (c *Checker) wrap(source, text string) string {
	return c.label.Wrap(source, untrusted.Data, humanize.Truncate(text, maxShown))
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:12])
}

// file identifies the content of a file.
func (c *Checker) file(ctx context.Context, agent chela.AgentID, path string) (string, error) {
	rule, dir := c.o.Files(agent)
	w, err := rule.Open(tool.Call{Agent: agent, Dir: dir})
	if err != nil {
		return "", err
	}
	defer w.Close()
	at, name, err := w.Resolve(path)
	if err != nil {
		return "", err
	}
	if _, err := at.Root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	f, info, err := at.OpenFile(path, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() > maxFile { // the times and the size have to do
		return sum(fmt.Sprint(info.Size(), info.ModTime().UnixNano())), nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, &reader{ctx, f}); err != nil {
		return "", at.PathError(path, err)
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// page returns the text of a web page.
func (c *Checker) page(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "Chela")
	res, err := c.o.HTTP().Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		return "", fmt.Errorf("get %s: %s", url, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxPage))
	if err != nil {
		return "", fmt.Errorf("get %s: %w", url, err)
	}
	if strings.Contains(res.Header.Get("Content-Type"), "html") {
		return visible(body), nil
	}
	return string(body), nil
}

// visible returns the text of an HTML page that a reader sees. Scripts and attributes,
// which often differ at each visit, are left out.
func visible(page []byte) string {
	var out strings.Builder
	z := html.NewTokenizer(bytes.NewReader(page))
	hidden := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(out.String())
		case html.StartTagToken:
			if name, _ := z.TagName(); hidden == "" &&
				(string(name) == "script" || string(name) == "style" || string(name) == "noscript" || string(name) == "template") {
				hidden = string(name)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == hidden {
				hidden = ""
			}
		case html.TextToken:
			if text := strings.Join(strings.Fields(string(z.Text())), " "); hidden == "" && text != "" {
				out.WriteString(html.UnescapeString(text) + "\n")
			}
		}
	}
}

// Text returns the text of the result of a tool.
func Text(r tool.Result) string {
	var out strings.Builder
	for _, p := range r.Content {
		out.WriteString(p.Text)
	}
	return out.String()
}
