#!/bin/sh
# npm gray-matter 4.0.3 (needs Node): a time of day in front matter is a number or a text
# depending on the time. "9:30", "10:30" and "24:00" are read in base 60, as 570, 630 and
# 1440; "09:30" and "0:30" are texts, because digits after a leading zero would have to be
# octal. Two lines of one list of times thus differ in type. yaml 2.9.1 has texts for all.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='gray-matter [570,"09:30",630,"0:30",1440]
yaml        ["9:30","09:30","10:30","0:30","24:00"]'
cat >main.mjs <<'JS'
import matter from "gray-matter";
import YAML from "yaml";

const text = "times: [9:30, 09:30, 10:30, 0:30, 24:00]\n";
console.log("gray-matter " + JSON.stringify(matter(`---\n${text}---\nHello\n`).data.times));
console.log("yaml        " + JSON.stringify(YAML.parse(text).times));
JS
npm install --silent --no-audit --no-fund --ignore-scripts gray-matter@4.0.3 yaml@2.9.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
