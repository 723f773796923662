#!/bin/sh
# github.com/reugn/go-quartz v0.15.2 (needs Go): a day that a month does not have is the first
# of the next month. A yearly trigger of 29 February runs on 1 March 2027, and one of
# 31 April, which should never run or be an error, on each 1 May. "31 of each month", in
# the same library, skips the shorter months.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='0 0 9 29 2 *: 2027-03-01 2028-02-29 2032-02-29
0 0 9 31 4 *: 2027-05-01 2028-05-01 2029-05-01
0 0 9 31 * *: 2027-01-31 2027-03-31 2027-05-31'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/reugn/go-quartz/quartz"
)

func main() {
	for _, line := range []string{"0 0 9 29 2 *", "0 0 9 31 4 *", "0 0 9 31 * *"} {
		trigger, err := quartz.NewCronTriggerWithLoc(line, time.UTC)
		if err != nil {
			panic(err)
		}
		at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()
		fmt.Print(line + ":")
		for range 3 {
			if at, err = trigger.NextFireTime(at); err != nil {
				panic(err)
			}
			fmt.Print(time.Unix(0, at).UTC().Format(" 2006-01-02"))
		}
		fmt.Println()
	}
}
GO
go mod init example.com/quartz >/dev/null 2>&1
go get github.com/reugn/go-quartz@v0.15.2 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
