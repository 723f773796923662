#!/bin/sh
# npm @tryfabric/mack 1.2.1 (needs Node): what it makes of a list for Slack leaves out text,
# without an error: items of a list within a list, further paragraphs of an item, and a
# whole quotation if it is a list. Numbers start anew, so that "3." and "4." of an answer
# that continues become 1 and 2, and two lines around a line break become one word.
# Seen: see want below: the text of the blocks.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"- fruit\n  - apple\n- bread" -> ["• fruit\n• bread"]
"- fruit\n\n  ripe ones\n- bread" -> ["• fruit\n• bread"]
"> - apple\n> - pear" -> []
"3. wash\n4. dry" -> ["1. wash\n2. dry"]
"before  \nnoon" -> ["beforenoon"]'
cat >main.cjs <<'JS'
const { markdownToBlocks } = require("@tryfabric/mack");

(async () => {
  for (const text of ["- fruit\n  - apple\n- bread", "- fruit\n\n  ripe ones\n- bread", "> - apple\n> - pear", "3. wash\n4. dry", "before  \nnoon"])
    console.log(JSON.stringify(text) + " -> " + JSON.stringify((await markdownToBlocks(text)).map((block) => block.text.text)));
})();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @tryfabric/mack@1.2.1 >/dev/null 2>&1
got=$(node main.cjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
