package invoke

import "github.com/google/jsonschema-go/jsonschema"

// alternatives returns the names of arguments that models mean by a folded name
// which is common in other assistants. The first one that a tool has applies.
func alternatives(folded string) []string {
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

// commonName returns the argument of the schema for which name is a common
// alternative.
func commonName(s *jsonschema.Schema, name string) (string, bool) {
	for _, target := range alternatives(fold(name)) {
		if s.Properties[target] != nil {
			return target, true
		}
	}
	return "", false
}
