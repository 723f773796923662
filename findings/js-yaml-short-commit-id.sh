#!/bin/sh
# npm js-yaml 5.5.0 as the writer, yaml 2.9.1 as the reader (needs Node): js-yaml puts quotes
# around a text that looks like a number, but not around one that is too large to be one,
# and reads it as a text itself. For yaml it is the number infinity. Short ids of commits
# have that form: the text "7e10482" arrives as Infinity, as "null" in JSON, and the id is
# lost. Nearly one in a hundred ids of seven digits has that form and size.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='commit: 7e10482 -> js-yaml string, yaml number Infinity
commit: 1e400 -> js-yaml string, yaml number Infinity
commit: '"'"'7e104'"'"' -> js-yaml string, yaml string 7e104
commit: 7f10482 -> js-yaml string, yaml string 7f10482'
cat >main.mjs <<'JS'
import * as jsYaml from "js-yaml";
import * as yaml from "yaml";

for (const commit of ["7e10482", "1e400", "7e104", "7f10482"]) {
  const text = jsYaml.dump({ commit });
  const read = yaml.parse(text).commit;
  console.log(`${text.trim()} -> js-yaml ${typeof jsYaml.load(text).commit}, yaml ${typeof read} ${read}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts js-yaml@5.5.0 yaml@2.9.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
