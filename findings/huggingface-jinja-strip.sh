#!/bin/sh
# npm @huggingface/jinja 0.5.11 (needs Node): it runs the chat templates that come with
# models, which are written for Jinja in Python. strip, lstrip and rstrip ignore their
# argument and take all white space away: a template that drops the line breaks before an
# answer, with lstrip("\n"), here takes the indent of its first line too. A text equals a
# number of the same digits, two equal lists do not equal each other, and capitalize leaves
# "HELLO" as it is. The prompt differs from the one that the model was trained with, without
# an error.
# Seen: see want below; in Python each line has the value after "#".
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='("\n  x = 1\n".lstrip("\n"))|tojson -> "x = 1\n"  # "  x = 1\n"
"--note--".strip("-") -> --note--  # note
"end of turn.".rstrip(".") -> end of turn.  # end of turn
"yes" if "1" == 1 else "no" -> yes  # no
"yes" if ["a"] == ["a"] else "no" -> no  # yes
"HELLO"|capitalize -> HELLO  # Hello
-7 % 3 -> -1  # 2'
cat >main.mjs <<'JS'
import { Template } from "@huggingface/jinja";

for (const [code, python] of [
  ['("\\n  x = 1\\n".lstrip("\\n"))|tojson', '"  x = 1\\n"'],
  ['"--note--".strip("-")', "note"],
  ['"end of turn.".rstrip(".")', "end of turn"],
  ['"yes" if "1" == 1 else "no"', "no"],
  ['"yes" if ["a"] == ["a"] else "no"', "yes"],
  ['"HELLO"|capitalize', "Hello"],
  ['-7 % 3', "2"],
]) {
  console.log(`${code} -> ${new Template(`{{ ${code} }}`).render({})}  # ${python}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts @huggingface/jinja@0.5.11 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
