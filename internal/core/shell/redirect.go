package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirection is the combined redirects of a statement.
type redirection struct {
	texts   []string
	verdict Verdict
	reason  string
	in      input // the standard input, if a redirect sets it
}

func (r *redirection) raise(v Verdict, reason string) {
	if v > r.verdict {
		r.verdict, r.reason = v, reason
	}
}

func (w *walker) redirects(list []*syntax.Redirect) redirection {
	var r redirection
	for _, rd := range list {
		text := redirectText(rd)
		r.texts = append(r.texts, text)
		w.redirect(rd, &r)
		w.hazard(rd.Word, "", "")
		if rd.Hdoc != nil {
			w.hazard(rd.Hdoc, "", "")
		}
	}
	return r
}

// redirectText returns a redirect as text, including its here-document.
func redirectText(rd *syntax.Redirect) string {
	var b strings.Builder
	if rd.N != nil {
		b.WriteString(rd.N.Value)
	}
	b.WriteString(rd.Op.String() + source(rd.Word))
	if rd.Hdoc != nil {
		b.WriteString(" ⏎ " + strings.TrimSuffix(source(rd.Hdoc), "\n"))
	}
	return b.String()
}

func (w *walker) redirect(rd *syntax.Redirect, r *redirection) {
	if rd.N != nil && strings.HasPrefix(rd.N.Value, "{") {
		r.raise(Ask, "it opens a file descriptor by variable")
	}
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if rd.Hdoc != nil {
			r.in.text, r.in.known = w.document(rd.Hdoc)
		}
		return
	case syntax.WordHdoc:
		if f, ok := w.expand(rd.Word, 0); ok {
			r.in = input{text: strings.Join(f, " ") + "\n", known: w.static(rd.Word)}
		}
		return
	}
	for n := range w.variants() {
		for _, target := range w.expandVariant([]*syntax.Word{rd.Word}, n) {
			if rd.Op != syntax.RdrIn && rd.Op != syntax.DplIn && diskDevice(target.Text) {
				r.raise(Deny, "it writes to a disk device")
			}
		}
	}
	if !w.static(rd.Word) {
		r.raise(Ask, "the target of a redirect is not known")
		return
	}
	for _, t := range w.words([]*syntax.Word{rd.Word}) {
		w.target(rd.Op, t, r)
	}
}

// target checks the target of a redirect.
func (w *walker) target(op syntax.RedirOperator, t Word, r *redirection) {
	switch {
	case strings.HasPrefix(t.Text, "/dev/tcp/") || strings.HasPrefix(t.Text, "/dev/udp/"):
		r.raise(Ask, "it opens a network connection")
	case t.Glob:
		r.raise(Ask, "the target of a redirect is not known")
	case op == syntax.RdrIn:
		if w.private(t) {
			r.raise(Ask, "it reads private files")
		}
	case op == syntax.DplIn || op == syntax.DplOut:
		if strings.Trim(t.Text, "0123456789-") != "" {
			r.raise(Ask, "it writes to "+t.Text)
		}
	default:
		switch t.Text {
		case "/dev/null", "/dev/stdout", "/dev/stderr":
		default:
			r.raise(Ask, "it writes to "+t.Text)
		}
	}
}

// document returns the text of a here-document and whether it is known.
func (w *walker) document(doc *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range doc.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) { // the meaning of a backslash depends on the delimiter
			return b.String(), false
		}
		b.WriteString(lit.Value)
	}
	return b.String(), true
}

// diskDevice reports whether a path is a disk or a partition.
func diskDevice(path string) bool {
	name, ok := strings.CutPrefix(path, "/dev/")
	if !ok {
		return false
	}
	name = strings.TrimLeft(name, "/")
	for _, p := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper/", "disk", "rdisk", "loop", "nbd", "zd"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.ContainsAny(name, "*?[")
}
