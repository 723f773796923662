// Makes a request with a provider's own library and writes the parsed answer.
//
//   node sdk.mjs MODULES openai|responses|gemini|ollama|anthropic URL < request.json
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

async function responses() {
  const { OpenAI } = require("openai");
  const done = await new OpenAI(options).responses.stream(request).finalResponse();
  const of = (type) => done.output.filter((i) => i.type === type);
  return {
    text: done.output_text,
    thinking: of("reasoning").flatMap((i) => i.summary.map((p) => p.text)).join(""),
    calls: of("function_call").map((c) => ({ id: c.call_id, name: c.name, arguments: JSON.parse(c.arguments) })),
    stop: done.status,
    input: done.usage.input_tokens,
    output: done.usage.output_tokens,
  };
}

async function gemini() {
  const { GoogleGenAI } = require("@google/genai");
  const out = { text: "", thinking: "", calls: [], stop: "", input: 0, output: 0 };
  for await (const chunk of await new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: baseURL } }).models.generateContentStream(request)) {
    const [candidate] = chunk.candidates ?? [];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.functionCall) out.calls.push({ id: part.functionCall.id, name: part.functionCall.name, arguments: part.functionCall.args });
      else if (part.thought) out.thinking += part.text;
      else out.text += part.text ?? "";
    }
    out.stop = candidate?.finishReason ?? out.stop;
    out.input = chunk.usageMetadata?.promptTokenCount ?? out.input;
    out.output = chunk.usageMetadata?.candidatesTokenCount ?? out.output;
  }
  return out;
}

async function ollama() {
  const { Ollama } = require("ollama");
  const out = { text: "", thinking: "", calls: [], stop: "", input: 0, output: 0 };
  for await (const line of await new Ollama({ host: baseURL }).chat({ ...request, stream: true })) {
    out.text += line.message.content;
    out.thinking += line.message.thinking ?? "";
    for (const c of line.message.tool_calls ?? []) out.calls.push({ id: c.id, name: c.function.name, arguments: c.function.arguments });
    if (line.done) Object.assign(out, { stop: line.done_reason, input: line.prompt_eval_count, output: line.eval_count });
  }
  return out;
}

let out;
try {
  out = await { openai, responses, gemini, ollama, anthropic }[kind]();
} catch (e) {
  out = { status: e.status ?? e.status_code ?? 0, error: String(e.message) };
}
process.stdout.write(JSON.stringify(out) + "\n");
