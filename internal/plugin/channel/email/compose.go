package email

import (
	"bytes"
	"io"
	"mime"
	"path"
	"strings"

	"github.com/emersion/go-message/mail"

	"github.com/chela-ai/chela/internal/core/markup"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxTitle is how many characters of a text are the subject of a new thread.
const maxTitle = 70

// bytes returns the mail as it is sent.
func (l letter) bytes() ([]byte, error) {
	plain := markup.Plain(l.text)
	var h mail.Header
	h.SetDate(l.now)
	h.SetAddressList("From", []*mail.Address{{Name: humanize.OneLine(l.name), Address: l.from}})
	h.SetAddressList("To", []*mail.Address{{Address: l.to}})
	h.SetMessageID(l.id)
	h.SetSubject(l.subject(plain))
	// A program that gets the mail must not answer it.
	h.Set("Auto-Submitted", "auto-generated")
	h.Set("X-Auto-Response-Suppress", "All")
	if a := l.answered; a != nil {
		h.Set("Auto-Submitted", "auto-replied")
		if isID(a.ID) {
			h.SetMsgIDList("In-Reply-To", []string{a.ID})
			h.SetMsgIDList("References", append(valid(a.Refs), a.ID))
		}
	}
	var out bytes.Buffer
	if len(l.media) == 0 {
		w, err := mail.CreateInlineWriter(&out, h)
		if err != nil {
			return nil, err
		}
		if err := l.forms(w, plain); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
	w, err := mail.CreateWriter(&out, h)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(plain) != "" {
		in, err := w.CreateInline()
		if err != nil {
			return nil, err
		}
		if err := l.forms(in, plain); err != nil {
			return nil, err
		}
		if err := in.Close(); err != nil {
			return nil, err
		}
	}
	for _, m := range l.media {
		var ah mail.AttachmentHeader
		ah.Set("Content-Type", mediaType(m.Type))
		ah.Set("Content-Disposition",
			mime.FormatMediaType("attachment", map[string]string{"filename": attachmentName(m.Name, m.Type)}))
		ah.Set("Content-Transfer-Encoding", "base64")
		in, err := w.CreateAttachment(ah)
		if err != nil {
			return nil, err
		}
		if err := write(in, m.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// forms writes the text in its two forms.
func (l letter) forms(w *mail.InlineWriter, plain string) error {
	page := `<!DOCTYPE html><html><head><meta charset="utf-8"></head><body>` + markup.HTML(l.text) + "</body></html>"
	for _, f := range []struct{ kind, text string }{{"text/plain", plain}, {"text/html", page}} {
		var h mail.InlineHeader
		h.SetContentType(f.kind, map[string]string{"charset": "utf-8"})
		in, err := w.CreatePart(h)
		if err != nil {
			return err
		}
		if err := write(in, []byte(f.text)); err != nil {
			return err
		}
	}
	return nil
}

func write(w io.WriteCloser, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

// subject returns the subject: that of the mail that is answered, or the beginning of the
// text.
func (l letter) subject(plain string) string {
	if l.answered != nil && l.answered.Subject != "" {
		if replyTitle().MatchString(l.answered.Subject) {
			return l.answered.Subject
		}
		return "Re: " + l.answered.Subject
	}
	for line := range strings.SplitSeq(plain, "\n") {
		if line = humanize.OneLine(line); line != "" {
			return humanize.Truncate(line, maxTitle)
		}
	}
	if len(l.media) > 0 {
		return attachmentName(l.media[0].Name, l.media[0].Type)
	}
	return "Message"
}

// valid returns the message ids that can be written into a header.
func valid(list []string) []string {
	var out []string
	for _, id := range list {
		if isID(id) {
			out = append(out, id)
		}
	}
	return out
}

// mediaType returns the type of an attachment. One of a container is not allowed with the
// encoding that attachments have.
func mediaType(s string) string {
	kind, params, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(kind, "/") || strings.HasPrefix(kind, "multipart/") ||
		strings.HasPrefix(kind, "message/") {
		return "application/octet-stream"
	}
	if out := mime.FormatMediaType(kind, params); out != "" {
		return out
	}
	return "application/octet-stream"
}

// attachmentName returns the name of an attachment.
func attachmentName(name, kind string) string {
	name = path.Base(strings.ReplaceAll(humanize.OneLine(name), `\`, "/"))
	if name == "." || name == "/" || name == "" {
		name = "file"
		if ext, err := mime.ExtensionsByType(kind); err == nil && len(ext) > 0 {
			name += ext[0]
		}
	}
	return humanize.TruncateBytes(name, 2*maxName)
}
