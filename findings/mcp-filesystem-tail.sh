#!/bin/sh
# npm @modelcontextprotocol/server-filesystem 2026.8.31 (needs Node): read_text_file with
# tail counts the nothing after the last line break as a line. Of a file of three lines,
# each with its line break, head 2 returns two lines, tail 2 only the last one, and tail 1
# nothing at all, without an error. A model that asks for the last line of a log is told
# that it is empty.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='head 2: "one\ntwo"
tail 2: "three\n"
tail 1: ""'
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";

mkdirSync("files");
const files = realpathSync("files");
writeFileSync(files + "/log", "one\ntwo\nthree\n");
const client = new Client({ name: "client", version: "1" });
await client.connect(new StdioClientTransport({ command: "node", args: ["node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", files], stderr: "ignore" }));
for (const part of [{ head: 2 }, { tail: 2 }, { tail: 1 }]) {
  const result = await client.callTool({ name: "read_text_file", arguments: { path: files + "/log", ...part } });
  console.log(`${Object.entries(part)[0].join(" ")}: ${JSON.stringify(result.content[0].text)}`);
}
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/server-filesystem@2026.8.31 >/dev/null 2>&1
got=$(node main.mjs)
printf '%s\n' "$got"
[ "$got" = "$want" ]
