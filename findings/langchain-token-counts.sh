#!/bin/sh
# npm @langchain/google-genai 2.3.2, @langchain/anthropic 1.5.11 and @langchain/core 1.4.0
# (needs Node): what a call has cost, as usage_metadata says it, the same field for all
# services. The types say that output_tokens is the sum of all kinds of output and total_tokens
# the sum of input and output. For Gemini the thinking, which is billed as output, is in no
# number but the total: 10 + 4 is 1014. For Claude a stream counts more than the same answer in
# one piece, because the count at its start is added to the one at its end, which holds it
# already. A limit on output, or a price, that is computed from these numbers leaves out the
# thinking, most of what is written.
# Seen: see want below: input + output = total. Gemini sends 10, 4 and 1000 of thinking, Claude
# 100 and 15.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='gemini, whole: 10 + 4 = 1014
gemini, stream: 10 + 4 = 1014
claude, whole: 100 + 15 = 115
claude, stream: 100 + 22 = 122'
cat >main.mjs <<'JS'
import http from "http";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";

const gemini = { candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP", index: 0 }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 4, thoughtsTokenCount: 1000, totalTokenCount: 1014 } };
const claude = { id: "m", type: "message", role: "assistant", model: "claude", content: [{ type: "text", text: "Hello" }], stop_reason: "end_turn", stop_sequence: null, usage: { input_tokens: 100, output_tokens: 15 } };
const events = [
  { type: "message_start", message: { ...claude, content: [], stop_reason: null, usage: { input_tokens: 100, output_tokens: 7 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 15 } },
  { type: "message_stop" },
];
const server = http.createServer((request, response) => {
  let body = "";
  request.on("data", (d) => (body += d));
  request.on("end", () => {
    const stream = request.url.includes("streamGenerateContent") || JSON.parse(body).stream;
    response.setHeader("content-type", stream ? "text/event-stream" : "application/json");
    const whole = request.url.includes("enerateContent") ? gemini : claude;
    if (!stream) response.end(JSON.stringify(whole));
    else if (whole == gemini) response.end(`data: ${JSON.stringify(gemini)}\r\n\r\n`);
    else response.end(events.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(""));
  });
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = "http://127.0.0.1:" + server.address().port;
for (const [name, model] of [
  ["gemini", new ChatGoogleGenerativeAI({ apiKey: "x", baseUrl: url, model: "gemini-2.5-flash" })],
  ["claude", new ChatAnthropic({ apiKey: "x", anthropicApiUrl: url, model: "claude-sonnet-4-5" })],
]) {
  const show = (how, u) => console.log(`${name}, ${how}: ${u.input_tokens} + ${u.output_tokens} = ${u.total_tokens}`);
  show("whole", (await model.invoke("hi")).usage_metadata);
  let all;
  for await (const piece of await model.stream("hi")) all = all ? all.concat(piece) : piece;
  show("stream", all.usage_metadata);
}
server.close();
process.exit(0);
JS
npm install --silent --no-audit --no-fund --ignore-scripts @langchain/google-genai@2.3.2 @langchain/anthropic@1.5.11 @langchain/core@1.4.0 >/dev/null 2>&1
got=$(node main.mjs 2>/dev/null)
echo "$got"
[ "$got" = "$want" ]
