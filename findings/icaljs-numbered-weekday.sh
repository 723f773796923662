#!/bin/sh
# npm ical.js 2.2.1 (needs Node): parts of a rule that it cannot compute are ignored
# without an error, so that a rare event becomes a frequent one. The 20th Monday of each
# year (an example of RFC 5545) is every Monday, and so is the Monday of week 20. The last
# working day of a month is computed, but its first time is the start of the rule even if
# that is no such day.
# Seen: see want below; the right days are those of rrule 2.8.1.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='FREQ=YEARLY;BYDAY=20MO
  ical.js 2027-01-04 2027-01-11 2027-01-18
  rrule   2027-05-17 2028-05-15 2029-05-14
FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO
  ical.js 2027-01-04 2027-01-11 2027-01-18
  rrule   2027-05-17 2028-05-15 2029-05-14
FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1
  ical.js 2027-01-01 2027-01-29 2027-02-26
  rrule   2027-01-29 2027-02-26 2027-03-31'
cat >main.mjs <<'JS'
import ICAL from "ical.js";
import rrule from "rrule";

for (const rule of ["FREQ=YEARLY;BYDAY=20MO", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"]) {
  console.log(rule);
  const times = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString("2027-01-01T09:00:00"));
  console.log("  ical.js", Array.from({ length: 3 }, () => times.next().toString().slice(0, 10)).join(" "));
  const all = rrule.rrulestr(`DTSTART:20270101T090000Z\nRRULE:${rule};COUNT=3`).all();
  console.log("  rrule  ", all.map((d) => d.toISOString().slice(0, 10)).join(" "));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts ical.js@2.2.1 rrule@2.8.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
