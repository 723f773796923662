#!/bin/sh
# go.yaml.in/yaml/v3 v3.0.6 (needs Go): it cannot read some texts of several lines that it
# wrote itself. If the first line begins with a tab, as in a Makefile or in Go code, the tab
# is taken for indentation; if it begins with a space and the text is in a list, the indent
# is announced as 4, but is 2. Both are errors that concern the file as a whole, so that a
# program that saves such a note or script cannot start with its own file. npm yaml 2.9.1
# (needs Node) reads the first file, since it is valid, and not the second one.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"\tgo build\n\tgo test\n" written as "- |\n  \tgo build\n  \tgo test\n"
  yaml/v3 "yaml: line 2: found a tab character where an indentation space is expected"
  npm     "\tgo build\n\tgo test\n"
" indented\nnot\n" written as "- |4\n   indented\n  not\n"
  yaml/v3 "yaml: line 1: did not find expected '"'"'-'"'"' indicator"
  npm     MISSING_CHAR
"all:\n\tgo build\n" written as "- |\n  all:\n  \tgo build\n"
  yaml/v3 "all:\n\tgo build\n"
  npm     "all:\n\tgo build\n"'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os/exec"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	for _, text := range []string{"\tgo build\n\tgo test\n", " indented\nnot\n", "all:\n\tgo build\n"} {
		written, err := yaml.Marshal([]string{text})
		if err != nil {
			panic(err)
		}
		var v3 []string
		if err := yaml.Unmarshal(written, &v3); err != nil {
			v3 = []string{err.Error()}
		}
		cmd := exec.Command("node", "read.mjs")
		cmd.Stdin = strings.NewReader(string(written))
		npm, err := cmd.Output()
		if err != nil {
			panic(err)
		}
		fmt.Printf("%q written as %q\n  yaml/v3 %q\n  npm     %s\n", text, written, v3[0], npm)
	}
}
GO
cat >read.mjs <<'JS'
import { readFileSync } from "node:fs";
import { parse } from "yaml";

try {
  process.stdout.write(JSON.stringify(parse(readFileSync(0, "utf8"))[0]));
} catch (error) {
  process.stdout.write(error.code);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts yaml@2.9.1 >/dev/null 2>&1
go mod init example.com/text >/dev/null 2>&1
go get go.yaml.in/yaml/v3@v3.0.6 >/dev/null 2>&1
got=$(go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
