package understanding

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// document returns the labeled text of a document.
func (u *Understander) document(ctx context.Context, m chela.Media, a Ability) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, seconds(a.Timeout))
	defer cancel()
	var text string
	var err error
	if m.Type == media.Docx {
		text, err = docx(m.Data)
	} else {
		text, err = u.o.Extract(ctx, m.Type, m.Data)
	}
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	if text == "" {
		return "", errors.New("it contains no text")
	}
	note := "The text of a file that was attached to the message: " + untrusted.Data
	if all := utf8.RuneCountInString(text); all > a.MaxChars {
		text = limit(text, a.MaxChars)
		note += fmt.Sprintf(" Only the first %d of %d characters are shown.", a.MaxChars, all)
	}
	return u.o.Label.Wrap(m.Name, note, text), nil
}

// maxXML is the maximum size of the XML in a word processor document.
const maxXML = 32 << 20

// errDocx is the error of a document that is not valid.
var errDocx = errors.New("the document is damaged")

// docx returns the text of a word processor document.
func docx(data []byte) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", errDocx
	}
	f, err := z.Open("word/document.xml")
	if err != nil {
		return "", errDocx
	}
	defer f.Close()
	var b strings.Builder
	in := xml.NewDecoder(io.LimitReader(f, maxXML))
	reading := false // in a run of text
	for {
		t, err := in.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			if b.Len() > 0 {
				return b.String(), nil
			}
			return "", errDocx
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "t":
				reading = true
			case "tab":
				b.WriteByte('\t')
			case "br", "cr":
				b.WriteByte('\n')
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "t":
				reading = false
			case "p":
				b.WriteByte('\n')
			case "tc":
				b.WriteByte('\t')
			}
		case xml.CharData:
			if reading {
				b.Write(t)
			}
		}
	}
}
