#!/bin/sh
# github.com/emersion/go-vcard v0.0.0-20260618161152-d854b7e0e2d3 (needs Go): a card that
# is read and written again is another one. The comma between two nicknames or categories
# becomes a part of one name, a name with a semicolon in it ("Ann\;Marie") falls into two
# parts, and a label with a comma in quotation marks becomes two labels. A program that
# changes a phone number damages the fields that it did not touch. npm ical.js 2.2.1 (needs
# Node) writes all of them as they were.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='N:Smith;Ann\;Marie;;;
  go-vcard N:Smith;Ann\\;Marie;;;
  ical.js  N:Smith;Ann\;Marie;;;
NICKNAME:Annie,Mimi
  go-vcard NICKNAME:Annie\,Mimi
  ical.js  NICKNAME:Annie,Mimi
CATEGORIES:family,choir
  go-vcard CATEGORIES:family\,choir
  ical.js  CATEGORIES:family,choir
ADR;LABEL="1 Main St, York":;;1 Main St;York;;;
  go-vcard ADR;LABEL=1 Main St;LABEL= York:;;1 Main St;York;;;
  ical.js  ADR;LABEL="1 Main St, York":;;1 Main St;York;;;'
cat >main.go <<'GO'
package main

import (
	"os"

	"github.com/emersion/go-vcard"
)

func main() {
	card, err := vcard.NewDecoder(os.Stdin).Decode()
	if err != nil {
		panic(err)
	}
	if err := vcard.NewEncoder(os.Stdout).Encode(card); err != nil {
		panic(err)
	}
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import ICAL from "ical.js";

const lines = ["N:Smith;Ann\\;Marie;;;", "NICKNAME:Annie,Mimi", "CATEGORIES:family,choir", 'ADR;LABEL="1 Main St, York":;;1 Main St;York;;;'];
const text = ["BEGIN:VCARD", "VERSION:4.0", "FN:Ann Smith", ...lines, "END:VCARD", ""].join("\r\n");
const written = [execFileSync("./card", { input: text }).toString(), ICAL.stringify(ICAL.parse(text))];
for (const line of lines) {
  const name = line.match(/^\w+/)[0];
  const [go, npm] = written.map((t) => t.split("\r\n").find((l) => l.startsWith(name)));
  console.log(`${line}\n  go-vcard ${go}\n  ical.js  ${npm}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts ical.js@2.2.1 >/dev/null 2>&1
go mod init example.com/card >/dev/null 2>&1
go get github.com/emersion/go-vcard@v0.0.0-20260618161152-d854b7e0e2d3 >/dev/null 2>&1
go build -o card main.go
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
