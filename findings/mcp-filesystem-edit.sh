#!/bin/sh
# npm @modelcontextprotocol/server-filesystem 2026.8.31 (needs Node): two surprises of its
# tool edit_file. A text to replace that is found although its indentation differs (which
# is a feature) is replaced by lines that do not keep their depth to one another, so the
# nesting of Python code is lost. And an edit of one line of a file with CRLF turns the line
# ends of the whole file into LF, while the diff that the tool returns shows the one line.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='a.py: "def f():\n    if a:\n    c()\n    d()\nreturn 2\n"
b.txt: "one\nTWO\nthree\n", shown as changed: -two +TWO'
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";

mkdirSync("files");
const files = realpathSync("files");
writeFileSync(files + "/a.py", "def f():\n    if a:\n        b()\n    return 1\n");
writeFileSync(files + "/b.txt", "one\r\ntwo\r\nthree\r\n");
const client = new Client({ name: "client", version: "1" });
await client.connect(new StdioClientTransport({ command: "node", args: ["node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", files], stderr: "ignore" }));
async function edit(name, oldText, newText) {
  const result = await client.callTool({ name: "edit_file", arguments: { path: `${files}/${name}`, edits: [{ oldText, newText }] } });
  const changed = result.content[0].text.split("\n").filter((line) => /^[-+][^-+]/.test(line));
  return [`${name}: ${JSON.stringify(readFileSync(`${files}/${name}`, "utf8"))}`, changed.join(" ")];
}
console.log((await edit("a.py", "if a:\n    b()\nreturn 1", "if a:\n    c()\n    d()\nreturn 2"))[0]);
console.log((await edit("b.txt", "two", "TWO")).join(", shown as changed: "));
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/server-filesystem@2026.8.31 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
