#!/bin/sh
# npm aewx-metar-parser 3.0.2 (needs Node): two usual forms of the visibility in a report of
# an airport's weather are passed over without an error. In dense fog, "M1/4SM" (less than a
# quarter of a mile) with clouds after it is 9999 metres, as on a clear day. On a clear day,
# "9999NDV" (ten kilometres and more, from a sensor without directions) is 2 metres: the next
# number, 02/01, is taken for it as a fraction, and the temperature, which it was, is lost.
# metar-taf-parser 9.1.3 has all of them right.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='EDDF 301650Z AUTO 24010KT 9999 NSC 02/01 Q1003
  aewx      9999 m, 2 °C
  metar-taf 9999 m, 2 °C
EDDF 301650Z AUTO 24010KT 9999NDV NSC 02/01 Q1003
  aewx      2 m, null °C
  metar-taf 9999 m, 2 °C
KBOS 301654Z AUTO 05003KT 1/4SM FG OVC001 05/05 A3001
  aewx      402 m, 5 °C
  metar-taf 0.25 SM, 5 °C
KBOS 301654Z AUTO 05003KT M1/4SM FG OVC001 05/05 A3001
  aewx      9999 m, 5 °C
  metar-taf 0.25 SM, 5 °C'
cat >main.mjs <<'JS'
import { metarParser } from "aewx-metar-parser";
import { parseMetar } from "metar-taf-parser";

for (const text of [
  "EDDF 301650Z AUTO 24010KT 9999 NSC 02/01 Q1003",
  "EDDF 301650Z AUTO 24010KT 9999NDV NSC 02/01 Q1003",
  "KBOS 301654Z AUTO 05003KT 1/4SM FG OVC001 05/05 A3001",
  "KBOS 301654Z AUTO 05003KT M1/4SM FG OVC001 05/05 A3001",
]) {
  const a = metarParser(text);
  const b = parseMetar(text);
  console.log(text);
  console.log(`  aewx      ${Math.round(a.visibility.meters)} m, ${a.temperature.celsius} °C`);
  console.log(`  metar-taf ${b.visibility.value} ${b.visibility.unit}, ${b.temperature} °C`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts aewx-metar-parser@3.0.2 metar-taf-parser@9.1.3 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
