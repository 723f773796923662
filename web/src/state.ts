// What the page shows: the lists and the open conversation, kept current by the gateway's events.

import type { TemplateResult } from "lit";
import { Conversation } from "./conversation";
import * as device from "./device";
import { Disconnected, Gateway, limitedScopes, type Credential } from "./gateway";
import { Canvas } from "./canvas";
import { Outbox } from "./outbox";
import { parts, textOf, type Agent, type AgentEvent, type Approval, type CanvasView, type ChatEvent, type Command, type Decision, type Job, type JobRun, type Message, type Model, type SearchHit, type Session, type Task } from "./wire";

/** Place is what the page shows, as in its address. */
export type Place = { view: "chat"; key: string; message?: string } | { view: "tasks" | "schedule" | "settings" | "questions" };

export interface Dialog {
  title: string;
  text?: string | TemplateResult;
  plan?: string; // what is allowed, in full
  field?: string; // the value of a text field
  confirm: string;
  danger?: boolean;
  act: (field: string) => Promise<void> | void;
}

export class State {
  readonly gateway = new Gateway();
  readonly outbox = new Outbox(this.gateway);
  readonly canvas = new Canvas(this);

  place: Place = { view: "chat", key: "" };
  mainKey = "agent:main:main";
  agents: Agent[] = [];
  defaultAgent = "main";
  newAgent = ""; // of a new conversation
  sessions: Session[] = [];
  archived: Session[] | undefined; // undefined: not shown
  loaded = false;
  query = "";
  found: { sessions: Session[]; hits: SearchHit[] } | undefined;
  open: Conversation | undefined;
  approvals: Approval[] = [];
  deciding = new Set<string>();
  models: Model[] = [];
  commands: Command[] = [];
  tasks: Task[] = [];
  taskDetails = new Map<string, Task>();
  jobs: Job[] = [];
  jobRuns = new Map<string, JobRun[]>();
  dialog: Dialog | undefined;
  toast = "";
  drawer = false;
  settings: { model: string; because: string; thinking: string; hash: string; objectModel: boolean } | undefined;
  device: device.Device | undefined;
  wasOnline = false;
  spoken = ""; // the last answer, for screen readers

  onChange: () => void = () => {};

  private toastTimer: number | undefined;
  private searchTimer: number | undefined;

  async start(credential: Credential): Promise<void> {
    this.gateway.onLink = () => this.linked();
    this.gateway.onEvent = (event, payload) => this.event(event, payload);
    this.gateway.onGap = () => this.refresh();
    this.outbox.onChange = () => this.changed();
    addEventListener("hashchange", () => this.navigate());
    setInterval(() => this.tick(), 1000);
    this.navigate();
    void this.outbox.load();
    if (credential.code) {
      await device.update((d) => {
        if (credential.limited) d.scopes = limitedScopes;
        else delete d.scopes;
      });
    }
    this.gateway.start(credential);
  }

  changed(): void {
    this.onChange();
  }

  // tick redraws what shows a time, and forgets questions that have expired.
  private tick(): void {
    if (this.gateway.link.state === "waiting") this.changed();
    const open = this.approvals.filter((a) => a.expiresAtMs > Date.now());
    if (open.length !== this.approvals.length) {
      this.approvals = open;
      this.changed();
    }
  }

  private linked(): void {
    const { link } = this.gateway;
    if (link.state === "online") {
      this.wasOnline = true;
      const d = link.hello.snapshot.sessionDefaults;
      this.mainKey = d.mainSessionKey;
      this.defaultAgent = d.defaultAgentId;
      this.navigate();
      this.refresh();
    }
    this.changed();
  }

  /** refresh reads everything again that is shown. */
  refresh(): void {
    void this.run(async () => {
      await this.gateway.call("sessions.subscribe");
      void this.readSessions();
      void this.readApprovals();
      void this.readTasks();
      void this.readJobs();
      void this.readChoices();
      void this.canvas.read(this.open?.key);
      await this.open?.read();
      this.outbox.resend();
      if (this.place.view === "settings") void this.readSettings();
    });
  }

  // run carries out work with the gateway; a failure is shown.
  async run(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (err) {
      if (!(err instanceof Disconnected)) this.say(err instanceof Error ? err.message : String(err));
      return false;
    }
  }

  say(text: string): void {
    this.toast = text;
    clearTimeout(this.toastTimer);
    this.toastTimer = window.setTimeout(() => {
      this.toast = "";
      this.changed();
    }, 6000);
    this.changed();
  }

  // ---- places

  static link(place: Place): string {
    if (place.view !== "chat") return `#/${place.view}`;
    return `#/chat/${encodeURIComponent(place.key)}${place.message ? `/${encodeURIComponent(place.message)}` : ""}`;
  }

  go(place: Place): void {
    location.hash = State.link(place);
  }

  /** newChat opens a conversation that exists from its first message on. */
  newChat(agent = this.newAgent || this.defaultAgent): void {
    const id = [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, "0")).join("");
    this.newAgent = agent;
    this.go({ view: "chat", key: `agent:${agent}:chat-${id}` });
  }

  private navigate(): void {
    const [, view = "", key = "", message = ""] = location.hash.replace(/^#/, "").split("/");
    this.drawer = false;
    switch (view) {
      case "tasks":
      case "schedule":
      case "questions":
      case "settings":
        this.place = { view };
        if (view === "settings") void this.readSettings();
        break;
      default: {
        let name = this.mainKey;
        let goal = "";
        try {
          name = decodeURIComponent(key) || this.mainKey;
          goal = decodeURIComponent(message);
        } catch {
          // not an address of this page
        }
        this.place = { view: "chat", key: name, ...(goal ? { message: goal } : {}) };
        this.openChat(name);
        if (goal) void this.run(async () => void (await this.open?.reach(goal)));
      }
    }
    this.changed();
  }

  private openChat(key: string): void {
    if (this.open?.key !== key) {
      this.open = new Conversation(key, this.gateway, this.outbox);
      this.open.onChange = () => this.changed();
      this.open.onName = (name) => location.replace(State.link({ view: "chat", key: name }));
      this.canvas.clear();
      if (this.gateway.link.state === "online") {
        void this.open.read();
        void this.canvas.read(key);
      }
    }
    this.markRead();
  }

  private markRead(): void {
    const s = this.session(this.open?.key ?? "");
    if (!s?.unread || document.hidden || this.place.view !== "chat" || !this.gateway.may("operator.write")) return;
    s.unread = false;
    this.later(`read ${s.key}`, () => this.run(async () => void (await this.gateway.call("sessions.patch", { key: s.key, unread: false }))));
  }

  session(key: string): Session | undefined {
    return this.sessions.find((s) => s.key === key) ?? this.archived?.find((s) => s.key === key) ?? this.found?.sessions.find((s) => s.key === key) ?? (this.away?.key === key ? this.away : undefined);
  }

  // ---- lists

  async readSessions(): Promise<void> {
    await this.run(async () => {
      const list = await this.gateway.call<{ sessions: Session[] }>("sessions.list", {
        limit: 200, excludeSubagents: true, excludeCron: true, includeLastMessage: true,
      });
      this.sessions = list.sessions;
      this.loaded = true;
      if (this.archived) await this.readArchived();
      this.markRead();
      this.changed();
    });
  }

  async readArchived(): Promise<void> {
    const list = await this.gateway.call<{ sessions: Session[] }>("sessions.list", { limit: 200, archived: true });
    this.archived = list.sessions;
    this.changed();
  }

  search(query: string): void {
    this.query = query;
    clearTimeout(this.searchTimer);
    if (!query.trim()) {
      this.found = undefined;
      this.changed();
      return;
    }
    this.searchTimer = window.setTimeout(() => void this.find(query.trim()), 200);
  }

  private async find(query: string): Promise<void> {
    await this.run(async () => {
      const [list, hits] = await Promise.all([
        this.gateway.call<{ sessions: Session[] }>("sessions.list", { search: query, archived: "all", limit: 50 }),
        this.gateway.call<{ results: SearchHit[]; sessions?: Session[] }>("sessions.search", { query, limit: 20, scope: { archived: "all" } }),
      ]);
      if (this.query.trim() !== query) return;
      this.found = { sessions: [...list.sessions], hits: hits.results };
      for (const s of hits.sessions ?? []) {
        if (!list.sessions.some((have) => have.key === s.key)) this.found.sessions.push(s);
      }
      this.foundKeys = new Set(list.sessions.map((s) => s.key));
      this.changed();
    });
  }

  foundKeys = new Set<string>(); // of the sessions whose name matches

  async readApprovals(): Promise<void> {
    if (!this.gateway.may("operator.approvals")) return;
    await this.run(async () => {
      this.approvals = await this.gateway.call<Approval[]>("exec.approval.list");
      this.changed();
    });
  }

  async readTasks(): Promise<void> {
    await this.run(async () => {
      this.tasks = (await this.gateway.call<{ tasks: Task[] }>("tasks.list", { includeTurns: true, limit: 60 })).tasks;
      this.changed();
    });
  }

  async readJobs(): Promise<void> {
    await this.run(async () => {
      this.jobs = (await this.gateway.call<{ jobs: Job[] }>("cron.list", { includeDisabled: true, limit: 200, sortBy: "nextRunAtMs" })).jobs;
      this.changed();
    });
  }

  private async readChoices(): Promise<void> {
    await this.run(async () => {
      const [agents, models, commands] = await Promise.all([
        this.gateway.call<{ agents: Agent[]; defaultId: string }>("agents.list"),
        this.gateway.call<{ models: Model[] }>("models.list"),
        this.gateway.call<{ commands: Command[] }>("commands.list", { scope: "text" }),
      ]);
      this.agents = agents.agents;
      this.defaultAgent = agents.defaultId;
      this.models = models.models;
      this.commands = commands.commands;
      this.changed();
    });
  }

  // ---- events

  private event(event: string, payload: unknown): void {
    switch (event) {
      case "session.message": {
        const e = payload as { sessionKey: string; message: Message; session?: Session };
        if (e.sessionKey === this.open?.key) {
          this.open.stored(e.message);
          const text = textOf(parts(e.message));
          if (e.message.role === "assistant" && text) this.spoken = text.slice(0, 500);
        } else if (e.message.idempotencyKey) this.outbox.drop(e.message.idempotencyKey.replace(/:user$/, ""));
        this.row(e.sessionKey, e.session);
        this.preview(e.sessionKey, e.message);
        break;
      }
      case "sessions.changed": {
        const e = payload as { sessionKey: string; reason?: string; session?: Session };
        this.row(e.sessionKey, e.session);
        if (e.sessionKey !== this.open?.key) break;
        if (e.reason === "reset" || e.reason === "compact" || e.reason === "delete") {
          this.open.restart();
        } else if (e.reason === "send" && this.outbox.of(e.sessionKey).length === 0) void this.open.read(); // another client's message waits
        break;
      }
      case "agent":
      case "session.tool": {
        const e = payload as AgentEvent;
        if (e.sessionKey === this.open?.key) this.open.agent(e);
        break;
      }
      case "chat": {
        const e = payload as ChatEvent;
        if (e.sessionKey === this.open?.key) this.open.chat(e);
        else if (e.state !== "delta") this.outbox.drop(e.runId);
        if (e.state !== "delta") this.later("tasks", () => this.readTasks()); // an answer in progress is one
        break;
      }
      case "canvas.changed": {
        const e = payload as CanvasView;
        if (e.sessionKey === this.open?.key) void this.canvas.read(e.sessionKey);
        break;
      }
      case "exec.approval.requested": {
        const a = payload as Approval;
        this.approvals = [...this.approvals.filter((have) => have.id !== a.id), a];
        break;
      }
      case "exec.approval.resolved":
        this.approvals = this.approvals.filter((a) => a.id !== (payload as { id: string }).id);
        break;
      case "task":
        this.later("tasks", () => this.readTasks());
        break;
      case "cron": {
        this.later("jobs", () => this.readJobs());
        const { jobId } = payload as { jobId?: string };
        if (jobId && this.jobRuns.has(jobId)) this.later(`runs ${jobId}`, () => this.readRuns(jobId));
        break;
      }
      case "config.changed":
        this.later("choices", () => this.readChoices());
        if (this.place.view === "settings") this.later("settings", () => this.readSettings());
        break;
      default:
        return;
    }
    this.changed();
  }

  private timers = new Map<string, number>();

  // later does something soon, once for many events.
  private later(what: string, work: () => Promise<unknown>): void {
    clearTimeout(this.timers.get(what));
    this.timers.set(what, window.setTimeout(() => void work(), 250));
  }

  private away: Session | undefined; // the open conversation, if it is archived

  // row puts the new state of a session into the lists.
  private row(key: string, row: Session | undefined): void {
    const at = this.sessions.findIndex((s) => s.key === key);
    if (!row) {
      this.sessions = this.sessions.filter((s) => s.key !== key);
      if (this.archived) this.archived = this.archived.filter((s) => s.key !== key);
      return;
    }
    if (this.archived) this.archived = [...this.archived.filter((s) => s.key !== key), ...(row.archived ? [row] : [])];
    if (row.archived && key === this.open?.key) this.away = row;
    if (row.archived || row.isBackground) {
      this.sessions = this.sessions.filter((s) => s.key !== key);
      return;
    }
    const preview = at >= 0 ? this.sessions[at]?.lastMessagePreview : undefined;
    const next = { ...row, ...(row.lastMessagePreview === undefined && preview !== undefined ? { lastMessagePreview: preview } : {}) };
    if (at >= 0) this.sessions = this.sessions.with(at, next);
    else this.sessions = [next, ...this.sessions];
    this.markRead();
  }

  // preview shows a new message in the list.
  private preview(key: string, m: Message): void {
    const text = textOf(parts(m)).trim().replaceAll(/\s+/g, " ");
    if (!text || (m.role !== "user" && m.role !== "assistant")) return;
    this.sessions = this.sessions.map((s) => (s.key === key ? { ...s, lastMessagePreview: text.slice(0, 120) } : s));
  }

  // ---- what a person does

  send(text: string, attachments: import("./outbox").Attachment[]): void {
    if (!this.open) return;
    this.open.notes = [];
    this.outbox.add(this.open.key, text, attachments);
  }

  /** stop stops what is being answered, not what waits behind it. */
  stop(): void {
    const { open } = this;
    if (!open) return;
    const active = new Set([...open.live.keys(), ...(this.session(open.key)?.activeRunIds ?? [])]);
    void this.run(async () => {
      for (const runId of active) await this.gateway.call("chat.abort", { sessionKey: open.key, runId });
    });
  }

  withdraw(runId: string): void {
    const key = this.open?.key;
    if (!key) return;
    void this.run(async () => {
      await this.gateway.call("chat.abort", { sessionKey: key, runId });
      this.outbox.drop(runId);
      await this.open?.read();
    });
  }

  async patch(key: string, change: object): Promise<void> {
    await this.run(async () => {
      await this.gateway.call("sessions.patch", { key, ...change });
      await this.readSessions();
    });
  }

  async removeSession(key: string): Promise<void> {
    await this.run(async () => {
      await this.gateway.call("sessions.delete", { key });
      await this.readSessions();
      if (this.open?.key === key) this.go({ view: "chat", key: this.mainKey });
    });
  }

  async resetSession(key: string): Promise<void> {
    await this.run(async () => void (await this.gateway.call("sessions.reset", { key, reason: "new" })));
  }

  async decide(id: string, decision: Decision, expired: string): Promise<void> {
    this.deciding.add(id);
    this.changed();
    try {
      await this.gateway.call("exec.approval.resolve", { id, decision });
      this.approvals = this.approvals.filter((a) => a.id !== id);
    } catch (err) {
      if (!(err instanceof Disconnected)) {
        this.say(expired);
        await this.readApprovals();
      }
    }
    this.deciding.delete(id);
    this.changed();
  }

  async readTask(id: string): Promise<void> {
    await this.run(async () => {
      this.taskDetails.set(id, (await this.gateway.call<{ task: Task }>("tasks.get", { taskId: id })).task);
      this.changed();
    });
  }

  async onTask(method: "tasks.cancel" | "tasks.retry" | "tasks.dismiss", id: string): Promise<void> {
    await this.run(async () => {
      if (method === "tasks.cancel") {
        const r = await this.gateway.call<{ cancelled: boolean; reason?: string }>(method, { taskId: id });
        if (!r.cancelled && r.reason) this.say(r.reason);
      } else {
        const r = await this.gateway.call<{ results: { ok: boolean; reason?: string }[] }>(method, { taskIds: [id] });
        const bad = r.results.find((x) => !x.ok);
        if (bad?.reason) this.say(bad.reason);
      }
      await this.readTasks();
    });
  }

  async readRuns(id: string): Promise<void> {
    await this.run(async () => {
      this.jobRuns.set(id, (await this.gateway.call<{ entries: JobRun[] }>("cron.runs", { id, limit: 10 })).entries);
      this.changed();
    });
  }

  async runJob(id: string, started: string, refused: Record<string, string>): Promise<void> {
    await this.run(async () => {
      const r = await this.gateway.call<{ enqueued?: boolean; reason?: string }>("cron.run", { id });
      this.say(r.reason ? (refused[r.reason] ?? r.reason) : started);
      await this.readJobs();
    });
  }

  async changeJob(id: string, patch: object): Promise<void> {
    await this.run(async () => {
      await this.gateway.call("cron.update", { id, patch });
      await this.readJobs();
    });
  }

  async removeJob(id: string): Promise<void> {
    await this.run(async () => {
      await this.gateway.call("cron.remove", { id });
      await this.readJobs();
    });
  }

  // ---- settings

  async readSettings(): Promise<void> {
    if (this.gateway.link.state !== "online") return;
    await this.run(async () => {
      this.device = await device.load();
      type Defaults = { model?: string | { primary?: string }; thinkingDefault?: string };
      const [config, models] = await Promise.all([
        this.gateway.call<{ hash: string; parsed?: { agents?: { defaults?: Defaults } } }>("config.get"),
        this.gateway.call<{ default: string; reason: string }>("models.status"),
      ]);
      const d = config.parsed?.agents?.defaults ?? {};
      this.settings = {
        model: models.default, because: models.reason, thinking: d.thinkingDefault ?? "", hash: config.hash, objectModel: typeof d.model === "object",
      };
      this.changed();
    });
  }

  async configure(change: { model?: string; thinkingDefault?: string | null }, saved: string, restart: string): Promise<void> {
    const now = this.settings;
    if (!now) return;
    const defaults: Record<string, unknown> = { ...change };
    if (change.model !== undefined && now.objectModel) defaults.model = { primary: change.model };
    await this.run(async () => {
      const r = await this.gateway.call<{ restarts?: boolean }>("config.patch", {
        raw: JSON.stringify({ agents: { defaults } }), baseHash: now.hash, note: "changed on the web page",
      });
      this.say(r.restarts ? restart : saved);
    });
    await this.readSettings();
  }

  async signOut(): Promise<void> {
    const me = await device.load();
    if (this.gateway.may("operator.pairing")) await this.run(async () => void (await this.gateway.call("device.pair.remove", { deviceId: me.id })));
    await device.forget();
    this.gateway.retry();
  }

  async lessScopes(approved: string[]): Promise<void> {
    await device.update((d) => (d.scopes = approved.toSorted()));
    this.gateway.retry();
  }
}
