#!/bin/sh
# npm yaml 2.9.1 as the writer, and go.yaml.in/yaml/v3 v3.0.6, github.com/goccy/go-yaml
# v1.19.2 and npm js-yaml 4.3.2 as readers (needs Node and Go): yaml writes by YAML 1.2 and
# leaves the quotes off texts that are no numbers there. Others still know numbers of 1.1 and
# dates. The text "1_000" becomes 1000 and "0b101" becomes 5; a date is a time to two of
# three. All is valid, and no reader complains; a note, an id or a name has changed its type
# on the way.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='k: 1_000 -> yaml/v3 int 1000, goccy uint64 1000, js-yaml string
k: 12_34.5 -> yaml/v3 float64 1234.5, goccy float64 1234.5, js-yaml string
k: 0b101 -> yaml/v3 int 5, goccy uint64 5, js-yaml number
k: 2026-11-30 -> yaml/v3 time.Time 2026-11-30 00:00:00 +0000 UTC, goccy string 2026-11-30, js-yaml Date'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"os"

	goyaml "github.com/goccy/go-yaml"
	"go.yaml.in/yaml/v3"
)

func main() {
	data, _ := io.ReadAll(os.Stdin)
	var a, b map[string]any
	if err := goyaml.Unmarshal(data, &a); err != nil {
		panic(err)
	}
	if err := yaml.Unmarshal(data, &b); err != nil {
		panic(err)
	}
	fmt.Printf("yaml/v3 %T %v, goccy %T %v", b["k"], b["k"], a["k"], a["k"])
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import yaml from "js-yaml";
import { stringify } from "yaml";

for (const k of ["1_000", "12_34.5", "0b101", "2026-11-30"]) {
  const text = stringify({ k });
  const read = yaml.load(text).k;
  console.log(`${text.trim()} -> ${execFileSync("./read", { input: text })}, js-yaml ${read instanceof Date ? "Date" : typeof read}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts yaml@2.9.1 js-yaml@4.3.2 >/dev/null 2>&1
go mod init example.com/read >/dev/null 2>&1
go get go.yaml.in/yaml/v3@v3.0.6 github.com/goccy/go-yaml@v1.19.2 >/dev/null 2>&1
go build -o read main.go
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
