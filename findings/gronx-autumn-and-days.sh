#!/bin/sh
# github.com/adhocore/gronx v1.20.4 and github.com/robfig/cron/v3 v3.0.1 (needs Go): the same
# lines mean other times in two libraries. In the hour that the clock repeats in autumn,
# gronx leaves out the second run of "0 * * * *", so that an hourly job pauses for two
# hours, but not those of "*/30 * * * *"; cron has both. Of "0 9 */2 * MON", gronx makes the
# Mondays with an odd date, cron the odd dates and all Mondays, although "0 9 13 * FRI" is
# the 13th and all Fridays in both.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='0 * * * *
  gronx 02 01:00 -04, 02 02:00 -05, 02 03:00 -05
  cron  02 01:00 -04, 02 01:00 -05, 02 02:00 -05
*/30 * * * *
  gronx 02 01:00 -04, 02 01:30 -04, 02 01:00 -05
  cron  02 01:00 -04, 02 01:30 -04, 02 01:00 -05
0 9 */2 * MON
  gronx 03 09:00 -05, 17 09:00 -05, 01 09:00 -05
  cron  03 09:00 -05, 05 09:00 -05, 07 09:00 -05
0 9 13 * FRI
  gronx 07 09:00 -05, 13 09:00 -05, 14 09:00 -05
  cron  07 09:00 -05, 13 09:00 -05, 14 09:00 -05'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/adhocore/gronx"
	"github.com/robfig/cron/v3"
)

func main() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	show := func(name string, next func(time.Time) time.Time) {
		at := time.Date(2025, 11, 2, 0, 30, 0, 0, zone)
		var seen []string
		for range 3 {
			at = next(at)
			seen = append(seen, at.In(zone).Format("02 15:04 -07"))
		}
		fmt.Printf("  %-5s %s\n", name, strings.Join(seen, ", "))
	}
	for _, line := range []string{"0 * * * *", "*/30 * * * *", "0 9 */2 * MON", "0 9 13 * FRI"} {
		fmt.Println(line)
		show("gronx", func(at time.Time) time.Time {
			next, err := gronx.NextTickAfter(line, at, false)
			if err != nil {
				panic(err)
			}
			return next
		})
		schedule, err := cron.ParseStandard(line)
		if err != nil {
			panic(err)
		}
		show("cron", schedule.Next)
	}
}
GO
go mod init example.com/gronx >/dev/null 2>&1
go get github.com/adhocore/gronx@v1.20.4 github.com/robfig/cron/v3@v3.0.1 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
