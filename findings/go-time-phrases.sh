#!/bin/sh
# github.com/tj/go-naturaldate v1.3.0 and github.com/olebedev/when v1.1.0 (needs Go): ordinary
# phrases for reminders are understood wrongly, without an error. Both have "tomorrow at
# 12am" at noon. For naturaldate, "tomorrow at noon" is midnight, "december 5" the 30th of
# December at five o'clock, and "in half an hour" at once. For when, "two hours from now" is
# now, because only that word is found.
# Seen: see want below; it is asked on Monday, 2026-11-30, at 15:10.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='tomorrow at 12am: naturaldate Dec 1 12:00, when Dec 1 12:00
tomorrow at noon: naturaldate Dec 1 00:00, when Dec 1 12:00
december 5: naturaldate Dec 30 05:00, when Dec 5 15:10
in half an hour: naturaldate Nov 30 15:10, when Nov 30 15:40
two hours from now: naturaldate Nov 30 17:10, when Nov 30 15:10'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/olebedev/when"
	"github.com/olebedev/when/rules/common"
	"github.com/olebedev/when/rules/en"
	"github.com/tj/go-naturaldate"
)

func main() {
	now := time.Date(2026, 11, 30, 15, 10, 0, 0, time.UTC)
	parser := when.New(nil)
	parser.Add(en.All...)
	parser.Add(common.All...)
	for _, phrase := range []string{"tomorrow at 12am", "tomorrow at noon", "december 5", "in half an hour", "two hours from now"} {
		natural, err := naturaldate.Parse(phrase, now, naturaldate.WithDirection(naturaldate.Future))
		if err != nil {
			panic(err)
		}
		result, err := parser.Parse(phrase, now)
		if err != nil {
			panic(err)
		}
		const form = "Jan 2 15:04"
		fmt.Printf("%s: naturaldate %s, when %s\n", phrase, natural.Format(form), result.Time.Format(form))
	}
}
GO
go mod init example.com/phrases >/dev/null 2>&1
go get github.com/tj/go-naturaldate@v1.3.0 github.com/olebedev/when@v1.1.0 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
