#!/bin/sh
# github.com/evanphx/json-patch/v5 v5.9.11 (needs Go): changes of JSON that mean something
# else than in the standards. A merge patch (RFC 7396) replaces a list as it is, but here the
# nulls of objects in it are removed. The operation test of RFC 6902 compares numbers by
# value, but 1 and 1.0 differ here; a null that is there fails the test in a list after it was
# added, while a key that is missing passes for null. npm fast-json-patch 3.1.1 and
# json-merge-patch 1.0.2 (needs Node) have each right. So a state that is kept in step by
# patches drifts apart.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='{} + {"list":[{"end":null}]}
  Go {"list":[{}]}, npm {"list":[{"end":null}]}
{"n":1} + [{"op":"test","path":"/n","value":1.0}]
  Go refused, npm {"n":1}
{"list":[]} + [{"op":"add","path":"/list/-","value":null},{"op":"test","path":"/list/0","value":null}]
  Go refused, npm {"list":[null]}
{} + [{"op":"test","path":"/end","value":null}]
  Go {}, npm refused'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

func main() {
	doc, change := []byte(os.Args[1]), []byte(os.Args[2])
	var out []byte
	var err error
	if change[0] == '{' {
		out, err = jsonpatch.MergePatch(doc, change)
	} else {
		patch, e := jsonpatch.DecodePatch(change)
		if e != nil {
			panic(e)
		}
		out, err = patch.Apply(doc)
	}
	if err != nil {
		out = []byte("refused")
	}
	fmt.Printf("%s", out)
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import jsonpatch from "fast-json-patch";
import mergePatch from "json-merge-patch";

const apply = (doc, change) => {
  if (!Array.isArray(change)) return JSON.stringify(mergePatch.apply(doc, change));
  try {
    return JSON.stringify(jsonpatch.applyPatch(doc, change).newDocument);
  } catch {
    return "refused";
  }
};
for (const [doc, change] of [
  ["{}", '{"list":[{"end":null}]}'],
  ['{"n":1}', '[{"op":"test","path":"/n","value":1.0}]'],
  ['{"list":[]}', '[{"op":"add","path":"/list/-","value":null},{"op":"test","path":"/list/0","value":null}]'],
  ["{}", '[{"op":"test","path":"/end","value":null}]'],
]) {
  console.log(`${doc} + ${change}`);
  console.log(`  Go ${execFileSync("./patch", [doc, change])}, npm ${apply(JSON.parse(doc), JSON.parse(change))}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts fast-json-patch@3.1.1 json-merge-patch@1.0.2 >/dev/null 2>&1
go mod init example.com/patch >/dev/null 2>&1
go get github.com/evanphx/json-patch/v5@v5.9.11 >/dev/null 2>&1
go build -o patch main.go
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
