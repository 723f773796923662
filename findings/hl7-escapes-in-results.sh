#!/bin/sh
# npm @medplum/core 4.5.2, simple-hl7 3.3.0, hl7-standard 1.0.4, tiny-hl7 1.0.7 and
# node-hl7-client 3.2.0 (needs Node): in a laboratory's message (HL7 v2) the signs that divide
# it are escaped in a text: \T\ is &, \S\ ^, \R\ ~ and \F\ a bar. The first three hand the
# escapes to the program as they came, so that a person is told "salt \T\ sugar" and
# "10\S\9/L"; tiny-hl7 decodes all but \R\, and node-hl7-client all. The first two write a text
# that is set without escapes as well: "salt & sugar ^ 2" is read back as several parts, and
# what is behind the first is gone for who asks for the first.
# Seen: see want below: the result's text in five libraries, and what is written for "a & b ^
# c".
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='@medplum/core: salt \T\ sugar 10\S\9/L \R\ 5
simple-hl7: salt \T\ sugar 10\S\9/L \R\ 5
hl7-standard: salt \T\ sugar 10\S\9/L \R\ 5
tiny-hl7: salt & sugar 10^9/L \R\ 5
node-hl7-client: salt & sugar 10^9/L ~ 5
@medplum/core writes: OBX|1|ST|A||a & b ^ c
simple-hl7 writes: OBX|1|ST|A||a & b ^ c'
cat >main.cjs <<'JS'
const { Hl7Message, Hl7Segment, Hl7Field, Hl7Context } = require("@medplum/core");
const simple = require("simple-hl7");
const HL7 = require("hl7-standard");
const tiny = require("tiny-hl7");
const { Message } = require("node-hl7-client");

const text = ["MSH|^~\\&|LAB|X|APP|Y|20260101120000||ORU^R01|1|P|2.5", "PID|1||123", "OBX|1|ST|A||salt \\T\\ sugar 10\\S\\9/L \\R\\ 5||||||F", ""].join("\r");
console.log("@medplum/core:", Hl7Message.parse(text).getSegment("OBX").getComponent(5, 1));
console.log("simple-hl7:", new simple.Parser().parse(text).getSegment("OBX").getComponent(5, 1));
const standard = new HL7(text);
standard.transform();
console.log("hl7-standard:", standard.get("OBX.5"));
console.log("tiny-hl7:", tiny.parse(text)[2]["OBX.5"]);
console.log("node-hl7-client:", new Message({ text }).get("OBX.5").toString());

const segment = new Hl7Segment(["OBX", "1", "ST", "A", ""], new Hl7Context());
segment.setField(5, "a & b ^ c");
console.log("@medplum/core writes:", segment.toString());
const message = new simple.Message();
message.addSegment("OBX", "1", "ST", "A", "", "a & b ^ c");
console.log("simple-hl7 writes:", message.toString().split("\r")[1]);
JS
npm install --silent --no-audit --no-fund --ignore-scripts @medplum/core@4.5.2 simple-hl7@3.3.0 hl7-standard@1.0.4 tiny-hl7@1.0.7 node-hl7-client@3.2.0 >/dev/null 2>&1
got=$(node main.cjs)
printf "%s\n" "$got"
[ "$got" = "$want" ]
