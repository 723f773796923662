#!/bin/sh
# npm mathjs 15.2.0 (needs Node): a percent sign is a percentage, unless a sum goes on after
# it. Before + and - it is the remainder of a division by what follows, with its sign: "8% *
# 200 + 200" is 216, but "200 * 8% + 200" is 0, because 1600 divided by 200 leaves nothing.
# "100 + 8%" is 108, but with 5 added it is 103, since 8 divided by 5 leaves 3. An assistant
# that hands sums to this library tells a price of nothing, without an error.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='8% * 200 + 200 = 216
200 * 8% + 200 = 0
100 + 8% = 108
100 + 8% + 5 = 103
20% + 20% = 0
(20%) + (20%) = 0.4'
cat >main.mjs <<'JS'
import { evaluate } from "mathjs";

for (const text of ["8% * 200 + 200", "200 * 8% + 200", "100 + 8%", "100 + 8% + 5", "20% + 20%", "(20%) + (20%)"]) {
  console.log(`${text} = ${evaluate(text)}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts mathjs@15.2.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
