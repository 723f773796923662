// A tool call: one line that says what it is and what came of it; the rest on opening.

import { html, nothing, type TemplateResult } from "lit";
import type { ToolState } from "../conversation";
import { span } from "../format";
import { t } from "../text";
import { icons } from "./icon";

const shown = 20_000; // characters of an output

/** Progress is what may still become of a call without a result. */
export type Progress = "running" | "waiting" | "over";

export function toolCall(tool: ToolState, progress: Progress): TemplateResult {
  const open = tool.state === "open" || tool.state === "running";
  const state = open && progress !== "over" ? progress : tool.state;
  const label = { running: t.toolRuns, waiting: t.toolWaits, done: t.toolDone, failed: t.toolFailed, refused: t.toolRefused, open: t.toolUnknown }[state];
  return html`<details class="tool ${state}">
    <summary>
      <span class="mark" aria-hidden="true">${state === "done" ? icons.check : state === "failed" || state === "refused" ? icons.cross : nothing}</span>
      <span class="tool-title">${title(tool)}</span>
      ${state === "done" || state === "refused" ? outcome(tool) : nothing}
      <span class="tool-state">${state === "done" ? html`<span class="hidden">${label}</span>` : label}${tool.ms !== undefined && tool.ms >= 1000 ? ` ${span(tool.ms)}` : nothing}</span>
      ${icons.chevron}
    </summary>
    <div class="tool-body">
      ${hasInput(tool) ? html`<h4>${t.input}</h4><pre tabindex="0">${input(tool)}</pre>` : nothing}
      <h4>${t.output}</h4>
      ${tool.output ? html`<pre tabindex="0">${tool.output.length > shown ? tool.output.slice(0, shown) + `\n… ${t.shortened}` : tool.output}</pre>` : tool.pictures.length === 0 ? html`<p class="quiet">${t.noOutput}</p>` : nothing}
      ${tool.pictures.map((p) => html`<img alt=${t.picture} src=${`data:${p.mimeType};base64,${p.data}`} />`)}
    </div>
  </details>`;
}

function title(tool: ToolState): TemplateResult {
  const text = tool.title && tool.title !== tool.name ? tool.title : summary(tool);
  const rest = text.startsWith(tool.name) ? text.slice(tool.name.length).trim() : text;
  return html`<b>${tool.name || t.aTool}</b>${rest && rest !== tool.name ? html` <span>${rest}</span>` : nothing}`;
}

// summary is the first argument that says something.
function summary(tool: ToolState): string {
  const args = tool.args;
  if (!args || typeof args !== "object") return tool.name;
  const value = Object.values(args).find((v) => typeof v === "string" && v.length > 0);
  return `${tool.name} ${typeof value === "string" ? (value.split("\n")[0] ?? "").slice(0, 120) : ""}`;
}

// outcome is what came of it, if that fits into the line.
function outcome(tool: ToolState): TemplateResult | typeof nothing {
  const lines = tool.output.trim().split("\n");
  const first = lines[0] ?? "";
  if (lines.length !== 1 || !first || first.length > 60) return nothing;
  return html`<span class="tool-outcome">${first}</span>`;
}

function hasInput(tool: ToolState): boolean {
  return Boolean(tool.args && typeof tool.args === "object" && Object.keys(tool.args).length > 0);
}

function input(tool: ToolState): string {
  const entries = Object.entries(tool.args as Record<string, unknown>);
  const [only] = entries;
  if (entries.length === 1 && only && typeof only[1] === "string") return only[1];
  return entries.map(([name, v]) => `${name}: ${typeof v === "string" ? v : JSON.stringify(v, null, 2)}`).join("\n");
}
