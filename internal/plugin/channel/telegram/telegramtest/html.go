package telegramtest

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// tags are the elements that Telegram knows, with their attributes.
var tags = map[string]string{
	"b":          "",
	"strong":     "",
	"i":          "",
	"em":         "",
	"u":          "",
	"ins":        "",
	"s":          "",
	"strike":     "",
	"del":        "",
	"tg-spoiler": "",
	"pre":        "",
	"span":       `class="tg-spoiler"`,
	"a":          `href="[^"<>]*"`,
	"tg-emoji":   `emoji-id="[0-9]+"`,

	"code":       `class="language-[^"<>]*"`,
	"blockquote": `expandable`,
}

// required are the elements that need their attribute.
var required = []string{"span", "a", "tg-emoji"}

// entityName matches a character reference of the kinds that Telegram decodes.
var entityName = regexp.MustCompile(`&(?:lt|gt|amp|quot|#[0-9]+|#x[0-9a-fA-F]+);`)

// parseHTML returns the text that people see, or why Telegram cannot parse it.
func parseHTML(s string) (string, *refused) {
	var text strings.Builder
	var open []string
	rest := s
	for {
		before, after, found := strings.Cut(rest, "<")
		text.WriteString(entityName.ReplaceAllStringFunc(before, html.UnescapeString))
		if !found {
			break
		}
		offset := len(s) - len(after) - 1
		tag, next, closed := strings.Cut(after, ">")
		if !closed {
			return "", badRequest("can't parse entities: Unclosed start tag at byte offset %d", offset)
		}
		rest = next
		if name, end := strings.CutPrefix(tag, "/"); end {
			if len(open) == 0 {
				return "", badRequest("can't parse entities: Unexpected end tag at byte offset %d", offset)
			}
			if last := open[len(open)-1]; last != name {
				return "", badRequest(
					"can't parse entities: Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"",
					offset, last, name)
			}
			open = open[:len(open)-1]
			continue
		}
		name, attribute, has := strings.Cut(tag, " ")
		pattern, known := tags[name]
		if !known {
			return "", badRequest("can't parse entities: Unsupported start tag \"%s\" at byte offset %d", name, offset)
		}
		if ok, _ := regexp.MatchString("^(?:"+pattern+")$", attribute); has && !ok ||
			!has && slices.Contains(required, name) {
			return "", badRequest("can't parse entities: the attributes %q of <%s> at byte offset %d are not known",
				attribute, name, offset)
		}
		open = append(open, name)
	}
	if len(open) > 0 {
		return "", badRequest("can't parse entities: Can't find end tag corresponding to start tag \"%s\"", open[len(open)-1])
	}
	return strings.TrimRight(text.String(), "\n "), nil
}

// utf16Len returns the number of UTF-16 code units.
func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

// Text returns what people see of a text in HTML, or why Telegram does not accept it.
func Text(markup string) (string, error) {
	text, r := parseHTML(markup)
	if r != nil {
		return "", r
	}
	return text, nil
}
