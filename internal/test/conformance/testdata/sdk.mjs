// Makes a request with a provider's own library and writes the parsed answer.
//
//   node sdk.mjs MODULES openai|anthropic URL < request.json
//
//   out  {"text":"…","thinking":"…","calls":[{"id","name","arguments"}],"stop":"…","input":1,"output":2}
//        {"status":429,"error":"…"}
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, kind, baseURL] = process.argv.slice(2);
const require = createRequire(modules + "/");
const request = JSON.parse(readFileSync(0, "utf8"));
const options = { apiKey: "k", baseURL, maxRetries: 0 };

async function openai() {
  const { OpenAI } = require("openai");
  const done = await new OpenAI(options).chat.completions.stream(request).finalChatCompletion();
  const { message, finish_reason } = done.choices[0];
  return {
    text: message.content ?? "",
    thinking: message.reasoning_content ?? "",
    calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: JSON.parse(c.function.arguments) })),
    stop: finish_reason,
    input: done.usage.prompt_tokens,
    output: done.usage.completion_tokens,
  };
}

async function anthropic() {
  const { Anthropic } = require("@anthropic-ai/sdk");
  const m = await new Anthropic(options).messages.stream(request).finalMessage();
  const of = (type) => m.content.filter((b) => b.type === type);
  return {
    text: of("text").map((b) => b.text).join(""),
    thinking: of("thinking").map((b) => b.thinking).join(""),
    calls: of("tool_use").map((b) => ({ id: b.id, name: b.name, arguments: b.input })),
    stop: m.stop_reason,
    input: m.usage.input_tokens,
    output: m.usage.output_tokens,
  };
}

let out;
try {
  out = await { openai, anthropic }[kind]();
} catch (e) {
  out = { status: e.status ?? 0, error: String(e.message) };
}
process.stdout.write(JSON.stringify(out) + "\n");
