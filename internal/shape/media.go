package shape

import (
	"cmp"
	"net/http"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
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

// Show returns a message with its pictures of at most so many bytes, as
// media.Files does; nil: messages are shown with what they carry.
type Show func(m *llm.Message, most int) *llm.Message

// Entry returns an entry as people see it.
func (s Show) Entry(e session.Entry) session.Entry {
	if s != nil && e.Message != nil {
		e.Message = s(e.Message, MaxImage)
	}
	return e
}

// Entries shows the pictures of a list, the newest first, as long as they take
// no more than so many bytes in the answer; of the others there is their size.
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
