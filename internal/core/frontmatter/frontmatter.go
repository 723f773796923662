// Package frontmatter reads Markdown files that begin with YAML between two lines
// "---", such as HOOK.md and the files of agent types.
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxHead is the maximum size of the YAML in bytes.
const MaxHead = 64 << 10

// ErrNone is returned for a text that does not begin with front matter.
var ErrNone = errors.New("it does not begin with front matter between two lines ---")

// Decode decodes the front matter of a file, and returns the rest of it without
// surrounding white space. Lines may end with CRLF, and a byte order mark is skipped.
func Decode(text []byte, into any) (body string, err error) {
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		return "", ErrNone
	}
	head, tail, ok := bytes.Cut(rest, []byte("\n---\n"))
	if !ok {
		if head, ok = bytes.CutSuffix(rest, []byte("\n---")); !ok {
			return "", ErrNone
		}
	}
	if len(head) > MaxHead {
		return "", fmt.Errorf("front matter: it has %d bytes, at most %d", len(head), MaxHead)
	}
	if err := yaml.Unmarshal(head, into); err != nil {
		return "", fmt.Errorf("front matter: %w", err)
	}
	return strings.TrimSpace(string(tail)), nil
}
