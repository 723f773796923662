#!/bin/sh
# npm exifr 7.1.3 and exif-parser 0.1.12 (needs Node): a photo that says when it was taken,
# with its offset from UTC (OffsetTimeOriginal), was taken at another time for both. exifr
# reads the time as one of the machine that reads it, exif-parser as UTC; neither uses the
# offset, which exifr even returns beside it. A height below the sea (GPSAltitudeRef 1) is
# above it for both. exifreader 4.46.0 has the depth right and leaves the time a text. So the
# photos of a journey are hours off, and by how much depends on the server.
# Seen: see want below; the photo is from 2026-06-21, 23:30 in Tokyo (14:30 UTC), 50 m deep.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='exifr in UTC: 2026-06-21T23:30:00.000Z, offset +09:00, 50 m
exif-parser: 2026-06-21T23:30:00.000Z, 50 m
exifreader: 2026:06:21 23:30:00 +09:00, -50 m
exifr in America/New_York: 2026-06-22T03:30:00.000Z, offset +09:00, 50 m'
cat >main.mjs <<'JS'
import exifParser from "exif-parser";
import ExifReader from "exifreader";
import exifr from "exifr";
import jpeg from "jpeg-js";

// A picture of one pixel, and the directories of its Exif data: the first, Exif and GPS.
const picture = jpeg.encode({ data: Buffer.alloc(4, 255), width: 1, height: 1 }, 50).data;
const directory = (...entries) => {
  const b = Buffer.alloc(2 + 12 * entries.length + 4);
  b.writeUInt16BE(entries.length, 0);
  entries.forEach(([tag, type, count, value], i) => {
    b.writeUInt16BE(tag, 2 + 12 * i);
    b.writeUInt16BE(type, 4 + 12 * i);
    b.writeUInt32BE(count, 6 + 12 * i);
    if (type === 1) b.writeUInt8(value, 10 + 12 * i);
    else b.writeUInt32BE(value, 10 + 12 * i);
  });
  return b;
};
const data = 8 + 30 + 30 + 30; // the header and three directories of two entries
const text = Buffer.from("2026:06:21 23:30:00\0+09:00\0\0");
const rational = Buffer.from([0, 0, 0, 50, 0, 0, 0, 1]);
const tiff = Buffer.concat([
  Buffer.from("MM\0*\0\0\0\b", "latin1"),
  directory([0x8769, 4, 1, 8 + 30], [0x8825, 4, 1, 8 + 60]),
  directory([0x9003, 2, 20, data], [0x9011, 2, 7, data + 20]),
  directory([5, 1, 1, 1], [6, 5, 1, data + text.length]),
  text, rational,
]);
const head = Buffer.from([0xff, 0xe1, 0, 2 + 6 + tiff.length]);
const photo = Buffer.concat([picture.subarray(0, 2), head, Buffer.from("Exif\0\0"), tiff, picture.subarray(2)]);

const a = await exifr.parse(photo, { gps: true, exif: true });
console.log(`exifr in ${process.env.TZ}: ${a.DateTimeOriginal.toISOString()}, offset ${a.OffsetTimeOriginal}, ${a.GPSAltitude} m`);
const { tags } = exifParser.create(photo).parse();
console.log(`exif-parser: ${new Date(tags.DateTimeOriginal * 1000).toISOString()}, ${tags.GPSAltitude} m`);
const b = ExifReader.load(photo, { expanded: true });
console.log(`exifreader: ${b.exif.DateTimeOriginal.description} ${b.exif.OffsetTimeOriginal.description}, ${b.gps.Altitude} m`);
JS
npm install --silent --no-audit --no-fund --ignore-scripts exifr@7.1.3 exif-parser@0.1.12 exifreader@4.46.0 jpeg-js@0.4.4 >/dev/null 2>&1
got=$(TZ=UTC node main.mjs; TZ=America/New_York node main.mjs | head -n 1)
echo "$got"
[ "$got" = "$want" ]
