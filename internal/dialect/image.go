package dialect

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/llm"
)

// ImageType returns the type of an image as services take it, and whether they
// do.
func ImageType(mime string) (string, bool) {
	mime, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(mime)), ";")
	switch mime {
	case "image/jpg":
		return "image/jpeg", true
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return mime, true
	}
	return mime, false
}

// ImageNote is the text that stands for an image that is not sent.
func ImageNote(p *llm.Part, why string) string {
	return fmt.Sprintf("[image, %s, %d bytes: %s]", p.MIME, len(p.Data), why)
}

// AppendBase64 appends data in base 64.
func AppendBase64(dst, data []byte) []byte {
	return base64.StdEncoding.AppendEncode(dst, data)
}
