#!/bin/sh
# npm mailparser 3.14.2 and postal-mime 2.7.6 (needs Node): both undo the line breaks of
# format=flowed (RFC 3676), and both join two paragraphs if the first one's last line ends
# with a space: by the standard the empty line ends it, but they join the line after that.
# postal-mime also joins lines of different quoting, which the standard forbids: the mark
# ">" stays in the middle of the text, and an answer becomes a part of what it quotes.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='paragraphs
  mailparser  "Dear Ann, thank you."
  postal-mime "Dear Ann, thank you."
quotes
  mailparser  "> shall we \nyes \n> or not"
  postal-mime "> shall we yes > or not"'
cat >main.mjs <<'JS'
import { simpleParser } from "mailparser";
import PostalMime from "postal-mime";

for (const [name, lines] of [
  ["paragraphs", ["Dear Ann, ", "", "thank you."]],
  ["quotes", ["> shall we ", "yes ", "> or not"]],
]) {
  const mail = ["From: Bob <bob@example.com>", "Content-Type: text/plain; charset=utf-8; format=flowed", "", ...lines, ""].join("\r\n");
  console.log(name);
  console.log("  mailparser  " + JSON.stringify((await simpleParser(mail)).text.trimEnd()));
  console.log("  postal-mime " + JSON.stringify((await PostalMime.parse(mail)).text.trimEnd()));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts mailparser@3.14.2 postal-mime@2.7.6 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
