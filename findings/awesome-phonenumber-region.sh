#!/bin/sh
# npm awesome-phonenumber 7.8.0, google-libphonenumber 3.2.47 and libphonenumber-js 1.13.16
# (needs Node): a number that is written as it is dialled from the United States, Canada or
# Japan, with 011 or 010 in front, is one of that country for awesome-phonenumber: regionCode
# is "US" and countryCode 1, while the same result has the number as +49. Written with the 00
# of Europe or with 0011 of Australia, the region is right, and the two others have it right in
# each case. What a call costs, the time of day there and the language to speak are those of
# the wrong country, and nothing tells: the number itself is valid and right.
# Seen: see want below: region, country code and number, and the region of the two others.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='011 49 30 1234567 in US: US +1 +49301234567 | DE | DE
011 44 20 7946 0958 in CA: CA +1 +442079460958 | GB | GB
010 49 30 1234567 in JP: JP +81 +49301234567 | DE | DE
0011 49 30 1234567 in AU: DE +49 +49301234567 | DE | DE
0049 30 1234567 in GB: DE +49 +49301234567 | DE | DE
+49 30 1234567 in US: DE +49 +49301234567 | DE | DE'
cat >main.mjs <<'JS'
import { parsePhoneNumber as awesome } from "awesome-phonenumber";
import google from "google-libphonenumber";
import { parsePhoneNumber as small } from "libphonenumber-js/max";

const util = google.PhoneNumberUtil.getInstance();
for (const [text, region] of [["011 49 30 1234567", "US"], ["011 44 20 7946 0958", "CA"], ["010 49 30 1234567", "JP"], ["0011 49 30 1234567", "AU"], ["0049 30 1234567", "GB"], ["+49 30 1234567", "US"]]) {
  const a = awesome(text, { regionCode: region });
  console.log(`${text} in ${region}: ${a.regionCode} +${a.countryCode} ${a.number.e164} | ${util.getRegionCodeForNumber(util.parse(text, region))} | ${small(text, region).country}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts awesome-phonenumber@7.8.0 google-libphonenumber@3.2.47 libphonenumber-js@1.13.16 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
