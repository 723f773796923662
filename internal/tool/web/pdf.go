package web

func (p *page) pdf(body []byte) { p.by = "none"; p.note("PDF") }
