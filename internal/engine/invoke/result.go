package invoke

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
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
// because errors are often at the end; the complete text is stored, and the result says
// where. A long text in several parts becomes one part.
func (x *Executor) bounded(r tool.Result, limit int) tool.Result {
	if limit <= 0 {
		limit = defaultMaxResult
	}
	r.Content = joined(r.Content, limit)
	var parts []llm.Part
	for _, p := range r.Content {
		switch {
		case p.Kind == llm.PartImage && p.Size() > 0:
			parts = append(parts, p)
		case p.Kind == llm.PartText && strings.TrimSpace(p.Text) != "":
			p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
			n := utf8.RuneCountInString(p.Text)
			if n > limit {
				p = x.shortened(p, n, limit)
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

// joined returns parts with all texts in the first one, separated by line breaks, if
// they may have more than limit characters together.
func joined(parts []llm.Part, limit int) []llm.Part {
	size, texts := 0, 0
	for i := range parts {
		if parts[i].Kind == llm.PartText {
			size, texts = size+len(parts[i].Text), texts+1
		}
	}
	if size <= limit || texts < 2 {
		return parts
	}
	var b strings.Builder
	out := []llm.Part{{Kind: llm.PartText}}
	for _, p := range parts {
		if p.Kind != llm.PartText {
			out = append(out, p)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
	}
	out[0].Text = b.String()
	return out
}

// shortened returns a part whose text has n characters with limit of them. The complete
// text is stored, without secrets.
func (x *Executor) shortened(p llm.Part, n, limit int) llm.Part {
	how := "request a part (offset, limit, a filter) to see them"
	if x.storeOutput != nil {
		ref, err := x.storeOutput(x.redact(p.Text))
		if err == nil {
			p.Ref, p.Bytes = ref, len(p.Text)
			how = fmt.Sprintf("the complete output is %s%s: use read with that path and an offset, or grep", media.Scheme, ref)
		} else {
			x.log.Warn("store the complete output of a tool", "err", err)
		}
	}
	head := p.Text[:offset(p.Text, limit*3/4)]
	tail := p.Text[offset(p.Text, n-limit/4):]
	p.Text = head + fmt.Sprintf("\n[… %d of %d characters omitted; %s …]\n", n-limit, n, how) + tail
	return p
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
