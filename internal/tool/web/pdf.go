package web

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/tool/web/pdf"
)

// pdf takes the text out of a PDF.
func (p *page) pdf(ctx context.Context, body []byte) {
	text, pages, err := pdf.Text(ctx, body)
	switch {
	case err != nil:
		p.by = "none"
		p.note("no text: " + err.Error())
	case text == "":
		p.by = "none"
		p.note(fmt.Sprintf("PDF of %d pages without text: it may be scanned", pages))
	default:
		p.text, p.by = text, "pdf"
	}
}
