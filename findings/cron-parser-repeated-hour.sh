#!/bin/sh
# npm cron-parser 5.10.6 (needs Node): whether a job runs in both of the hours that the
# clock repeats in autumn depends on how the same hours are written. "0 * * * *" runs in
# both; "0 0-3 * * *" and "0 0,1,2,3 * * *" only in the first of them. So a job that is
# narrowed from every hour to the night silently pauses for two hours. (croner 11.0.1, with
# the same lines, has both hours in all three.)
# Seen: the times of New York on 2025-11-02, with their offset from UTC, see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='0 * * * *
  cron-parser 01:00-4 01:00-5 02:00-5 03:00-5
  croner      01:00-4 01:00-5 02:00-5 03:00-5
0 0-3 * * *
  cron-parser 01:00-4 02:00-5 03:00-5 00:00-5
  croner      01:00-4 01:00-5 02:00-5 03:00-5
0 0,1,2,3 * * *
  cron-parser 01:00-4 02:00-5 03:00-5 00:00-5
  croner      01:00-4 01:00-5 02:00-5 03:00-5'
cat >main.mjs <<'JS'
import cronParser from "cron-parser";
import { Cron } from "croner";

const tz = "America/New_York";
const from = new Date("2025-11-02T00:30:00-04:00");
const format = new Intl.DateTimeFormat("en-GB", { timeZone: tz, hour: "2-digit", minute: "2-digit", timeZoneName: "shortOffset" });
const show = (dates) => dates.map((d) => format.format(d).replace(" GMT", "")).join(" ");
for (const line of ["0 * * * *", "0 0-3 * * *", "0 0,1,2,3 * * *"]) {
  const times = cronParser.CronExpressionParser.parse(line, { currentDate: from, tz });
  console.log(line);
  console.log("  cron-parser " + show(Array.from({ length: 4 }, () => times.next().toDate())));
  console.log("  croner      " + show(new Cron(line, { timezone: tz }).nextRuns(4, from)));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts cron-parser@5.10.6 croner@11.0.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
