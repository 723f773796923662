#!/bin/sh
# npm cronstrue 3.39.0 (needs Node): the sentence that it makes of a line of cron, to show
# people what they agree to, is another plan than the line. "*/45 * * * *" is "Every 45
# minutes", but the job runs at 0 and 45 past: the pause is 45 minutes, then 15. "every 9
# hours" has 6 between the last run of a day and the first of the next. And days "1-7" with
# Monday, read as "between day 1 and 7 of the month, and on Monday" and so as the first
# Monday, are all of the seven days and all Mondays. The times are those of croner 11.0.1.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='*/45 * * * *: Every 45 minutes:
  02-01T00:00, 02-01T00:45, 02-01T01:00, 02-01T01:45
0 */9 * * *: On the hour, every 9 hours:
  02-01T00:00, 02-01T09:00, 02-01T18:00, 02-02T00:00
0 9 1-7 * 1: At 09:00 AM, between day 1 and 7 of the month, and on Monday:
  02-01T09:00, 02-02T09:00, 02-03T09:00, 02-04T09:00'
cat >main.mjs <<'JS'
import { Cron } from "croner";
import cronstrue from "cronstrue";

for (const line of ["*/45 * * * *", "0 */9 * * *", "0 9 1-7 * 1"]) {
  const times = new Cron(line, { timezone: "UTC" }).nextRuns(4, new Date("2027-01-31T23:50:00Z"));
  console.log(`${line}: ${cronstrue.toString(line)}:`);
  console.log("  " + times.map((d) => d.toISOString().slice(5, 16)).join(", "));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts cronstrue@3.39.0 croner@11.0.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
