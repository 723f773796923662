#!/bin/sh
# npm words-to-numbers 1.5.1 (needs Node): a number that was said aloud becomes another one.
# "two hundred fifty thousand" is 50200: only the word right before "thousand" is multiplied,
# and the hundreds are added to that. "two hundred thousand" is right, so it is not noticed.
# Numbers that are said one after the other are added up (400), and "a" in front of any noun
# is the number one. What a voice assistant writes down is then a wrong amount.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='two hundred fifty thousand: 50200
one hundred and five thousand: 5100
two hundred thousand: 200000
two hundred two hundred: 400
order a pizza: order 1 pizza'
cat >main.mjs <<'JS'
import { wordsToNumbers } from "words-to-numbers";

for (const text of [
  "two hundred fifty thousand",
  "one hundred and five thousand",
  "two hundred thousand",
  "two hundred two hundred",
  "order a pizza",
]) {
  console.log(`${text}: ${wordsToNumbers(text)}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts words-to-numbers@1.5.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
