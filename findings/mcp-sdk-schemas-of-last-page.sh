#!/bin/sh
# npm @modelcontextprotocol/sdk 1.32.2 (needs Node): the client checks what a tool returns
# against the tool's output schema, but only for the tools of the page that it listed last.
# Each tools/list replaces what it knew of schemas, so with a server that lists its tools
# in two pages, those of the first page are unchecked as soon as the second one was read,
# and before any list all are. The same wrong result is an error or is accepted, depending
# on which request came before.
# Seen: see want below. The result has a text where the schema demands a number.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='not listed yet: one accepted, two accepted
first page: one refused, two accepted
second page: one accepted, two refused'
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const tool = (name) => ({ name, inputSchema: { type: "object" }, outputSchema });
const server = new Server({ name: "server", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, async (r) => (r.params?.cursor ? { tools: [tool("two")] } : { tools: [tool("one")], nextCursor: "2" }));
server.setRequestHandler(CallToolRequestSchema, async () => ({ content: [], structuredContent: { n: "many" } }));
const client = new Client({ name: "client", version: "1" });
const [a, b] = InMemoryTransport.createLinkedPair();
await server.connect(a);
await client.connect(b);

const call = (name) => client.callTool({ name }).then(() => `${name} accepted`, () => `${name} refused`);
const show = async (when) => console.log(`${when}: ${await call("one")}, ${await call("two")}`);
await show("not listed yet");
const page = await client.listTools();
await show("first page");
await client.listTools({ cursor: page.nextCursor });
await show("second page");
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
