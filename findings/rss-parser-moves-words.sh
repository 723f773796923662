#!/bin/sh
# npm rss-parser 3.13.0 (needs Node): the text of an Atom feed whose articles are XHTML, one
# of the three forms of the format, comes out in another order. What is marked up is moved
# behind the plain text of its paragraph: "Do <b>not</b> open it." is "Do open it.not". A
# title in this form is an object instead of a text, and the address of an article stays
# relative although xml:base says to what. github.com/mmcdole/gofeed v1.4.2 (needs Go) has all
# three right. A summary of the news is made of sentences that nobody wrote.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='rss-parser
  object
  1.html
  Do  open it.not
gofeed
  A <em>warning</em>
  https://example.com/news/1.html
  <p>Do <b>not</b> open it.</p>'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/mmcdole/gofeed"
)

func main() {
	feed, err := gofeed.NewParser().Parse(os.Stdin)
	if err != nil {
		panic(err)
	}
	item := feed.Items[0]
	fmt.Printf("gofeed\n  %s\n  %s\n  %s\n", item.Title, item.Link, item.Content)
}
GO
cat >main.mjs <<'JS'
import { execFileSync } from "node:child_process";
import Parser from "rss-parser";

const div = (text) => `<div xmlns="http://www.w3.org/1999/xhtml">${text}</div>`;
const feed = `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.com/news/">
<title>News</title><id>urn:example:news</id><updated>2026-11-30T10:00:00Z</updated><author><name>Ann</name></author>
<entry><id>urn:example:1</id><updated>2026-11-30T10:00:00Z</updated><link href="1.html"/>
<title type="xhtml">${div("A <em>warning</em>")}</title>
<content type="xhtml">${div("<p>Do <b>not</b> open it.</p>")}</content></entry></feed>`;
const [item] = (await new Parser().parseString(feed)).items;
console.log(`rss-parser\n  ${typeof item.title}\n  ${item.link}\n  ${item.contentSnippet}`);
process.stdout.write(execFileSync("./feed", { input: feed }));
JS
npm install --silent --no-audit --no-fund --ignore-scripts rss-parser@3.13.0 >/dev/null 2>&1
go mod init example.com/feed >/dev/null 2>&1
go get github.com/mmcdole/gofeed@v1.4.2 >/dev/null 2>&1
go build -o feed main.go
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
