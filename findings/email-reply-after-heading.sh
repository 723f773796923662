#!/bin/sh
# npm email-reply-parser 2.3.7 and node-email-reply-parser 0.1.4 (needs Node): they take the
# quotations and the signature off a mail, so that a model sees what is new. A line of two or
# more hyphens is the start of a signature for both, wherever it is: a heading that is
# underlined, as in Markdown, takes all that follows with it, and only the heading is left.
# For the second one, a line that begins with a hyphen and a sign other than a space is
# enough: "-5 degrees" or "-Ann" hides the rest. A signature starts with "-- " alone.
# Seen: see want below: the text, and what is left of it.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"Plan\n----\nBook the hotel.\nCall Bob.\n"
  email-reply-parser      "Plan"
  node-email-reply-parser "Plan"
"Tonight\n-5 degrees\nand snow.\n"
  email-reply-parser      "Tonight\n-5 degrees\nand snow.\n"
  node-email-reply-parser "Tonight"
"Yes.\n-Ann\nPS: bring a cake\n"
  email-reply-parser      "Yes.\n-Ann\nPS: bring a cake\n"
  node-email-reply-parser "Yes."'
cat >main.mjs <<'JS'
import EmailReplyParser from "email-reply-parser";
import parse from "node-email-reply-parser";

for (const text of ["Plan\n----\nBook the hotel.\nCall Bob.\n", "Tonight\n-5 degrees\nand snow.\n", "Yes.\n-Ann\nPS: bring a cake\n"]) {
  console.log(JSON.stringify(text));
  console.log("  email-reply-parser      " + JSON.stringify(new EmailReplyParser().read(text).getVisibleText()));
  console.log("  node-email-reply-parser " + JSON.stringify(parse(text).getVisibleText()));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts email-reply-parser@2.3.7 node-email-reply-parser@0.1.4 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
