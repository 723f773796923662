package acp

import (
	"encoding/base64"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/wire"
)

// message returns the message that the blocks of a prompt make up. What an editor adds, such
// as a file that the person mentioned, follows the text.
func message(blocks []sdk.ContentBlock) (text string, files []wire.Attachment, err error) {
	var said, added []string
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Text != nil:
			said = append(said, b.Text.Text)
		case b.ResourceLink != nil:
			said = append(said, "["+b.ResourceLink.Name+"]("+b.ResourceLink.Uri+")")
		case b.Image != nil:
			data, err := base64.StdEncoding.DecodeString(b.Image.Data)
			if err != nil {
				return "", nil, invalid("block %d: the image is not base64", i)
			}
			files = append(files, wire.Attachment{Type: "image", MIME: b.Image.MimeType, FileName: "image",
				Content: wire.Base64(data)})
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			said = append(said, r.Uri)
			added = append(added, "From "+r.Uri+":\n"+fenced(r.Text))
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			r := b.Resource.Resource.BlobResourceContents
			data, err := base64.StdEncoding.DecodeString(r.Blob)
			if err != nil {
				return "", nil, invalid("block %d: the resource is not base64", i)
			}
			a := wire.Attachment{Type: "file", FileName: r.Uri[strings.LastIndexByte(r.Uri, '/')+1:], Content: wire.Base64(data)}
			if r.MimeType != nil {
				a.MIME = *r.MimeType
			}
			files = append(files, a)
		default:
			return "", nil, invalid("block %d: only text, images and resources are supported", i)
		}
	}
	text = strings.TrimSpace(strings.Join(append([]string{strings.Join(said, "")}, added...), "\n\n"))
	if text == "" && len(files) == 0 {
		return "", nil, invalid("the prompt is empty")
	}
	return text, files, nil
}

// fenced returns a text between fences that do not occur in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
