package mcp

import (
	"bytes"
	"io"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxLine is the number of bytes of a line in an error.
const maxLine = 300

// output is the standard output of a program. It passes on the lines that can be
// messages, which are JSON objects. Many servers print other lines too, such as a
// banner: these go to other.
type output struct {
	messages io.Writer
	other    io.Writer

	line byte // what the current line is: 0, message or text
}

const (
	message = 'm'
	text    = 't'
)

// Write implements io.Writer. It is not safe for concurrent use.
func (o *output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if o.line == 0 {
			if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
				break
			}
			if o.line = text; rest[0] == '{' {
				o.line = message
			}
		}
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		rest = rest[len(line):]
		to := o.other
		if o.line == message {
			to = o.messages
		}
		if _, err := to.Write(line); err != nil {
			return 0, err
		}
		if line[len(line)-1] == '\n' {
			o.line = 0
		}
	}
	return len(p), nil
}

// clean returns a text from a server as one line without control characters.
func clean(s string, n int) string {
	return humanize.TruncateBytes(humanize.OneLine(strings.ToValidUTF8(s, "?")), n)
}

// printable returns a text from a server without characters that are invisible.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(s, "?"))
}
