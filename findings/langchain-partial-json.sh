#!/bin/sh
# npm @langchain/core 1.4.0, ai 6.0.326 and partial-json 0.1.7 (needs Node): JSON of a tool
# call that is read while it streams in. If a piece ends inside an escape, langchain shows the
# letters of it: "Caf\u00" is "Cafu00", and a lone backslash stays. ai and partial-json leave
# the unfinished sign out. A minus that has no digits yet is 0 for langchain, the others leave
# the field out. What a person sees growing, or what is acted on early, holds text and numbers
# that the model did not write.
# Seen: see want below: the piece that has arrived, and the value.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='{"place":"Caf\u00
  langchain    {"place":"Cafu00"}
  ai           {"place":"Caf"}
  partial-json {"place":"Caf"}
{"path":"C:\
  langchain    {"path":"C:\\"}
  ai           {"path":"C:"}
  partial-json {"path":"C:"}
{"degrees":-
  langchain    {"degrees":0}
  ai           {}
  partial-json {}'
cat >main.mjs <<'JS'
import { parsePartialJson as langchain } from "@langchain/core/output_parsers";
import { parsePartialJson } from "ai";
import { parse } from "partial-json";

for (const text of ['{"place":"Caf\\u00', '{"path":"C:\\', '{"degrees":-']) {
  console.log(text);
  console.log("  langchain    " + JSON.stringify(langchain(text)));
  console.log("  ai           " + JSON.stringify((await parsePartialJson(text)).value));
  console.log("  partial-json " + JSON.stringify(parse(text)));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts @langchain/core@1.4.0 ai@6.0.326 partial-json@0.1.7 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
