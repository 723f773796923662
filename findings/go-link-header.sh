#!/bin/sh
# github.com/tomnomnom/linkheader v0.0.0-20250811210735-e5fe3b51442e and
# github.com/peterhellberg/link v1.2.0 (needs Go): the header Link, by which an API tells the
# address of its next page, is split at commas and semicolons without regard to the brackets
# and quotation marks around them. Of an address with a comma, as in a list of ids, the first
# library finds no link at all, so that a program believes to have the last page; the second
# one takes the comma out and asks for other ids. npm http-link-header 1.1.4 (needs Node) has
# all of them right.
# Seen: see want below: the address of the next page.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='<https://api.example.com/items?page=2>; rel="next"
  npm https://api.example.com/items?page=2
  Go  linkheader https://api.example.com/items?page=2, link https://api.example.com/items?page=2
<https://api.example.com/items?ids=1,2&page=2>; rel="next"
  npm https://api.example.com/items?ids=1,2&page=2
  Go  linkheader, link https://api.example.com/items?ids=12&page=2
<https://api.example.com/items;v=2?page=2>; rel="next"
  npm https://api.example.com/items;v=2?page=2
  Go  linkheader, link https://api.example.com/items;v=2?page=2
<https://api.example.com/items?page=2>; title="a; b"; rel="next"
  npm https://api.example.com/items?page=2
  Go  linkheader https://api.example.com/items?page=2, link https://api.example.com/items?page=2'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/peterhellberg/link"
	"github.com/tomnomnom/linkheader"
)

func main() {
	fmt.Print("linkheader")
	for _, l := range linkheader.Parse(os.Args[1]).FilterByRel("next") {
		fmt.Print(" ", l.URL)
	}
	fmt.Print(", link")
	if l := link.Parse(os.Args[1])["next"]; l != nil {
		fmt.Print(" ", l.URI)
	}
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import LinkHeader from "http-link-header";

for (const text of [
  '<https://api.example.com/items?page=2>; rel="next"',
  '<https://api.example.com/items?ids=1,2&page=2>; rel="next"',
  '<https://api.example.com/items;v=2?page=2>; rel="next"',
  '<https://api.example.com/items?page=2>; title="a; b"; rel="next"',
]) {
  console.log(text);
  console.log("  npm " + LinkHeader.parse(text).rel("next").map((l) => l.uri).join(" "));
  console.log("  Go  " + execFileSync("./link", [text]));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts http-link-header@1.1.4 >/dev/null 2>&1
go mod init example.com/link >/dev/null 2>&1
go get github.com/tomnomnom/linkheader@v0.0.0-20250811210735-e5fe3b51442e github.com/peterhellberg/link@v1.2.0 >/dev/null 2>&1
go build -o link main.go
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
