#!/bin/sh
# npm openai 6.49.0 (needs Node): the helper that adds up a stream (chat.completions.stream)
# keeps fields that it does not know, but only their last piece. Thinking that a compatible
# service sends as reasoning_content in pieces, "First, " and "add." and "Then stop.", is
# "Then stop." in the message at the end, while the content is whole. Services that want
# the thinking of a tool call back get a fragment, and nothing says so.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='content: "It is four."
reasoning_content: "Then stop."'
cat >main.mjs <<'JS'
import OpenAI from "openai";
import { createServer } from "node:http";

const deltas = [{ role: "assistant", reasoning_content: "First, " }, { reasoning_content: "add. " }, { reasoning_content: "Then stop." }, { content: "It is " }, { content: "four." }];
const chunk = (delta, finish_reason = null) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const server = createServer((request, response) => {
  response.setHeader("Content-Type", "text/event-stream");
  response.end(deltas.map((d) => chunk(d)).join("") + chunk({}, "stop") + "data: [DONE]\n\n");
}).listen(0, "127.0.0.1", async () => {
  const client = new OpenAI({ apiKey: "key", baseURL: `http://127.0.0.1:${server.address().port}/v1` });
  const done = await client.chat.completions.stream({ model: "m", messages: [{ role: "user", content: "2+2" }] }).finalChatCompletion();
  const message = done.choices[0].message;
  console.log("content: " + JSON.stringify(message.content));
  console.log("reasoning_content: " + JSON.stringify(message.reasoning_content));
  server.close();
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts openai@6.49.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
