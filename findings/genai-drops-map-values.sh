#!/bin/sh
# npm @google/genai 2.32.0 (needs Node): the schema of a function is changed on its way. Of a
# map, an object whose values have a type (additionalProperties), only "OBJECT" is sent, so
# that the model sees an object without any properties; nothing says so. Other keywords,
# such as const, pass unchanged. In parametersJsonSchema the same schema is sent as it is.
# Seen: see want below: what the client sends.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='parameters: {"type":"OBJECT","properties":{"labels":{"type":"OBJECT"},"kind":{"type":"STRING","const":"note"}}}
parametersJsonSchema: {"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}},"kind":{"type":"string","const":"note"}}}'
cat >main.mjs <<'JS'
import { GoogleGenAI } from "@google/genai";
import { createServer } from "node:http";

let sent;
const server = createServer(async (request, response) => {
  sent = "";
  for await (const part of request) sent += part;
  response.setHeader("Content-Type", "application/json");
  response.end('{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]}}]}');
}).listen(0, "127.0.0.1", async () => {
  const client = new GoogleGenAI({ apiKey: "key", httpOptions: { baseUrl: `http://127.0.0.1:${server.address().port}` } });
  for (const field of ["parameters", "parametersJsonSchema"]) {
    const schema = { type: "object", properties: { labels: { type: "object", additionalProperties: { type: "string" } }, kind: { type: "string", const: "note" } } };
    await client.models.generateContent({ model: "m", contents: "x", config: { tools: [{ functionDeclarations: [{ name: "store", [field]: schema }] }] } });
    console.log(`${field}: ${JSON.stringify(JSON.parse(sent).tools[0].functionDeclarations[0][field])}`);
  }
  server.close();
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts @google/genai@2.32.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
