#!/bin/sh
# github.com/araddon/dateparse v0.0.0-20210429162001-6b43995a97de (needs Go): a full hour
# after a date is taken for a part of Go's layout of dates, in which some digits have a
# meaning. So "1pm" changes the month to January and is noon, "2pm" changes the day to the
# 2nd, "4pm" is four minutes past noon; "3pm", which means hours there, is right by chance.
# The others are noon, in the morning midnight; "9:00pm" is right. This is ParseStrict, which
# is to refuse what is not sure. A meeting is entered hours, days or months off, without an
# error.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='2026-11-30 1pm: 2026-01-30 12:00
2026-11-30 2pm: 2026-11-02 12:00
2026-11-30 3pm: 2026-11-30 15:00
2026-11-30 4pm: 2026-11-30 12:04
2026-11-30 9pm: 2026-11-30 12:00
2026-11-30 9am: 2026-11-30 00:00
2026-11-30 9:00pm: 2026-11-30 21:00'
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/araddon/dateparse"
)

func main() {
	for _, text := range []string{"1pm", "2pm", "3pm", "4pm", "9pm", "9am", "9:00pm"} {
		t, err := dateparse.ParseStrict("2026-11-30 " + text)
		if err != nil {
			panic(err)
		}
		fmt.Printf("2026-11-30 %s: %s\n", text, t.Format("2006-01-02 15:04"))
	}
}
GO
go mod init example.com/date >/dev/null 2>&1
go get github.com/araddon/dateparse@v0.0.0-20210429162001-6b43995a97de >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
