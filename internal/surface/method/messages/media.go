package messages

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// maxFiles is the number of files of a message.
const maxFiles = 10

// media stores the files of a message and returns references to them. Those of a dry run
// are only named.
func (o Options) media(urls []string, files []wire.MessageFile, dry bool) ([]chela.Media, error) {
	if n := len(urls) + len(files); n > maxFiles {
		return nil, chela.Errorf(chela.CodeInvalid, "media: %d files are too many; the limit is %d", n, maxFiles)
	}
	var out []chela.Media
	for _, u := range urls {
		m, err := o.named(u)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	for _, f := range files {
		out = append(out, chela.Media{Name: f.Name, Type: f.Type, Data: f.Data})
	}
	for i, m := range out {
		if m.Ref != "" {
			continue
		}
		if len(m.Data) == 0 {
			return nil, chela.Errorf(chela.CodeInvalid, "media: file %d is empty", i+1)
		}
		if dry {
			out[i].Data = nil
			continue
		}
		var err error
		if out[i], err = o.Files.Store(m); err != nil {
			return nil, chela.Errorf(chela.CodeInvalid, "media: %w", err)
		}
	}
	return out, nil
}

// named returns the file that a URL contains or refers to.
func (o Options) named(u string) (chela.Media, error) {
	if m, ok, err := o.Files.Stored(u); ok {
		return m, err
	}
	rest, ok := strings.CutPrefix(u, "data:")
	head, body, comma := strings.Cut(rest, ",")
	if !ok || !comma {
		return chela.Media{},
			chela.Errorf(chela.CodeInvalid, "media: the gateway reads no files and addresses for clients; send the content, as data:TYPE;base64,… or in buffer")
	}
	kind, encoded := strings.CutSuffix(head, ";base64")
	var data []byte
	var err error
	if encoded {
		data, err = base64.StdEncoding.DecodeString(body)
	} else {
		body, err = url.PathUnescape(body)
		data = []byte(body)
	}
	if err != nil {
		return chela.Media{}, chela.Errorf(chela.CodeInvalid, "media: a data: address is damaged: %w", err)
	}
	return chela.Media{Type: kind, Data: data}, nil
}
