#!/bin/sh
# qif2json 0.4.0 (npm, needs Node): a QIF file of Quicken has dates as 2/15'26, the month
# first. The parser takes the day first by default, and a month of 15 is no error: it goes on
# into the next year, so that a payment of 15 February 2026 becomes one of 2 March 2027. A date
# such as 1/2'26 becomes 1 February, without a sign. With the option dateFormat 'us' both
# are right.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want="2/15'26: 2027-03-02, as us 2026-02-15
1/2'26: 2026-02-01, as us 2026-01-02"
npm install --silent --no-fund --no-audit qif2json@0.4.0 >/dev/null 2>&1
cat >dates.cjs <<'JS'
const { parse } = require("qif2json");
for (const date of ["2/15'26", "1/2'26"]) {
  const file = `!Type:Bank\nD${date}\nT-12.50\nPTea\n^\n`;
  const [plain, us] = [undefined, { dateFormat: "us" }].map((o) => parse(file, o).transactions[0].date.slice(0, 10));
  console.log(`${date}: ${plain}, as us ${us}`);
}
JS
got=$(node dates.cjs)
echo "$got"
[ "$got" = "$want" ]
