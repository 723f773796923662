#!/bin/sh
# github.com/markusmobius/go-trafilatura v1.12.2 (needs Go): a button inside a sentence, as in
# guides that show what to press, takes the rest of the sentence with it. What stands
# between its end and the next element is dropped with the button: "Press Delete only if
# you have a backup." becomes "Press". A list of which each item is a link is left out as a
# whole. So a summary of a guide can say the opposite of it.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='<p>Press <button>Delete</button> only if you have a backup.</p> -> "Press"
<p>Press <b>Delete</b> only if you have a backup.</p> -> "Press Delete only if you have a backup."
<ul><li><a href="/a">First step</a></li><li><a href="/b">Second step</a></li></ul> -> ""'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"github.com/markusmobius/go-trafilatura"
)

func main() {
	const sentence = "A sentence of the page, with a comma, that is long enough to be content."
	around := "<p>" + strings.Repeat(sentence+" ", 6) + "</p>"
	for _, part := range []string{
		"<p>Press <button>Delete</button> only if you have a backup.</p>",
		"<p>Press <b>Delete</b> only if you have a backup.</p>",
		`<ul><li><a href="/a">First step</a></li><li><a href="/b">Second step</a></li></ul>`,
	} {
		page := "<html><head><title>Guide</title></head><body><article>" + around + part + around + "</article></body></html>"
		result, err := trafilatura.Extract(strings.NewReader(page), trafilatura.Options{IncludeLinks: true})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s -> %q\n", part, strings.Join(strings.Fields(strings.ReplaceAll(result.ContentText, sentence, "")), " "))
	}
}
GO
go mod init example.com/extract >/dev/null 2>&1
go get github.com/markusmobius/go-trafilatura@v1.12.2 >/dev/null 2>&1
got=$(go run . 2>/dev/null)
printf '%s\n' "$got"
[ "$got" = "$want" ]
