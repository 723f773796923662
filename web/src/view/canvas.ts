// The canvas beside the conversation.

import { html, nothing, type TemplateResult } from "lit";
import { keyed } from "lit/directives/keyed.js";
import type { State } from "../state";
import { t } from "../text";
import { icons } from "./icon";

export function canvasView(state: State): TemplateResult | typeof nothing {
  const { canvas } = state;
  const { shown, path } = canvas;
  if (!shown || !path) return nothing;
  return html`<aside class="canvas" aria-label=${t.canvas}>
    <header><h2>${shown.kind === "page" ? shown.page : t.canvas}</h2>
      <a class="ghost" href=${path} target="_blank" rel="noopener noreferrer" title=${t.newTab} aria-label=${t.newTab}>${icons.out}</a>
      <button class="ghost" title=${t.close} aria-label=${t.close} @click=${() => canvas.close()}>${icons.close}</button></header>
    ${keyed(`${path} ${shown.version}`, html`<iframe title=${t.canvas} sandbox="allow-scripts allow-forms" src=${path} @load=${(e: Event) => canvas.loaded(e.target as HTMLIFrameElement)}></iframe>`)}
  </aside>`;
}
