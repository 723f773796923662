#!/bin/sh
# node-ofx-parser 0.5.1 (npm, needs Node): the names in a bank's statement (OFX 1, SGML) are
# escaped, as "TEA &amp; CAKE". The parser does not decode them, it escapes them two more times.
# What a program is given as the payee is "TEA &amp;amp;amp; CAKE"; decoded once, it is still
# not what the bank wrote. ofx-js 1.1.1 gives "TEA & CAKE".
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='node-ofx-parser: TEA &amp;amp;amp; CAKE / a &amp;amp;lt; b
ofx-js: TEA & CAKE / a < b'
npm install --silent --no-fund --no-audit node-ofx-parser@0.5.1 ofx-js@1.1.1 >/dev/null 2>&1
cat >names.cjs <<'JS'
const file = `OFXHEADER:100
DATA:OFXSGML
VERSION:102
SECURITY:NONE
ENCODING:USASCII
CHARSET:1252
COMPRESSION:NONE
OLDFILEUID:NONE
NEWFILEUID:NONE

<OFX>
<BANKMSGSRSV1>
<STMTTRNRS>
<STMTRS>
<BANKTRANLIST>
<STMTTRN>
<TRNTYPE>DEBIT
<DTPOSTED>20260215
<TRNAMT>-12.50
<FITID>00001
<NAME>TEA &amp; CAKE
<MEMO>a &lt; b
</STMTTRN>
</BANKTRANLIST>
</STMTRS>
</STMTTRNRS>
</BANKMSGSRSV1>
</OFX>
`;
const shown = (d) => {
  const t = d.OFX.BANKMSGSRSV1.STMTTRNRS.STMTRS.BANKTRANLIST.STMTTRN;
  return `${t.NAME} / ${t.MEMO}`;
};
(async () => {
  console.log("node-ofx-parser:", shown(require("node-ofx-parser").parse(file)));
  console.log("ofx-js:", shown(await require("ofx-js").parse(file)));
})();
JS
got=$(node names.cjs)
echo "$got"
[ "$got" = "$want" ]
