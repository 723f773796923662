#!/bin/sh
# npm slackify-markdown 4.5.0 (needs Node): a line break in Markdown (two spaces at the end
# of a line, as models write it in addresses) comes out as a backslash before the line
# break. That is Markdown again, not Slack's format, where a backslash means nothing: people
# see it. A rule between paragraphs comes out as "***" in the same way, and the marks of a
# list of tasks vanish: what is done cannot be told from what is open.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"1 Main Street  \nSpringfield" -> "1 Main Street\\\nSpringfield\n"
"above\n\n---\n\nbelow" -> "above\n\n***\n\nbelow\n"
"- [x] book\n- [ ] pay" -> "•   book\n•   pay\n"'
cat >main.cjs <<'JS'
const slackify = require("slackify-markdown");

const convert = slackify.slackifyMarkdown ?? slackify;
for (const text of ["1 Main Street  \nSpringfield", "above\n\n---\n\nbelow", "- [x] book\n- [ ] pay"]) console.log(JSON.stringify(text) + " -> " + JSON.stringify(convert(text)));
JS
npm install --silent --no-audit --no-fund --ignore-scripts slackify-markdown@4.5.0 >/dev/null 2>&1
got=$(node main.cjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
