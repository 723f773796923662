#!/bin/sh
# npm zod 4.6.7, with ajv 8.20.0 as the validator (needs Node): the JSON Schema that
# z.toJSONSchema makes of the input of a tool accepts fewer texts than zod does. It keeps a
# pattern and drops its flags, so "Berlin" fails /^berlin$/i; and it demands of the text as
# it comes what zod demands only after toLowerCase or trim. Nothing tells that a part could
# not be said. A client that validates refuses calls that the tool would take.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='/^berlin$/i "Berlin": zod accepts, schema refuses
toLowerCase /^[a-z]+$/ "Ann": zod accepts, schema refuses
trim max 3 "Ann ": zod accepts, schema refuses'
cat >main.mjs <<'JS'
import Ajv from "ajv/dist/2020.js";
import { z } from "zod";

const verdict = (ok) => (ok ? "accepts" : "refuses");
for (const [name, type, text] of [
  ["/^berlin$/i", z.string().regex(/^berlin$/i), "Berlin"],
  ["toLowerCase /^[a-z]+$/", z.string().toLowerCase().regex(/^[a-z]+$/), "Ann"],
  ["trim max 3", z.string().trim().max(3), "Ann "],
]) {
  const schema = new Ajv.default().compile(z.toJSONSchema(type, { io: "input" }));
  console.log(`${name} ${JSON.stringify(text)}: zod ${verdict(type.safeParse(text).success)}, schema ${verdict(schema(text))}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts zod@4.6.7 ajv@8.20.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
