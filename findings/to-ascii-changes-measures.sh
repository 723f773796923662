#!/bin/sh
# npm transliteration 2.6.1 and any-ascii 0.3.3, github.com/mozillazg/go-unidecode v0.2.0 and
# github.com/gosimple/unidecode v1.0.1 (needs Node and Go): texts for SMS, file names and
# simple displays are put into ASCII, and amounts change their meaning on the way. A microgram
# with the Greek letter, to which Unicode's compatibility form (NFKC) turns the sign for micro,
# is a milligram for all of them, a dose a thousand times as large. One and a half is eleven
# halves for three. Minus five degrees, with the minus sign (U+2212), is plus five in one; "at
# most" and "at least" are the same in two, and "is not 5" is "= 5" for any-ascii. Ten squared
# is 102 for all, and pounds are PS for three.
# Seen: see want below: the four in the order above.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='50 μg: "50 mg" "50 mg" "50 mg" "50 mg"
50 µg: "50 ug" "50 ug" "50 ug" "50 ug"
1½ kg: "11/2 kg" "11/2 kg" "1 1/2  kg" "11/2 kg"
−5 °C: "5 degC" "-5 degC" "-5 degC" "[?]5 degC"
≤ 5 mg: " 5 mg" "<= 5 mg" "<= 5 mg" "[?] 5 mg"
≥ 5 mg: " 5 mg" ">= 5 mg" ">= 5 mg" "[?] 5 mg"
≠ 5: " 5" "= 5" " 5" "[?] 5"
10² m: "102 m" "102 m" "102 m" "102 m"
£5: "PS5" "GBP5" "PS5" "PS5"'
cat >texts.json <<'JSON'
["50 μg", "50 µg", "1½ kg", "−5 °C", "≤ 5 mg", "≥ 5 mg", "≠ 5", "10² m", "£5"]
JSON
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	gosimple "github.com/gosimple/unidecode"
	mozillazg "github.com/mozillazg/go-unidecode"
)

func main() {
	var texts []string
	b, _ := os.ReadFile("texts.json")
	if err := json.Unmarshal(b, &texts); err != nil {
		panic(err)
	}
	out := [][2]string{}
	for _, t := range texts {
		out = append(out, [2]string{mozillazg.Unidecode(t), gosimple.Unidecode(t)})
	}
	b, _ = json.Marshal(out)
	fmt.Println(string(b))
}
GO
cat >main.mjs <<'JS'
import { readFileSync } from "fs";
import { transliterate } from "transliteration";
import anyAscii from "any-ascii";

const go = JSON.parse(readFileSync("go.json", "utf8"));
JSON.parse(readFileSync("texts.json", "utf8")).forEach((t, i) => {
  console.log(`${t}: ${[transliterate(t), anyAscii(t), ...go[i]].map((s) => `"${s}"`).join(" ")}`);
});
JS
go mod init example.com/ascii >/dev/null 2>&1
go get github.com/mozillazg/go-unidecode@v0.2.0 github.com/gosimple/unidecode@v1.0.1 >/dev/null 2>&1
npm install --silent --no-audit --no-fund --ignore-scripts transliteration@2.6.1 any-ascii@0.3.3 >/dev/null 2>&1
go run . >go.json
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
