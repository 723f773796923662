#!/bin/sh
# npm iso8601-duration 2.1.4 (needs Node): parts of a duration that it does not know are
# dropped without an error. The sign goes: "-PT15M", by which an alarm in a calendar comes
# before the event, is 15 minutes, after it; the README calls a sign not supported yet, not
# ignored. From the first part with a sign on (ISO 8601-2 allows them), all is dropped:
# "PT1H-30M" is an hour. Half a day, "P0.5D", is an error, although half an hour is not.
# tinyduration 3.4.1 has all of them.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='PT15M: 900 s, tinyduration {"minutes":15}
-PT15M: 900 s, tinyduration {"minutes":15,"negative":true}
PT1H-30M: 3600 s, tinyduration {"hours":1,"minutes":-30}
PT0.5H: 1800 s, tinyduration {"hours":0.5}
P0.5D: error, tinyduration {"days":0.5}'
cat >main.mjs <<'JS'
import { parse, toSeconds } from "iso8601-duration";
import * as tiny from "tinyduration";

for (const text of ["PT15M", "-PT15M", "PT1H-30M", "PT0.5H", "P0.5D"]) {
  let seconds;
  try {
    seconds = toSeconds(parse(text)) + " s";
  } catch {
    seconds = "error";
  }
  console.log(`${text}: ${seconds}, tinyduration ${JSON.stringify(tiny.parse(text))}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts iso8601-duration@2.1.4 tinyduration@3.4.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
