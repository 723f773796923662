package shape

import (
	"cmp"
	"net/http"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// Media returns the files that a client sent with a message.
func Media(files []wire.Attachment) []chela.Media {
	var out []chela.Media
	for _, f := range files {
		kind := cmp.Or(f.MIME, http.DetectContentType(f.Content))
		out = append(out, chela.Media{Name: f.FileName, Type: kind, Data: f.Content})
	}
	return out
}
