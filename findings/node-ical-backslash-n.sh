#!/bin/sh
# npm node-ical 0.26.1 (needs Node): a text in which a backslash stands before an n does not
# survive a calendar file. The file has the backslash twice, as the format demands, but
# node-ical looks for \n first and makes two lines of "Copy C:\new". ical-generator
# 10.2.0 writes the file, and ical.js 2.2.1 reads it right. Paths of Windows, formulas and
# regular expressions in titles and notes arrive damaged.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='in the file: SUMMARY:Copy C:\\new
node-ical: "Copy C:\\\new"
ical.js: "Copy C:\\new"'
cat >main.mjs <<'JS'
import ical from "ical-generator";
import nodeIcal from "node-ical";
import ICAL from "ical.js";

const calendar = ical();
calendar.createEvent({ start: new Date("2027-01-04T09:00:00Z"), summary: "Copy C:\\new" });
const file = calendar.toString();
console.log("in the file: " + file.match(/SUMMARY:.*/)[0].trim());
const event = Object.values(nodeIcal.sync.parseICS(file)).find((v) => v.type === "VEVENT");
console.log("node-ical: " + JSON.stringify(event.summary));
const parsed = new ICAL.Component(ICAL.parse(file)).getFirstSubcomponent("vevent");
console.log("ical.js: " + JSON.stringify(parsed.getFirstPropertyValue("summary")));
JS
npm install --silent --no-audit --no-fund --ignore-scripts ical-generator@10.2.0 node-ical@0.26.1 ical.js@2.2.1 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
