package export

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of the pictures in a page, in bytes.
const (
	maxPicture  = 256 << 10
	maxPictures = 8 << 20 // of all
)

//go:embed page.css
var pageStyle markup

// markup is HTML that the program itself contains. Only constants convert to it, so that
// text from a session cannot be taken for it by mistake.
type markup string

// page writes HTML. After an error, it writes nothing.
type page struct {
	w        *bufio.Writer
	redact   func(string) string
	pictures int // bytes that were written
	err      error
}

// put writes markup in which each %s is replaced by a text, which is escaped.
func (p *page) put(m markup, texts ...string) {
	if p.err != nil {
		return
	}
	rest := string(m)
	for _, text := range texts {
		before, after, ok := strings.Cut(rest, "%s")
		if !ok {
			panic("export: too many texts for " + string(m))
		}
		p.write(before)
		p.write(escape(p.redact(text)))
		rest = after
	}
	p.write(rest)
}

func (p *page) write(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

// escape returns a text as HTML that shows it, in an element or an attribute.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r < 0xa0: // control characters; a browser drops or replaces them
			return utf8.RuneError
		}
		return r
	}, humanize.Breaks(strings.ToValidUTF8(s, string(utf8.RuneError)))))
}

// writeHTML writes a session as a page.
func (x *Exporter) writeHTML(ctx context.Context, w io.Writer, s *source, pre preview) error {
	p := &page{w: bufio.NewWriter(w), redact: x.o.Redact}
	x.head(p, s, pre)
	p.system(pre)
	p.tools(pre.request.Tools)
	p.put("<main>\n")
	err := s.each(ctx, func(e *session.Entry) error {
		if e.Message != nil && p.pictures < maxPictures {
			e.Message = x.o.Scaled(e.Message, maxPicture)
		}
		p.entry(e)
		return p.err
	})
	if err == nil && s.count == 0 {
		p.put("<p class=\"note\">This conversation has no messages.</p>\n")
	}
	p.put("</main>\n</body>\n</html>\n")
	if err = cmp.Or(err, p.err); err == nil {
		err = p.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("export session %s: %w", s.meta.Key, err)
	}
	return nil
}

// head writes the beginning of the page and the facts about the session.
func (x *Exporter) head(p *page, s *source, pre preview) {
	m := &s.meta
	title := cmp.Or(m.Label, m.Title, string(m.Key))
	p.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>")
	p.put("%s</title>\n<style>\n", title)
	p.put(pageStyle)
	p.put("</style>\n</head>\n<body>\n<h1 dir=\"auto\">%s</h1>\n<dl>\n", title)
	fact := func(name, value string) {
		if value != "" {
			p.put("<dt>%s</dt><dd>%s</dd>\n", name, value)
		}
	}
	fact("Session", string(m.Key))
	fact("Transcript", m.ID)
	fact("Agent", string(m.Agent))
	fact("Model", pre.modelName())
	fact("Started", clock(m.Started))
	fact("Last message", clock(m.Active))
	fact("Exported", clock(pre.now)+", by Chela "+x.o.Version)
	fact("Entries", fmt.Sprint(s.count))
	if m.Compactions > 0 {
		fact("Compactions", fmt.Sprint(m.Compactions))
	}
	fact("Model calls", fmt.Sprint(m.Calls))
	fact("Tokens", tokens(m.Tokens))
	cost := usage.USD(m.NanoUSD)
	if !m.Priced && m.Calls > 0 {
		cost += " (the price of some calls is unknown)"
	}
	fact("Cost", cost)
	p.put("</dl>\n")
}

// clock returns a time for people; "": the zero time.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func tokens(u llm.Usage) string {
	s := humanize.Count(u.Prompt()) + " in"
	if u.CacheRead > 0 {
		s += " (" + humanize.Count(u.CacheRead) + " from the cache)"
	}
	return s + ", " + humanize.Count(u.Output) + " out"
}

// characters says how long a text is.
func characters(n int) string { return humanize.Many(n, "character") }

// system writes the system prompt of the next request.
func (p *page) system(pre preview) {
	if pre.err != nil {
		p.put("<p class=\"note bad\">The system prompt and the tools are not known: %s</p>\n", pre.err.Error())
		return
	}
	n := utf8.RuneCountInString(pre.request.Note)
	for _, b := range pre.request.System {
		n += utf8.RuneCountInString(b.Text)
	}
	p.put("<details><summary>System prompt <small>%s, as the model gets it now</small></summary>\n", characters(n))
	for _, b := range pre.request.System {
		p.put("<pre dir=\"auto\">%s</pre>\n", b.Text)
	}
	if pre.request.Note != "" {
		p.put("<p class=\"note\">This is sent behind the last message:</p>\n<pre dir=\"auto\">%s</pre>\n", pre.request.Note)
	}
	p.put("</details>\n")
}

// tools writes the tools of the next request.
func (p *page) tools(list []llm.ToolSpec) {
	if len(list) == 0 {
		return
	}
	p.put("<details><summary>Tools <small>%s</small></summary>\n", fmt.Sprint(len(list)))
	for _, t := range list {
		p.put("<details><summary>%s</summary>\n<div class=\"text\" dir=\"auto\">%s</div>\n<pre>%s</pre>\n</details>\n",
			t.Name, t.Description, indented(t.Schema))
	}
	p.put("</details>\n")
}

// indented returns a JSON value for people.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// entry writes an entry of the transcript.
func (p *page) entry(e *session.Entry) {
	switch e.Kind {
	case session.KindMessage:
		if e.Message != nil {
			p.message(e)
		}
	case session.KindAgain: // shown at its first place
	case session.KindCut:
		p.compaction(e)
	case session.KindPrune:
		p.put("<p class=\"note\">%s</p>\n", pruned(e.Prune))
	case session.KindVoid:
		if (e.Voids != session.Ref{}) {
			p.put("<p class=\"note\">%s</p>\n", voided(e.Voids))
		}
	case session.KindModel:
		p.put("<p class=\"note\">Model: %s</p>\n", e.Text)
	case session.KindThink:
		p.put("<p class=\"note\">Thinking level: %s</p>\n", e.Text)
	case session.KindCommand:
		command, answer, _ := strings.Cut(e.Text, "\n")
		p.author("<article class=\"person\">\n", cmp.Or(e.Sender.Name, "Person"), "command", e)
		p.put("<div class=\"text\" dir=\"auto\">%s</div>\n</article>\n", command)
		p.put("<div class=\"note text\" dir=\"auto\">%s</div>\n", answer)
	default:
		p.put("<div class=\"note text\" dir=\"auto\">%s</div>\n", e.Text)
		if e.Message != nil && e.Message.Role == "" {
			for i := range e.Message.Parts {
				p.picture(&e.Message.Parts[i])
			}
		}
	}
}

// author begins an article with who wrote the entry, and when.
func (p *page) author(m markup, name, note string, e *session.Entry) {
	p.put(m)
	p.put("<header><span><b dir=\"auto\">%s</b> %s</span>", name, note)
	id := fmt.Sprint("e", e.Seq)
	p.put("<a id=\"%s\" href=\"#%s\"><time>%s</time></a></header>\n", id, id, clock(e.Time))
}

// message writes a message.
func (p *page) message(e *session.Entry) {
	m := e.Message
	switch m.Role {
	case llm.RoleTool:
		p.result(m)
		return
	case llm.RoleAssistant:
		p.author("<article>\n", "Assistant", "", e)
		p.parts(m)
		p.put("<footer>%s</footer>\n", answerFacts(e))
	default:
		name, note := "Person", ""
		if k := e.Origin.Kind; k != "" && k != chela.OriginPerson {
			name, note = "Event", string(k)
		}
		p.author("<article class=\"person\">\n", cmp.Or(e.Sender.Name, name), note, e)
		p.parts(m)
	}
	p.put("</article>\n")
}

// answerFacts describes a model call.
func answerFacts(e *session.Entry) string {
	m := e.Message
	facts := []string{m.Model}
	if m.Provider != "" {
		facts[0] = m.Provider + "/" + m.Model
	}
	if e.Usage != nil {
		facts = append(facts, tokens(*e.Usage))
		if e.NanoUSD >= 0 {
			facts = append(facts, usage.USD(e.NanoUSD))
		}
	}
	switch {
	case e.Partial:
		facts = append(facts, "stopped before its end")
	case m.Stop != llm.StopEnd && m.Stop != llm.StopTools && m.Stop != llm.StopUnable:
		facts = append(facts, string(m.Stop))
	}
	return strings.Join(slices.DeleteFunc(facts, func(s string) bool { return s == "" }), " · ")
}

// parts writes the content of a message.
func (p *page) parts(m *llm.Message) {
	for i := range m.Parts {
		switch part := &m.Parts[i]; part.Kind {
		case llm.PartText:
			if strings.TrimSpace(part.Text) != "" {
				p.put("<div class=\"text\" dir=\"auto\">%s</div>\n", part.Text)
			}
		case llm.PartThinking:
			p.thoughts(part)
		case llm.PartImage:
			p.picture(part)
		case llm.PartCall:
			if c := part.Call; c != nil {
				p.put("<details><summary>🔧 %s</summary>\n<pre dir=\"auto\">%s</pre>\n</details>\n", c.Label(),
					cmp.Or(c.Raw, indented(c.Args)))
			}
		}
	}
}

// thoughts writes what the model thought.
func (p *page) thoughts(part *llm.Part) {
	if part.Text == "" {
		p.put("<p class=\"note\">The provider hides the thoughts.</p>\n")
		return
	}
	p.put("<details><summary>💭 Thoughts <small>%s</small></summary>\n<div class=\"text\" dir=\"auto\">%s</div>\n</details>\n",
		characters(utf8.RuneCountInString(part.Text)), part.Text)
}

// result writes the result of a tool call.
func (p *page) result(m *llm.Message) {
	what := markup("<details><summary>↳ %s <small>%s</small></summary>\n")
	if m.IsError {
		what = "<details><summary>↳ %s <small class=\"bad\">failed, %s</small></summary>\n"
	}
	p.put(what, m.ToolName, characters(utf8.RuneCountInString(m.PlainText())))
	for i := range m.Parts {
		switch part := &m.Parts[i]; part.Kind {
		case llm.PartText:
			p.put("<pre dir=\"auto\">%s</pre>\n", part.Text)
		case llm.PartImage:
			p.picture(part)
		}
	}
	p.put("</details>\n")
}

// picture writes a picture, or its type and size if it is large.
func (p *page) picture(part *llm.Part) {
	kinds := []string{"image/png", "image/jpeg", "image/gif", "image/webp"} // no SVG, which may contain scripts
	if n := len(part.Data); n == 0 || n > maxPicture || p.pictures+n > maxPictures || !slices.Contains(kinds, part.MIME) {
		p.put("<p class=\"note\">Picture: %s, %s</p>\n", cmp.Or(part.MIME, "unknown type"),
			humanize.Bytes(int64(part.Size())))
		return
	}
	p.pictures += len(part.Data)
	p.put("<img alt=\"picture\" src=\"data:%s;base64,", part.MIME)
	if p.err == nil {
		enc := base64.NewEncoder(base64.StdEncoding, p.w)
		_, p.err = enc.Write(part.Data)
		p.err = cmp.Or(p.err, enc.Close())
	}
	p.put("\">\n")
}

// compaction writes a compaction with its summary.
func (p *page) compaction(e *session.Entry) {
	c := session.CompactionOf(*e)
	text := "🧹 Compaction"
	if c.Compacted > 0 {
		text += fmt.Sprintf(": %s replaced, about %s → %s tokens", humanize.Many(c.Compacted, "message"),
			humanize.Count(int64(c.TokensBefore)), humanize.Count(int64(c.TokensAfter)))
	}
	if e.Text == "" {
		p.put("<p class=\"note\">%s, without a summary</p>\n", text)
		return
	}
	p.put("<details><summary>%s</summary>\n<div class=\"text\" dir=\"auto\">%s</div>\n</details>\n", text, e.Text)
}

// pruned says what is sent in a shorter form from here on.
func pruned(p *session.Prune) string {
	if p == nil {
		return "Earlier results are sent in a shorter form from here on."
	}
	var parts []string
	for _, k := range []struct {
		n    int
		noun string
		how  string
	}{{len(p.Trim), "result", "shortened"}, {len(p.Clear), "result", "left out"},
		{len(p.Images), "message", "sent without pictures"}} {
		if k.n > 0 {
			parts = append(parts, humanize.Many(k.n, k.noun)+" "+k.how)
		}
	}
	return "From here on, in requests: " + strings.Join(parts, ", ")
}

// voided says what is no longer sent.
func voided(r session.Ref) string {
	if r.Run != "" {
		return "What this run wrote is no longer sent to the model."
	}
	return "A compaction was undone: the messages before it are sent to the model again."
}
