#!/bin/sh
# github.com/arran4/golang-ical v0.3.4 (needs Go): a calendar that is read and written again
# is another one, or none. A name with a comma in quotation marks loses the marks and gets
# a backslash, which is no escape in a parameter: the file means two names. The comma
# between two categories becomes a part of one. On Linux the lines end with LF alone, which
# RFC 5545 does not allow. A program that changes one field of an invitation damages others.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='ATTENDEE;CN="Smith, Ann":mailto:ann@example.com -> ATTENDEE;CN=Smith\, Ann:mailto:ann@example.com
CATEGORIES:work,travel -> CATEGORIES:work\,travel
lines that end with CRLF: 0'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	ics "github.com/arran4/golang-ical"
)

func main() {
	lines := []string{`ATTENDEE;CN="Smith, Ann":mailto:ann@example.com`, "CATEGORIES:work,travel"}
	all := []string{"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "BEGIN:VEVENT", "UID:1", "DTSTAMP:20270101T000000Z", lines[0], lines[1], "END:VEVENT", "END:VCALENDAR", ""}
	calendar, err := ics.ParseCalendar(strings.NewReader(strings.Join(all, "\r\n")))
	if err != nil {
		panic(err)
	}
	written := calendar.Serialize()
	for _, line := range lines {
		name := line[:strings.IndexAny(line, ";:")]
		_, rest, _ := strings.Cut(written, "\n"+name)
		after, _, _ := strings.Cut(rest, "\n")
		fmt.Printf("%s -> %s%s\n", line, name, strings.TrimSpace(after))
	}
	fmt.Println("lines that end with CRLF:", strings.Count(written, "\r\n"))
}
GO
go mod init example.com/ics >/dev/null 2>&1
go get github.com/arran4/golang-ical@v0.3.4 >/dev/null 2>&1
got=$(go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
