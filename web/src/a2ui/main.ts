// The page that draws A2UI. Messages come from the gateway, or from the app that shows the page
// through window.openclawA2UI, as OpenClaw's apps do it. What the person does goes to the app,
// or to the gateway's page around this one, which gives it a port. With neither, the page only
// shows.

import "./style.css";
import { render } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { Surfaces, type Json } from "./data";
import { View, type Action, type Screen } from "./view";

interface Bridge {
  postMessage(message: unknown): void;
}

declare global {
  interface Window {
    openclawA2UI?: unknown;
    openclawCanvasA2UIAction?: Bridge;
    webkit?: { messageHandlers?: { openclawCanvasA2UIAction?: Bridge } };
  }
}

const surfaces = new Surfaces();
const place = document.getElementById("surfaces") as HTMLElement;
let port: MessagePort | undefined;
let due = false;
const reported = new Set<string>();

function toApp(a: Action): boolean {
  const userAction = { id: crypto.randomUUID?.() ?? String(Math.random()).slice(2), ...a };
  const apple = window.webkit?.messageHandlers?.openclawCanvasA2UIAction;
  if (apple) apple.postMessage({ userAction });
  else window.openclawCanvasA2UIAction?.postMessage(JSON.stringify({ userAction }));
  return Boolean(apple ?? window.openclawCanvasA2UIAction);
}

function inApp(): boolean {
  return Boolean(window.webkit?.messageHandlers?.openclawCanvasA2UIAction ?? window.openclawCanvasA2UIAction);
}

function act(action: Action): void {
  if (!toApp(action)) port?.postMessage({ action });
}

const screen: Screen = {
  changed: () => changed(),
  get act() {
    return port || inApp() ? act : undefined;
  },
  open: (url) => port?.postMessage({ open: url }),
  report: (problem) => {
    if (reported.has(problem) || reported.size >= 20) return;
    reported.add(problem);
    port?.postMessage({ problem });
  },
};
const view = new View(screen);

// changed draws what has changed, once for several changes.
function changed(): void {
  if (due) return;
  due = true;
  queueMicrotask(() => {
    due = false;
    const list = [...surfaces.all.values()];
    render(repeat(list, (s) => s.id, (s) => view.surface(s)), place);
  });
}

function apply(messages: Json[]): void {
  for (const m of messages) {
    try {
      surfaces.apply(m);
    } catch (err) {
      screen.report(err instanceof Error ? err.message : String(err));
    }
  }
  changed();
}

function reset(): void {
  surfaces.all.clear();
  reported.clear();
  changed();
}

const list = (): string[] => [...surfaces.all.keys()];
window.openclawA2UI = {
  applyMessages: (messages: Json[]) => {
    if (!Array.isArray(messages)) throw new Error("A2UI: expected messages array");
    apply(messages);
    return { ok: true, surfaces: list() };
  },
  reset: () => {
    reset();
    return { ok: true };
  },
  getSurfaces: list,
};

// The gateway's page around this one gives a port, once.
addEventListener("message", (e) => {
  if (e.source !== parent || parent === window || port || e.data !== "chela-canvas" || !e.ports[0]) return;
  port = e.ports[0];
  changed();
});

// An app pushes the messages itself.
if (!inApp() && !new URLSearchParams(location.search).has("platform")) {
  const events = new EventSource(new URL("events", location.href));
  events.onmessage = (e) => {
    const u = JSON.parse(String(e.data)) as { reset: boolean; messages: Json[] };
    if (u.reset) reset();
    apply(u.messages);
  };
}
