package invoke

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
)

const (
	defaultMaxResult = 64_000
	noOutput         = "(no output)"
)

// failure returns the result of a failed call, in a form that models know.
func failure(name, text string) tool.Result {
	b, err := json.Marshal(struct {
		Status string `json:"status"`
		Tool   string `json:"tool"`
		Error  string `json:"error"`
	}{"error", name, text})
	if err != nil {
		b = []byte(text)
	}
	return tool.Result{Content: []llm.Part{llm.Text(string(b))}, IsError: true}
}

// clean returns r without known secrets and with its images stored. Results are
// stored, shown and sent to a model.
func (x *Executor) clean(r tool.Result) tool.Result {
	parts := slices.Clone(r.Content)
	for i := range parts {
		parts[i].Text = x.redact(parts[i].Text)
		if x.storeImage != nil && parts[i].Kind == llm.PartImage {
			parts[i] = x.storeImage(parts[i])
		}
	}
	r.Content = parts
	if r.Details != nil {
		r.Details = json.RawMessage(x.redact(string(r.Details)))
	}
	if r.Args != nil {
		r.Args = json.RawMessage(x.redact(string(r.Args)))
	}
	return r
}

// bounded returns r with content that can be sent: it is not empty and has at most
// limit characters of text (0: 64,000). The middle of a longer text is removed,
// because errors are often at the end.
func bounded(r tool.Result, limit int) tool.Result {
	if limit <= 0 {
		limit = defaultMaxResult
	}
	var parts []llm.Part
	for _, p := range r.Content {
		switch {
		case p.Kind == llm.PartImage && p.Size() > 0:
			parts = append(parts, p)
		case p.Kind == llm.PartText && strings.TrimSpace(p.Text) != "":
			p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
			n := utf8.RuneCountInString(p.Text)
			if n > limit {
				p.Text = removeMiddle(p.Text, n, limit)
			}
			limit = max(limit-n, 200)
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		parts = []llm.Part{llm.Text(noOutput)}
	}
	r.Content = parts
	if !json.Valid(r.Details) {
		r.Details = nil
	}
	return r
}

// removeMiddle removes the middle of s, which has n runes, so that limit of them
// remain.
func removeMiddle(s string, n, limit int) string {
	head := offset(s, limit*3/4)
	tail := offset(s, n-limit/4)
	return s[:head] + fmt.Sprintf("\n[… %d of %d characters omitted; request a part (offset, limit, a filter) to see them …]\n", n-limit, n) + s[tail:]
}

// offset returns the byte offset of rune i.
func offset(s string, i int) int {
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}
