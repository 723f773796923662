#!/bin/sh
# npm compromise 14.17.0 (needs Node): it finds numbers and money in English text. The same
# words are another amount by the part of it that is asked. "$2.5 million" is 2500000 as a
# number and 2.5 as money; "half a cup" is 0.5, "1/2 cup" is 1 as a number (0.5 as a fraction),
# and 3/4 is 3. What is written short, $3k, 10k, $1.5m or a bn, is the number in front in each
# of them, although the unit is found. A year in words is three numbers, and "two point oh
# five" two. An assistant that notes what was spent, or how much flour is needed, is off by a
# thousand or a half.
# Seen: see want below: numbers, money and fractions.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='$2.5 million: numbers 2500000, money 2.5, fractions -
$3k: numbers 3, money 3, fractions -
$1.5m: numbers 1.5, money 1.5, fractions -
10k people: numbers 10, money -, fractions -
half a cup: numbers 0.5, money -, fractions 0.5
1/2 cup: numbers 1, money -, fractions 0.5
3/4 cup: numbers 3, money -, fractions 0.75
nineteen eighty four: numbers 19 80 4, money -, fractions -
two point oh five: numbers 2 5, money -, fractions -
two point five: numbers 2.5, money -, fractions -'
cat >main.mjs <<'JS'
import nlp from "compromise";

const list = (found) => (Array.isArray(found) && found.length > 0 ? found.map((x) => x?.decimal ?? x).join(" ") : "-");
for (const text of ["$2.5 million", "$3k", "$1.5m", "10k people", "half a cup", "1/2 cup", "3/4 cup", "nineteen eighty four", "two point oh five", "two point five"]) {
  const d = nlp(text);
  console.log(`${text}: numbers ${list(d.numbers().get())}, money ${list(d.money().get())}, fractions ${list(d.fractions().get())}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts compromise@14.17.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
