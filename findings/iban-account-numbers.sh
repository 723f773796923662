#!/bin/sh
# npm ibantools 4.5.4 and iban 0.0.14 (needs Node): international numbers of accounts.
# ibantools can take one apart. Its accountNumber is the number of the account within its bank
# for Germany, Spain and the Netherlands, and something else for others, without an error: the
# letter F for Finland, the whole IBAN for Belgium and Romania, with the bank and a check
# letter for Italy, with the branch for Greece, nothing for Britain, where it is the last eight
# digits. iban calls valid numbers of six countries that came to the registry later (Libya,
# Burundi, Russia, the Falklands, Oman, Yemen) invalid. Who asks for the number to put into a
# form is told one that does not exist.
# Seen: see want below: bank and account by ibantools; validity by ibantools and iban.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='DE89370400440532013000: bank 37040044, account 0532013000
ES9121000418450200051332: bank 2100, account 0200051332
NL91ABNA0417164300: bank ABNA, account 0417164300
GB29NWBK60161331926819: bank NWBK, account undefined
FI2112345600000785: bank 123, account F
BE68539007547034: bank 539, account BE68539007547034
RO49AAAA1B31007593840000: bank AAAA, account RO49AAAA1B31007593840000
IT60X0542811101000000123456: bank 05428, account X0542811101000000123456
GR1601101250000000012300695: bank 011, account 01250000000012300695
LY83002048000020100120361: true false
BI4210000100010000332045181: true false
RU0304452522540817810538091310419: true false
FK88SC123456789012: true false
OM810180000001299123456: true false
YE15CBYE0001018861234567891234: true false'
cat >main.cjs <<'JS'
const { extractIBAN, isValidIBAN } = require("ibantools");
const iban = require("iban");

for (const n of ["DE89370400440532013000", "ES9121000418450200051332", "NL91ABNA0417164300", "GB29NWBK60161331926819", "FI2112345600000785", "BE68539007547034", "RO49AAAA1B31007593840000", "IT60X0542811101000000123456", "GR1601101250000000012300695"]) {
  const parts = extractIBAN(n);
  console.log(`${n}: bank ${parts.bankIdentifier}, account ${parts.accountNumber}`);
}
for (const n of ["LY83002048000020100120361", "BI4210000100010000332045181", "RU0304452522540817810538091310419", "FK88SC123456789012", "OM810180000001299123456", "YE15CBYE0001018861234567891234"]) {
  console.log(`${n}: ${isValidIBAN(n)} ${iban.isValid(n)}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts ibantools@4.5.4 iban@0.0.14 >/dev/null 2>&1
got=$(node main.cjs)
echo "$got"
[ "$got" = "$want" ]
