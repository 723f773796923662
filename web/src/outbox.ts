// Messages that the gateway has not confirmed. Each has an id, which is the id of its run: the
// gateway starts nothing if it knows the id, so that a message can be sent again after every
// doubt. They survive a reload of the page.

import * as database from "./database";
import { Disconnected, type Gateway } from "./gateway";

export interface Attachment {
  type: "image" | "audio" | "file";
  mimeType: string;
  fileName: string;
  content: string; // base64
}

export interface Outgoing {
  id: string;
  sessionKey: string;
  text: string;
  attachments: Attachment[];
  at: number;
  state: "sending" | "sent" | "failed";
  error?: string;
}

/** fresh is how old an unconfirmed message may be to be sent again unasked. */
const fresh = 10 * 60_000;

export class Outbox {
  items: Outgoing[] = [];
  onChange: () => void = () => {};

  private readonly gateway: Gateway;

  constructor(gateway: Gateway) {
    this.gateway = gateway;
  }

  async load(): Promise<void> {
    const kept = await database.readAll<Outgoing>("outbox");
    for (const item of kept) {
      if (Date.now() - item.at > fresh && item.state !== "failed") item.state = "failed";
      if (!this.items.some((have) => have.id === item.id)) this.items.push(item);
    }
    this.items.sort((a, b) => a.at - b.at);
    this.onChange();
  }

  of(sessionKey: string): Outgoing[] {
    return this.items.filter((i) => i.sessionKey === sessionKey);
  }

  add(sessionKey: string, text: string, attachments: Attachment[]): Outgoing {
    const item: Outgoing = { id: newID(), sessionKey, text, attachments, at: Date.now(), state: "sending" };
    this.items.push(item);
    void database.write("outbox", item.id, item);
    void this.send(item);
    return item;
  }

  /** again sends a message that was not accepted. */
  again(item: Outgoing): void {
    item.state = "sending";
    item.at = Date.now();
    delete item.error;
    void this.send(item);
  }

  /** resend sends everything again that the gateway may not have. */
  resend(): void {
    for (const item of this.items) {
      if (item.state === "sending") void this.send(item);
    }
  }

  drop(id: string): void {
    const n = this.items.length;
    this.items = this.items.filter((i) => i.id !== id);
    if (this.items.length === n) return;
    void database.remove("outbox", id);
    this.onChange();
  }

  private async send(item: Outgoing): Promise<void> {
    this.onChange();
    try {
      const { status } = await this.gateway.call<{ status: string }>("chat.send", {
        sessionKey: item.sessionKey,
        message: item.text,
        idempotencyKey: item.id,
        ...(item.attachments.length > 0 ? { attachments: item.attachments } : {}),
      });
      if (status === "ok" || status === "error") this.drop(item.id); // it was answered
      else item.state = "sent";
    } catch (err) {
      if (err instanceof Disconnected) return; // sent again after the next hello
      item.state = "failed";
      item.error = err instanceof Error ? err.message : String(err);
    }
    if (this.items.includes(item)) void database.write("outbox", item.id, item);
    this.onChange();
  }
}

function newID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "web-" + [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}
