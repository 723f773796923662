// Uses a gateway as a model, with the clients of OpenAI, Anthropic and Vercel.
//
//   node models.mjs MODULES URL TOKEN
//
// Each line of the output is a JSON array: the name of a request, and what the client got.
import { createRequire } from "node:module";

const [modules, url, token] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { OpenAI } = require("openai");
const { Anthropic } = require("@anthropic-ai/sdk");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { generateText, streamText } = require("ai");

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const count = [{ role: "user", content: "count" }];

async function tell(name, f) {
  let got;
  try {
    got = await f();
  } catch (e) {
    got = { error: e.constructor.name, status: e.status ?? e.statusCode, code: e.code ?? undefined, message: String(e.message) };
  }
  console.log(JSON.stringify([name, got]));
}

const openai = (options = {}) => new OpenAI({ apiKey: token, baseURL: url + "/v1", maxRetries: 0, ...options });

async function overOpenAI() {
  const client = openai();
  await tell("openai models", async () => (await client.models.list()).data.map((m) => m.id));
  await tell("openai model", async () => (await client.models.retrieve("chela/main")).id);
  await tell("openai chat", async () => {
    const c = await client.chat.completions.create({ model: "chela", messages: count });
    return [c.choices[0].message.content, c.choices[0].finish_reason, c.usage.total_tokens > 0, c.id.startsWith("chatcmpl_")];
  });
  await tell("openai chat stream", async () => {
    const options = { model: "chela", messages: count, stream_options: { include_usage: true } };
    const c = await client.chat.completions.stream(options).finalChatCompletion();
    return [c.choices[0].message.content, c.choices[0].finish_reason, c.usage.total_tokens > 0, c.choices[0].message.role];
  });
  await tell("openai chat iterator", async () => {
    let text = "", chunks = 0;
    for await (const chunk of await client.chat.completions.create({ model: "openclaw/main", messages: count, stream: true })) {
      text += chunk.choices[0]?.delta?.content ?? "";
      chunks++;
    }
    return [text, chunks > 2];
  });
  await tell("openai image", async () => {
    const content = [{ type: "text", text: "echo seen" }, { type: "image_url", image_url: { url: "data:image/png;base64," + png } }];
    return (await client.chat.completions.create({ model: "chela", messages: [{ role: "user", content }] })).choices[0].message.content;
  });
  await tell("openai responses", async () => {
    const r = await client.responses.create({ model: "chela", input: "count", instructions: "Be brief." });
    const again = await client.responses.create({ model: "chela", input: "echo again", previous_response_id: r.id });
    return [r.output_text, r.status, r.usage.total_tokens > 0, again.output_text, again.previous_response_id === r.id];
  });
  await tell("openai responses stream", async () => {
    const s = client.responses.stream({ model: "chela", input: "count" });
    let text = "";
    s.on("response.output_text.delta", (e) => (text += e.delta));
    const r = await s.finalResponse();
    return [r.output_text, text === r.output_text, r.status, r.usage.total_tokens > 0];
  });
  await tell("openai responses failure", async () => {
    for await (const e of await client.responses.create({ model: "chela", input: "fail", stream: true })) {
      if (e.type === "response.failed") return [e.response.status, e.response.error.message];
    }
  });
  await tell("openai no token", () => openai({ apiKey: "wrong" }).chat.completions.create({ model: "chela", messages: count }));
  await tell("openai model name", () => client.chat.completions.create({ model: "gpt-5", messages: count }));
  await tell("openai n", () => client.chat.completions.create({ model: "chela", messages: count, n: 2 }));
  await tell("openai failure", () => openai({ maxRetries: 2 }).chat.completions.create({ model: "chela", messages: [{ role: "user", content: "fail" }] }));
  await tell("openai failure stream", () =>
    client.chat.completions.stream({ model: "chela", messages: [{ role: "user", content: "fail" }] }).finalChatCompletion());
}

const anthropic = (options = {}) => new Anthropic({ apiKey: token, baseURL: url, maxRetries: 0, ...options });

async function overAnthropic() {
  const client = anthropic();
  const request = { model: "chela", max_tokens: 1000, messages: count };
  await tell("anthropic models", async () => (await client.models.list()).data.map((m) => m.id));
  await tell("anthropic message", async () => {
    const m = await client.messages.create({ ...request, system: "Be brief.", metadata: { user_id: "u1" } });
    return [m.content[0].text, m.stop_reason, m.usage.output_tokens > 0, m.role];
  });
  await tell("anthropic stream", async () => {
    const m = await client.messages.stream(request).finalMessage();
    return [m.content[0].text, m.stop_reason, m.usage.output_tokens > 0, m.usage.input_tokens > 0];
  });
  await tell("anthropic image", async () => {
    const content = [{ type: "image", source: { type: "base64", media_type: "image/png", data: png } }, { type: "text", text: "echo seen" }];
    return (await client.messages.create({ ...request, messages: [{ role: "user", content }] })).content[0].text;
  });
  await tell("anthropic x-api-key", async () => {
    const headers = { authorization: null, "x-api-key": token, "anthropic-version": "2023-06-01" };
    return (await client.messages.create(request, { headers })).stop_reason;
  });
  await tell("anthropic no token", () => anthropic({ apiKey: "wrong" }).messages.create(request));
  await tell("anthropic model name", () => client.messages.create({ ...request, model: "claude-of-others" }));
  const fail = { ...request, messages: [{ role: "user", content: "fail" }] };
  await tell("anthropic failure", () => anthropic({ maxRetries: 2 }).messages.create(fail));
  await tell("anthropic failure stream", () => client.messages.stream(fail).finalMessage());
}

async function overVercel() {
  const provider = (apiKey) => createOpenAICompatible({ name: "chela", apiKey, baseURL: url + "/v1", includeUsage: true });
  const model = provider(token)("chela");
  await tell("vercel text", async () => {
    const r = await generateText({ model, system: "Be brief.", prompt: "count", temperature: 0.1, maxOutputTokens: 100, maxRetries: 0 });
    return [r.text, r.finishReason, r.usage.totalTokens > 0];
  });
  await tell("vercel stream", async () => {
    const r = streamText({ model, messages: count, maxRetries: 0 });
    let text = "";
    for await (const part of r.textStream) text += part;
    return [text, await r.finishReason, (await r.usage).totalTokens > 0];
  });
  await tell("vercel no token", () => generateText({ model: provider("wrong")("chela"), prompt: "count", maxRetries: 0 }));
  await tell("vercel image", async () => {
    const content = [{ type: "text", text: "echo seen" }, { type: "file", mediaType: "image/png", data: "data:image/png;base64," + png }];
    return (await generateText({ model, messages: [{ role: "user", content }], maxRetries: 0 })).text;
  });
}

await overOpenAI();
await overAnthropic();
await overVercel();
