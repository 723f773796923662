#!/bin/sh
# github.com/charmbracelet/x/ansi v0.11.9 (needs Go): StringWidth, by which lipgloss and
# bubbletea align text, counts the Thai vowel am (U+0E33) as nothing: it has the word for
# water in one cell. The function next to it, StringWidthWc, and go-runewidth v0.0.31 say
# two, as terminals that add up characters show it. Halfwidth katakana with a voiced mark
# differ in the same way. So a column of ordinary Thai words is ragged, and a line that was
# cut to fit the window is wider than it.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='น้ำ StringWidth 1, StringWidthWc 2, runewidth 2
คำ StringWidth 1, StringWidthWc 2, runewidth 2
ทำงาน StringWidth 4, StringWidthWc 5, runewidth 5
ﾊﾟﾝ StringWidth 2, StringWidthWc 3, runewidth 3
กา StringWidth 2, StringWidthWc 2, runewidth 2'
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-runewidth"
)

func main() {
	for _, s := range []string{"น้ำ", "คำ", "ทำงาน", "ﾊﾟﾝ", "กา"} {
		fmt.Printf("%s StringWidth %d, StringWidthWc %d, runewidth %d\n", s, ansi.StringWidth(s), ansi.StringWidthWc(s), runewidth.StringWidth(s))
	}
}
GO
go mod init example.com/width >/dev/null 2>&1
go get github.com/charmbracelet/x/ansi@v0.11.9 github.com/mattn/go-runewidth@v0.0.31 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
