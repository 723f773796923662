#!/bin/sh
# npm @anthropic-ai/sdk 1.14.0 (needs Node): if an answer ends at its limit of tokens in the
# middle of a tool call, the message that the stream helper adds up has an input that looks
# complete. The value that was being written is not cut but left out with its key, and so
# are the last elements of lists. "Delete in this folder" without the folder is a valid
# call of a tool whose folder is optional; only stop_reason tells it from a real one.
# Seen: see want below: what arrived, and the input in the final message.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='{"pattern":"*.tmp","folder":"/home/ann/do -> {"pattern":"*.tmp"}
{"pattern":"*.tmp","max":12 -> {"pattern":"*.tmp"}
{"except":["a.txt","b.t -> {"except":["a.txt"]}
{"limits":{"size":"10 M -> {"limits":{}}'
cat >main.mjs <<'JS'
import Anthropic from "@anthropic-ai/sdk";
import { createServer } from "node:http";

let arrived;
const event = (type, rest) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const server = createServer((request, response) => {
  request.resume();
  response.setHeader("Content-Type", "text/event-stream");
  response.end(
    event("message_start", { message: { id: "1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } } }) +
      event("content_block_start", { index: 0, content_block: { type: "tool_use", id: "t", name: "delete", input: {} } }) +
      event("content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json: arrived } }) +
      event("content_block_stop", { index: 0 }) +
      event("message_delta", { delta: { stop_reason: "max_tokens" }, usage: { output_tokens: 9 } }) +
      event("message_stop", {}),
  );
}).listen(0, "127.0.0.1", async () => {
  const client = new Anthropic({ apiKey: "key", baseURL: `http://127.0.0.1:${server.address().port}` });
  for (arrived of ['{"pattern":"*.tmp","folder":"/home/ann/do', '{"pattern":"*.tmp","max":12', '{"except":["a.txt","b.t', '{"limits":{"size":"10 M']) {
    const message = await client.messages.stream({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] }).finalMessage();
    console.log(arrived + " -> " + JSON.stringify(message.content[0].input));
  }
  server.close();
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts @anthropic-ai/sdk@1.14.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
