// A connection to the gateway that served this page, and to no other. It is opened again
// whenever it is lost.

import * as device from "./device";
import type { Fault, Frame, Hello } from "./wire";

/** allScopes are what the page asks for: to read, to write, to answer questions, and to change
 * the schedule and the settings. */
export const allScopes = ["operator.admin", "operator.approvals", "operator.read", "operator.write"];

/** limitedScopes are those that an invitation over an unencrypted connection grants. */
export const limitedScopes = ["operator.approvals", "operator.read", "operator.write"];

export class GatewayError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(f: Fault) {
    super(f.message);
    this.code = f.code;
    this.details = f.details ?? {};
  }

  /** detail is the code in the details. */
  get detail(): string {
    return typeof this.details.code === "string" ? this.details.code : "";
  }
}

/** Disconnected says that a request was not answered: it may have been carried out. */
export class Disconnected extends Error {
  constructor() {
    super("the connection was lost");
  }
}

/** Link is the state of the connection. */
export type Link =
  | { state: "connecting" }
  | { state: "online"; hello: Hello }
  | { state: "waiting"; retryAt: number; reason: "restart" | "gone" | "locked" | "refused"; text?: string }
  | { state: "signin"; problem?: "token" | "password" | "revoked" | "code" | "device"; mode: "token" | "password" }
  | { state: "pairing"; requestId: string; approved: string[] | null }
  | { state: "stopped"; text: string };

/** Credential is what a person or a link gave to this page; it is used once. */
export interface Credential {
  code?: string;
  limited?: boolean; // the code grants limitedScopes
  secret?: string;
}

interface Pending {
  resolve: (payload: unknown) => void;
  reject: (err: Error) => void;
}

const pairingInterval = 3000;

export class Gateway {
  link: Link = { state: "connecting" };
  onLink: () => void = () => {};
  onEvent: (event: string, payload: unknown) => void = () => {};
  onGap: () => void = () => {}; // events were missed

  private socket: WebSocket | undefined;
  private pending = new Map<string, Pending>();
  private count = 0;
  private attempt = 0;
  private timer: number | undefined;
  private credential: Credential = {};
  private seq = 0;
  private heard = 0;
  private tick = 30_000;
  private ending: "restart" | undefined;

  /** start opens the connection, with a credential if there is one. */
  start(credential: Credential = {}): void {
    this.credential = credential;
    document.addEventListener("visibilitychange", () => this.wake());
    addEventListener("online", () => this.wake());
    setInterval(() => this.watch(), 5000);
    void this.open();
  }

  /** signIn tries a secret that the person typed. */
  signIn(secret: string): void {
    this.credential = { secret };
    this.retry();
  }

  /** retry opens the connection now. */
  retry(): void {
    this.attempt = 0;
    this.close();
    void this.open();
  }

  /** stop ends the connection until the next retry. */
  stop(): void {
    this.close();
  }

  /** may reports whether the connection has a scope. */
  may(scope: string): boolean {
    if (this.link.state !== "online") return false;
    const { scopes } = this.link.hello.auth;
    return scopes.includes("operator.admin") || scopes.includes(scope);
  }

  async call<T>(method: string, params: object = {}): Promise<T> {
    const socket = this.socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) throw new Disconnected();
    const id = `${++this.count}`;
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (payload: unknown) => void, reject });
      socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  private set(link: Link): void {
    this.link = link;
    this.onLink();
  }

  private close(): void {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = undefined;
    if (socket) {
      socket.onmessage = socket.onclose = socket.onerror = null;
      socket.close();
    }
    this.fail();
  }

  private fail(): void {
    const all = [...this.pending.values()];
    this.pending.clear();
    for (const p of all) p.reject(new Disconnected());
  }

  private async open(): Promise<void> {
    if (this.link.state !== "pairing") this.set({ state: "connecting" });
    const address = new URL("./", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = address.hash = "";
    const socket = new WebSocket(address);
    this.socket = socket;
    this.heard = Date.now();
    this.ending = undefined;
    socket.onmessage = (e) => {
      this.heard = Date.now();
      void this.receive(socket, JSON.parse(String(e.data)) as Frame);
    };
    socket.onclose = (e) => {
      if (this.socket !== socket) return;
      this.socket = undefined;
      this.fail();
      void this.lost(e.code);
    };
  }

  private async receive(socket: WebSocket, f: Frame): Promise<void> {
    if (socket !== this.socket) return;
    if (f.type === "res") {
      const p = this.pending.get(f.id ?? "");
      this.pending.delete(f.id ?? "");
      if (f.ok) p?.resolve(f.payload);
      else p?.reject(new GatewayError(f.error ?? { code: "UNAVAILABLE", message: "no reason given" }));
      return;
    }
    if (f.event === "connect.challenge") {
      const { nonce, ts } = f.payload as { nonce: string; ts: number };
      await this.connect(socket, nonce, ts);
      return;
    }
    if (f.event === "shutdown") this.ending = "restart";
    if (f.seq !== undefined) {
      const gap = this.seq > 0 && f.seq > this.seq + 1;
      this.seq = f.seq;
      if (gap) this.onGap();
    }
    if (f.event) this.onEvent(f.event, f.payload);
  }

  private async connect(socket: WebSocket, nonce: string, signedAt: number): Promise<void> {
    const me = await device.load();
    const scopes = me.scopes ?? allScopes;
    const { code, secret } = this.credential;
    const auth: Record<string, string> = {};
    if (secret) auth.token = auth.password = secret;
    else {
      if (me.token) auth.deviceToken = me.token;
      if (code) auth.bootstrapToken = code;
    }
    const client = { id: "webchat-ui", mode: "webchat", version: "1", platform: me.platform, displayName: device.browserName() };
    const signed = ["v3", me.id, client.id, client.mode, "operator", scopes.join(","), signedAt,
      auth.token ?? auth.deviceToken ?? auth.bootstrapToken ?? "", nonce, client.platform, ""].join("|");
    const signature = await device.sign(me, signed);
    if (socket !== this.socket) return;
    try {
      const hello = await this.call<Hello>("connect", {
        minProtocol: 4, maxProtocol: 4, client, role: "operator", scopes, caps: ["tool-events"], auth,
        device: { id: me.id, publicKey: me.publicKey, signature, signedAt, nonce },
        locale: navigator.language,
      });
      this.credential = {};
      this.seq = this.attempt = 0;
      this.tick = hello.policy.tickIntervalMs;
      const token = hello.auth.deviceToken;
      if (token) await device.update((d) => (d.token = token));
      this.set({ state: "online", hello });
    } catch (err) {
      if (err instanceof GatewayError && socket === this.socket) await this.refused(err);
    }
  }

  // refused handles the gateway's refusal of a connection.
  private async refused(err: GatewayError): Promise<void> {
    this.close();
    const usedCode = Boolean(this.credential.code);
    const usedSecret = Boolean(this.credential.secret);
    const mode = err.detail.includes("PASSWORD") ? "password" : "token";
    switch (err.detail) {
      case "PAIRING_REQUIRED": {
        const approved = Array.isArray(err.details.approvedScopes) ? (err.details.approvedScopes as string[]) : null;
        this.set({ state: "pairing", requestId: String(err.details.requestId ?? ""), approved });
        this.later(pairingInterval);
        return;
      }
      case "AUTH_TOKEN_MISSING":
      case "AUTH_PASSWORD_MISSING":
      case "DEVICE_IDENTITY_REQUIRED":
        this.set({ state: "signin", mode });
        return;
      case "AUTH_TOKEN_MISMATCH":
      case "AUTH_PASSWORD_MISMATCH":
      case "AUTH_DEVICE_TOKEN_MISMATCH":
        this.credential = {};
        if (!usedSecret) await device.update((d) => delete d.token);
        this.set({ state: "signin", mode, problem: usedSecret ? mode : "revoked" });
        return;
      case "AUTH_BOOTSTRAP_TOKEN_INVALID":
        this.credential = {};
        this.set({ state: "signin", mode, problem: "code" });
        return;
      case "AUTH_SCOPE_MISMATCH":
        await device.update((d) => delete d.token);
        this.set({ state: "signin", mode, problem: "revoked" });
        return;
      case "AUTH_RATE_LIMITED":
        this.wait("locked", 60_000);
        return;
      default:
        if (err.code === "UNAVAILABLE") this.wait("restart", 1000);
        else if (err.detail.startsWith("DEVICE_AUTH_")) {
          if (usedCode) this.credential = {};
          this.set({ state: "stopped", text: err.message });
        } else this.set({ state: "stopped", text: err.message });
    }
  }

  // lost handles the end of a connection that the gateway did not explain.
  private async lost(code: number): Promise<void> {
    if (this.ending === "restart" || code === 1012 || code === 1013) {
      this.wait("restart", 700);
      return;
    }
    const wait = Math.min(15_000, 700 * 2 ** this.attempt++);
    const answer = await probe();
    if (this.socket || this.link.state === "stopped") return;
    if (answer?.status === 429) this.wait("locked", 60_000);
    else if (answer?.status === 403) this.wait("refused", 30_000, answer.text);
    else if (this.link.state === "pairing") this.later(wait);
    else this.wait("gone", wait);
  }

  private wait(reason: "restart" | "gone" | "locked" | "refused", ms: number, text?: string): void {
    this.set({ state: "waiting", retryAt: Date.now() + ms, reason, ...(text ? { text } : {}) });
    this.later(ms);
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.open(), ms);
  }

  // wake tries again at once when the person comes back.
  private wake(): void {
    if (document.hidden) return;
    if (this.link.state === "waiting" && this.link.reason === "gone") this.retry();
    this.watch();
  }

  // watch ends a connection on which nothing has come for too long.
  private watch(): void {
    if (this.socket && Date.now() - this.heard > 2 * this.tick + 5000) {
      this.close();
      void this.lost(4000);
    }
  }
}

// probe asks what keeps the gateway from accepting connections; undefined: it does not answer.
async function probe(): Promise<{ status: number; text: string } | undefined> {
  try {
    const res = await fetch("./", { cache: "no-store" });
    const body = res.ok ? "" : await res.text();
    let text = body.slice(0, 300);
    try {
      text = (JSON.parse(body) as { error: { message: string } }).error.message;
    } catch {
      // not in the form of the gateway's errors
    }
    return { status: res.status, text };
  } catch {
    return undefined;
  }
}
