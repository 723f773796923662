#!/bin/sh
# github.com/titanous/json5 v1.0.0 and npm json5 2.2.3 (needs Go and Node): the decoder for Go
# refuses much of what JSON5 adds. Escapes of bytes and of a vertical tab, keys with letters
# that are not ASCII, a no-break space and a byte order mark are errors. Comments and single
# quotes are read, so a configuration works until somebody writes one of these.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='{a:'"'"'x'"'"',/* b */} npm read, Go read
{a:"\x41"} npm read, Go invalid character '"'x'"' in string escape code
{a:"\v"} npm read, Go invalid character '"'v'"' in string escape code
{größe:1} npm read, Go invalid character '"'Ã'"' in key literal
{"a":<U+00A0>1} npm read, Go invalid character '"'Â'"' looking for beginning of value
<U+FEFF>{} npm read, Go invalid character '"'ï'"' looking for beginning of value'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/titanous/json5"
)

func main() {
	var v any
	if err := json5.Unmarshal([]byte(os.Args[1]), &v); err != nil {
		fmt.Print(err)
		return
	}
	fmt.Print("read")
}
GO
cat >main.mjs <<'JS'
import JSON5 from "json5";
import { execFileSync } from "node:child_process";

for (const text of ["{a:'x',/* b */}", '{a:"\\x41"}', '{a:"\\v"}', "{größe:1}", '{"a":\u00a01}', "\ufeff{}"]) {
  JSON5.parse(text); // throws if it is refused
  const shown = text.replace("\u00a0", "<U+00A0>").replace("\ufeff", "<U+FEFF>");
  console.log(`${shown} npm read, Go ${execFileSync("./decode", [text])}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts json5@2.2.3 >/dev/null 2>&1
go mod init example.com/decode >/dev/null 2>&1
go get github.com/titanous/json5@v1.0.0 >/dev/null 2>&1
go build -o decode main.go
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
