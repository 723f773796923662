package markup

import (
	"bytes"
	"strings"
	"unicode"
)

// Telegram renders Markdown as the HTML that Telegram accepts: b, i, s, code, pre, a and
// blockquote. Every tag is closed.
func Telegram(md string) string { return renderLines(&telegramDialect, md) }

// HTML renders Markdown as HTML for Matrix and mail. It has no attributes except href,
// class and start, and no links except those to http, https, mailto and matrix.
func HTML(md string) string {
	p := &page{}
	for _, s := range pieces(md) {
		(&walker{s, p}).blocks(s.root)
	}
	return string(p.out)
}

// Slack renders Markdown as Slack's mrkdwn. Nothing in it mentions a person or a group,
// if the message is sent without link_names and with parse none.
func Slack(md string) string { return renderLines(&slackDialect, md) }

// Plain renders Markdown as text without markup.
func Plain(md string) string { return renderLines(&plainDialect, md) }

// Span is a style of a part of a text. Start and Length are in units of UTF-16.
type Span struct {
	Start, Length int
	Style         string
}

// Signal renders Markdown as text with styles: BOLD, ITALIC, STRIKETHROUGH, MONOSPACE.
func Signal(md string) (text string, styles []Span) {
	l := walkLines(&signalDialect, md)
	if len(bytes.TrimSpace(l.out)) == 0 {
		return literal(md), nil
	}
	return string(l.out), l.spans
}

func renderLines(d *dialect, md string) string {
	if l := walkLines(d, md); len(bytes.TrimSpace(l.out)) > 0 {
		return string(l.out)
	}
	if d.escape != nil {
		return d.escape(literal(md))
	}
	return literal(md)
}

// literal returns the source of a document that shows nothing, such as an empty link.
func literal(md string) string { return strings.TrimSpace(clean(md)) }

func walkLines(d *dialect, md string) *lines {
	l := newLines(d)
	for _, s := range pieces(md) {
		l.next(false)
		(&walker{s, l}).blocks(s.root)
	}
	return l
}

var tagEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

var telegramDialect = dialect{
	escape: tagEscaper.Replace,
	tags: [marks][2]string{bold: {"<b>", "</b>"}, italic: {"<i>", "</i>"}, strike: {"<s>", "</s>"},
		mono: {"<code>", "</code>"}},
	quote:   [2]string{"<blockquote>", "</blockquote>"},
	schemes: []string{"tg://"},
	pre: func(lang, code string) string {
		if lang != "" {
			return `<pre><code class="language-` + lang + `">` + tagEscaper.Replace(code) + "</code></pre>"
		}
		return "<pre>" + tagEscaper.Replace(code) + "</pre>"
	},
	link: func(url, label string) string {
		return `<a href="` + htmlEscaper.Replace(url) + `">` + tagEscaper.Replace(label) + "</a>"
	},
}

var slackDialect = dialect{
	escape:  tagEscaper.Replace,
	tags:    [marks][2]string{bold: {"*", "*"}, italic: {"_", "_"}, strike: {"~", "~"}},
	perLine: true,
	guard:   slackGuard,
	pre: func(_, code string) string {
		return "```\n" + tagEscaper.Replace(strings.ReplaceAll(code, "```", "``"+boundary+"`")) + "\n```"
	},
	code: func(s string) string {
		if s == "" || strings.Contains(s, "`") { // there is no way to write it
			return ""
		}
		return "`" + tagEscaper.Replace(s) + "`"
	},
	link: func(url, label string) string {
		if same(url, label) {
			return "<" + tagEscaper.Replace(url) + ">"
		}
		return "<" + tagEscaper.Replace(url) + "|" + tagEscaper.Replace(label) + ">"
	},
}

// slackGuard puts an invisible boundary after characters that would begin a mark, and
// before one that would begin a quote.
func slackGuard(s string, last rune) string {
	const special = "*_~`"
	var final [len(special)]int // the position of the last one of each
	for i := range special {
		final[i] = strings.LastIndexByte(s, special[i])
	}
	var b strings.Builder
	if last == 0 && strings.HasPrefix(s, ">") {
		b.WriteString(boundary)
	}
	for i, r := range s {
		b.WriteRune(r)
		k := -1
		if r < 0x80 {
			k = strings.IndexByte(special, byte(r))
		}
		if k >= 0 && i < final[k] && !isAlnum(last) && s[i+1] != ' ' {
			b.WriteString(boundary)
		}
		last = r
	}
	return b.String()
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var plainDialect = dialect{}

var signalDialect = dialect{styles: [marks]string{bold: "BOLD", italic: "ITALIC", strike: "STRIKETHROUGH",
	mono: "MONOSPACE"}}
