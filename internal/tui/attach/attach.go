// Package attach is pictures in a terminal: how a person sends them, and what
// stands for them in messages.
package attach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/media"
	"github.com/chela-ai/chela/wire"
)

// Command begins a line that sends a picture: /image FILE and what is said of it.
const Command = "/image"

// Line reads a line that a person typed: the text of the message, and the
// picture that goes with it. A name with blanks is quoted, or has backslashes
// before them, as terminals write what is dropped on them.
func Line(line string) (text string, files []wire.Attachment, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), Command)
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return line, nil, nil
	}
	path, text := word(strings.TrimSpace(rest))
	if path == "" {
		return "", nil, errors.New("which picture? " + Command + " FILE and what is to be said of it")
	}
	f, err := File(path)
	if err != nil {
		return "", nil, err
	}
	return text, []wire.Attachment{f}, nil
}

// word cuts the first word off.
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

// File reads a picture.
func File(path string) (wire.Attachment, error) {
	name := path
	if home, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		name = filepath.Join(home, path[1:])
	}
	data, err := read(name)
	if err != nil {
		return wire.Attachment{}, fmt.Errorf("picture %s: %w", path, err)
	}
	kind, err := media.Judge(data, "")
	if err == nil && !strings.HasPrefix(kind, "image/") {
		err = media.ErrNotPicture
	}
	if err != nil {
		return wire.Attachment{}, fmt.Errorf("picture %s: %w", path, err)
	}
	return wire.Attachment{Type: "image", MIME: kind, FileName: filepath.Base(name), Content: data}, nil
}

func read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("there is no such file")
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a file")
	case info.Size() > media.MaxPicture:
		return nil, fmt.Errorf("%s; at most %s", figure.Bytes(info.Size()), figure.Bytes(media.MaxPicture))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, media.MaxPicture))
}

// Shown is a message as the person who sends it sees it.
func Shown(text string, files []wire.Attachment) string {
	var m wire.Message
	for _, f := range files {
		m.Content = append(m.Content, wire.Content{Type: wire.ContentImage, MIME: f.MIME, Bytes: len(f.Content)})
	}
	m.Content = append(m.Content, wire.Content{Type: wire.ContentText, Text: text})
	return Text(m)
}

// Text returns what a message says, with a mark in the place of each picture.
func Text(m wire.Message) string {
	var parts []string
	for _, c := range m.Content {
		switch {
		case c.Type == wire.ContentText && c.Text != "":
			parts = append(parts, c.Text)
		case c.Type == wire.ContentImage:
			parts = append(parts, fmt.Sprintf("[image %s, %s]", c.MIME, figure.Bytes(int64(max(c.Bytes, len(c.Data))))))
		}
	}
	return strings.Join(parts, "\n")
}
