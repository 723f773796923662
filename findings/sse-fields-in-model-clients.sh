#!/bin/sh
# npm openai 6.49.0, @google/genai 2.32.0 and eventsource-parser 3.1.1 (needs Node): the same
# valid event stream is three things. An id before the data makes @google/genai drop the
# event: the answer is empty and no error is raised. A block that has a name but no data,
# which a client must not dispatch, makes openai raise "Unexpected end of JSON input" in
# the middle of an answer; @google/genai passes over it. eventsource-parser has both right.
# A proxy that numbers events or keeps connections alive with named ones breaks a client.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='plain: openai "ab", genai "ab", eventsource-parser 2 events
with ids: openai "ab", genai "", eventsource-parser 2 events
name without data: openai "a" and Unexpected end of JSON input, genai "ab", eventsource-parser 2 events'
cat >main.mjs <<'JS'
import { GoogleGenAI } from "@google/genai";
import { createParser } from "eventsource-parser";
import OpenAI from "openai";
import { createServer } from "node:http";

console.error = () => {}; // openai prints the chunk that it cannot parse
const data = (google, text) =>
  "data: " + JSON.stringify(google ? { candidates: [{ content: { role: "model", parts: [{ text }] } }] } : { choices: [{ index: 0, delta: { content: text } }] }) + "\n\n";
const streams = {
  plain: (google) => data(google, "a") + data(google, "b"),
  "with ids": (google) => "id: 1\n" + data(google, "a") + "id: 2\n" + data(google, "b"),
  "name without data": (google) => data(google, "a") + "event: keepalive\n\n" + data(google, "b"),
};
let stream;
async function read(chunks, text) {
  let all = "";
  try {
    for await (const chunk of await chunks()) all += text(chunk) ?? "";
  } catch (e) {
    return `${JSON.stringify(all)} and ${e.message}`;
  }
  return JSON.stringify(all);
}
const server = createServer((request, response) => {
  request.resume();
  response.setHeader("Content-Type", "text/event-stream");
  response.end(stream(request.url.includes("alt=sse")));
}).listen(0, "127.0.0.1", async () => {
  const baseUrl = `http://127.0.0.1:${server.address().port}`;
  const openai = new OpenAI({ apiKey: "key", baseURL: baseUrl });
  const google = new GoogleGenAI({ apiKey: "key", httpOptions: { baseUrl } });
  for (const name in streams) {
    stream = streams[name];
    const a = await read(() => openai.chat.completions.create({ model: "m", messages: [{ role: "user", content: "x" }], stream: true }), (c) => c.choices[0].delta.content);
    const b = await read(() => google.models.generateContentStream({ model: "m", contents: "x" }), (c) => c.text);
    let events = 0;
    createParser({ onEvent: () => events++ }).feed(stream(false));
    console.log(`${name}: openai ${a}, genai ${b}, eventsource-parser ${events} events`);
  }
  server.close();
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts openai@6.49.0 @google/genai@2.32.0 eventsource-parser@3.1.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
