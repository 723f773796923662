#!/bin/sh
# npm timestring 7.0.0 and parse-duration 2.1.9 (needs Node): both turn phrases such as "2 h"
# into a number of hours, and both make other times of ordinary phrases. "1/2 h" is half a day
# for the one and three hours for the other; "1 1/2 h" is 112 and 13 hours. "1,5h", as most of
# Europe writes one and a half, is 15 hours for both. For timestring "1h 30" is an hour, and
# "-1h" is not negative. A timer that is set by these words rings at another time, and nothing
# is an error.
# Seen: see want below, in hours.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='1.5h: timestring 1.5, parse-duration 1.5
1/2 h: timestring 12, parse-duration 3
1 1/2 h: timestring 112, parse-duration 13
1,5h: timestring 15, parse-duration 15
1h 30: timestring 1, parse-duration 1.5
-1h: timestring 1, parse-duration -1'
cat >main.mjs <<'JS'
import parseDuration from "parse-duration";
import timestring from "timestring";

for (const text of ["1.5h", "1/2 h", "1 1/2 h", "1,5h", "1h 30", "-1h"]) {
  console.log(`${text}: timestring ${timestring(text, "h")}, parse-duration ${parseDuration(text, "h")}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts timestring@7.0.0 parse-duration@2.1.9 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
