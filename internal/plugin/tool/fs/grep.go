package fs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	defaultMatches = 100
	maxMatches     = 1000
	maxContext     = 20
	maxGrepText    = 60_000
	maxGrepLine    = 500 // bytes shown of a line
	maxGrepTime    = 20 * time.Second
	searchedLine   = 256 << 10 // bytes searched of a line
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Literal    bool   `json:"literal"`
	IgnoreCase bool   `json:"ignoreCase"`
	Context    int    `json:"context"`
	Limit      int    `json:"limit"`
}

func (a grepArgs) paths() []string { return filesOf(a.Path) }

func newGrep(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:   "grep",
		Label:  "Search in files",
		Effect: tool.Reads,
		Groups: []string{"group:fs", tool.Reading}, Sandboxed: tool.Inside,
		Parallel: true,
		Aliases: map[string]string{
			"query": "pattern", "regex": "pattern", "include": "glob",
			"case_insensitive": "ignoreCase", "max_results": "limit",
		},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"pattern":{"type":"string","minLength":1,"description":"RE2"},
			"path":{"type":"string"},
			"glob":{"type":"string","description":"such as *.go"},
			"literal":{"type":"boolean"},
			"ignoreCase":{"type":"boolean"},
			"context":{"type":"integer","minimum":0,"maximum":20},
			"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"default 100"}},
			"required":["pattern"],"additionalProperties":false}`),
	}, func(ctx context.Context, w *workspace, a grepArgs) (tool.Result, error) {
		if ref, ok := media.ParseRef(a.Path); ok {
			return grepOutput(ctx, w, a, o, ref)
		}
		return grep(ctx, w, a)
	})
}

// grepOutput searches the complete output of a tool.
func grepOutput(ctx context.Context, w *workspace, a grepArgs, o Options, ref string) (tool.Result, error) {
	if o.Output == nil {
		return tool.Result{}, fmt.Errorf("%s: %w", a.Path, media.ErrRemoved)
	}
	s, err := newSearch(w, a)
	if err != nil {
		return tool.Result{}, err
	}
	f, err := o.Output(ref)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	if err := s.scan(ctx, a.Path, wrappedLines(nil, f)); err != nil && !errors.Is(err, errStop) {
		return tool.Result{}, err
	}
	return s.result(), nil
}

func grep(ctx context.Context, w *workspace, a grepArgs) (tool.Result, error) {
	w, start, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	s, err := newSearch(w, a)
	if err != nil {
		return tool.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, maxGrepTime)
	defer cancel()
	err = w.walk(limited, a.Path, start, func(name, rel string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || !s.includes(rel) {
			return nil
		}
		return s.file(limited, name)
	})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		s.stopped = fmt.Sprintf("The search was stopped after %v; narrow it with path or glob.", maxGrepTime)
	case err != nil && !errors.Is(err, errStop):
		return tool.Result{}, err
	}
	return s.result(), nil
}

// search is the state of one grep.
type search struct {
	w        *workspace
	re       *regexp.Regexp
	includes func(rel string) bool
	context  int // lines shown before and after a match
	limit    int
	text     strings.Builder
	found    int
	skipped  int // files with hard links
	stopped  string
}

func newSearch(w *workspace, a grepArgs) (*search, error) {
	s := &search{w: w, context: min(max(a.Context, 0), maxContext),
		limit: min(cmp.Or(max(a.Limit, 0), defaultMatches), maxMatches)}
	expr := a.Pattern
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	var err error
	if s.re, err = regexp.Compile(expr); err != nil {
		return nil, fmt.Errorf("%w; set literal to search for plain text", err)
	}
	s.includes = func(string) bool { return true }
	if a.Glob != "" {
		if s.includes, err = glob(a.Glob); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// file searches one file. Files that cannot be read are skipped.
func (s *search) file(ctx context.Context, name string) error {
	f, info, err := s.w.OpenFile(name, name)
	if err != nil {
		if info, e := s.w.Root.Stat(name); e == nil && pathpolicy.Links(info) > 1 {
			s.skipped++
		}
		return nil
	}
	defer f.Close()
	head, rest, err := readHead(f, info.Size())
	if err != nil || len(head) == 0 {
		return nil
	}
	chars, ok := charset.Detect(head, rest == nil)
	if !ok {
		return nil
	}
	l := linesOf(chars, head, rest)
	l.max = searchedLine
	return s.scan(ctx, name, l)
}

func (s *search) scan(ctx context.Context, name string, l *lines) error {
	var m *masker
	if pathpolicy.Secret(name) {
		m = &masker{}
	}
	var before []string // up to s.context preceding lines that were not shown
	after := 0          // lines still to be shown after a match
	last := 0           // number of the last line shown
	for i := 1; ; i++ {
		ln, err := l.next(ctx)
		if err != nil {
			return onlyContext(err)
		}
		text := strings.TrimSuffix(ln.text, "\r")
		if m != nil {
			text, _ = m.line(text)
		}
		switch {
		case s.re.MatchString(text):
			if s.found == s.limit || s.text.Len() > maxGrepText {
				s.stopped = fmt.Sprintf("Stopped after %d matches; there are more. Narrow the search.", s.found)
				return errStop
			}
			s.found++
			if s.context > 0 && last > 0 && i-len(before) > last+1 {
				s.text.WriteString("--\n")
			}
			for j, b := range before {
				s.show(name, i-len(before)+j, "-", b)
			}
			s.show(name, i, ":", text)
			before, after, last = before[:0], s.context, i
		case after > 0:
			s.show(name, i, "-", text)
			after--
			last = i
		case s.context > 0:
			if len(before) == s.context {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, truncateLine(text))
		}
		if ln.endless {
			return nil
		}
	}
}

// onlyContext returns errors that end the whole search, and drops errors of a
// single file.
func onlyContext(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (s *search) show(name string, line int, mark, text string) {
	fmt.Fprintf(&s.text, "%s%s%d%s %s\n", s.w.ShowName(name), mark, line, mark, printable(truncateLine(text)))
}

func truncateLine(text string) string {
	if len(text) <= maxGrepLine {
		return text
	}
	return string(humanize.TrimPartial([]byte(text[:maxGrepLine]))) + " … [line cut]"
}

func (s *search) result() tool.Result {
	var notes []string
	if s.found == 0 {
		notes = append(notes, "No match.")
	}
	if s.stopped != "" {
		notes = append(notes, s.stopped)
	}
	if s.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d files with hard links were not searched; use exec for them.", s.skipped))
	}
	text := strings.TrimSuffix(s.text.String(), "\n")
	if len(notes) > 0 {
		if text != "" {
			text += "\n\n"
		}
		text += strings.Join(notes, " ")
	}
	return tool.Text(text + s.w.skippedNote())
}
