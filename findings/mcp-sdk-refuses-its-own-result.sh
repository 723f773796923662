#!/bin/sh
# npm @modelcontextprotocol/sdk 1.32.2 with zod 4.6.7 (needs Node): the two sides of one
# library disagree about a result with a field more than its output schema. The server
# checks the result with zod, for which unknown fields are fine, and sends it with the
# field. But the JSON Schema that it publishes for the same definition forbids further
# fields, so the client of the library throws, and the tool's answer is lost. It depends
# on whether the client listed the tools before.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='before the list: {"n":1,"more":2}
after the list: MCP error -32602: Structured content does not match the tool'"'"'s output schema: data must NOT have additional properties'
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const server = new McpServer({ name: "server", version: "1" });
server.registerTool("count", { outputSchema: { n: z.number() } }, async () => ({ content: [], structuredContent: { n: 1, more: 2 } }));
const client = new Client({ name: "client", version: "1" });
const [a, b] = InMemoryTransport.createLinkedPair();
await server.connect(a);
await client.connect(b);
const call = () => client.callTool({ name: "count" }).then((r) => JSON.stringify(r.structuredContent), (e) => e.message);
console.log("before the list: " + (await call()));
await client.listTools();
console.log("after the list: " + (await call()));
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 zod@4.6.7 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
