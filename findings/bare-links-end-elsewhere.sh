#!/bin/sh
# npm marked 18.2.1 and markdown-it 15.0.3, and github.com/yuin/goldmark v1.8.7 with its
# extension GFM (needs Node and Go): where a bare link ends in text that is not English is
# another place in each. marked takes the Chinese comma and the sentence after it for a part
# of the host name; goldmark ends the link at the first letter that is not ASCII, so that
# the address of the article about Köln leads to the one about K; markdown-it has both
# right. What a model wrote is a good link in one client and a wrong one in the next.
# Seen: see want below: where the link leads.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='看 https://example.com，谢谢
  marked      https://example.com，谢谢
  markdown-it https://example.com
  goldmark    https://example.com
https://de.wikipedia.org/wiki/Köln
  marked      https://de.wikipedia.org/wiki/Köln
  markdown-it https://de.wikipedia.org/wiki/Köln
  goldmark    https://de.wikipedia.org/wiki/K'
cat >main.go <<'GO'
package main

import (
	"os"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

func main() {
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(os.Args[1]), os.Stdout); err != nil {
		panic(err)
	}
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import MarkdownIt from "markdown-it";
import { marked } from "marked";

const link = (html) => decodeURI(html.match(/href="([^"]*)"/)[1]);
for (const text of ["看 https://example.com，谢谢", "https://de.wikipedia.org/wiki/Köln"]) {
  console.log(text);
  console.log("  marked      " + link(marked.parse(text)));
  console.log("  markdown-it " + link(new MarkdownIt({ linkify: true }).render(text)));
  console.log("  goldmark    " + link(execFileSync("./goldmark", [text]).toString()));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts marked@18.2.1 markdown-it@15.0.3 >/dev/null 2>&1
go mod init example.com/link >/dev/null 2>&1
go get github.com/yuin/goldmark@v1.8.7 >/dev/null 2>&1
go build -o goldmark main.go
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
