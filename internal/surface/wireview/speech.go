package wireview

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/wire"
)

// maxSpoken is the largest recording that fits into a frame in base64.
const maxSpoken = (wire.MaxPayload - 64<<10) / 4 * 3

// Spoken returns a recording as clients get it.
func Spoken(a speech.Audio) (wire.TalkAudio, error) {
	if len(a.Data) > maxSpoken {
		return wire.TalkAudio{},
			chela.Errorf(chela.CodeInvalid, "the recording is too large for one answer: say less at once")
	}
	format := SpokenFormat(a.Type)
	note := format == "opus"
	return wire.TalkAudio{
		Audio:     a.Data,
		Provider:  a.Provider,
		Format:    format,
		Voice:     &note,
		Type:      a.Type,
		Extension: speech.Extension(a.Type),
	}, nil
}

// SpokenFormat returns the format of recordings of a MIME type: mp3, opus or wav.
func SpokenFormat(kind string) string {
	if ext := strings.TrimPrefix(speech.Extension(kind), "."); ext != "ogg" {
		return ext
	}
	return "opus"
}
