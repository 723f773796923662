#!/bin/sh
# npm knx 2.5.4 and knxultimate 5.4.0 (needs Node): values of a home's devices on KNX, by the
# types of data that the standard has (03_07_02). A sensor that has no valid value sends 7FFF
# (3.10); for both it is a temperature of 670760.96 degrees. Percentages of type 8.010 are in
# hundredths (3.9); both write 12.5 % as 12, which is 0.12 % for the device, and read 12.5 % as
# 1250. A text of type 16.001 (Latin-1, 3.17) has the zero bytes of its end in it for both, and
# for knx, which reads it as ASCII, "Küche" is "K|che". An angle of 180 degrees is written as
# 7F and read as 179. An assistant that is asked for the temperature, or to dim by a part, says
# or does nonsense.
# Seen: see want below: the bytes and what is made of them.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='knx: 9.001 0c33 is 21.5
knx: 9.001 7fff is 670760.96
knx: 8.010 04e2 is 1250
knx: 8.010, 12.5 is written as 000c
knx: 5.003, 180 is written as 7f
knx: 16.001 4bfc636865000000000000000000 is "K|che" and 9 zero bytes
knxultimate: 9.001 0c33 is 21.5
knxultimate: 9.001 7fff is 670760.96
knxultimate: 8.010 04e2 is 1250
knxultimate: 8.010, 12.5 is written as 000c
knxultimate: 5.003, 180 is written as 7f
knxultimate: 16.001 4bfc636865000000000000000000 is "Küche" and 9 zero bytes'
cat >main.cjs <<'JS'
for (const [name, lib] of [["knx", require("knx/src/dptlib")], ["knxultimate", require("knxultimate/build/dptlib")]]) {
  const read = (id, hex) => lib.fromBuffer(Buffer.from(hex, "hex"), lib.resolve("DPT" + id));
  for (const [id, hex] of [["9.001", "0c33"], ["9.001", "7fff"], ["8.010", "04e2"]]) console.log(`${name}: ${id} ${hex} is ${read(id, hex)}`);
  for (const [id, value] of [["8.010", 12.5], ["5.003", 180]]) {
    const apdu = {};
    lib.populateAPDU(value, apdu, "DPT" + id);
    console.log(`${name}: ${id}, ${value} is written as ${Buffer.from(apdu.data).toString("hex")}`);
  }
  const hex = "4bfc636865" + "00".repeat(9);
  const text = read("16.001", hex);
  console.log(`${name}: 16.001 ${hex} is "${text.replace(/\0/g, "")}" and ${text.split("\0").length - 1} zero bytes`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts knx@2.5.4 knxultimate@5.4.0 >/dev/null 2>&1
got=$(node main.cjs)
echo "$got"
[ "$got" = "$want" ]
