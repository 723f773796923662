#!/bin/sh
# npm abcjs 6.7.2 (needs Node): a tune in ABC, the notation in which models write music, is
# played with other notes than the standard (abc 2.1) says. A sharp is for the note in all
# octaves up to the end of the bar (11.3, unless the tune says otherwise); here it is for its
# own octave, even if the tune asks for all with propagate-accidentals. What is between |:: and
# ::| is played three times (4.8), here twice; and the order of parts in the head (3.1.9),
# P:ABA, is passed over, as is "from the start to the end mark" (D.C.alfine). The tune is
# shorter, or has wrong notes, and what is drawn looks right.
# Seen: see want below: the notes that are played; F is 65, F sharp 66, an octave is 12.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='^F f F |: 66 77 66
I:propagate-accidentals pitch / ^F f F |: 66 77 66
|: C :| D |: 60 60 62
|:: C ::| D |: 60 60 62
P:ABA / P:A / C | / P:B / D |: 60 62
C !fine! | D !D.C.alfine! |: 60 62'
cat >main.mjs <<'JS'
import abcjs from "abcjs";

for (const [head, body] of [[[], ["^F f F |"]], [["I:propagate-accidentals pitch"], ["^F f F |"]], [[], ["|: C :| D |"]], [[], ["|:: C ::| D |"]], [["P:ABA"], ["P:A", "C |", "P:B", "D |"]], [[], ["C !fine! | D !D.C.alfine! |"]]]) {
  const text = ["X:1", "T:Tune", "L:1/4", ...head, "K:C", ...body, ""].join("\n");
  const [track] = abcjs.parseOnly(text)[0].setUpAudio().tracks;
  console.log(`${[...head, ...body].join(" / ")}: ${track.filter((e) => e.cmd == "note").map((e) => e.pitch).join(" ")}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts abcjs@6.7.2 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
