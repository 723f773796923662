#!/bin/sh
# npm vcf 2.1.2 (needs Node): values of a card are not read but copied. A name with a comma
# keeps its backslash ("Smith\, Ann"), a note its \n, and a semicolon inside a part of a name
# splits it in two. jCard, which it can write, has no escapes, so there the backslash is a
# part of the name; ical.js 2.2.1 makes the right one. Printed again, X-ABLabel, by which
# Apple names a number, is X-AB-LABEL, which nobody knows. A contact that is looked up by its
# name is not found.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='fn: vcf "Smith\\, Ann", ical.js "Smith, Ann"
n: vcf ["Smith","Ann\\","Marie","","",""], ical.js ["Smith","Ann;Marie","","",""]
note: vcf "one\\ntwo", ical.js "one\ntwo"
item1.X-AB-LABEL:Boat'
cat >main.mjs <<'JS'
import ICAL from "ical.js";
import VCard from "vcf";

const text = [
  "BEGIN:VCARD", "VERSION:4.0", "FN:Smith\\, Ann", "N:Smith;Ann\\;Marie;;;", "NOTE:one\\ntwo",
  "item1.TEL:+1 555 0100", "item1.X-ABLabel:Boat", "END:VCARD", "",
].join("\r\n");
const card = new VCard().parse(text);
const [, a] = card.toJSON();
const [, b] = ICAL.parse(text);
for (const name of ["fn", "n", "note"]) {
  const value = (properties) => JSON.stringify(properties.find((p) => p[0] === name)[3]);
  console.log(`${name}: vcf ${value(a)}, ical.js ${value(b)}`);
}
console.log(card.toString("4.0").match(/item1.X.*/i)[0]);
JS
npm install --silent --no-audit --no-fund --ignore-scripts vcf@2.1.2 ical.js@2.2.1 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
