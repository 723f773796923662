#!/bin/sh
# github.com/dhowden/tag v0.0.0-20240417053706-3d75831295e8 and npm music-metadata 11.16.1
# (needs Go and Node): who plays what, as the tags of a music file say it. Several artists in
# one field are divided by a zero byte in MP3 (ID3v2.4, 4.2); tag joins them, so that Ann and
# Bob are "AnnBob", and with UTF-16 there is a byte order mark between them. In FLAC each has a
# comment of its own; there only the last one is left, who is also the composer if none is
# named. A genre that is a number (4.2.3, 17 is rock) stays one and is joined to the next;
# track "3/12" is no track in FLAC; and if iTunes wrote its values first, the comment is the
# name of them. music-metadata has the artists and the track right.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='tag, two.mp3: artist "AnnBob", composer "", genre "17Live", track 3 of 12, comment "hello"
tag, utf16.mp3: artist "Ann\ufeffBob", composer "", genre "", track 0 of 0, comment ""
tag, itunes.mp3: artist "", composer "", genre "", track 0 of 0, comment "iTunNORM"
tag, two.flac: artist "Bob", composer "Bob", genre "Jazz", track 0 of 0, comment ""
music-metadata, two.mp3: artists Ann, Bob, track 3 of 12
music-metadata, two.flac: artists Ann, Bob, track 3 of 12'
cat >write.mjs <<'JS'
import { writeFileSync } from "fs";

const size = (n) => Buffer.from([(n >> 21) & 127, (n >> 14) & 127, (n >> 7) & 127, n & 127]);
const frame = (id, coding, text) => {
  const body = Buffer.concat([Buffer.from([coding]), Buffer.from(text, "latin1")]);
  return Buffer.concat([Buffer.from(id), size(body.length), Buffer.alloc(2), body]);
};
const mp3 = (...frames) => {
  const body = Buffer.concat(frames);
  return Buffer.concat([Buffer.from("ID3\x04\0\0", "latin1"), size(body.length), body, Buffer.alloc(256)]);
};
const le = (n) => Buffer.from([n & 255, n >> 8, 0, 0]);
const flac = (...comments) => {
  const body = Buffer.concat([le(1), Buffer.from("x"), le(comments.length), ...comments.flatMap((c) => [le(c.length), Buffer.from(c)])]);
  return Buffer.concat([Buffer.from("fLaC"), Buffer.from([0, 0, 0, 34]), Buffer.alloc(34), Buffer.from([0x84, 0, body.length >> 8, body.length & 255]), body]);
};
const utf16 = (s) => "\xff\xfe" + [...s].map((c) => c + "\0").join("");
writeFileSync("two.mp3", mp3(frame("TPE1", 3, "Ann\0Bob"), frame("TCON", 3, "17\0Live"), frame("TRCK", 3, "3/12"), frame("COMM", 3, "eng\0hello")));
writeFileSync("utf16.mp3", mp3(frame("TPE1", 1, utf16("Ann") + "\0\0" + utf16("Bob"))));
writeFileSync("itunes.mp3", mp3(frame("COMM", 3, "engiTunNORM\0 0000"), frame("COMM", 3, "eng\0hello")));
writeFileSync("two.flac", flac("ARTIST=Ann", "ARTIST=Bob", "GENRE=Rock", "GENRE=Jazz", "TRACKNUMBER=3/12"));
JS
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/dhowden/tag"
)

func main() {
	for _, name := range []string{"two.mp3", "utf16.mp3", "itunes.mp3", "two.flac"} {
		f, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		m, err := tag.ReadFrom(f)
		if err != nil {
			panic(err)
		}
		n, of := m.Track()
		fmt.Printf("tag, %s: artist %+q, composer %q, genre %q, track %d of %d, comment %q\n", name, m.Artist(), m.Composer(), m.Genre(), n, of, m.Comment())
	}
}
GO
cat >main.mjs <<'JS'
import { readFileSync } from "fs";
import { parseBuffer } from "music-metadata";

for (const [name, mimeType] of [["two.mp3", "audio/mpeg"], ["two.flac", "audio/flac"]]) {
  const { common } = await parseBuffer(readFileSync(name), { mimeType });
  console.log(`music-metadata, ${name}: artists ${common.artists.join(", ")}, track ${common.track.no} of ${common.track.of}`);
}
JS
go mod init example.com/tags >/dev/null 2>&1
go get github.com/dhowden/tag@v0.0.0-20240417053706-3d75831295e8 >/dev/null 2>&1
npm install --silent --no-audit --no-fund --ignore-scripts music-metadata@11.16.1 >/dev/null 2>&1
node write.mjs
got=$(go run . && node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
