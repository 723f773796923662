#!/bin/sh
# npm turndown 7.2.5 and node-html-markdown 2.0.0, and
# github.com/JohannesKaufmann/html-to-markdown/v2 v2.5.2 (needs Node and Go): what they make
# of a page for a model to read says other things than the page. In all of them a raised
# number joins the one before it: 10 to the power of 6 is "106". Text in <pre> without <code>,
# where line breaks and spaces count, is no code for two of them, so a table or a poem is run
# together when it is shown. And node-html-markdown begins each list with 1, and fences code
# that has a fence in it with the same fence, so that it ends early.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='"<p>about 10<sup>6</sup> people</p>"
  turndown           "about 106 people"
  node-html-markdown "about 106 people"
  html-to-markdown   "about 106 people"
"<pre>a   1\nbc  2</pre>"
  turndown           "a   1\nbc  2"
  node-html-markdown "a   1\nbc  2"
  html-to-markdown   "```\na   1\nbc  2\n```"
"<ol start=\"3\"><li>salt</li></ol>"
  turndown           "3.  salt"
  node-html-markdown "1. salt"
  html-to-markdown   "3. salt"
"<pre><code>```\nx\n```</code></pre>"
  turndown           "````\n```\nx\n```\n````"
  node-html-markdown "```\n```\nx\n```\n```"
  html-to-markdown   "````\n```\nx\n```\n````"'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	htmltomarkdown "github.com/JohannesKaufmann/html-to-markdown/v2"
)

func main() {
	out, err := htmltomarkdown.ConvertString(os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Print(out)
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import { NodeHtmlMarkdown } from "node-html-markdown";
import TurndownService from "turndown";

for (const html of [
  "<p>about 10<sup>6</sup> people</p>",
  "<pre>a   1\nbc  2</pre>",
  '<ol start="3"><li>salt</li></ol>',
  "<pre><code>```\nx\n```</code></pre>",
]) {
  console.log(JSON.stringify(html));
  console.log("  turndown           " + JSON.stringify(new TurndownService({ codeBlockStyle: "fenced" }).turndown(html)));
  console.log("  node-html-markdown " + JSON.stringify(NodeHtmlMarkdown.translate(html)));
  console.log("  html-to-markdown   " + JSON.stringify(execFileSync("./convert", [html]).toString()));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts turndown@7.2.5 node-html-markdown@2.0.0 >/dev/null 2>&1
go mod init example.com/convert >/dev/null 2>&1
go get github.com/JohannesKaufmann/html-to-markdown/v2@v2.5.2 >/dev/null 2>&1
go build -o convert main.go
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
