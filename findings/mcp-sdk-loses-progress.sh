#!/bin/sh
# npm @modelcontextprotocol/sdk 1.32.2 (needs Node): progress that a server reports right
# before its result is lost if the client reads both at once, as it does with fast tools
# and busy clients. The handler of a notification is called a moment later, but the result
# is handled at once and ends the call, so that the progress belongs to nothing: onprogress
# is never called, not even with the last value. With a pause before the result it is.
# Seen: see want below. The server reports 1, 2 and 3 of 3 in each call.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='written at once: onprogress was called with []
with a pause: onprogress was called with [1,2,3]'
cat >server.mjs <<'JS'
import { createInterface } from "node:readline";

const line = (message) => JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n";
createInterface({ input: process.stdin }).on("line", (text) => {
  const { id, method, params } = JSON.parse(text);
  if (method === "initialize") {
    process.stdout.write(line({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "server", version: "1" } } }));
  } else if (method === "tools/call") {
    const progressToken = params._meta.progressToken;
    const reports = [1, 2, 3].map((progress) => line({ method: "notifications/progress", params: { progressToken, progress, total: 3 } })).join("");
    const result = line({ id, result: { content: [] } });
    if (params.name === "at once") {
      process.stdout.write(reports + result);
    } else {
      process.stdout.write(reports);
      setTimeout(() => process.stdout.write(result), 300);
    }
  }
});
JS
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "client", version: "1" });
await client.connect(new StdioClientTransport({ command: "node", args: ["server.mjs"] }));
async function call(name, when) {
  const seen = [];
  await client.callTool({ name }, undefined, { onprogress: (p) => seen.push(p.progress) });
  await new Promise((done) => setTimeout(done, 300));
  console.log(`${when}: onprogress was called with ${JSON.stringify(seen)}`);
}
await call("at once", "written at once");
await call("slowly", "with a pause");
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
