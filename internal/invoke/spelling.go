package invoke

import "github.com/google/jsonschema-go/jsonschema"

// usual returns the arguments that a name means which models give to many
// tools, as other assistants call them; the first one that a tool has counts.
// The name is without case, dashes and underscores.
func usual(folded string) []string {
	switch folded {
	case "filepath", "filename", "file":
		return []string{"path"}
	case "oldstring", "oldstr":
		return []string{"oldText"}
	case "newstring", "newstr":
		return []string{"newText"}
	case "chatid", "chat", "recipient":
		return []string{"to", "target"}
	case "target":
		return []string{"to"}
	case "to":
		return []string{"target"}
	case "text", "contents", "body":
		return []string{"content", "message"}
	case "cmd":
		return []string{"command"}
	case "uri", "link":
		return []string{"url"}
	}
	return nil
}

// usualOf returns the argument of the schema that name usually means.
func usualOf(s *jsonschema.Schema, name string) (string, bool) {
	for _, target := range usual(fold(name)) {
		if s.Properties[target] != nil {
			return target, true
		}
	}
	return "", false
}
