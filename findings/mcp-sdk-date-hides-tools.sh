#!/bin/sh
# npm @modelcontextprotocol/sdk 1.32.2 with zod 4.6.7 (needs Node): a tool whose input has
# a z.date() is registered without complaint and works when it is called, but no JSON Schema
# can be made of it. That shows only when a client lists the tools: the whole list is an
# error, so one such tool hides all tools of the server.
# Seen: "list: MCP error -32603: Date cannot be represented in JSON Schema" and
# "call of the other tool: fine".
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='list: MCP error -32603: Date cannot be represented in JSON Schema
call of the other tool: fine'
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const server = new McpServer({ name: "server", version: "1" });
const answer = async () => ({ content: [{ type: "text", text: "fine" }] });
server.registerTool("remind", { inputSchema: { at: z.date().optional() } }, answer);
server.registerTool("other", { inputSchema: { text: z.string() } }, answer);
const client = new Client({ name: "client", version: "1" });
const [a, b] = InMemoryTransport.createLinkedPair();
await server.connect(a);
await client.connect(b);
console.log("list: " + (await client.listTools().then((r) => r.tools.length + " tools", (e) => e.message)));
console.log("call of the other tool: " + (await client.callTool({ name: "other", arguments: { text: "x" } })).content[0].text);
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 zod@4.6.7 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
