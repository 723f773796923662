#!/bin/sh
# npm rrule 2.8.1 (needs Node): a rule of minutes that is limited to some hours leaves its
# own grid overnight. Every 90 minutes from 09:00, only between 9 and 11 o'clock, is 09:00
# and 10:30 on each day, because 24 hours are 16 steps. The library says 10:00 and 11:30
# from the second day on, times that are no multiple of 90 minutes after the start. Steps
# that divide an hour are right, which is why it is not noticed.
# Seen: see want below; the last line is right.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='every 90 minutes: 01 09:00, 01 10:30, 02 10:00, 02 11:30
every 30 minutes: 01 09:00, 01 09:30, 01 10:00, 01 10:30, 01 11:00, 01 11:30, 02 09:00'
cat >main.mjs <<'JS'
import rrule from "rrule";

for (const [step, count] of [[90, 4], [30, 7]]) {
  const rule = rrule.rrulestr(`DTSTART:20270101T090000Z\nRRULE:FREQ=MINUTELY;INTERVAL=${step};BYHOUR=9,10,11;COUNT=${count}`);
  console.log(`every ${step} minutes: ` + rule.all().map((d) => d.toISOString().slice(8, 16).replace("T", " ")).join(", "));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts rrule@2.8.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
