#!/bin/sh
# npm shell-quote 1.12.0, string-argv 0.4.0 and shellwords 1.1.1, and github.com/google/shlex
# and github.com/mattn/go-shellwords v1.0.16 (needs Node and Go): none of these splitters of
# command lines knows the backslash at the end of a line, with which models write long
# commands. A shell drops it with the line break; here it becomes an argument of its own,
# empty or "\", or the next argument begins with a line break. All five split the rest of
# such a command right, so the program runs, with one argument that is wrong.
# Seen: see want below: the words of "cp a \", line break, "b".
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='shell-quote ["cp","a","","b"]
string-argv ["cp","a","\\","b"]
shellwords  ["cp","a","\\","b"]
shlex       ["cp" "a" "\nb"]
go-shellwords ["cp" "a" "\nb"]'
cat >main.mjs <<'JS'
import { parse } from "shell-quote";
import { parseArgsStringToArgv } from "string-argv";
import { split } from "shellwords";

const line = "cp a \\\nb";
console.log("shell-quote " + JSON.stringify(parse(line)));
console.log("string-argv " + JSON.stringify(parseArgsStringToArgv(line)));
console.log("shellwords  " + JSON.stringify(split(line)));
JS
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/google/shlex"
	"github.com/mattn/go-shellwords"
)

func main() {
	const line = "cp a \\\nb"
	words, err := shlex.Split(line)
	if err != nil {
		panic(err)
	}
	fmt.Printf("shlex       %q\n", words)
	if words, err = shellwords.Parse(line); err != nil {
		panic(err)
	}
	fmt.Printf("go-shellwords %q\n", words)
}
GO
npm install --silent --no-audit --no-fund --ignore-scripts shell-quote@1.12.0 string-argv@0.4.0 shellwords@1.1.1 >/dev/null 2>&1
go mod init example.com/words >/dev/null 2>&1
go get github.com/google/shlex@v0.0.0-20191202100458-e7afc7fbc510 github.com/mattn/go-shellwords@v1.0.16 >/dev/null 2>&1
got=$(node main.mjs && go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
