#!/bin/sh
# npm gpxparser 3.0.8 and @tmcw/togeojson 7.1.3 with @xmldom/xmldom 0.9.12 (needs Node): what a
# recorded way (GPX 1.1) may have and is misread. Where the receiver was off the recording goes
# on in a new segment, because the points do not belong together. gpxparser counts the way
# between segments: two walks of 111 metres with a train between them are 132 km on foot. Its
# texts keep the escapes of XML. A point need not have a time: togeojson leaves the time out of
# its list, so that all after it belong to other points, although it keeps the place of a heart
# rate that is missing. How far and how fast somebody was is told wrongly.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='gpxparser: "Tea &amp; cake", 131909 m
togeojson, points: 50, 50.001, 50.002
togeojson, times: 10:00:00, 10:02:00
togeojson, heart: 101, null, 103'
cat >main.mjs <<'JS'
import gpxParser from "gpxparser";
import { gpx } from "@tmcw/togeojson";
import { DOMParser } from "@xmldom/xmldom";

const file = (inside) => `<?xml version="1.0"?><gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1" xmlns:g="http://www.garmin.com/xmlschemas/TrackPointExtension/v1"><trk><name>Tea &amp; cake</name>${inside}</trk></gpx>`;

const p = new gpxParser();
p.parse(file(`<trkseg><trkpt lat="50" lon="10"/><trkpt lat="50.001" lon="10"/></trkseg><trkseg><trkpt lat="51" lon="11"/><trkpt lat="51.001" lon="11"/></trkseg>`));
console.log(`gpxparser: "${p.tracks[0].name}", ${Math.round(p.tracks[0].distance.total)} m`);

const heart = (n) => `<extensions><g:TrackPointExtension><g:hr>${n}</g:hr></g:TrackPointExtension></extensions>`;
const [f] = gpx(new DOMParser().parseFromString(file(`<trkseg><trkpt lat="50" lon="10"><time>2026-01-01T10:00:00Z</time>${heart(101)}</trkpt><trkpt lat="50.001" lon="10"/><trkpt lat="50.002" lon="10"><time>2026-01-01T10:02:00Z</time>${heart(103)}</trkpt></trkseg>`), "text/xml")).features;
console.log("togeojson, points: " + f.geometry.coordinates.map((c) => c[1]).join(", "));
console.log("togeojson, times: " + f.properties.coordinateProperties.times.map((t) => t.slice(11, 19)).join(", "));
console.log("togeojson, heart: " + Object.entries(f.properties.coordinateProperties).filter(([k]) => k != "times").map(([, v]) => v.map(String).join(", ")).join());
JS
npm install --silent --no-audit --no-fund --ignore-scripts gpxparser@3.0.8 @tmcw/togeojson@7.1.3 @xmldom/xmldom@0.9.12 >/dev/null 2>&1
got=$(node main.mjs 2>/dev/null)
echo "$got"
[ "$got" = "$want" ]
