// The canvas of the open conversation: what the assistant shows beside it. Its pages run in a
// frame with an origin of its own, and are told nothing. Only the page that draws A2UI, which is
// the gateway's own, gets a port, through which it says what the person does.

import type { State } from "./state";
import { t } from "./text";
import type { CanvasView } from "./wire";

/** Said is what comes through the port. */
interface Said {
  action?: { name: string; surfaceId: string; sourceComponentId: string; context: object };
  open?: string;
  problem?: string;
}

export class Canvas {
  view: CanvasView | undefined; // undefined: nothing is shown
  closed = 0; // version that the person closed
  private readonly state: State;
  private port: MessagePort | undefined;

  constructor(state: State) {
    this.state = state;
  }

  /** shown is what the page shows now. */
  get shown(): CanvasView | undefined {
    return this.view && this.view.version !== this.closed ? this.view : undefined;
  }

  clear(): void {
    this.port?.close();
    this.port = undefined;
    this.view = undefined;
    this.closed = 0;
  }

  /** read asks what a session shows. */
  async read(key: string | undefined): Promise<void> {
    if (!key) return;
    let view: CanvasView | undefined;
    try {
      view = await this.state.gateway.call<CanvasView>("canvas.view", { sessionKey: key });
    } catch {
      // there is no canvas, or no connection
    }
    if (this.state.open?.key !== key) return;
    this.view = view?.kind && view.url ? view : undefined;
    this.state.changed();
  }

  close(): void {
    this.closed = this.view?.version ?? 0;
    this.state.changed();
  }

  show(): void {
    this.closed = 0;
    this.state.changed();
  }

  /** path is the address of what is shown, on the server of this page. */
  get path(): string {
    return this.shown?.url ? new URL(this.shown.url).pathname : "";
  }

  /** loaded gives the page that draws A2UI its port. */
  loaded(frame: HTMLIFrameElement): void {
    this.port?.close();
    this.port = undefined;
    const view = this.shown;
    if (view?.kind !== "a2ui" || !this.state.gateway.may("operator.write")) return;
    const channel = new MessageChannel();
    this.port = channel.port1;
    this.port.onmessage = (e) => this.said(view.sessionKey, e.data as Said);
    frame.contentWindow?.postMessage("chela-canvas", "*", [channel.port2]); // its origin is none
  }

  private said(sessionKey: string, m: Said): void {
    const { state } = this;
    if (m.action) {
      const { name, surfaceId, sourceComponentId, context } = m.action;
      const idempotencyKey = crypto.randomUUID();
      void state.run(async () => void (await state.gateway.call("canvas.action", { sessionKey, name, surfaceId, sourceComponentId, context, idempotencyKey })));
    }
    if (m.problem) void state.gateway.call("canvas.report", { sessionKey, message: String(m.problem).slice(0, 500) }).catch(() => {});
    const url = m.open;
    if (url && /^https?:\/\//i.test(url)) {
      state.dialog = { title: t.openLink, plan: url, confirm: t.openIt, act: () => void window.open(url, "_blank", "noopener,noreferrer") };
      state.changed();
    }
  }
}
