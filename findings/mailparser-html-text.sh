#!/bin/sh
# npm mailparser 3.14.2 (needs Node): the text that it makes of a mail that has only HTML
# joins the cells of a row, and its rows if nothing stands between them in the source:
# "Room 12, 3 persons" in a table is "Room123 persons". Headings become capitals, so that
# "5 mW" cannot be told from "5 MW". A model that reads bookings, invoices or tables of
# values in mails by this text reads other numbers, without any sign.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"5 MW LASER\n\nRoom123 personsTotal450"'
cat >main.mjs <<'JS'
import { simpleParser } from "mailparser";

const html = "<h2>5 mW laser</h2><table><tr><td>Room</td><td>12</td><td>3 persons</td></tr><tr><td>Total</td><td>450</td></tr></table>";
const mail = await simpleParser(`From: Ann <ann@example.com>\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${html}`);
console.log(JSON.stringify(mail.text));
JS
npm install --silent --no-audit --no-fund --ignore-scripts mailparser@3.14.2 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
