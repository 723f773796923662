#!/bin/sh
# charm.land/lipgloss/v2 v2.0.6 with github.com/charmbracelet/x/ansi v0.11.8 (needs Go): lines
# are wider than asked if a word that ends in the last column is followed by a space and by a
# word with a hyphen in front, as flags of commands are. The space stays at the end of the
# line, one column too far; before other words it is dropped. Style.Width pads all other
# lines to that width, so that the whole box is too wide, and a terminal that is as wide as
# was asked breaks each of its lines.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='asked for 26, Wrap 27, Style.Width 27
asked for 37, Wrap 38, Style.Width 38
asked for 40, Wrap 41, Style.Width 41
asked for 51, Wrap 52, Style.Width 52
["four " "--at"]
["four" "at"]'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

func main() {
	text := "the chat that was used last, or where --channel and --to say. It is one of --at, --every or --cron."
	for width := 20; width <= 60; width++ {
		wrapped := lipgloss.Wrap(text, width, "")
		if got := lipgloss.Width(wrapped); got > width {
			fmt.Printf("asked for %d, Wrap %d, Style.Width %d\n", width, got, lipgloss.Width(lipgloss.NewStyle().Width(width).Render(text)))
		}
	}
	for _, s := range []string{"four --at", "four at"} {
		fmt.Printf("%q\n", strings.Split(lipgloss.Wrap(s, 4, ""), "\n"))
	}
}
GO
go mod init example.com/wrap >/dev/null 2>&1
go get charm.land/lipgloss/v2@v2.0.6 github.com/charmbracelet/x/ansi@v0.11.8 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
