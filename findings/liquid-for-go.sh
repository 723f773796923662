#!/bin/sh
# github.com/osteele/liquid v1.6.0 and npm liquidjs 10.30.1 (needs Go and Node): a template,
# as for prompts or mails, is another text in Go. Conditions are joined from the left, but
# Liquid joins them from the right, so that "a or b and c" is false where it should be true.
# What stands in {{ }} and has a line break in it is printed as it is, source and all, without
# an error, although a tag in {% %} may have one. 7.0 divided by 2 is 3, and a sum of money
# from a million on has an exponent.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"{% if true or false and false %}yes{% else %}no{% endif %}"
  npm "yes", Go "no"
"{% if false and false or true %}yes{% else %}no{% endif %}"
  npm "no", Go "yes"
"{{ '"'"'ann'"'"'\n  | upcase }}"
  npm "ANN", Go "{{ '"'"'ann'"'"'\n  | upcase }}"
"{{ 7.0 | divided_by: 2 }}"
  npm "3.5", Go "3"
"{{ 1234567.891 | round: 2 }}"
  npm "1234567.89", Go "1.23456789e+06"
"{{ '"'"'hELLO wORLD'"'"' | capitalize }}"
  npm "Hello world", Go "HELLO wORLD"'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/osteele/liquid"
)

func main() {
	out, err := liquid.NewEngine().ParseAndRenderString(os.Args[1], nil)
	if err != nil {
		panic(err)
	}
	fmt.Print(out)
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import { Liquid } from "liquidjs";

const engine = new Liquid();
for (const text of [
  "{% if true or false and false %}yes{% else %}no{% endif %}",
  "{% if false and false or true %}yes{% else %}no{% endif %}",
  "{{ 'ann'\n  | upcase }}",
  "{{ 7.0 | divided_by: 2 }}",
  "{{ 1234567.891 | round: 2 }}",
  "{{ 'hELLO wORLD' | capitalize }}",
]) {
  console.log(JSON.stringify(text));
  console.log(`  npm ${JSON.stringify(engine.parseAndRenderSync(text))}, Go ${JSON.stringify(execFileSync("./render", [text]).toString())}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts liquidjs@10.30.1 >/dev/null 2>&1
go mod init example.com/render >/dev/null 2>&1
go get github.com/osteele/liquid@v1.6.0 >/dev/null 2>&1
go build -o render main.go
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
