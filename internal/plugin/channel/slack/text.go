package slack

import (
	"strings"
)

// maxLookups limits the names that are looked up for one message.
const maxLookups = 20

// plain returns the text of a message as a person sees it. person and room return the name
// of an id.
func plain(text string, person, room func(id string) string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			break
		}
		end := strings.IndexAny(text[i+1:], "<>\n")
		if end < 0 || text[i+1+end] != '>' {
			out.WriteString(unescape(text[:i+1]))
			text = text[i+1:]
			continue
		}
		out.WriteString(unescape(text[:i]))
		out.WriteString(reference(text[i+1:i+1+end], person, room))
		text = text[i+1+end+1:]
	}
	out.WriteString(unescape(text))
	return out.String()
}

// reference returns what a person sees of the text between < and >.
func reference(s string, person, room func(id string) string) string {
	target, label, labelled := strings.Cut(s, "|")
	label = unescape(label)
	switch {
	case target == "":
		return "<" + unescape(s) + ">"
	case target[0] == '@':
		if label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		return "@" + person(target[1:])
	case target[0] == '#':
		if label != "" {
			return "#" + strings.TrimPrefix(label, "#")
		}
		return "#" + room(target[1:])
	case target[0] == '!':
		if label != "" {
			return label
		}
		word, _, _ := strings.Cut(target[1:], "^")
		return "@" + word
	}
	target = unescape(target)
	address, mail := strings.CutPrefix(target, "mailto:")
	switch {
	case !labelled || label == "" || label == target:
		return address
	case mail && label == address:
		return label
	case strings.TrimSuffix(target, "/") == "http://"+strings.TrimSuffix(label, "/") ||
		strings.TrimSuffix(target, "/") == "https://"+strings.TrimSuffix(label, "/"):
		return target
	}
	return label + " (" + address + ")"
}

// unescape replaces the three entities that Slack uses.
func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// addressed reports whether a text mentions a person, and returns it without that mention
// at its beginning.
func addressed(text, id string) (rest string, mentioned bool) {
	if id == "" {
		return text, false
	}
	for _, form := range [...]string{"<@" + id + ">", "<@" + id + "|"} {
		mentioned = mentioned || strings.Contains(text, form)
	}
	for {
		rest, found := strings.CutPrefix(strings.TrimLeft(text, " \t\n"), "<@"+id)
		if !found {
			return text, mentioned
		}
		end := strings.IndexByte(rest, '>')
		if end < 0 || end > 0 && rest[0] != '|' {
			return text, mentioned
		}
		text = strings.TrimLeft(rest[end+1:], " \t\n,:")
	}
}
