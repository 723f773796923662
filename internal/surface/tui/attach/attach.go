// Package attach handles pictures in a terminal: it reads the pictures that a
// person sends, and describes pictures in messages as text.
package attach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// Command is the command that sends a picture: /image FILE [MESSAGE].
const Command = "/image"

// ParseLine parses a line that a person typed into the text of the message and
// its picture, if there is one. Spaces in a file name must be quoted or escaped
// with backslashes, as terminals do for files that are dropped on them.
func ParseLine(line string) (text string, files []wire.Attachment, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), Command)
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return line, nil, nil
	}
	path, text := word(strings.TrimSpace(rest))
	if path == "" {
		return "", nil, errors.New("no picture given; usage: " + Command + " FILE [MESSAGE]")
	}
	f, err := ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	return text, []wire.Attachment{f}, nil
}

// word splits off the first word.
func word(s string) (first, rest string) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if i := strings.IndexByte(s[1:], s[0]); i >= 0 {
			return s[1 : 1+i], strings.TrimSpace(s[2+i:])
		}
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(` \'"()&`, s[i+1]) >= 0:
			i++
		case s[i] == ' ' || s[i] == '\t' || s[i] == '\n':
			return b.String(), strings.TrimSpace(s[i:])
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// ReadFile reads a picture file.
func ReadFile(path string) (wire.Attachment, error) {
	name := path
	if home, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		name = filepath.Join(home, path[1:])
	}
	data, err := read(name)
	if err != nil {
		return wire.Attachment{}, fmt.Errorf("picture %s: %w", path, err)
	}
	kind, err := media.DetectType(data, filepath.Base(path), "")
	if err == nil && !strings.HasPrefix(kind, "image/") {
		err = media.ErrNotImage
	}
	if err != nil {
		return wire.Attachment{}, fmt.Errorf("picture %s: %w", path, err)
	}
	return wire.Attachment{Type: "image", MIME: kind, FileName: filepath.Base(name), Content: data}, nil
}

// read reads a file of limited size.
func read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("no such file")
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > media.MaxImage:
		return nil, fmt.Errorf("too large: %s, the maximum is %s", humanize.Bytes(info.Size()),
			humanize.Bytes(media.MaxImage))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, media.MaxImage))
}

// Preview returns the text of a message before it is sent.
func Preview(text string, files []wire.Attachment) string {
	var m wire.Message
	for _, f := range files {
		m.Content = append(m.Content, wire.Content{Type: wire.ContentImage, MIME: f.MIME, Bytes: len(f.Content)})
	}
	m.Content = append(m.Content, wire.Content{Type: wire.ContentText, Text: text})
	return Text(m)
}

// Text returns the text of a message, with a placeholder for each picture.
func Text(m wire.Message) string {
	var parts []string
	for _, c := range m.Content {
		switch {
		case c.Type == wire.ContentText && c.Text != "":
			parts = append(parts, c.Text)
		case c.Type == wire.ContentImage:
			parts = append(parts, fmt.Sprintf("[image %s, %s]", c.MIME, humanize.Bytes(int64(max(c.Bytes, len(c.Data))))))
		}
	}
	return strings.Join(parts, "\n")
}
