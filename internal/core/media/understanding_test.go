package media_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, claimed, data, want string
		kind                      media.Kind
	}{
		{"a.txt", "", "OggS\x00\x02", "audio/ogg", media.Audio},
		{"a.ogv", "video/ogg", "OggS\x00\x02", "video/ogg", media.Video},
		{"a", "image/png", "\x00\x00\x00\x20ftypM4A \x00", "audio/mp4", media.Audio},
		{"a", "audio/mp4", "\x00\x00\x00\x20ftypisom\x00", "audio/mp4", media.Audio},
		{"a.m4a", "", "\x00\x00\x00\x20ftypisom\x00", "audio/mp4", media.Audio},
		{"a", "", "\x00\x00\x00\x20ftypisom\x00", "video/mp4", media.Video},
		{"a", "", "\x00\x00\x00\x20ftypheic\x00", "image/heic", media.Picture},
		{"a", "", "\x00\x00\x00\x20ftypqt  \x00", "video/quicktime", media.Video},
		{"a.webm", "audio/webm", "\x1a\x45\xdf\xa3webm", "audio/webm", media.Audio},
		{"a", "", "ID3\x03rest", "audio/mpeg", media.Audio},
		{"a", "", "\xff\xfb\x90\x00", "audio/mpeg", media.Audio},
		{"a", "", "\xff\xf1\x50\x80", "audio/aac", media.Audio},
		{"a", "", "#!AMR\n", "audio/amr", media.Audio},
		{"a", "", "fLaC\x00", "audio/flac", media.Audio},
		{"a", "", "RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav", media.Audio},
		{"voice.mp3", "application/octet-stream", "\x00\x01\x02", "audio/mpeg", media.Audio},
		{"voice", "audio/opus", "\x00\x01\x02", "audio/opus", media.Audio},
		{"a.md", "text/plain", "# title", "text/markdown", media.Document},
		{"a.mp3", "text/plain", "a text", "text/plain", media.Document},
		{"a.docx", "", "PK\x03\x04", media.Docx, media.Document},
		{"a.pdf", "", "%PDF-1.4", "application/pdf", media.Document},
		{"a.bin", "", "\x00\x01", "application/octet-stream", media.Other},
		{"a.zip", "", "PK\x03\x04", "application/zip", media.Other},
	} {
		kind, err := media.DetectType([]byte(c.data), c.name, c.claimed)
		if err != nil || kind != c.want {
			t.Errorf("%s (%s) %q: %q, %v, want %q", c.name, c.claimed, c.data, kind, err, c.want)
		}
		if got := media.KindOf(chela.Media{Type: kind}); got != c.kind {
			t.Errorf("%s is %q, want %q", kind, got, c.kind)
		}
	}
}
