#!/bin/sh
# github.com/reugn/go-quartz v0.15.2 (needs Go): a trigger that recurs each day ends for good
# on the day on which the clock skips its hour. In New York, on 2025-03-09, 02:00 to 03:00
# does not exist. Every 20 minutes from 02:00 to 02:40 then gives 01:00 and 01:20, times
# before the gap that the line does not name, and after them the error "trigger has
# expired", as if the line named a year that is past. A job at 02:30 runs at 01:30.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='0 0/20 2 * * *: 08 02:40, 09 01:00, 09 01:20, trigger has expired
0 30 2 * * *: 09 01:30, 10 02:30, 11 02:30, 12 02:30'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/reugn/go-quartz/quartz"
)

func main() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	for _, line := range []string{"0 0/20 2 * * *", "0 30 2 * * *"} {
		trigger, err := quartz.NewCronTriggerWithLoc(line, zone)
		if err != nil {
			panic(err)
		}
		at := time.Date(2025, 3, 8, 2, 30, 0, 0, zone).UnixNano()
		var seen []string
		for range 4 {
			if at, err = trigger.NextFireTime(at); err != nil {
				seen = append(seen, err.Error())
				break
			}
			seen = append(seen, time.Unix(0, at).In(zone).Format("02 15:04"))
		}
		fmt.Printf("%s: %s\n", line, strings.Join(seen, ", "))
	}
}
GO
go mod init example.com/quartz >/dev/null 2>&1
go get github.com/reugn/go-quartz@v0.15.2 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
