package json5

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Literal reads a value as a person types it: JSON5 when it can be read as that,
// and a text otherwise. What begins like an object or an array is no text.
func Literal(text string) (json.RawMessage, error) {
	v, err := ToJSON([]byte(text))
	if err == nil {
		return v, nil
	}
	if s := strings.TrimSpace(text); strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		return nil, fmt.Errorf("value: %w", err)
	}
	return json.Marshal(text)
}
