#!/bin/sh
# github.com/ledongthuc/pdf v0.0.0-20260907135840-6c8c28e0e8a0 (needs Go): GetPlainText joins
# words and lines. In a PDF there need be no space between two words: what TeX and many other
# programs write is a gap, as a number between two texts of one operator (TJ), and a new line
# is a move of the position (Td). Only T* and some others begin a line; gaps and moves do
# not count. So "Pay until Friday" in one line and "Tea" in the next become one word. A change
# of the font does add a line, in the middle of a sentence, if the program that wrote the
# page ends the text (ET) with it, as Chromium does.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"PayuntilFridayTea"
"The\ntotal\nis 12.50."'
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ledongthuc/pdf"
)

// page returns a PDF of one page.
func page(content string) []byte {
	var b bytes.Buffer
	var at []int
	b.WriteString("%PDF-1.4\n")
	for i, o := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
	} {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := b.Len()
	b.WriteString("xref\n0 7\n0000000000 65535 f \n")
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table)
	return b.Bytes()
}

func main() {
	for _, content := range []string{
		"BT /F1 12 Tf 20 250 Td [(Pay) -278 (until) -278 (Friday)] TJ 0 -20 Td (Tea) Tj ET",
		"BT /F1 12 Tf 20 250 Td (The ) Tj ET BT /F2 12 Tf 44 250 Td (total) Tj ET BT /F1 12 Tf 69 250 Td ( is 12.50.) Tj ET",
	} {
		data := page(content)
		r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			panic(err)
		}
		text, err := r.GetPlainText()
		if err != nil {
			panic(err)
		}
		b, err := io.ReadAll(text)
		if err != nil {
			panic(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		fmt.Printf("%q\n", strings.Join(lines, "\n"))
	}
}
GO
go mod init example.com/words >/dev/null 2>&1
go get github.com/ledongthuc/pdf@v0.0.0-20260907135840-6c8c28e0e8a0 >/dev/null 2>&1
got=$(go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
