#!/bin/sh
# npm chrono-node 2.10.3 (needs Node): the option forwardDate, which a program for reminders
# sets so that "friday" is the coming one, also moves days that the words put into the past:
# "last friday" becomes the coming Friday. "yesterday", "two days ago" and "last week" stay
# where they are. So "what did I do last friday" is answered for a day that has not come.
# Seen: see want below; it is asked on Monday, 2026-11-30.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='last friday: 2026-12-04, without forwardDate 2026-11-27
last monday at 9: 2026-12-07, without forwardDate 2026-11-23
last week: 2026-11-23, without forwardDate 2026-11-23
yesterday: 2026-11-29, without forwardDate 2026-11-29'
cat >main.mjs <<'JS'
import * as chrono from "chrono-node";

const now = new Date("2026-11-30T15:10:00Z");
const day = (text, forwardDate) => chrono.parseDate(text, now, { forwardDate }).toISOString().slice(0, 10);
for (const text of ["last friday", "last monday at 9", "last week", "yesterday"]) console.log(`${text}: ${day(text, true)}, without forwardDate ${day(text, false)}`);
JS
npm install --silent --no-audit --no-fund --ignore-scripts chrono-node@2.10.3 >/dev/null 2>&1
got=$(TZ=UTC node main.mjs)
echo "$got"
[ "$got" = "$want" ]
