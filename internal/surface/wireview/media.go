package wireview

import (
	"cmp"
	"net/http"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/wire"
)

// Media returns the files sent with a message.
func Media(files []wire.Attachment) []chela.Media {
	var out []chela.Media
	for _, f := range files {
		kind := cmp.Or(f.MIME, http.DetectContentType(f.Content))
		out = append(out, chela.Media{Name: f.FileName, Type: kind, Data: f.Content})
	}
	return out
}

// Show returns a message with its pictures of at most maxBytes loaded, as
// media.Files does; nil: pictures are not loaded.
type Show func(m *llm.Message, most int) *llm.Message

// Entry returns an entry with its pictures.
func (s Show) Entry(e session.Entry) session.Entry {
	if s != nil && e.Message != nil {
		e.Message = s(e.Message, MaxImage)
	}
	return e
}

// Entries loads the pictures of a list, newest first, until they take room
// bytes in the answer. Of the others only the size is shown.
func (s Show) Entries(list []session.Entry, room int) {
	for i := len(list) - 1; i >= 0 && room > 0; i-- {
		shown := s.Entry(list[i])
		if shown.Message == list[i].Message {
			continue
		}
		for _, p := range shown.Message.Parts {
			room -= len(p.Data) * 4 / 3
		}
		if room >= 0 {
			list[i] = shown
		}
	}
}
