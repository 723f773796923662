#!/bin/sh
# npm @mozilla/readability 0.6.0 (needs Node; the page is parsed by linkedom 0.18.15): the
# comments of source code are taken for the comments of readers. What has the class comment
# is removed unless it is inside <code>, and generators such as Doxygen mark comments in
# code in that way, without <code>. The code that is left reads as if it had no
# warnings in it. In the same page, inside <code>, the comment stays.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='<pre> alone: "open(x); "
<pre><code>: "open(x); // never twice"'
cat >main.mjs <<'JS'
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";

const text = "<p>" + "A sentence of the page, with a comma, that is long enough to be content. ".repeat(6) + "</p>";
const code = 'open(x); <span class="comment">// never twice</span>';
for (const [name, block] of [["<pre> alone", `<pre>${code}</pre>`], ["<pre><code>", `<pre><code>${code}</code></pre>`]]) {
  const { document } = parseHTML(`<html><head><title>Guide</title></head><body><article>${text}${block}${text}</article></body></html>`);
  const page = parseHTML(new Readability(document).parse().content).document;
  console.log(`${name}: ${JSON.stringify(page.querySelector("pre").textContent)}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts @mozilla/readability@0.6.0 linkedom@0.18.15 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
