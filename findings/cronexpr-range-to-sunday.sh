#!/bin/sh
# github.com/hashicorp/cronexpr v1.1.3 (needs Go): 7 is Sunday in the day of week if it stands
# alone or in a list, but not as the end of a range: "0 9 * * 5-7" is Friday and Saturday,
# without an error, and "6-7", a weekend, is Saturday only. gronx v1.20.4 includes Sunday.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='7: Sun 03, Sun 10, Sun 17
5,6,7: Fri 01, Sat 02, Sun 03
5-7: Fri 01, Sat 02, Fri 08
6-7: Sat 02, Sat 09, Sat 16'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

func main() {
	for _, days := range []string{"7", "5,6,7", "5-7", "6-7"} {
		line, err := cronexpr.Parse("0 9 * * " + days)
		if err != nil {
			panic(err)
		}
		var seen []string
		for _, at := range line.NextN(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 3) {
			seen = append(seen, at.Format("Mon 02"))
		}
		fmt.Printf("%s: %s\n", days, strings.Join(seen, ", "))
	}
}
GO
go mod init example.com/range >/dev/null 2>&1
go get github.com/hashicorp/cronexpr@v1.1.3 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
