#!/bin/sh
# npm tsdav 2.3.4 (needs Node): what a calendar server sends as text is a number or a boolean
# if it looks like one. A calendar with the name "2026" has the number 2026 for its name,
# "1e3" 1000, "true" true, and one without a name an object without keys; the mark that tells
# whether it changed (getctag) is a number for "17" and a text for "007". The types say that
# a name is a text or a map, a mark a text. A program that looks for the calendar "2026", or
# puts names into small letters, does not find it or fails.
# Seen: see want below: the name and the mark that are sent, and what arrives.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='["Work","a1"] -> ["Work","a1"]
["2026","17"] -> [2026,17]
["1e3","007"] -> [1000,"007"]
["true","a2"] -> [true,"a2"]
["","a3"] -> [{},"a3"]'
cat >main.mjs <<'JS'
import http from "node:http";
import { fetchCalendars } from "tsdav";

const sent = [["Work", "a1"], ["2026", "17"], ["1e3", "007"], ["true", "a2"], ["", "a3"]];
const responses = sent.map(([name, mark], i) => `<d:response><d:href>/cal/${i}/</d:href><d:propstat><d:prop>
  <d:displayname>${name}</d:displayname><cs:getctag>${mark}</cs:getctag>
  <d:resourcetype><d:collection/><c:calendar/></d:resourcetype>
  <c:supported-calendar-component-set><c:comp name="VEVENT"/></c:supported-calendar-component-set>
</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>`);
const server = http.createServer((request, response) => {
  response.writeHead(207, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"
    xmlns:cs="http://calendarserver.org/ns/">${responses.join("")}</d:multistatus>`);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${server.address().port}`;
const calendars = await fetchCalendars({ account: { serverUrl: url, rootUrl: url + "/", homeUrl: url + "/cal/", accountType: "caldav" } });
calendars.forEach((c, i) => console.log(`${JSON.stringify(sent[i])} -> ${JSON.stringify([c.displayName, c.ctag])}`));
server.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts tsdav@2.3.4 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
