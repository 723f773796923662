// The open conversation: its stored messages and what is being written now. The stored ones are
// the truth; they are read again after every gap, so that nothing is missing or doubled.

import { Disconnected, type Gateway } from "./gateway";
import type { Outbox } from "./outbox";
import { parts, textOf, type AgentEvent, type ChatEvent, type History, type Message, type PendingInput, type Plan, type ToolOutput } from "./wire";

/** ToolState is what is known of a tool call. */
export interface ToolState {
  callId: string;
  name: string;
  title?: string;
  args?: unknown;
  state: "running" | "done" | "failed" | "refused" | "open"; // refused: it did not run
  output: string;
  pictures: { mimeType: string; data: string }[];
  ms?: number;
}

/** Live is a run in progress. */
export interface Live {
  runId: string;
  text: string;
  thinking: string;
  suspended: boolean;
  tools: string[]; // ids of calls that are not in a stored message
}

const pageSize = 120;

export class Conversation {
  readonly key: string;
  messages: Message[] = [];
  tools = new Map<string, ToolState>();
  titles = new Map<string, string>();
  live = new Map<string, Live>();
  pending: PendingInput[] = [];
  notes: { id: string; kind: "error" | "stopped"; text: string }[] = [];
  plan: Plan | undefined;
  loaded = false;
  more = false;
  error = "";

  onChange: () => void = () => {};
  onName: (key: string) => void = () => {}; // the gateway's name of the conversation, if it is another one

  private readonly gateway: Gateway;
  private readonly outbox: Outbox;
  private offset = 0;
  private reading: Promise<void> | undefined;
  private stale = false;

  constructor(key: string, gateway: Gateway, outbox: Outbox) {
    this.key = key;
    this.gateway = gateway;
    this.outbox = outbox;
  }

  /** read reads the newest messages again. */
  read(): Promise<void> {
    if (this.reading) {
      this.stale = true; // what is being read may be older than the cause of this
      return this.reading;
    }
    this.reading = this.readNow().finally(() => {
      this.reading = undefined;
      if (this.stale) {
        this.stale = false;
        void this.read();
      }
    });
    return this.reading;
  }

  private async readNow(): Promise<void> {
    const open = this.outbox.of(this.key).map((i) => i.id);
    try {
      const h = await this.gateway.call<History>("chat.history", {
        sessionKey: this.key,
        limit: pageSize,
        ...(open.length > 0 ? { inputRunIds: open.slice(-50) } : {}),
      });
      if (h.sessionKey !== this.key) {
        this.onName(h.sessionKey);
        return;
      }
      const earlier = h.messages[0]?.__openclaw?.seq ?? 0;
      const kept = this.offset > pageSize ? this.messages.filter((m) => (m.__openclaw?.seq ?? 0) < earlier) : [];
      this.messages = [...kept, ...h.messages];
      if (kept.length === 0) {
        this.more = h.hasMore;
        this.offset = h.nextOffset ?? h.messages.length;
      }
      this.pending = h.pendingInputs.items;
      this.plan = h.plan;
      this.take(h);
      this.resume(h);
      for (const r of h.inputReceipts ?? []) {
        if (r.state === "consumed") this.outbox.drop(r.runId);
      }
      for (const m of h.messages) this.confirm(m);
      this.error = "";
    } catch (err) {
      if (err instanceof Disconnected) return;
      this.error = err instanceof Error ? err.message : String(err);
    }
    this.loaded = true;
    this.onChange();
  }

  /** older reads the messages before those that are shown. */
  async older(): Promise<void> {
    const h = await this.gateway.call<History>("chat.history", { sessionKey: this.key, limit: pageSize, offset: this.offset });
    const have = new Set(this.messages.map((m) => m.__openclaw?.id));
    this.messages = [...h.messages.filter((m) => !have.has(m.__openclaw?.id)), ...this.messages];
    this.take(h);
    this.more = h.hasMore;
    this.offset = h.nextOffset ?? this.offset + h.messages.length;
    this.onChange();
  }

  /** reach reads so many earlier messages that one of them is shown. */
  async reach(id: string): Promise<void> {
    await this.read();
    while (this.more && !this.messages.some((m) => m.__openclaw?.id === id)) await this.older();
    this.onChange();
  }

  // resume restores what a run has written so far.
  private resume(h: History): void {
    const flight = h.inFlightRun;
    const active = new Set(h.sessionInfo?.activeRunIds ?? []);
    if (flight) active.add(flight.runId);
    for (const id of this.live.keys()) {
      if (!active.has(id) && !this.live.get(id)?.suspended) this.live.delete(id);
    }
    if (!flight) return;
    const live = this.run(flight.runId);
    live.suspended = false;
    const last = h.messages.findLast((m) => m.role === "assistant" && m.__openclaw?.runId === flight.runId);
    live.text = last && textOf(parts(last)) === flight.text ? "" : flight.text;
  }

  private take(h: History): void {
    for (const a of h.activity ?? []) for (const i of a.items) this.titles.set(i.toolCallId, i.title);
    for (const m of h.messages) this.index(m);
  }

  // index records the tool calls and results of a message.
  private index(m: Message): void {
    for (const c of parts(m)) {
      if (c.type !== "toolCall" || !c.id) continue;
      const have = this.tools.get(c.id);
      const title = c.title ?? have?.title;
      this.tools.set(c.id, {
        callId: c.id,
        name: c.name ?? "",
        args: c.arguments,
        state: have?.state ?? "open",
        output: have?.output ?? "",
        pictures: have?.pictures ?? [],
        ...(title ? { title } : {}),
        ...(have?.ms !== undefined ? { ms: have.ms } : {}),
      });
      for (const l of this.live.values()) l.tools = l.tools.filter((id) => id !== c.id);
    }
    if (m.role === "toolResult" && m.toolCallId) {
      const tool = this.tool(m.toolCallId, m.toolName ?? "");
      fill(tool, { content: parts(m) }, m.isError);
    }
  }

  private tool(id: string, name: string): ToolState {
    let tool = this.tools.get(id);
    if (!tool) {
      tool = { callId: id, name, state: "running", output: "", pictures: [] };
      this.tools.set(id, tool);
    }
    return tool;
  }

  private run(id: string): Live {
    let live = this.live.get(id);
    if (!live) {
      live = { runId: id, text: "", thinking: "", suspended: false, tools: [] };
      this.live.set(id, live);
    }
    return live;
  }

  /** stored takes a message that the gateway has stored. */
  stored(m: Message): void {
    const id = m.__openclaw?.id;
    const at = this.messages.findIndex((have) => have.__openclaw?.id === id);
    if (at >= 0) this.messages[at] = m;
    else {
      const seq = m.__openclaw?.seq ?? Infinity;
      const before = this.messages.findLastIndex((have) => (have.__openclaw?.seq ?? 0) < seq);
      this.messages.splice(before + 1, 0, m);
    }
    this.index(m);
    this.confirm(m);
    const live = this.live.get(m.__openclaw?.runId ?? "");
    if (live && m.role === "assistant") live.text = live.thinking = "";
    this.onChange();
  }

  // confirm removes what waits for a message of the person that is stored now.
  private confirm(m: Message): void {
    if (m.role !== "user" || !m.idempotencyKey) return;
    const id = m.idempotencyKey.replace(/:user$/, "");
    this.outbox.drop(id);
    this.pending = this.pending.filter((p) => p.runId !== id);
  }

  agent(e: AgentEvent): void {
    const { data } = e;
    const phase = String(data.phase ?? "");
    switch (e.stream) {
      case "lifecycle":
        if (phase === "start" || phase === "model" || phase === "resume") this.run(e.runId).suspended = false;
        else if (phase === "suspended") this.run(e.runId).suspended = true;
        else if (phase === "end" || phase === "error") this.end(e.runId);
        break;
      case "assistant":
        this.run(e.runId).text = String(data.text ?? "");
        break;
      case "thinking":
        this.run(e.runId).thinking = String(data.text ?? "");
        break;
      case "plan":
        this.plan = data as unknown as Plan;
        break;
      case "tool":
        this.step(e.runId, data, phase);
        break;
    }
    this.onChange();
  }

  private step(runId: string, data: Record<string, unknown>, phase: string): void {
    const id = String(data.toolCallId ?? "");
    const known = this.tools.has(id);
    const tool = this.tool(id, String(data.name ?? ""));
    if (!known) this.run(runId).tools.push(id);
    if (data.args !== undefined) tool.args = data.args;
    if (typeof data.meta === "string" && data.meta) tool.title = data.meta;
    switch (phase) {
      case "start":
        tool.state = "running";
        break;
      case "update":
        tool.output += textOf((data.partialResult as ToolOutput | undefined)?.content);
        break;
      case "result":
        if (typeof data.durationMs === "number") tool.ms = data.durationMs;
        fill(tool, data.result as ToolOutput | undefined, Boolean(data.isError));
        break;
    }
  }

  chat(e: ChatEvent): void {
    if (e.state === "delta") return; // the agent events have the text, too
    this.end(e.runId);
    if (e.message?.__openclaw?.kind === "command") {
      void this.read().then(() => this.outbox.drop(e.runId)); // it is stored, without an event
      return;
    }
    this.outbox.drop(e.runId);
    this.pending = this.pending.filter((p) => p.runId !== e.runId);
    if (e.state === "error" && !this.notes.some((n) => n.id === e.runId)) {
      this.notes.push({ id: e.runId, kind: "error", text: e.errorMessage ?? "" });
    }
    this.onChange();
  }

  /** restart forgets what belongs to a transcript that was ended. */
  restart(): void {
    this.live.clear();
    this.notes = [];
    this.offset = 0;
    void this.read();
  }

  private end(runId: string): void {
    this.live.delete(runId);
    for (const tool of this.tools.values()) if (tool.state === "running") tool.state = "open";
  }

  /** working reports whether an answer is being made. */
  get working(): boolean {
    return [...this.live.values()].some((l) => !l.suspended);
  }
}

// notRun begins the result of a call that was not carried out.
const notRun = /^(?:\{[^{}]*"error":")?not run: ([^.;"]*)/;

function fill(tool: ToolState, output: ToolOutput | undefined, failed: boolean | undefined): void {
  tool.output = textOf(output?.content);
  const why = failed ? notRun.exec(tool.output)?.[1] : undefined;
  tool.state = why ? "refused" : failed ? "failed" : "done";
  if (why) tool.output = why; // what follows is for the model
  tool.pictures = (output?.content ?? [])
    .filter((c) => c.type === "image" && c.data)
    .map((c) => ({ mimeType: c.mimeType ?? "image/png", data: c.data ?? "" }));
}
