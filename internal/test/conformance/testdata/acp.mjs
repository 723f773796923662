// Uses the assistant as an editor does, with the library of the Agent Client Protocol.
//
//   node acp.mjs MODULES CHELA ARGUMENT...
//
//   out  {"name": result, …}
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const [modules, chela, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(createRequire(modules + "/").resolve("@agentclientprotocol/sdk")));
const agent = spawn(chela, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const updates = [];
const asked = [];
let seen = () => {};
let answer = "allow-once";
const app = acp
  .client({ name: "editor" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    asked.push(params.options.map((o) => o.kind));
    return { outcome: { outcome: "selected", optionId: answer } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    seen(params.update);
  });

const text = () => updates.filter((u) => u.sessionUpdate === "agent_message_chunk").map((u) => u.content.text).join("");
const out = {};
await app.connectWith(stream, async (ctx) => {
  const m = acp.methods.agent;
  const hello = await ctx.request(m.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  out.initialize = [hello.protocolVersion, hello.agentInfo.name, hello.agentCapabilities.loadSession];
  const { sessionId } = await ctx.request(m.session.new, { cwd: process.cwd(), mcpServers: [] });
  out.session = sessionId.replace(/[0-9a-f-]{36}$/, "ID");
  const prompt = async (words) => {
    updates.length = 0;
    const { stopReason } = await ctx.request(m.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
    return [stopReason, text().trim()];
  };
  out.count = await prompt("count");
  out.pieces = updates.filter((u) => u.sessionUpdate === "agent_message_chunk").length > 1;
  out.allowed = await prompt("run echo hi");
  out.calls = updates.filter((u) => u.sessionUpdate.startsWith("tool_call")).map((u) => u.status);
  answer = "deny";
  out.denied = (await prompt("run echo hi"))[0];
  out.asked = asked;
  out.plan = await prompt("plan").then(() => updates.find((u) => u.sessionUpdate === "plan")?.entries.map((e) => [e.content, e.status]));
  const begun = new Promise((resolve) => (seen = (u) => u.sessionUpdate === "agent_message_chunk" && resolve()));
  const waiting = prompt("wait");
  await begun;
  await ctx.notify(m.session.cancel, { sessionId });
  out.cancelled = (await waiting)[0];
  out.failed = await prompt("fail").catch((e) => [e.code, /scripted refusal/.test(e.message)]);
  updates.length = 0;
  await ctx.request(m.session.load, { sessionId, cwd: process.cwd(), mcpServers: [] });
  out.loaded = updates.filter((u) => u.sessionUpdate === "user_message_chunk").map((u) => u.content.text);
});
agent.stdin.end();
out.exit = await new Promise((resolve) => agent.on("exit", resolve));
process.stdout.write(JSON.stringify(out) + "\n");
