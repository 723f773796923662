#!/bin/sh
# npm rrule 2.8.1 (needs Node): fromText, which makes a rule of words and is said to be not
# complete, drops what it does not know instead of failing, and takes the start of a word for
# a day. "at 5pm" is five in the morning, "at 9:30" nine o'clock, "every morning" each Monday
# (mo), "every day except sunday" each day. toText, the way back, leaves out the minutes and
# the position, so that the last working day of the month is "every month on weekdays", and
# isFullyConvertibleToText, which is there to tell such rules, says yes to each.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='every weekday at 5pm -> FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=5
every day at 9:30 -> FREQ=DAILY;BYHOUR=9
every morning -> FREQ=WEEKLY;BYDAY=MO
every day except sunday -> FREQ=DAILY
every year on march 3 -> FREQ=YEARLY;BYMONTH=3
FREQ=DAILY;BYHOUR=9;BYMINUTE=30 -> every day at 9, fully true
FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1 -> every month on weekdays, fully true
FREQ=HOURLY;INTERVAL=4;BYDAY=MO -> every 4 hours, fully true'
cat >main.mjs <<'JS'
import rrule from "rrule";

for (const text of ["every weekday at 5pm", "every day at 9:30", "every morning", "every day except sunday", "every year on march 3"]) {
  console.log(`${text} -> ${rrule.RRule.fromText(text).toString().replace("RRULE:", "")}`);
}
for (const rule of ["FREQ=DAILY;BYHOUR=9;BYMINUTE=30", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "FREQ=HOURLY;INTERVAL=4;BYDAY=MO"]) {
  const r = rrule.RRule.fromString(rule);
  console.log(`${rule} -> ${r.toText()}, fully ${r.isFullyConvertibleToText()}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts rrule@2.8.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
