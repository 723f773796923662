#!/bin/sh
# npm ical.js 2.2.1 (needs Node): a yearly event of 29 February is on 1 March in other
# years, although a monthly one of the 31st is skipped in shorter months. The standard
# (RFC 5545) skips dates that do not exist, and rrule 2.8.1 skips both. So a birthday that
# one program wrote and another one reads moves, or is missing in three years of four.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='YEARLY ical.js 2028-02-29 2029-03-01 2030-03-01
YEARLY rrule   2028-02-29 2032-02-29 2036-02-29
MONTHLY ical.js 2028-01-31 2028-03-31 2028-05-31
MONTHLY rrule   2028-01-31 2028-03-31 2028-05-31'
cat >main.mjs <<'JS'
import ICAL from "ical.js";
import rrule from "rrule";

for (const [freq, start] of [["YEARLY", "2028-02-29"], ["MONTHLY", "2028-01-31"]]) {
  const times = ICAL.Recur.fromString(`FREQ=${freq}`).iterator(ICAL.Time.fromString(start + "T09:00:00"));
  console.log(freq, "ical.js", Array.from({ length: 3 }, () => times.next().toString().slice(0, 10)).join(" "));
  const rule = rrule.rrulestr(`DTSTART:${start.replaceAll("-", "")}T090000Z\nRRULE:FREQ=${freq};COUNT=3`);
  console.log(freq, "rrule  ", rule.all().map((d) => d.toISOString().slice(0, 10)).join(" "));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts ical.js@2.2.1 rrule@2.8.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
