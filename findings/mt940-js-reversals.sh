#!/bin/sh
# npm mt940-js 1.0.0 (needs Node, and tslib 2.9.1, which it does not ask for): statements of
# account in MT940. A debit that is reversed (RD), money that comes back, is the same as a
# debit (D), down to the id that the library gives it; a reversed credit (RC) is a credit. And
# what was booked over the turn of the year has its second date, in which there is no year, in
# the year of the first: booked on 2 January, nearly a year before its value date. A sum of
# what was spent is wrong by twice the refund.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='260105D5,00NMSCNONREF -> debit 5, value 2026-01-05, booked -
260105RD5,00NMSCNONREF -> debit 5, value 2026-01-05, booked -
260105C5,00NMSCNONREF -> credit 5, value 2026-01-05, booked -
260105RC5,00NMSCNONREF -> credit 5, value 2026-01-05, booked -
2512310102D5,00NMSCNONREF -> debit 5, value 2025-12-31, booked 2025-01-02'
cat >main.mjs <<'JS'
import * as mt940 from "mt940-js";

for (const line of ["260105D5,00NMSCNONREF", "260105RD5,00NMSCNONREF", "260105C5,00NMSCNONREF", "260105RC5,00NMSCNONREF", "2512310102D5,00NMSCNONREF"]) {
  const text = [":20:START", ":25:12345678/1234567", ":28C:1/1", ":60F:C251230EUR100,00", ":61:" + line, ":86:Shop", ":62F:C260105EUR95,00", "-", ""];
  const [statement] = await mt940.read(Buffer.from(text.join("\r\n")));
  const [t] = statement.transactions;
  console.log(`${line} -> ${t.isCredit ? "credit" : "debit"} ${t.amount}, value ${t.valueDate}, booked ${t.entryDate || "-"}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts mt940-js@1.0.0 tslib@2.9.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
