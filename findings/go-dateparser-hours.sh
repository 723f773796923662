#!/bin/sh
# github.com/markusmobius/go-dateparser v1.4.7 (needs Go): an hour without minutes is not one.
# With the future preferred, as for reminders, "monday at 10" is 30 October of next year, and
# "at 5" is 30 May; "wednesday at 18" is the 18th of this month, which is past. "tomorrow at
# 9" is tomorrow at the time of asking, and the French "demain à 9h" is nine hours after that.
# With minutes, "friday 9:00", it is right. All without an error.
# Seen: see want below; it is asked on Monday, 2026-11-30, at 15:10.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='monday at 10: Sat 2027-10-30 00:00
at 5: Sun 2027-05-30 00:00
wednesday at 18: Wed 2026-11-18 00:00
tomorrow at 9: Tue 2026-12-01 15:10
demain à 9h: Wed 2026-12-02 00:10
friday 9:00: Fri 2026-12-04 09:00'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	dps "github.com/markusmobius/go-dateparser"
)

func main() {
	now := time.Date(2026, 11, 30, 15, 10, 0, 0, time.UTC)
	for _, text := range []string{"monday at 10", "at 5", "wednesday at 18", "tomorrow at 9", "demain à 9h", "friday 9:00"} {
		date, err := dps.Parse(&dps.Configuration{CurrentTime: now, PreferredDateSource: dps.Future}, text)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", text, date.Time.Format("Mon 2006-01-02 15:04"))
	}
}
GO
go mod init example.com/date >/dev/null 2>&1
go get github.com/markusmobius/go-dateparser@v1.4.7 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
