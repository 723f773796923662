#!/bin/sh
# npm chrono-node 2.10.3 (needs Node): words of the evening turn an hour after midnight into
# one of the afternoon. "tonight at midnight" is today at noon, "tonight at 12" as well, and
# "tomorrow night at 1" is one o'clock in the afternoon. Asked at 15:10, the first two are
# in the past, even with forwardDate, which is meant to prevent that. German and Chinese do
# the same. A reminder for midnight fires at once or never.
# Seen: see want below; it is asked on Monday, 2026-11-30, at 15:10.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='tonight at midnight: Mon 30 12:00
tonight at 12: Mon 30 12:00
tomorrow night at 1: Tue 01 13:00
friday night at 2: Fri 04 14:00
heute Nacht um 12: Mon 30 12:00
今晚12点: Mon 30 12:00
at midnight: Tue 01 00:00'
cat >main.mjs <<'JS'
import * as chrono from "chrono-node";

const now = new Date(2026, 10, 30, 15, 10);
const show = (d) => d.toString().replace(/^(\w+) \w+ (\d+) \d+ (\d+:\d+).*/, "$1 $2 $3");
const ask = (text, parser) => console.log(`${text}: ${show(parser.parseDate(text, now, { forwardDate: true }))}`);
for (const text of ["tonight at midnight", "tonight at 12", "tomorrow night at 1", "friday night at 2"]) ask(text, chrono);
ask("heute Nacht um 12", chrono.de);
ask("今晚12点", chrono.zh);
ask("at midnight", chrono);
JS
npm install --silent --no-audit --no-fund --ignore-scripts chrono-node@2.10.3 >/dev/null 2>&1
got=$(TZ=UTC node main.mjs)
echo "$got"
[ "$got" = "$want" ]
