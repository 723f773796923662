#!/bin/sh
# @plussub/srt-vtt-parser 2.0.5 (npm, needs Node): two things in the subtitles of a recording that
# programs write, and that it reads wrongly. A cue without text (a pause) takes the next cue in:
# its number and its times become text, and what was said is at the wrong time. A cue of WebVTT
# with a setting behind its times (align:start) has no end: to is null.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='srt: [1000,2500,"Hello"] [2500,4000,"\n3\n00:00:04,000 --> 00:00:05,000\nBye"]
vtt: [1000,null,"Hello"] [2500,4000,"Bye"]'
npm install --silent --no-fund --no-audit @plussub/srt-vtt-parser@2.0.5 >/dev/null 2>&1
cat >cues.cjs <<'JS'
const { parse } = require("@plussub/srt-vtt-parser");
const files = {
  srt: "1\n00:00:01,000 --> 00:00:02,500\nHello\n\n2\n00:00:02,500 --> 00:00:04,000\n\n3\n00:00:04,000 --> 00:00:05,000\nBye\n",
  vtt: "WEBVTT\n\n00:01.000 --> 00:02.500 align:start\nHello\n\n00:02.500 --> 00:04.000\nBye\n",
};
for (const [kind, file] of Object.entries(files)) {
  console.log(`${kind}: ${parse(file).entries.map((e) => JSON.stringify([e.from, e.to, e.text])).join(" ")}`);
}
JS
got=$(node cues.cjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
