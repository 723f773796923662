#!/bin/sh
# npm written-number 0.11.1 (needs Node): numbers in words, as a voice says them, are wrong in
# languages that it lists. Spanish "veintiuno mil" and "uno millón uno" should be "veintiún
# mil" and "un millón uno", French "quatre-vingts mille" and "deux cents mille" lose their s
# before mille, and Italian 2000 is one word, "duemila". A language that it does not have,
# such as German, is spoken in English, without an error.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='es 21000: veintiuno mil
es 1000001: uno millón uno
fr 80000: quatre-vingts mille
fr 200000: deux cents mille
it 2000: due mila
de 21: twenty-one'
cat >main.mjs <<'JS'
import writtenNumber from "written-number";

for (const [lang, number] of [["es", 21000], ["es", 1000001], ["fr", 80000], ["fr", 200000], ["it", 2000], ["de", 21]]) {
  console.log(`${lang} ${number}: ${writtenNumber(number, { lang })}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts written-number@0.11.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
