#!/bin/sh
# npm cron 4.4.0 (needs Node): a line that names several hours gets one run too many on the
# day on which the clock skips one of them. "15 1-4 * * *" asks for a quarter past; in New
# York, where 02:00 to 03:00 does not exist on 2025-03-09, one should expect 01:15, 03:15
# and 04:15. There is also one at 03:00, a minute that the line does not name: the hour
# that is missing is made up for at the end of the gap, with whatever minute that is. A job
# of an assistant that sends something is sent twice within a quarter of an hour.
# Seen: "01:15 03:00 03:15 04:15".
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='01:15 03:00 03:15 04:15'
cat >main.mjs <<'JS'
import { CronTime } from "cron";

const zone = "America/New_York";
const line = new CronTime("15 1-4 * * *", zone);
let at = new Date("2025-03-09T00:00:00-05:00");
const seen = [];
for (let i = 0; i < 4; i++) {
  const next = line.getNextDateFrom(at, zone);
  seen.push(next.toFormat("HH:mm"));
  at = next.toJSDate();
}
console.log(seen.join(" "));
JS
npm install --silent --no-audit --no-fund --ignore-scripts cron@4.4.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
