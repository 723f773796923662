#!/bin/sh
# npm jsonrepair 3.15.0 (needs Node): it completes JSON that was cut, as the arguments of a
# tool call are while they stream in, but a word that was cut becomes a text:
# {"confirm":fals is repaired to {"confirm":"fals"}, which counts as true in JavaScript and
# is of another type than one piece later. null does the same. partial-json 0.1.7 completes
# the word.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='{"confirm":fals -> jsonrepair {"confirm":"fals"}, partial-json {"confirm":false}
{"confirm":tru -> jsonrepair {"confirm":"tru"}, partial-json {"confirm":true}
{"until":nul -> jsonrepair {"until":"nul"}, partial-json {"until":null}'
cat >main.mjs <<'JS'
import { jsonrepair } from "jsonrepair";
import partial from "partial-json";

for (const text of ['{"confirm":fals', '{"confirm":tru', '{"until":nul']) console.log(`${text} -> jsonrepair ${jsonrepair(text)}, partial-json ${JSON.stringify(partial.parse(text))}`);
JS
npm install --silent --no-audit --no-fund --ignore-scripts jsonrepair@3.15.0 partial-json@0.1.7 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
